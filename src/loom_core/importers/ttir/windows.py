"""Block pointers and tensor descriptors: blocks of an array, as addresses and masks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from loom_core.base.dtype import bool_, i64
from loom_core.base.location import Location
from loom_core.importers.ttir.arith import cast
from loom_core.importers.ttir.attributes import plain
from loom_core.importers.ttir.importer import Importer, row
from loom_core.importers.ttir.shapes import integers_attribute
from loom_core.importers.ttir.syntax import IrType, Operation
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ops
from loom_core.ops.atomic import AtomicRmw
from loom_core.ops.memory import AddPointer, Load, Store
from loom_core.ops.shape import Broadcast, Iota, Reshape, Splat
from loom_core.trace.values import Traced


class Window(Traced):
    """An array at `base` of `sizes` with `steps` (elements, i64 scalars), of which blocks of `shape` are moved.

    `offsets` are those of a block pointer's block; a descriptor has none. `padding` is what a descriptor reads outside.
    """

    __slots__ = ("base", "offsets", "padding", "shape", "sizes", "steps")

    def __init__(
        self,
        base: Value,
        sizes: Sequence[Value],
        steps: Sequence[Value],
        offsets: Sequence[Value],
        shape: tuple[int, ...],
        padding: str = "zero",
    ) -> None:
        self.base, self.sizes, self.steps, self.offsets = base, tuple(sizes), tuple(steps), tuple(offsets)
        self.shape = shape
        self.padding = padding

    # -- Traced --------------------------------------------------------------------------------------------------------

    def ir_values(self) -> list[Value]:
        return [self.base, *self.sizes, *self.steps, *self.offsets]

    def ir_types(self) -> list[TileType]:
        return [value.type for value in self.ir_values()]

    def with_ir_values(self, values: Sequence[Value]) -> Window:
        rank = len(self.shape)
        base, *rest = values
        return Window(base, rest[:rank], rest[rank : 2 * rank], rest[2 * rank :], self.shape, self.padding)

    def structure(self) -> Hashable:
        return type(self), self.shape, self.padding, tuple(self.ir_types())

    def same(self, other: Traced) -> bool:
        return isinstance(other, Window) and self.ir_values() == other.ir_values()

    def suggest_name(self, name: str) -> None:
        for value in self.ir_values():
            value.name = value.name or name

    @property
    def origin(self) -> Location:
        return Location("")

    def __str__(self) -> str:
        what = "block pointer" if self.offsets else "tensor descriptor"
        return f"a {what} of {self.base.type.pointee.name}, blocks of {self.shape}"

    # -- accesses ------------------------------------------------------------------------------------------------------

    def rows(self, importer: Importer, offsets: Sequence[Value]) -> list[Value]:
        """For each dimension the indices of a block's elements along it, i64, broadcast to the block."""
        made = []
        for d, (offset, size) in enumerate(zip(offsets, self.shape, strict=True)):
            row_ = importer.create(ops.Cast, importer.create(Iota, start=0, end=size), dtype=i64)
            row_ = importer.create(ops.Add, row_, importer.create(Splat, offset, shape=(size,)))
            made.append(self._along(importer, row_, d))
        return made

    def _along(self, importer: Importer, row_: Value, d: int) -> Value:
        flat = tuple(size if e == d else 1 for e, size in enumerate(self.shape))
        tile = importer.create(Reshape, row_, shape=flat)
        return importer.create(Broadcast, tile, shape=self.shape)  # type: ignore[no-any-return]

    def addresses(self, importer: Importer, indices: Sequence[Value]) -> Value:
        shape = indices[0].type.shape
        pointer: Value = importer.create(Splat, self.base, shape=shape)
        for index, step in zip(indices, self.steps, strict=True):
            scaled = importer.create(ops.Mul, index, importer.create(Splat, step, shape=shape))
            pointer = importer.create(AddPointer, pointer, scaled)
        return pointer

    def inside(self, importer: Importer, indices: Sequence[Value], dimensions: Sequence[int]) -> Value | None:
        """Which elements lie in the array along the given dimensions; None for no dimension."""
        mask: Value | None = None
        for d in sorted(set(dimensions)):
            index = indices[d]
            low = importer.create(ops.Compare, index, importer.constant(index.type, 0), predicate="ge")
            size = importer.create(Splat, self.sizes[d], shape=index.type.shape)
            both = importer.create(ops.And, low, importer.create(ops.Compare, index, size, predicate="lt"))
            mask = both if mask is None else importer.create(ops.And, mask, both)
        return mask

    def read(
        self, importer: Importer, op: Operation, offsets: Sequence[Value], dimensions: Sequence[int], padding: str
    ) -> Value:
        """The block at `offsets`; outside the array along `dimensions` the padding."""
        return self.read_at(importer, op, self.rows(importer, offsets), dimensions, padding)

    def read_at(
        self, importer: Importer, op: Operation, indices: Sequence[Value], dimensions: Sequence[int], padding: str
    ) -> Value:
        """The elements with these indices; outside the array along `dimensions` the padding."""
        mask = self.inside(importer, indices, dimensions)
        pointer = self.addresses(importer, indices)
        other = None
        if padding == "nan" and mask is not None:
            if not pointer.type.pointee.is_float:
                importer.wrong(op, "integers have no NaN to pad with")
            other = importer.constant(pointer.type.with_element(pointer.type.pointee), float("nan"))
        return importer.create(Load, pointer, mask, other)  # type: ignore[no-any-return]

    def write(
        self, importer: Importer, op: Operation, offsets: Sequence[Value], value: Value, dimensions: Sequence[int]
    ) -> None:
        """Store a block at `offsets`, inside the array along `dimensions`."""
        self.write_at(importer, op, self.rows(importer, offsets), value, dimensions)

    def write_at(
        self, importer: Importer, op: Operation, indices: Sequence[Value], value: Value, dimensions: Sequence[int]
    ) -> None:
        """Store elements with these indices, inside the array along `dimensions`."""
        pointer = self.addresses(importer, indices)
        if value.type != pointer.type.with_element(pointer.type.pointee):
            importer.wrong(op, f"it does not store {value.type} in {self}")
        importer.create(Store, pointer, value, self.inside(importer, indices, dimensions))

    def picked(self, importer: Importer, op: Operation, names: Sequence[str | int]) -> list[Value]:
        """The indices of rows that a tile names, and of a block's columns from an offset on, for `[%rows, %column]`."""
        if len(self.shape) != 2 or self.shape[0] != 1 or len(names) != 2 or not isinstance(names[0], str):
            importer.wrong(op, f"it does not take rows of {self}")
        rows = importer.value(op, names[0])
        if len(rows.type.shape) != 1 or rows.type.is_pointer or not rows.type.dtype.is_integer:
            importer.wrong(op, f"{names[0]} is {rows.type}, and no tile of row indices")
        (column,) = scalars(importer, op, names[1:], 1)
        zero = importer.constant(TileType(i64), 0)
        whole = Window(self.base, self.sizes, self.steps, (), (rows.type.size, self.shape[1]), self.padding)
        _, columns = whole.rows(importer, [zero, column])
        return [whole._along(importer, cast(importer, rows, i64), 0), columns]

    def load(self, importer: Importer, op: Operation, rest: Sequence[Any]) -> Value:
        """`tt.load` of a block pointer."""
        self._only_block_pointer(importer, op, rest)
        padding = plain(op.attributes.get("padding", 1))
        if padding not in (1, 2, "zero", "nan"):
            importer.refuse(op, f"Loom does not know the padding {padding}")
        word = "nan" if padding in (2, "nan") else "zero"
        return self.read(importer, op, self.offsets, self._checked(importer, op), word)

    def store(self, importer: Importer, op: Operation, rest: Sequence[Any]) -> None:
        """`tt.store` through a block pointer."""
        self._only_block_pointer(importer, op, rest[1:])
        self.write(importer, op, self.offsets, rest[0], self._checked(importer, op))

    def _only_block_pointer(self, importer: Importer, op: Operation, rest: Sequence[Any]) -> None:
        if rest or not self.offsets:
            importer.wrong(op, f"it does not take {self}" + (" with a mask" if rest else ""))

    def _checked(self, importer: Importer, op: Operation) -> list[int]:
        dimensions = integers_attribute(importer, op, "boundaryCheck")
        if any(not 0 <= d < len(self.shape) for d in dimensions):
            importer.wrong(op, f"{dimensions} are no dimensions of {self}")
        return dimensions


