"""Access to device memory through pointers and tiles of pointers."""

from __future__ import annotations

from math import prod

from loom_core.base.dtype import bool_
from loom_core.ir.op import Op, attribute, operand, optional_operand, variadic_operand
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value


class AddPointer(Op):
    """pointer + offset, the offset an integer that counts pointees; shapes are equal."""

    name = "addptr"
    no_reference = "pointers are no arrays; interp.run moves them"
    no_lowering = "lower_addresses takes it into the accesses"
    pointer = operand()
    offset = operand()

    def infer(self) -> tuple[TileType, ...]:
        return (self.pointer.type,)

    def verify(self) -> str | None:
        if not self.pointer.type.is_pointer:
            return f"{self.pointer.type} is no pointer"
        if self.offset.type.is_pointer or self.offset.type.dtype.kind not in ("int", "uint"):
            return f"offset is {self.offset.type}, an integer is needed"
        if self.pointer.type.shape != self.offset.type.shape:
            return f"shapes differ: {self.pointer.type} and {self.offset.type}"
        return None


class Load(Op):
    """Elements read where `mask` (bool, same shape) holds, else `other` (0 where absent)."""

    name = "load"
    no_lowering = "lower_addresses makes it dma_load"
    pure = False
    pointer = operand()
    mask = optional_operand()
    other = optional_operand()

    def infer(self) -> tuple[TileType, ...]:
        return (self.pointer.type.with_element(self.pointer.type.pointee),)

    def verify(self) -> str | None:
        if self.mask is None and self.other is not None:
            return "`other` needs a mask"
        return verify_mask(self) or (
            f"other is {self.other.type}, {self.result.type} is needed"
            if self.other is not None and self.other.type != self.result.type
            else None
        )


class Store(Op):
    """Writes `value` where `mask` holds."""

    name = "store"
    no_lowering = "lower_addresses makes it dma_store"
    pure = False
    pointer = operand()
    value = operand()
    mask = optional_operand()

    def verify(self) -> str | None:
        if self.value.type != self.pointer.type.with_element(self.pointer.type.pointee):
            return f"stores {self.value.type} through {self.pointer.type}"
        return verify_mask(self)


def verify_mask(op: Op) -> str | None:
    """The mask, where there is one, is a bool tile of the pointer's shape."""
    mask = op.mask  # type: ignore[attr-defined]
    pointer = op.pointer  # type: ignore[attr-defined]
    if mask is not None and mask.type != pointer.type.with_element(bool_):
        return f"mask is {mask.type}, {pointer.type.with_element(bool_)} is needed"
    return None


class StridedAccess(Op):
    """Family base of accesses whose addresses are affine: what one DMA descriptor can express.

    Element (i0, i1, ...) of the tile is at `base` + `offset` + sum of stride_d * i_d, all i64 scalars in bytes. It is
    valid where lo_d <= i_d < hi_d for every dimension d. `bounds` holds, for each dimension, stride, lo and hi; a
    scalar has them for one dimension of size 1.
    """

    pure = False

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def dimensions(self) -> list[tuple[Value, Value, Value]]:
        """(stride, lo, hi) of each dimension."""
        bounds: list[Value] = self.bounds  # type: ignore[attr-defined]
        return list(zip(bounds[0::3], bounds[1::3], bounds[2::3], strict=True))

    def verify(self) -> str | None:
        if len(self.bounds) != 3 * max(1, len(self.shape)):  # type: ignore[attr-defined]
            return f"a tile of shape {self.shape} needs stride, lo and hi of each dimension"
        return None


class DmaLoad(StridedAccess):
    """A tile read from device memory; invalid elements are `fill` (0 where absent).

    `slots`: how many of its tiles are in SRAM at once, those of later iterations of the loop among them; 1: it is
    loaded where it stands; 0: the compiler chooses.
    """

    name = "dma_load"
    base = operand()
    offset = operand()
    fill = optional_operand()
    bounds = variadic_operand()
    tile_shape = attribute()
    slots = attribute(0)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tile_shape)

    def infer(self) -> tuple[TileType, ...]:
        return (TileType(self.base.type.pointee, self.tile_shape),)


class DmaStore(StridedAccess):
    """A tile written to device memory; invalid elements are skipped.

    `slots`: how many of its tiles are in SRAM at once, those of earlier iterations of the loop among them; 0: the
    compiler chooses.
    """

    name = "dma_store"
    base = operand()
    offset = operand()
    value = operand()
    bounds = variadic_operand()
    slots = attribute(0)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.type.shape)


