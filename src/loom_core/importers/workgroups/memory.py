"""Buffers and views: pointers of the element type that they are accessed with."""

from __future__ import annotations

from typing import Final

from loom_core.base.dtype import DType, i32, i64, u8
from loom_core.importers.workgroups.conversion import Conversion, Memory, View, converts
from loom_core.importers.workgroups.lanes import DTYPES
from loom_core.interchange.form import DYNAMIC_INDEX
from loom_core.interchange.model import Operation
from loom_core.interchange.types import DynamicDim, ShapedType
from loom_core.ir.value import Value
from loom_core.ops.atomic import AtomicRmw
from loom_core.ops.elementwise import Add, Div, Mul, Negate
from loom_core.ops.memory import AddPointer, Load, Store, Window

RMW_KINDS: Final = {
    "addi": "add", "subi": "add", "minsi": "min", "maxsi": "max", "andi": "and", "ori": "or", "xori": "xor",
    "addf": "add", "minnumf": "min", "maxnumf": "max", "xchgi": "xchg", "xchgf": "xchg",
}  # fmt: skip


@converts("buffer.assume.alignment", "buffer.assume.noalias")
def _assumed(c: Conversion, op: Operation) -> None:
    for operand, result in zip(op.operands, op.results, strict=True):
        c.memories[result] = c.memory(operand)


@converts("buffer.assume.memory_space", "buffer.assume.same_root")
def _assumed_one(c: Conversion, op: Operation) -> None:
    c.memories[op.results[0]] = c.memory(op.operands[0])


@converts("buffer.alloca")
def _allocate(c: Conversion, op: Operation) -> None:
    space = op.attributes["memory_space"]
    if space not in ("workgroup", "private"):
        c.refuse(f"{space} memory is not allocated by kernels; workgroup and private memory is")
    constant = next((o for o in c.module.walk() if o.results == op.operands and o.name == "index.constant"), None)
    if constant is None:
        c.refuse("the length is no constant")
    byte_count = int(constant.attributes["value"])
    c.memories[op.results[0]] = Memory(c.module.values[op.results[0]].name, byte_count, space == "private")


@converts("buffer.length")
def _length(c: Conversion, op: Operation) -> None:
    memory = c.memory(op.operands[0])
    known = memory.byte_count
    c.bind(op.results[0], c.number(memory.name, "length", i64) if known is None else c.index(known))


@converts("buffer.load.i8.u")
def _load_byte(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], load_byte(c, op.operands[0], c.value(op.operands[1])))


@converts("buffer.store.i8")
def _store_byte(c: Conversion, op: Operation) -> None:
    value, target, offset = op.operands
    store_byte(c, target, c.value(offset), c.value(value))


def load_byte(c: Conversion, buffer: int, offset: Value) -> Value:
    """The byte of a buffer at an offset, i32."""
    return c.lanes.cast(_load(c, _address(c, _touched(c, buffer, u8), u8, offset)), i32)


def store_byte(c: Conversion, buffer: int, offset: Value, value: Value) -> None:
    """Write the low byte of an integer."""
    _store(c, _address(c, _touched(c, buffer, u8), u8, offset), c.lanes.cast(value, u8))


def _touched(c: Conversion, id: int, dtype: DType) -> Memory:
    """The memory, allocated where it is the kernel's own and has no element type yet."""
    memory = c.memory(id)
    _allocated(c, memory, dtype)
    return memory


