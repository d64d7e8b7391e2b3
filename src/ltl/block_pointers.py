"""Block pointers and tensor descriptors: base, sizes, strides and a block, from which addresses and masks are made."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.base.location import Location
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value
from loom_core.trace.context import current
from loom_core.trace.values import Traced
from ltl import dtypes, semantic
from ltl.arguments import shape_argument, static, static_int
from ltl.errors import NotPointer, ShapesDiffer, WrongDtype, WrongMask, WrongRank, WrongValue, fail
from ltl.operators import and_, compare, offset_pointer
from ltl.tensor import tensor

_PADDINGS: Final = {"": None, "zero": 0, "nan": float("nan")}
"""What elements outside of the bounds read as: with "", nothing says it."""
MAX_RANK: Final = 5


class ArrayBlock(Traced):
    """Family base of what addresses a block of an array: base pointer, sizes, strides and offsets in elements (i64)."""

    __slots__ = ("base", "block_shape", "offsets", "sizes", "steps")

    def __init__(
        self,
        base: tensor,
        sizes: Sequence[tensor],
        steps: Sequence[tensor],
        offsets: Sequence[tensor],
        block_shape: tuple[int, ...],
    ) -> None:
        self.base = base
        self.sizes = tuple(sizes)
        self.steps = tuple(steps)
        self.offsets = tuple(offsets)
        self.block_shape = block_shape

    # -- Traced --------------------------------------------------------------------------------------------------------

    def _parts(self) -> tuple[tensor, ...]:
        return (self.base, *self.sizes, *self.steps, *self.offsets)

    def ir_values(self) -> list[Value]:
        return [part.value for part in self._parts()]

    def ir_types(self) -> list[TileType]:
        return [part.ir_type for part in self._parts()]

    def with_ir_values(self, values: Sequence[Value]) -> ArrayBlock:
        parts = [
            old if old._value is new else tensor(new.type, new) for old, new in zip(self._parts(), values, strict=True)
        ]
        rank = len(self.block_shape)
        ends = [1, 1 + rank, 1 + 2 * rank]
        sizes, steps, offsets = parts[1 : ends[1]], parts[ends[1] : ends[2]], parts[ends[2] :]
        return self.rebuilt(parts[0], sizes, steps, offsets)

    def rebuilt(
        self, base: tensor, sizes: Sequence[tensor], steps: Sequence[tensor], offsets: Sequence[tensor]
    ) -> ArrayBlock:
        """The same kind of block around other values."""
        raise NotImplementedError

    def structure(self) -> Hashable:
        return type(self), self.block_shape, tuple(self.ir_types())

    def same(self, other: Traced) -> bool:
        if not isinstance(other, ArrayBlock):
            return False
        return all(a.same(b) for a, b in zip(self._parts(), other._parts(), strict=True))

    def suggest_name(self, name: str) -> None:
        for part, suffix in zip(self._parts(), self._suffixes(), strict=True):
            part.suggest_name(f"{name}_{suffix}")

    def _suffixes(self) -> list[str]:
        rank = len(self.block_shape)
        kinds = ("size", "stride", "offset") if self.offsets else ("size", "stride")
        return ["base", *(f"{what}{d}" for what in kinds for d in range(rank))]

    @property
    def origin(self) -> Location:
        return self.base.origin

    # -- addresses -----------------------------------------------------------------------------------------------------

    @property
    def pointee(self) -> core.DType:
        element = self.base.ir_type.element
        assert isinstance(element, PointerType)
        return element.pointee

    def indices(self, offsets: Sequence[tensor]) -> list[tensor]:
        """For each dimension the indices of the block's elements along it, i64, broadcastable to the block."""
        from ltl.reductions import iota
        from ltl.shaping import reshape

        rows = []
        for d, (offset, size) in enumerate(zip(offsets, self.block_shape, strict=True)):
            row = semantic.cast(iota(size), core.i64) + offset
            rows.append(reshape(row, tuple(size if e == d else 1 for e in range(len(self.block_shape)))))
        return rows

    def addresses(self, indices: Sequence[tensor]) -> tensor:
        """The pointers to the elements with these indices."""
        pointer = self.base
        for index, step in zip(indices, self.steps, strict=True):
            pointer = offset_pointer(pointer, index * step, "+")
        return semantic.broadcast_all([pointer, *indices], "block pointer")[0]

    def inside(self, indices: Sequence[tensor], dimensions: Sequence[int]) -> tensor | None:
        """Which elements lie inside the array along the given dimensions; None for no dimension."""
        mask: tensor | None = None
        for d in sorted(set(dimensions)):
            one = and_(compare("ge", indices[d], 0), compare("lt", indices[d], self.sizes[d]))
            mask = one if mask is None else and_(mask, one)
        return None if mask is None else semantic.to_shape(mask, self._shape_of(indices))

    def _shape_of(self, indices: Sequence[tensor]) -> tuple[int, ...]:
        shape: tuple[int, ...] = ()
        for index in indices:
            shape = semantic.common_shape(shape, index.shape, "block pointer")
        return shape

    def read(self, indices: Sequence[tensor], dimensions: Sequence[int], padding: str) -> tensor:
        """The elements with these indices; outside the given dimensions `padding`."""
        from ltl.memory import load

        if padding == "nan" and not self.pointee.is_float:
            expected = 'empty or "zero" for integers'
            fail(WrongValue, function="load", argument="padding_option", given=repr(padding), expected=expected)
        mask = self.inside(indices, dimensions)
        other = _PADDINGS[padding] if mask is not None else None
        return load(self.addresses(indices), mask, other)

    def write(self, indices: Sequence[tensor], value: Any, dimensions: Sequence[int], function: str) -> None:
        """Store `value`, of the block's shape or broadcastable to it, inside the given dimensions."""
        from ltl.memory import store

        data = semantic.to_tensor(value, function, "value")
        shape = self._shape_of(indices)
        if semantic.common_shape(data.shape, shape, function) != shape:
            fail(ShapesDiffer, function=function, first=data.shape, second=shape)
        store(self.addresses(indices), data, self.inside(indices, dimensions))