class Window(Op):
    """A named region of SRAM that lives while the block around it runs: a pointer to its first element.

    Every access takes it as it takes a pointer parameter. It begins as poison: NaN, the least integer, False.
    """

    name = "window"
    pure = False
    shape = attribute()
    dtype = attribute()

    def infer(self) -> tuple[TileType, ...]:
        return (TileType(PointerType(self.dtype)),)

    @property
    def bytes(self) -> int:
        return int(prod(self.shape)) * int(self.dtype.itemsize)


class DmaCopy(Op):
    """Elements of `source` to `target` without a tile between them; those outside the bounds are skipped.

    Element (i0, i1, ...) moves from `source` + `source_offset` + sum of source_stride_d * i_d to the place that the
    target's numbers give, where lo_d <= i_d < hi_d; all i64 scalars in bytes. `bounds` holds, for each dimension of
    `shape`, source stride, target stride, lo and hi. `queue` is the number of the DMA queue, None leaves it to the
    compiler.
    """

    name = "dma_copy"
    pure = False
    source = operand()
    source_offset = operand()
    target = operand()
    target_offset = operand()
    bounds = variadic_operand()
    shape = attribute()
    queue = attribute(None)

    @property
    def dimensions(self) -> list[tuple[Value, Value, Value, Value]]:
        """(source stride, target stride, lo, hi) of each dimension."""
        bounds: list[Value] = self.bounds
        return list(zip(bounds[0::4], bounds[1::4], bounds[2::4], bounds[3::4], strict=True))

    def verify(self) -> str | None:
        if self.source.type != self.target.type or not self.source.type.is_pointer:
            return f"copies from {self.source.type} to {self.target.type}"
        if not self.shape or len(self.bounds) != 4 * len(self.shape):
            return f"shape {self.shape} needs two strides, lo and hi of each dimension"
        return None


class IndexedAccess(Op):
    """Family base of accesses through an index tile, and of strided ones whose mask is no box.

    Element i = (i0, i1, ...) is at `base` + `offset` + index[i] * (bytes of a pointee) + sum of stride_d * i_d:
    `offset` and `strides` are i64 scalars in bytes, `index` an i32 or i64 tile, all 0 where absent.
    """

    pure = False

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    def verify(self) -> str | None:
        index, mask, shape = self.index, self.mask, self.shape  # type: ignore[attr-defined]
        if len(self.strides) != len(shape):  # type: ignore[attr-defined]
            return f"a tile of shape {shape} needs one stride per dimension"
        if index is not None and (index.type.shape != shape or index.type.dtype.name not in ("i32", "i64")):
            return f"index is {index.type}, i32 or i64 of shape {shape} is needed"
        if mask is not None and mask.type != TileType(bool_, shape):
            return f"mask is {mask.type}, {TileType(bool_, shape)} is needed"
        return None


class DmaGather(IndexedAccess):
    """Elements read where `mask` holds, `fill` (0 where absent) elsewhere."""

    name = "dma_gather"
    base = operand()
    offset = operand()
    index = optional_operand()
    mask = optional_operand()
    fill = optional_operand()
    strides = variadic_operand()
    tile_shape = attribute()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tile_shape)

    def infer(self) -> tuple[TileType, ...]:
        return (TileType(self.base.type.pointee, self.tile_shape),)


class StoringAccess(IndexedAccess):
    """Family base of those that write `value`."""

    base = operand()
    offset = operand()
    index = optional_operand()
    mask = optional_operand()
    value = operand()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.type.shape)


class DmaScatter(StoringAccess):
    """Elements written where `mask` holds, in row-major order."""

    name = "dma_scatter"
    strides = variadic_operand()


class DmaScatterReduce(StoringAccess):
    """memory = f(memory, value) where `mask` holds, one element after the other; the results are the old elements.

    `kind` as in `atomic_rmw`; the result is 0 where the mask does not hold.
    """

    name = "dma_scatter_reduce"
    strides = variadic_operand()
    kind = attribute()

    def infer(self) -> tuple[TileType, ...]:
        return (self.value.type,)


class DmaCompareSwap(StoringAccess):
    """memory = value where memory has the bits of `compare`, one after the other; the results are the old elements."""

    name = "dma_compare_swap"
    compare = operand()
    strides = variadic_operand()

    def infer(self) -> tuple[TileType, ...]:
        return (self.value.type,)
