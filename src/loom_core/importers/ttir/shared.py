"""`ttg` and `ttng`, as far as they have a sequential meaning: layouts, shared memory, asynchronous copies.

Layouts say where a GPU keeps elements, not what they are: a conversion moves nothing here. Shared memory is a window
of SRAM. A copy is done where it begins, which is one of the times at which it may be done; the tokens of groups and
waits then carry nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.base.location import UNKNOWN, Location
from loom_core.importers.ttir.arith import cast
from loom_core.importers.ttir.importer import Imported, Importer, row
from loom_core.importers.ttir.products import dot
from loom_core.importers.ttir.shapes import integer_attribute, permutation_attribute
from loom_core.importers.ttir.syntax import IrType, Operation
from loom_core.importers.ttir.types import tile_type
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ops
from loom_core.ops.memory import AddPointer, Load, Store, Window
from loom_core.ops.shape import Broadcast, Iota, Reshape, Splat
from loom_core.trace.values import Traced


class Token(Traced):
    """What an asynchronous operation gives to wait for; everything is done by then."""

    __slots__ = ()

    def ir_values(self) -> list[Value]:
        return []

    def ir_types(self) -> list[TileType]:
        return []

    def with_ir_values(self, values: Sequence[Value]) -> Token:
        return self

    def structure(self) -> Hashable:
        return Token

    def same(self, other: Traced) -> bool:
        return isinstance(other, Token)

    def suggest_name(self, name: str) -> None:
        """Nothing in it has a name."""

    @property
    def origin(self) -> Location:
        return UNKNOWN

    def __str__(self) -> str:
        return "a token"


class Buffer(Traced):
    """Shared memory: `pointer` to its first element, its `shape`, and the distance of its elements in elements."""

    __slots__ = ("pointer", "shape", "steps")

    def __init__(self, pointer: Value, shape: tuple[int, ...], steps: tuple[int, ...]) -> None:
        self.pointer = pointer
        self.shape = shape
        self.steps = steps

    def ir_values(self) -> list[Value]:
        return [self.pointer]

    def ir_types(self) -> list[TileType]:
        return [self.pointer.type]

    def with_ir_values(self, values: Sequence[Value]) -> Buffer:
        return Buffer(values[0], self.shape, self.steps)

    def structure(self) -> Hashable:
        return Buffer, self.pointer.type, self.shape, self.steps

    def same(self, other: Traced) -> bool:
        return isinstance(other, Buffer) and self.pointer is other.pointer and self.structure() == other.structure()

    def suggest_name(self, name: str) -> None:
        self.pointer.name = self.pointer.name or name

    @property
    def origin(self) -> Location:
        return UNKNOWN

    def __str__(self) -> str:
        return f"shared memory of {self.pointer.type.pointee.name}, shape {self.shape}"

    def addresses(self, importer: Importer, picked: tuple[int, Value] | None = None) -> Value:
        """The pointers to its elements; or to those that a tile of indices names along a dimension."""
        shape = self.shape if picked is None else picked[1].type.shape
        pointer: Value = importer.create(Splat, self.pointer, shape=shape)
        for d, (size, step) in enumerate(zip(shape, self.steps, strict=True)):
            if picked is not None and d == picked[0]:
                index = picked[1]
            else:
                flat = tuple(size if e == d else 1 for e in range(len(shape)))
                index = importer.create(Reshape, importer.create(Iota, start=0, end=size), shape=flat)
                index = importer.create(Broadcast, index, shape=shape)
            scaled = importer.create(ops.Mul, index, importer.constant(index.type, step))
            pointer = importer.create(AddPointer, pointer, scaled)
        return pointer


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The steps of elements that lie in order."""
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))


def buffer_of(importer: Importer, op: Operation, value: Imported) -> Buffer:
    """Shared memory, which an operand has to be."""
    return value if isinstance(value, Buffer) else importer.wrong(op, "shared memory is needed")


def contents(importer: Importer, op: Operation, value: Imported) -> Value:
    """The elements of shared memory, or of a tile that is one already."""
    if isinstance(value, Buffer):
        return importer.create(Load, value.addresses(importer), None, None)  # type: ignore[no-any-return]
    return value if isinstance(value, Value) else importer.wrong(op, f"it does not take {value}")


def write(importer: Importer, op: Operation, buffer: Buffer, value: Imported) -> None:
    pointee = buffer.pointer.type.pointee
    if not isinstance(value, Value) or value.type.is_pointer or value.type.shape != buffer.shape:
        importer.wrong(op, f"it does not store {getattr(value, 'type', value)} in {buffer}")
    data = cast(importer, value, pointee) if value.type.dtype.is_bool else value
    if data.type.element is not pointee:
        importer.wrong(op, f"it does not store {value.type} in {buffer}")
    importer.create(Store, buffer.addresses(importer), data, None)


# ---- layouts ---------------------------------------------------------------------------------------------------------


