"""Operations that pick, join or order the elements of tiles."""

from __future__ import annotations

import numpy as np

from loom_core.base.dtype import i32
from loom_core.ir.op import Op, attribute, operand, optional_operand, variadic_operand
from loom_core.ir.types import TileType
from loom_core.ops.formats import canonical, is_float, widen
from loom_core.ops.references import Array


class Concat(Op):
    """Tiles of one element type behind each other along `axis`; the other dimensions are equal."""

    name = "concat"
    parts = variadic_operand()
    axis = attribute()

    def ref(self, *parts: Array) -> Array:
        return np.concatenate(parts, axis=self.axis)

    def infer(self) -> tuple[TileType, ...]:
        first = self.operands[0].type
        total = sum(value.type.shape[self.axis] for value in self.operands)
        return (first.with_shape((*first.shape[: self.axis], total, *first.shape[self.axis + 1 :])),)

    def verify(self) -> str | None:
        first = self.operands[0].type
        if not 0 <= self.axis < len(first.shape):
            return f"axis {self.axis} is out of range for {first}"
        for value in self.operands:
            shape = list(value.type.shape)
            if len(shape) != len(first.shape):
                return "the parts differ in rank"
            shape[self.axis] = first.shape[self.axis]
            if tuple(shape) != first.shape or value.type.element != first.element:
                return f"parts differ: {first} and {value.type}"
        return None


class Slice(Op):
    """Elements starts + i * steps of each dimension, i up to `shape`; steps may be negative."""

    name = "slice"
    operand = operand()
    starts = attribute()
    steps = attribute()
    shape = attribute()

    def ref(self, x: Array) -> Array:
        for axis, (start, step, size) in enumerate(zip(self.starts, self.steps, self.shape, strict=True)):
            x = np.take(x, start + step * np.arange(size), axis=axis)
        return x

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_shape(tuple(self.shape)),)

    def verify(self) -> str | None:
        sizes = self.operand.type.shape
        if not len(sizes) == len(self.starts) == len(self.steps) == len(self.shape):
            return "one start, step and size per dimension is needed"
        for size, start, step, count in zip(sizes, self.starts, self.steps, self.shape, strict=True):
            if count < 1 or not (0 <= start < size and 0 <= start + step * (count - 1) < size):
                return f"elements {start} + {step} i, i < {count}, of a dimension of {size}"
        return None


class Gather(Op):
    """Element (.., i, ..) is source[.., index[.., i, ..], ..] along `axis`; 0 where the index is outside."""

    name = "gather"
    source = operand()
    index = operand()
    axis = attribute()

    def ref(self, source: Array, index: Array) -> Array:
        inside = (index >= 0) & (index < source.shape[self.axis])
        found = np.take_along_axis(source, np.where(inside, index, 0).astype(np.int64), axis=self.axis)
        return np.where(inside, found, np.zeros((), source.dtype))

    def infer(self) -> tuple[TileType, ...]:
        return (self.source.type.with_shape(self.index.type.shape),)

    def verify(self) -> str | None:
        source, index = self.source.type, self.index.type
        if index.is_pointer or not index.dtype.is_integer:
            return f"indices of type {index}"
        if not 0 <= self.axis < len(source.shape) or len(source.shape) != len(index.shape):
            return f"axis {self.axis} of {source} by {index}"
        others = [d for d in range(len(source.shape)) if d != self.axis]
        if any(source.shape[d] != index.shape[d] for d in others):
            return f"{source} and {index} differ beside axis {self.axis}"
        return None


class Sort(Op):
    """The elements along the last dimension in ascending order, or descending.

    The order is total: -0 before +0, NaN (canonical) above every number.
    """

    name = "sort"
    operand = operand()
    descending = attribute(False)

    def ref(self, x: Array) -> Array:
        order = np.argsort(order_keys(x), axis=-1, kind="stable")
        result = np.take_along_axis(canonical(x), order, axis=-1)
        return result[..., ::-1].copy() if self.descending else result

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type,)

    def verify(self) -> str | None:
        return "a scalar has no order" if not self.operand.type.shape or self.operand.type.is_pointer else None


def order_keys(x: Array) -> Array:
    """Integers that are ordered as the elements: floats by value, -0 below +0, NaN above all."""
    if not is_float(x):
        return x
    wide = canonical(widen(x))
    pattern: Array = wide.view(np.int64 if wide.dtype.itemsize == 8 else np.int32)
    largest = np.iinfo(pattern.dtype).max
    return np.where(pattern < 0, -1 - (pattern & largest), pattern)


class Histogram(Op):
    """How many elements of a 1-D integer tile equal 0, 1, ... bins - 1, i32; those where `mask` holds, if given."""

    name = "histogram"
    operand = operand()
    mask = optional_operand()
    bins = attribute()

    def ref(self, x: Array, mask: Array | None = None) -> Array:
        counted = (x >= 0) & (x < self.bins)
        if mask is not None:
            counted &= mask
        return np.bincount(x[counted].astype(np.int64), minlength=self.bins).astype(np.int32)

    def infer(self) -> tuple[TileType, ...]:
        return (TileType(i32, (self.bins,)),)

    def verify(self) -> str | None:
        type = self.operand.type
        if type.is_pointer or not type.dtype.is_integer or len(type.shape) != 1:
            return f"{type} is no 1-D tile of integers"
        if self.mask is not None and self.mask.type.shape != type.shape:
            return f"the mask is {self.mask.type}"
        return None if self.bins > 0 else f"{self.bins} bins"