def scalars(importer: Importer, op: Operation, names: Sequence[str | int], count: int) -> list[Value]:
    """Bracketed integer scalars as i64."""
    if len(names) != count:
        importer.wrong(op, f"{len(names)} values in brackets, {count} are needed")
    made = []
    for name in names:
        value = importer.value(op, name) if isinstance(name, str) else importer.constant(TileType(i64), name)
        if value.type.is_pointer or value.type.shape or not value.type.dtype.is_integer:
            importer.wrong(op, f"{name} is {value.type}, and no integer")
        made.append(cast(importer, value, i64))
    return made


def block_of(importer: Importer, op: Operation, type: IrType) -> tuple[int, ...]:
    """The block that a type speaks of: `!tt.tensordesc<4x8xf32>`, `!tt.ptr<tensor<4x8xf32>>`, or without the name."""
    inner = type.element if type.name == "ptr" and type.element is not None else type
    if not inner.shape or 0 in inner.shape:
        importer.wrong(op, f"{type} has no block shape")
    return inner.shape


def base_pointer(importer: Importer, op: Operation, value: Any) -> Value:
    """The pointer to an array's first element."""
    if not isinstance(value, Value) or not value.type.is_pointer or value.type.shape:
        importer.wrong(op, "its first operand is no single pointer")
    return value


