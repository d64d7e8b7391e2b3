"""`ttng`: copies between memory and shared memory by tensor descriptors, with the barriers that say when they are done.

Without warps that run different code there is one order: a copy is done where it begins, so that a barrier that counts
its bytes has nothing to wait for. A descriptor that the kernel writes to memory of its own is known from where it is
written, once and outside of loops, branches and calls: what it says then cannot change.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.base.location import UNKNOWN, Location
from loom_core.importers.ttir.arith import cast
from loom_core.importers.ttir.importer import Imported, Importer, row
from loom_core.importers.ttir.shapes import integer_attribute
from loom_core.importers.ttir.shared import Buffer, buffer_of, contents, write
from loom_core.importers.ttir.syntax import Operation
from loom_core.importers.ttir.types import tile_type
from loom_core.importers.ttir.windows import Window, base_pointer, block_of, reduce_at, scalars
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ops
from loom_core.ops.memory import Store
from loom_core.ops.shape import Constant, Splat
from loom_core.trace.values import Traced

_HINTS: Final = ("cache", "evict", "isVolatile", "cacheModifier", "evictionPolicy", "cachePolicy")
_PADDINGS: Final = {0: "zero", 1: "nan"}


class Scratch(Traced):
    """Memory of the kernel's own, which holds a descriptor; `key` names what is known of it."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    def ir_values(self) -> list[Value]:
        return []

    def ir_types(self) -> list[TileType]:
        return []

    def with_ir_values(self, values: Sequence[Value]) -> Scratch:
        return self

    def structure(self) -> Hashable:
        return Scratch, self.key

    def same(self, other: Traced) -> bool:
        return isinstance(other, Scratch) and self.key == other.key

    def suggest_name(self, name: str) -> None:
        """Nothing in it has a name."""

    @property
    def origin(self) -> Location:
        return UNKNOWN

    def __str__(self) -> str:
        return "memory of the kernel's own for a descriptor"


# ---- descriptors -----------------------------------------------------------------------------------------------------


@row("ttg.global_scratch_alloc", operands=0, types="free", structured=True,
     attributes=("alignment", "nbytes", "backend", "ttg.global_scratch_memory_offset"))  # fmt: skip
def _allocate(importer: Importer, op: Operation, operands: list[Any]) -> Scratch:
    if not importer.at_top:
        importer.refuse(op, "memory of the kernel's own is only known outside of loops, branches and called functions")
    return Scratch(f"descriptor in {op.results[0]}" if op.results else "")


def _scratch(importer: Importer, op: Operation, value: Imported) -> Scratch:
    return value if isinstance(value, Scratch) else importer.refuse(op, "descriptors are only known in own memory")


@row("ttng.tensormap_create", operands=2, types="free", structured=True,
     attributes=("elem_type", "fill_mode", "interleave_layout", "swizzle_mode"))  # fmt: skip
def _create(importer: Importer, op: Operation, operands: list[Any]) -> None:
    """A descriptor in memory: its block, sizes, steps in bytes and steps of elements, the last dimension first."""
    scratch, base = _scratch(importer, op, operands[0]), base_pointer(importer, op, operands[1])
    if not importer.at_top or scratch.key in importer.scope:
        importer.refuse(op, "a descriptor is only known if it is written once, outside of loops and branches")
    if len(op.lists) != 4:
        importer.wrong(op, "block, sizes, strides and steps are needed in brackets")
    rank = len(op.lists[0])
    block, sizes, strides, steps = (
        scalars(importer, op, names, count) for names, count in zip(op.lists, (rank, rank, rank - 1, rank), strict=True)
    )
    if any(known_number(step) != 1 for step in steps):
        importer.refuse(op, "its elements do not lie beside each other")
    shape = [known_number(size) for size in reversed(block)]
    padding = _PADDINGS.get(integer_attribute(importer, op, "fill_mode"))
    if None in shape or padding is None:
        importer.refuse(op, "its block or padding is not known")
    itemsize = base.type.pointee.itemsize
    elements = [_elements(importer, stride, itemsize) for stride in reversed(strides)]
    one = importer.constant(TileType(core.i64), 1)
    known = tuple(size for size in shape if size is not None)
    importer.scope[scratch.key] = Window(base, sizes[::-1], [*elements, one], (), known, padding)


def known_number(value: Value) -> int | None:
    """The number that a scalar is known to be, behind conversions."""
    while isinstance(value.defining_op, ops.Cast):
        value = value.defining_op.operand
    return int(value.defining_op.value) if isinstance(value.defining_op, Constant) else None


def _elements(importer: Importer, stride: Value, itemsize: int) -> Value:
    """A stride in bytes as one in elements; what was multiplied for it is taken as it was."""
    made = stride.defining_op
    if isinstance(made, ops.Mul) and known_number(made.operands[1]) == itemsize:
        return made.operands[0]
    return importer.create(ops.Div, stride, importer.constant(stride.type, itemsize))  # type: ignore[no-any-return]


@row("ttng.tensormap_fenceproxy_acquire", operands=1, types="free", structured=True)
def _acquire(importer: Importer, op: Operation, operands: list[Any]) -> None:
    _scratch(importer, op, operands[0])