@row("ttg.convert_layout", operands=1, structured=True)
def _convert_layout(importer: Importer, op: Operation, operands: list[Any]) -> Any:
    return operands[0]


# ---- shared memory ---------------------------------------------------------------------------------------------------


def memory_type(importer: Importer, op: Operation) -> IrType:
    """The type of shared memory that an operation gives."""
    types = [type for type in op.result_types or op.types if type.name == "memdesc"]
    if not types or types[-1].element is None or 0 in types[-1].shape:
        importer.wrong(op, "the type of its shared memory is missing")
    return types[-1]


def allocate(importer: Importer, op: Operation, type: IrType) -> Buffer:
    """New memory of a type."""
    element = tile_type(type.element or type, op.position)
    dtype = core.i8 if element.dtype.is_bool else element.dtype
    pointer: Value = importer.create(Window, shape=type.shape, dtype=dtype)
    return Buffer(pointer, type.shape, row_major(type.shape))


@row("ttg.local_alloc", operands=(0, 1), types="free", attributes=("alignment", "allocation.offset"), structured=True)
def _allocate(importer: Importer, op: Operation, operands: list[Any]) -> Buffer:
    buffer = allocate(importer, op, memory_type(importer, op))
    if operands:
        write(importer, op, buffer, operands[0])
    return buffer


@row("ttg.local_dealloc", operands=1, types="free", structured=True)
def _free(importer: Importer, op: Operation, operands: list[Any]) -> None:
    buffer_of(importer, op, operands[0])


@row("ttg.memdesc_index", operands=(1, 2), types="free", structured=True)
def _index(importer: Importer, op: Operation, operands: list[Any]) -> Buffer:
    """One of the buffers that lie behind each other."""
    buffer = buffer_of(importer, op, operands[0])
    names = [*op.operands[1:], *(name for names in op.lists for name in names)]
    if len(names) != 1 or len(buffer.shape) < 2:
        importer.wrong(op, "one index is needed")
    index = importer.value(op, names[0]) if isinstance(names[0], str) else None
    if index is None or index.type != TileType(core.i32):
        importer.wrong(op, "its index is no i32")
    step = importer.create(ops.Mul, index, importer.constant(index.type, buffer.steps[0]))
    pointer: Value = importer.create(AddPointer, buffer.pointer, step)
    return Buffer(pointer, buffer.shape[1:], buffer.steps[1:])


@row("ttg.memdesc_trans", operands=1, types="free", attributes=("order",), structured=True)
def _transpose(importer: Importer, op: Operation, operands: list[Any]) -> Buffer:
    buffer = buffer_of(importer, op, operands[0])
    order = permutation_attribute(importer, op, len(buffer.shape))
    return Buffer(buffer.pointer, tuple(buffer.shape[d] for d in order), tuple(buffer.steps[d] for d in order))


@row("ttg.memdesc_subslice", operands=1, types="free", structured=True)
def _part(importer: Importer, op: Operation, operands: list[Any]) -> Buffer:
    """The elements from constant offsets on."""
    buffer, shape = buffer_of(importer, op, operands[0]), memory_type(importer, op).shape
    offsets = [offset for names in op.lists for offset in names if isinstance(offset, int)]
    sizes = zip(offsets, shape, buffer.shape, strict=False)
    if len(op.lists) != 1 or not len(offsets) == len(shape) == len(buffer.shape) == len(op.lists[0]):
        importer.wrong(op, f"it does not take a part of {buffer}")
    if any(offset < 0 or offset + size > whole for offset, size, whole in sizes):
        importer.wrong(op, f"it does not take {shape} from {offsets} on of {buffer}")
    first = sum(offset * step for offset, step in zip(offsets, buffer.steps, strict=True))
    start = importer.constant(TileType(core.i32), first)
    return Buffer(importer.create(AddPointer, buffer.pointer, start), shape, buffer.steps)


@row("ttg.memdesc_reshape", "ttg.memdesc_reinterpret", operands=1, types="free", structured=True)
def _reshape(importer: Importer, op: Operation, operands: list[Any]) -> Buffer:
    """The same elements in another shape, where they lie behind each other."""
    buffer, type = buffer_of(importer, op, operands[0]), memory_type(importer, op)
    element = tile_type(type.element or type, op.position)
    if element.element is not buffer.pointer.type.pointee:
        importer.refuse(op, f"{buffer} is taken as {type.element}")
    if prod(type.shape) != prod(buffer.shape):
        importer.wrong(op, f"{buffer} does not fill shape {type.shape}")
    if buffer.steps != row_major(buffer.shape):
        importer.refuse(op, f"the elements of {buffer} do not lie in order")
    return Buffer(buffer.pointer, type.shape, row_major(type.shape))