class BlockPointer(ArrayBlock):
    """What `make_block_ptr` gives: a block of an array that `advance` moves."""

    __slots__ = ()

    def rebuilt(
        self, base: tensor, sizes: Sequence[tensor], steps: Sequence[tensor], offsets: Sequence[tensor]
    ) -> BlockPointer:
        return BlockPointer(base, sizes, steps, offsets, self.block_shape)

    @property
    def type(self) -> str:
        """As diagnostics name it."""
        return str(self)

    @property
    def dtype(self) -> Any:
        """As in Triton: a pointer type to a block type; `element_ty` leads to the elements' type."""
        return dtypes.pointer_type(dtypes.of_core(self.pointee))

    def advance(self, offsets: Any) -> BlockPointer:
        """The pointer moved by `offsets`."""
        return advance(self, offsets)

    def block(self, offsets: Any, block_shape: Any) -> BlockPointer:
        """A pointer to the block of `block_shape` at `offsets` from this one."""
        shape = shape_argument(block_shape, "block")
        if len(shape) != len(self.block_shape):
            expected = f"a shape of {len(self.block_shape)} dimensions"
            fail(WrongRank, function="block", expected=expected, given=str(shape))
        moved = advance(self, offsets)
        return BlockPointer(moved.base, moved.sizes, moved.steps, moved.offsets, shape)

    def load(self, mask: Any, other: Any, boundary_check: Any, padding_option: Any) -> tensor:
        """See `ltl.load`."""
        if semantic.unwrap(mask) is not None or semantic.unwrap(other) is not None:
            hint = "use boundary_check and padding_option"
            fail(WrongMask, function="load", problem="block pointers take no mask and no other", hint=hint)
        padding = static(padding_option, "the padding_option of load") or ""
        if padding not in _PADDINGS:
            expected = 'empty, "zero" or "nan"'
            fail(WrongValue, function="load", argument="padding_option", given=repr(padding), expected=expected)
        return self.read(self.indices(self.offsets), self._checked(boundary_check, "load"), padding)

    def store(self, value: Any, mask: Any, boundary_check: Any) -> None:
        """See `ltl.store`."""
        if semantic.unwrap(mask) is not None:
            hint = "use boundary_check"
            fail(WrongMask, function="store", problem="block pointers take no mask", hint=hint)
        self.write(self.indices(self.offsets), value, self._checked(boundary_check, "store"), "store")

    def _checked(self, boundary_check: Any, function: str) -> list[int]:
        given = static(boundary_check, f"the boundary_check of {function}")
        axes = () if given is None else given if isinstance(given, (tuple, list)) else (given,)
        return [_dimension(axis, len(self.block_shape), function) for axis in axes]

    def __str__(self) -> str:
        return f"block pointer<{list(self.block_shape)}, {dtypes.of_core(self.pointee)}>"

    def __repr__(self) -> str:
        return f"<{self}>"