@row("ttng.reinterpret_tensor_descriptor", operands=1, structured=True)
def _descriptor(importer: Importer, op: Operation, operands: list[Any]) -> Window:
    """What was written, taken as a descriptor, which may have more dimensions of one element."""
    scratch = _scratch(importer, op, operands[0])
    window = importer.scope.get(scratch.key)
    if not isinstance(window, Window) or not op.result_types:
        importer.refuse(op, "no descriptor was written there before")
    type = op.result_types[0]
    element = tile_type(type.element or type, op.position)
    if block_of(importer, op, type) != window.shape or element.element is not window.base.type.pointee:
        importer.refuse(op, f"{window} is taken as {type}")
    return window


# ---- barriers --------------------------------------------------------------------------------------------------------


@row("ttng.init_barrier", "ttng.inval_barrier", "ttng.barrier_expect", "ttng.wait_barrier", operands=(1, 64),
     types="free", words=True, structured=True)  # fmt: skip
def _barrier(importer: Importer, op: Operation, operands: list[Any]) -> None:
    """What a barrier waits for has been done where it began."""
    check_barrier(importer, op, operands[0])
    if op.words not in ([], ["deps"]):
        importer.wrong(op, f"it does not take {op.words[0]}")


def check_barrier(importer: Importer, op: Operation, value: Imported) -> None:
    """WrongOperands for what is no barrier."""
    buffer = buffer_of(importer, op, value)
    if buffer.shape != (1,) or buffer.pointer.type.pointee is not core.i64:
        importer.wrong(op, f"{buffer} is no barrier")


# ---- copies ----------------------------------------------------------------------------------------------------------


def _window(importer: Importer, op: Operation, value: Imported) -> Window:
    if not isinstance(value, Window) or value.offsets or len(op.lists) != 1:
        importer.wrong(op, "a tensor descriptor and offsets in brackets are needed")
    return value


def _indices(importer: Importer, op: Operation, window: Window) -> list[Value]:
    return window.rows(importer, scalars(importer, op, op.lists[0], len(window.shape)))


def _filled(importer: Importer, op: Operation, window: Window, indices: list[Value], operands: list[Any]) -> None:
    """Read a block into shared memory where the last operand holds."""
    buffer = buffer_of(importer, op, operands[1])
    check_barrier(importer, op, operands[2])
    holds = operands[3]
    if not isinstance(holds, Value) or holds.type != TileType(core.bool_):
        importer.wrong(op, f"its condition is {getattr(holds, 'type', holds)}")
    value = window.read_at(importer, op, indices, range(len(window.shape)), window.padding)
    value = _in_shape(importer, op, value, buffer)
    if known_number(holds) == 1:
        write(importer, op, buffer, value)
        return
    if value.type.element is not buffer.pointer.type.pointee:
        importer.wrong(op, f"it does not store {value.type} in {buffer}")
    mask = importer.create(Splat, holds, shape=buffer.shape)
    importer.create(Store, buffer.addresses(importer), value, mask)


def _in_shape(importer: Importer, op: Operation, value: Value, buffer: Buffer) -> Value:
    if value.type.shape != buffer.shape:
        importer.refuse(op, f"a block of {value.type} is copied to {buffer}")
    return value


@row("ttng.async_tma_copy_global_to_local", operands=4, types="free", attributes=_HINTS, structured=True)
def _copy_in(importer: Importer, op: Operation, operands: list[Any]) -> None:
    window = _window(importer, op, operands[0])
    _filled(importer, op, window, _indices(importer, op, window), operands)


@row("ttng.async_tma_gather", operands=4, types="free", attributes=_HINTS, structured=True)
def _gather(importer: Importer, op: Operation, operands: list[Any]) -> None:
    window = _window(importer, op, operands[0])
    _filled(importer, op, window, window.picked(importer, op, op.lists[0]), operands)


@row("ttng.async_tma_copy_local_to_global", "ttng.async_tma_scatter", "ttng.async_tma_reduce", operands=2, types="free",
     words=True, attributes=("kind", *_HINTS), structured=True)  # fmt: skip
def _copy_out(importer: Importer, op: Operation, operands: list[Any]) -> Any:
    window, value = _window(importer, op, operands[0]), contents(importer, op, buffer_of(importer, op, operands[1]))
    if op.name == "ttng.async_tma_scatter":
        indices = window.picked(importer, op, op.lists[0])
    else:
        indices = _indices(importer, op, window)
    if value.type.shape != indices[0].type.shape:
        importer.refuse(op, f"{value.type} is copied to {window}")
    if op.name == "ttng.async_tma_reduce":
        reduce_at(importer, op, window, indices, cast(importer, value, window.base.type.pointee))
    elif op.words:
        importer.wrong(op, f"it does not take {op.words[0]}")
    else:
        window.write_at(importer, op, indices, value, range(len(window.shape)))
    return None


@row("ttng.async_tma_store_wait", operands=(0, 64), types="free", attributes=("pendings", "read_only"),
     structured=True)  # fmt: skip
def _store_wait(importer: Importer, op: Operation, operands: list[Any]) -> None:
    return