@row("tt.make_tensor_ptr", operands=1, types="free", attributes=("order",), structured=True)
def _make_block_pointer(importer: Importer, op: Operation, operands: list[Any]) -> Window:
    base = base_pointer(importer, op, operands[0])
    if len(op.lists) != 3 or not op.types:
        importer.wrong(op, "sizes, strides and offsets are needed in brackets")
    shape = block_of(importer, op, op.types[-1])
    sizes, steps, offsets = (scalars(importer, op, names, len(shape)) for names in op.lists)
    return Window(base, sizes, steps, offsets, shape)


@row("tt.advance", operands=1, types="free", structured=True)
def _advance(importer: Importer, op: Operation, operands: list[Any]) -> Window:
    (window,) = operands
    if not isinstance(window, Window) or not window.offsets or len(op.lists) != 1:
        importer.wrong(op, "a block pointer and offsets in brackets are needed")
    steps = scalars(importer, op, op.lists[0], len(window.shape))
    moved = [importer.create(ops.Add, a, b) for a, b in zip(window.offsets, steps, strict=True)]
    return Window(window.base, window.sizes, window.steps, moved, window.shape)


@row("tt.make_tensor_descriptor", operands=1, types="free", attributes=("padding",), structured=True)
def _make_descriptor(importer: Importer, op: Operation, operands: list[Any]) -> Window:
    base = base_pointer(importer, op, operands[0])
    types = op.result_types or op.types
    if len(op.lists) != 2 or not types:
        importer.wrong(op, "sizes and strides are needed in brackets")
    shape = block_of(importer, op, types[-1])
    sizes, steps = (scalars(importer, op, names, len(shape)) for names in op.lists)
    padding = plain(op.attributes.get("padding", 1))
    if padding not in (1, 2, "zero", "nan", "PAD_ZERO", "PAD_NAN"):
        importer.refuse(op, f"Loom does not know the padding {padding}")
    return Window(base, sizes, steps, (), shape, "nan" if padding in (2, "nan", "PAD_NAN") else "zero")