def _allocated(c: Conversion, memory: Memory, dtype: DType) -> None:
    if memory.byte_count is not None and memory.pointer is None:
        if memory.byte_count % dtype.itemsize:
            c.refuse(f"{memory.byte_count} bytes hold no whole number of {dtype}")
        # At the start of the kernel: every later use sees it.
        block = c.function.body
        with c.lanes.builder.at(block, block.operations[0] if block.operations else None):
            copies = c.launch.lanes if memory.private else 1
            window = c.lanes.make(Window, shape=(copies * memory.byte_count // dtype.itemsize,), dtype=dtype)
        memory.dtype, memory.pointer = dtype, window


def _address(c: Conversion, memory: Memory, dtype: DType, offset: Value) -> Value:
    """The pointer to the element of memory at an offset in elements; private memory of workitems lies side by side."""
    pointer = c.pointer(memory, dtype)
    if memory.private and memory.byte_count is not None:
        lane = c.lanes.lane()
        own = c.lanes.make(Mul, lane, c.lanes.like(memory.byte_count // dtype.itemsize, lane))
        offset = c.lanes.make(Add, c.lanes.spread(offset), own)
    found: Value = c.lanes.make(AddPointer, *c.lanes.alike(pointer, offset))
    return found


def _masked(c: Conversion, *values: Value) -> tuple[Value, ...]:
    """The values as tiles where a mask says which workitems take part."""
    return values if c.lanes.mask is None else tuple(map(c.lanes.spread, values))


def _load(c: Conversion, pointer: Value) -> Value:
    (pointer,) = _masked(c, pointer)
    found: Value = c.lanes.make(Load, pointer, c.lanes.mask)
    return found


def _store(c: Conversion, pointer: Value, value: Value) -> None:
    pointer, value = _masked(c, *c.lanes.alike(pointer, value))
    c.lanes.make(Store, pointer, value, c.lanes.mask)


# ---- views ----


@converts("buffer.view")
def _view(c: Conversion, op: Operation) -> None:
    buffer, offset = op.operands
    type = c.module.values[op.results[0]].type
    assert isinstance(type, ShapedType)
    if type.has_encoding:
        c.refuse("a view with an encoding is not mapped; a dense one has none")
    dtype = DTYPES[type.element_type.kind]
    memory = _touched(c, buffer, dtype)
    multiple = c.multiple(offset)
    if multiple % dtype.itemsize:
        c.refuse(f"its byte offset is not known to be a multiple of {dtype.itemsize}; say so with index.assume")
    sizes = tuple(c.value(dim.value_id) if isinstance(dim, DynamicDim) else dim.size for dim in type.dims)
    c.views[op.results[0]] = View(memory, c.value(offset), None, sizes, _strides(c, sizes), dtype)


def _strides(c: Conversion, sizes: tuple[int | Value, ...]) -> tuple[int | Value, ...]:
    """Elements from one index to the next, row-major."""
    found: list[int | Value] = []
    stride: int | Value = 1
    for size in reversed(sizes):
        found.append(stride)
        stride = _times(c, stride, size)
    return tuple(reversed(found))


def _times(c: Conversion, a: int | Value, b: int | Value) -> int | Value:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    a, b = (c.index(x) if isinstance(x, int) else x for x in (a, b))
    found: Value = c.lanes.make(Mul, *c.lanes.alike(a, b))
    return found


def _plus(c: Conversion, a: Value | None, b: int | Value) -> Value:
    b = c.index(b) if isinstance(b, int) else b
    found: Value = b if a is None else c.lanes.make(Add, *c.lanes.alike(a, b))
    return found


def _view_of(c: Conversion, id: int) -> View:
    found = c.views.get(id)
    if found is None:
        c.refuse("a view is made in the kernel, of one of its buffers")
    return found


def _element(c: Conversion, view: View, static: list[int], dynamic: list[int]) -> Value:
    """The offset in elements of an index list."""
    values = iter(dynamic)
    found = view.element_offset
    for index, stride in zip(static, view.strides, strict=True):
        at: int | Value = c.value(next(values)) if index == DYNAMIC_INDEX else index
        found = _plus(c, found, _times(c, at, stride))
    return c.index(0) if found is None else found


def _view_pointer(c: Conversion, op: Operation) -> Value:
    operands = c.operands(op)
    view = _view_of(c, operands["view"][0])
    element = _element(c, view, op.attributes["static_indices"], operands["indices"])
    start = view.byte_offset
    if view.dtype.itemsize > 1:
        start = c.lanes.make(Div, start, c.lanes.like(view.dtype.itemsize, start))
    return _address(c, view.memory, view.dtype, _plus(c, start, element))


@converts("view.refine")
def _refine(c: Conversion, op: Operation) -> None:
    c.views[op.results[0]] = _view_of(c, op.operands[0])


@converts("view.subview")
def _subview(c: Conversion, op: Operation) -> None:
    operands = c.operands(op)
    view = _view_of(c, operands["source"][0])
    type = c.module.values[op.results[0]].type
    if not isinstance(type, ShapedType) or type.rank != len(view.sizes):
        c.refuse("a part of a view has the rank of the whole")
    element = _element(c, view, op.attributes["static_offsets"], operands["offsets"])
    c.views[op.results[0]] = View(view.memory, view.byte_offset, element, view.sizes, view.strides, view.dtype)


@converts("view.load")
def _view_load(c: Conversion, op: Operation) -> None:
    c.bind(op.results[0], _load(c, _view_pointer(c, op)))


@converts("view.store")
def _view_store(c: Conversion, op: Operation) -> None:
    _store(c, _view_pointer(c, op), c.value(op.operands[0]))


@converts("view.prefetch")
def _prefetch(c: Conversion, op: Operation) -> None:
    """A hint; it does nothing."""


@converts("view.atomic.rmw", "view.atomic.reduce")
def _atomic(c: Conversion, op: Operation) -> None:
    kind = op.attributes["kind"]
    if kind not in RMW_KINDS:
        c.refuse(f"atomic {kind} has no counterpart")
    value = c.lanes.spread(c.value(op.operands[0]))
    if kind == "subi":
        value = c.lanes.make(Negate, value)
    pointer = c.lanes.spread(_view_pointer(c, op))
    old = c.lanes.make(AtomicRmw, pointer, value, c.lanes.mask, kind=RMW_KINDS[kind])
    if op.results:
        c.bind(op.results[0], old)


@converts("buffer.fence", "kernel.barrier", "scf.schedule.fence")
def _ordered_already(c: Conversion, op: Operation) -> None:
    """Every operation ends for all workitems before the next begins."""