def _dimension(axis: Any, rank: int, function: str) -> int:
    plain = static_int(axis, function, "boundary_check")
    if not 0 <= plain < rank:
        expected = f"dimensions from 0 to {rank - 1}"
        fail(WrongValue, function=function, argument="boundary_check", given=plain, expected=expected)
    return plain


def make_block_ptr(base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any) -> BlockPointer:
    """A pointer to the block of `block_shape` at `offsets` of an array of `shape` with `strides`, all in elements.

    `order` says which dimension is fastest in memory; it is a hint and means nothing here.
    """
    current("ltl.make_block_ptr")
    pointer = scalar_pointer(base, "make_block_ptr")
    block = shape_argument(block_shape, "make_block_ptr")
    given = {"shape": shape, "strides": strides, "offsets": offsets}
    sizes, steps, places = (scalars(v, len(block), "make_block_ptr", name) for name, v in given.items())
    static(order, "the order of make_block_ptr")
    return BlockPointer(pointer, sizes, steps, places, block)


def advance(base: Any, offsets: Any) -> BlockPointer:
    """`base`, a block pointer, moved by `offsets` elements in each dimension."""
    current("ltl.advance")
    if not isinstance(base, BlockPointer):
        fail(NotPointer, function="advance", given=str(base), hint="it takes what make_block_ptr gives")
    steps = scalars(offsets, len(base.block_shape), "advance", "offsets")
    moved = [offset + step for offset, step in zip(base.offsets, steps, strict=True)]
    return BlockPointer(base.base, base.sizes, base.steps, moved, base.block_shape)


def scalar_pointer(value: Any, function: str) -> tensor:
    """A single pointer. NotPointer or WrongRank for anything else."""
    pointer = semantic.operand(value, function, "base")
    if not isinstance(pointer, tensor) or not pointer.ir_type.is_pointer:
        fail(NotPointer, function=function, given=str(getattr(pointer, "type", pointer)))
    if pointer.shape:
        fail(WrongRank, function=function, expected="one pointer", given=f"a tile of shape {pointer.shape}")
    return pointer


def scalars(values: Any, count: int, function: str, argument: str) -> list[tensor]:
    """`count` integer scalars as i64."""
    values = semantic.unwrap(values)
    items = list(values) if isinstance(values, (tuple, list)) else [values]
    if len(items) != count:
        expected = f"{count} values, one for each dimension of the block"
        fail(WrongValue, function=function, argument=argument, given=f"{len(items)} values", expected=expected)
    made = []
    for item in items:
        value = semantic.to_tensor(item, function, argument)
        if value.shape and value.numel == 1:
            from ltl.shaping import reshape

            value = reshape(value, ())
        if value.shape or value.ir_type.is_pointer or not value.ir_type.dtype.is_integer:
            fail(
                WrongDtype,
                function=function,
                given=f"{argument} of type {value.type}",
                takes="they are integer scalars",
            )
        made.append(semantic.cast(value, core.i64))
    return made