def _descriptor(importer: Importer, op: Operation, value: Any) -> Window:
    if not isinstance(value, Window) or value.offsets:
        importer.wrong(op, "its first operand is no tensor descriptor")
    if len(op.lists) != 1:
        importer.wrong(op, "offsets are needed in brackets")
    return value


@row("tt.descriptor_load", "tt.experimental_descriptor_load", operands=1, types="free",
     attributes=("cache", "evict", "cacheModifier", "evictionPolicy", "cachePolicy"), structured=True)  # fmt: skip
def _descriptor_load(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    window = _descriptor(importer, op, operands[0])
    offsets = scalars(importer, op, op.lists[0], len(window.shape))
    value = window.read(importer, op, offsets, range(len(window.shape)), window.padding)
    wanted = op.result_types[0].shape if op.result_types else window.shape
    if TileType(bool_, wanted).size != value.type.size:
        importer.wrong(op, f"{value.type} does not fill shape {wanted}")
    # Dimensions of size 1 may be left out of the result.
    return value if wanted == window.shape else importer.create(Reshape, value, shape=wanted)


def _stored(importer: Importer, op: Operation, window: Window, value: Any) -> Value:
    if not isinstance(value, Value) or value.type.size != TileType(bool_, window.shape).size:
        importer.wrong(op, f"it does not store {getattr(value, 'type', value)} in {window}")
    return value if value.type.shape == window.shape else importer.create(Reshape, value, shape=window.shape)


@row("tt.descriptor_store", "tt.experimental_descriptor_store", operands=2, types="free", structured=True)
def _descriptor_store(importer: Importer, op: Operation, operands: list[Any]) -> None:
    window = _descriptor(importer, op, operands[0])
    offsets = scalars(importer, op, op.lists[0], len(window.shape))
    window.write(importer, op, offsets, _stored(importer, op, window, operands[1]), range(len(window.shape)))


@row("tt.descriptor_gather", "tt.experimental_descriptor_gather", operands=1, types="free", structured=True)
def _descriptor_gather(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    window = _descriptor(importer, op, operands[0])
    return window.read_at(importer, op, window.picked(importer, op, op.lists[0]), (0, 1), window.padding)


@row("tt.descriptor_scatter", "tt.experimental_descriptor_scatter", operands=2, types="free", structured=True)
def _descriptor_scatter(importer: Importer, op: Operation, operands: list[Any]) -> None:
    window = _descriptor(importer, op, operands[0])
    indices = window.picked(importer, op, op.lists[0])
    if not isinstance(operands[1], Value) or operands[1].type.shape != indices[0].type.shape:
        importer.wrong(op, f"it does not store {getattr(operands[1], 'type', operands[1])} in {window}")
    window.write_at(importer, op, indices, operands[1], (0, 1))


@row("tt.descriptor_reduce", operands=2, types="free", words=True, structured=True)
def _descriptor_reduce(importer: Importer, op: Operation, operands: list[Any]) -> None:
    window = _descriptor(importer, op, operands[0])
    value = _stored(importer, op, window, operands[1])
    indices = window.rows(importer, scalars(importer, op, op.lists[0], len(window.shape)))
    reduce_at(importer, op, window, indices, value)


def reduce_at(importer: Importer, op: Operation, window: Window, indices: Sequence[Value], value: Value) -> None:
    """Combine elements with those of an array at `indices`, as the operation's first word says, inside the array."""
    kind = op.words[0] if op.words else ""
    if kind not in ("add", "min", "max", "and", "or", "xor"):
        importer.refuse(op, f"Loom does not know the operation {kind or 'that it does'}")
    pointer = window.addresses(importer, indices)
    if value.type != pointer.type.with_element(pointer.type.pointee):
        importer.wrong(op, f"it does not store {value.type} in {window}")
    importer.create(AtomicRmw, pointer, value, window.inside(importer, indices, range(len(window.shape))), kind=kind)