@row("ttg.local_load", operands=(1, 2), types="free", words=True, structured=True)
def _local_load(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    value = contents(importer, op, buffer_of(importer, op, operands[0]))
    if not op.result_types:
        importer.wrong(op, "the type of its result is missing")
    wanted = tile_type(op.result_types[0], op.position)
    if wanted.element is core.bool_ and value.type.element is core.i8:
        return importer.create(ops.Compare, value, importer.constant(value.type, 0), predicate="ne")  # type: ignore[no-any-return]
    return value


@row("ttg.local_store", operands=2, types="free", structured=True)
def _local_store(importer: Importer, op: Operation, operands: list[Any]) -> None:
    write(importer, op, buffer_of(importer, op, operands[1]), operands[0])


@row("ttg.local_gather", operands=1, types="free", attributes=("axis",), structured=True)
def _gather(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    """The elements that a tile of indices names along an axis."""
    picked = _picked(importer, op, buffer_of(importer, op, operands[0]))
    return importer.create(Load, buffer_of(importer, op, operands[0]).addresses(importer, picked), None, None)  # type: ignore[no-any-return]


@row("ttg.local_scatter", operands=2, types="free", attributes=("axis",), structured=True)
def _scatter(importer: Importer, op: Operation, operands: list[Any]) -> None:
    """Values to the places that a tile of indices names along an axis."""
    buffer = next((value for value in operands if isinstance(value, Buffer)), None)
    value = next((value for value in operands if isinstance(value, Value)), None)
    if buffer is None or value is None:
        importer.wrong(op, "shared memory and a tile are needed")
    picked = _picked(importer, op, buffer)
    if value.type != picked[1].type.with_element(buffer.pointer.type.pointee):
        importer.wrong(op, f"it does not store {value.type} in {buffer}")
    importer.create(Store, buffer.addresses(importer, picked), value, None)


def _picked(importer: Importer, op: Operation, buffer: Buffer) -> tuple[int, Value]:
    """The axis, and the tile of indices in brackets."""
    axis, names = integer_attribute(importer, op, "axis"), [name for names in op.lists for name in names]
    if len(names) != 1 or not isinstance(names[0], str) or not 0 <= axis < len(buffer.shape):
        importer.wrong(op, f"one tile of indices along a dimension of {buffer} is needed")
    index = importer.value(op, names[0])
    if index.type.element not in (core.i32, core.i64) or len(index.type.shape) != len(buffer.shape):
        importer.wrong(op, f"{names[0]} is {index.type}, and no tile of indices for {buffer}")
    return axis, index


# ---- asynchronous copies ---------------------------------------------------------------------------------------------

_COPY_WORDS: Final[tuple[list[str], ...]] = ([], ["mask"], ["mask", "other"])
_HINTS: Final = ("contiguity", "cache", "evict", "isVolatile", "cacheModifier", "evictionPolicy", "cachePolicy")


@row("ttg.async_copy_global_to_local", operands=(2, 4), types="free", words=True, attributes=_HINTS, structured=True)
def _copy(importer: Importer, op: Operation, operands: list[Any]) -> Token:
    pointer, target, *rest = operands
    buffer = buffer_of(importer, op, target)
    if op.words not in _COPY_WORDS or len(op.words) != len(rest):
        importer.wrong(op, "it is not of the form pointer, buffer mask %m other %o")
    if not isinstance(pointer, Value) or not pointer.type.is_pointer or pointer.type.shape != buffer.shape:
        importer.wrong(op, f"it does not copy {getattr(pointer, 'type', pointer)} to {buffer}")
    wanted = [pointer.type.with_element(core.bool_), pointer.type.with_element(pointer.type.pointee)]
    for value, type in zip(rest, wanted, strict=False):
        if not isinstance(value, Value) or value.type != type:
            importer.wrong(op, f"it does not take {getattr(value, 'type', value)} where {type} is needed")
    write(importer, op, buffer, importer.create(Load, pointer, *rest))
    return Token()


@row(
    "ttg.async_commit_group",
    "ttg.async_wait",
    operands=(0, 64),
    types="free",
    attributes=("num",),
    words=True,
    structured=True,
)
def _group(importer: Importer, op: Operation, operands: list[Any]) -> Token:
    if op.words not in ([], ["tokens"]) or not all(isinstance(value, Token) for value in operands):
        importer.wrong(op, "it takes tokens")
    return Token()


# ---- products of Hopper GPUs -----------------------------------------------------------------------------------------


@row("ttng.warp_group_dot", operands=3, types="free",
     attributes=("inputPrecision", "maxNumImpreciseAcc", "isAsync"), structured=True)  # fmt: skip
def _warp_group_dot(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    a, b, acc = operands
    return dot(importer, op, [contents(importer, op, a), contents(importer, op, b), acc])


@row("ttng.warp_group_dot_wait", operands=(1, 64), types="free", attributes=("pendings",), structured=True)
def _dot_wait(importer: Importer, op: Operation, operands: list[Any]) -> list[Any]:
    return operands


@row("ttng.fence_async_shared", operands=0, types="free", attributes=("bCluster",), structured=True)
def _fence(importer: Importer, op: Operation, operands: list[Any]) -> None:
    return