class tensor_descriptor(ArrayBlock):
    """What `make_tensor_descriptor` gives: an array of which `load` and `store` move whole blocks.

    Elements outside the array read as 0 (or NaN, if it was made so) and are not written.
    """

    __slots__ = ("padding",)

    def __init__(
        self,
        base: tensor,
        sizes: Sequence[tensor],
        steps: Sequence[tensor],
        block_shape: tuple[int, ...],
        padding: str = "zero",
    ) -> None:
        super().__init__(base, sizes, steps, (), block_shape)
        self.padding = padding

    def rebuilt(
        self, base: tensor, sizes: Sequence[tensor], steps: Sequence[tensor], offsets: Sequence[tensor]
    ) -> tensor_descriptor:
        return tensor_descriptor(base, sizes, steps, self.block_shape, self.padding)

    def structure(self) -> Hashable:
        return (*super().structure(), self.padding)  # type: ignore[misc]

    @property
    def shape(self) -> tuple[tensor, ...]:
        """The sizes of the array."""
        return self.sizes

    @property
    def strides(self) -> tuple[tensor, ...]:
        """The strides of the array, in elements."""
        return self.steps

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return dtypes.of_core(self.pointee)

    @property
    def block_type(self) -> Any:
        """The type of what `load` gives."""
        return dtypes.block_type(self.dtype, self.block_shape)

    @property
    def type(self) -> str:
        """As diagnostics name it."""
        return str(self)

    def load(self, offsets: Any, cache_modifier: Any = "", eviction_policy: Any = "") -> tensor:
        """The block at `offsets`."""
        current("tensor_descriptor.load")
        return self.read(self._at(offsets, "load"), self._every(), self.padding)

    def store(self, offsets: Any, value: Any) -> None:
        """Write a block, converted to the array's dtype, at `offsets`."""
        current("tensor_descriptor.store")
        self.write(self._at(offsets, "store"), value, self._every(), "store")

    def block(self, offsets: Any) -> BlockPointer:
        """A block pointer to the block at `offsets`."""
        current("tensor_descriptor.block")
        places = scalars(offsets, len(self.block_shape), "block", "offsets")
        return BlockPointer(self.base, self.sizes, self.steps, places, self.block_shape)

    def _at(self, offsets: Any, function: str) -> list[tensor]:
        return self.indices(scalars(offsets, len(self.block_shape), function, "offsets"))

    def _every(self) -> range:
        return range(len(self.block_shape))

    def gather(self, x_offsets: Any, y_offset: Any, cache_modifier: Any = "", eviction_policy: Any = "") -> tensor:
        """The rows `x_offsets` (a 1-D tile of indices) of a matrix, the block's columns from `y_offset` on."""
        current("tensor_descriptor.gather")
        return self.read(self._rows(x_offsets, y_offset, "gather"), self._every(), self.padding)

    def scatter(self, value: Any, x_offsets: Any, y_offset: Any) -> None:
        """Write the rows of `value` to the rows `x_offsets` of a matrix, from column `y_offset` on."""
        current("tensor_descriptor.scatter")
        self.write(self._rows(x_offsets, y_offset, "scatter"), value, self._every(), "scatter")

    def _rows(self, x_offsets: Any, y_offset: Any, function: str) -> list[tensor]:
        from ltl.shaping import reshape

        rows = semantic.to_tensor(x_offsets, function, "x_offsets")
        if len(self.block_shape) != 2 or self.block_shape[0] != 1:
            given = f"a block of shape {self.block_shape}"
            fail(WrongRank, function=function, expected="a descriptor whose block is one row", given=given)
        if len(rows.shape) != 1 or rows.ir_type.is_pointer or not rows.ir_type.dtype.is_integer:
            fail(WrongRank, function=function, expected="a 1-D tile of row indices", given=str(rows.type))
        (column,) = scalars(y_offset, 1, function, "y_offset")
        zero = semantic.known_scalar(0, core.i64)
        _, columns = self.indices([zero, column])
        return [reshape(semantic.cast(rows, core.i64), (rows.shape[0], 1)), columns]

    def _atomic(self, kind: str, offsets: Any, value: Any) -> None:
        from ltl import atomics

        function = f"atomic_{kind}"
        current(f"tensor_descriptor.{function}")
        indices = self._at(offsets, function)
        getattr(atomics, function)(self.addresses(indices), value, self.inside(indices, self._every()))

    def atomic_add(self, offsets: Any, value: Any) -> None:
        """Add a block to the array at `offsets`."""
        self._atomic("add", offsets, value)

    def atomic_min(self, offsets: Any, value: Any) -> None:
        """Store the smaller of a block and the array at `offsets`."""
        self._atomic("min", offsets, value)

    def atomic_max(self, offsets: Any, value: Any) -> None:
        """Store the larger of a block and the array at `offsets`."""
        self._atomic("max", offsets, value)

    def atomic_and(self, offsets: Any, value: Any) -> None:
        """Bitwise and of a block with the array at `offsets`."""
        self._atomic("and", offsets, value)

    def atomic_or(self, offsets: Any, value: Any) -> None:
        """Bitwise or of a block with the array at `offsets`."""
        self._atomic("or", offsets, value)

    def atomic_xor(self, offsets: Any, value: Any) -> None:
        """Bitwise exclusive or of a block with the array at `offsets`."""
        self._atomic("xor", offsets, value)

    def __str__(self) -> str:
        return f"tensor descriptor<{list(self.block_shape)}, {self.dtype}>"

    def __repr__(self) -> str:
        return f"<{self}>"


def make_tensor_descriptor(
    base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any = "zero"
) -> tensor_descriptor:
    """A descriptor of an array at `base` of `shape` with `strides` (elements), moved in blocks of `block_shape`.

    One to five dimensions. padding_option "zero" or "nan": what elements outside the array read as.
    """
    current("ltl.make_tensor_descriptor")
    pointer = scalar_pointer(base, "make_tensor_descriptor")
    block = shape_argument(block_shape, "make_tensor_descriptor")
    if not 1 <= len(block) <= MAX_RANK:
        given = f"a block of shape {block}"
        fail(WrongRank, function="make_tensor_descriptor", expected="one to five dimensions", given=given)
    padding = static(padding_option, "the padding_option of make_tensor_descriptor")
    if padding not in ("zero", "nan"):
        fail(
            WrongValue, function="make_tensor_descriptor", argument="padding_option", given=repr(padding),
            expected='"zero" or "nan"',
        )  # fmt: skip
    sizes = scalars(shape, len(block), "make_tensor_descriptor", "shape")
    steps = scalars(strides, len(block), "make_tensor_descriptor", "strides")
    return tensor_descriptor(pointer, sizes, steps, block, padding)


def _descriptor(desc: Any, function: str) -> tensor_descriptor:
    if not isinstance(desc, tensor_descriptor):
        expected = "what make_tensor_descriptor gives"
        fail(WrongValue, function=function, argument="desc", given=repr(desc), expected=expected)
    return desc


def load_tensor_descriptor(desc: Any, offsets: Any) -> tensor:
    """`desc.load(offsets)`."""
    return _descriptor(desc, "load_tensor_descriptor").load(offsets)


def store_tensor_descriptor(desc: Any, offsets: Any, value: Any) -> None:
    """`desc.store(offsets, value)`."""
    _descriptor(desc, "store_tensor_descriptor").store(offsets, value)


__all__ = [
    "BlockPointer", "advance", "load_tensor_descriptor", "make_block_ptr", "make_tensor_descriptor",
    "store_tensor_descriptor", "tensor_descriptor",
]  # fmt: skip
