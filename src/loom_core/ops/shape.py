"""Operations that make tiles or change their shape without touching elements."""

from __future__ import annotations

from math import prod

import numpy as np

from loom_core.base.dtype import i32
from loom_core.ir.op import Op, attribute, operand, variadic_operand
from loom_core.ir.types import TileType
from loom_core.ops.references import Array


class Constant(Op):
    """A scalar or a tile with `value` in every element; `type` is the result type."""

    name = "constant"
    value = attribute()
    type = attribute()

    def ref(self) -> Array:
        return np.full(self.type.shape, self.value, self.type.dtype.numpy)

    def infer(self) -> tuple[TileType, ...]:
        return (self.type,)

    def verify(self) -> str | None:
        if self.type.is_pointer:
            return "a pointer has no constants"
        numbers = (int, float, np.generic) if self.type.dtype.is_float else (int, np.integer, np.bool_)
        if not isinstance(self.value, numbers):
            return f"{self.value!r} is no {self.type.dtype.name}"
        return None


class Iota(Op):
    """start, start + 1, ... end - 1 as i32, along one dimension."""

    name = "iota"
    no_lowering = "lower_addresses makes it an affine tile"
    start = attribute()
    end = attribute()

    def ref(self) -> Array:
        return np.arange(self.start, self.end, dtype=np.int32)

    def infer(self) -> tuple[TileType, ...]:
        return (TileType(i32, (self.end - self.start,)),)

    def verify(self) -> str | None:
        return None if self.end > self.start else "an iota needs end > start"


class Splat(Op):
    """A scalar repeated over `shape`."""

    name = "splat"
    operand = operand()
    shape = attribute()

    def ref(self, x: Array) -> Array:
        return np.broadcast_to(x, self.shape).copy()

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_shape(self.shape),)

    def verify(self) -> str | None:
        return None if self.operand.type.is_scalar else "splats a tile"


class ExpandDims(Op):
    """A dimension of size 1 inserted at `axis`."""

    name = "expand_dims"
    operand = operand()
    axis = attribute()

    def ref(self, x: Array) -> Array:
        return np.expand_dims(x, self.axis)

    def infer(self) -> tuple[TileType, ...]:
        shape = self.operand.type.shape
        return (self.operand.type.with_shape((*shape[: self.axis], 1, *shape[self.axis :])),)

    def verify(self) -> str | None:
        return None if 0 <= self.axis <= len(self.operand.type.shape) else f"axis {self.axis} is out of range"


class Broadcast(Op):
    """Dimensions of size 1 repeated to `shape`; the rank stays."""

    name = "broadcast"
    operand = operand()
    shape = attribute()

    def ref(self, x: Array) -> Array:
        return np.broadcast_to(x, self.shape).copy()

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_shape(self.shape),)

    def verify(self) -> str | None:
        old = self.operand.type.shape
        if len(old) != len(self.shape) or any(a not in (1, b) for a, b in zip(old, self.shape, strict=True)):
            return f"shape {old} does not broadcast to {self.shape}"
        return None


class Reshape(Op):
    """The same elements in row-major order under another shape."""

    name = "reshape"
    operand = operand()
    shape = attribute()

    def ref(self, x: Array) -> Array:
        return x.reshape(self.shape)

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_shape(self.shape),)

    def verify(self) -> str | None:
        old = self.operand.type
        return None if prod(self.shape) == old.size else f"{old.size} elements do not fill shape {self.shape}"


class Transpose(Op):
    """Dimension d of the result is dimension `permutation[d]` of the operand."""

    name = "transpose"
    operand = operand()
    permutation = attribute()

    def ref(self, x: Array) -> Array:
        return np.transpose(x, self.permutation)

    def infer(self) -> tuple[TileType, ...]:
        shape = self.operand.type.shape
        return (self.operand.type.with_shape(tuple(shape[d] for d in self.permutation)),)

    def verify(self) -> str | None:
        if sorted(self.permutation) != list(range(len(self.operand.type.shape))):
            return f"{self.permutation} is no permutation of the dimensions of {self.operand.type}"
        return None


class AffineTile(Op):
    """Element (i0, i1, ...) is offset + sum of stride_d * i_d, wrapped to `dtype`; offset and strides are i64."""

    name = "affine"
    offset = operand()
    strides = variadic_operand()
    shape = attribute()
    dtype = attribute()

    def ref(self, offset: Array, *strides: Array) -> Array:
        total = np.full(self.shape, int(offset), np.int64)
        for d, stride in enumerate(strides):
            index = np.arange(self.shape[d]).reshape([-1 if e == d else 1 for e in range(len(self.shape))])
            total = total + index * int(stride)
        return total.astype(self.dtype.numpy)

    def infer(self) -> tuple[TileType, ...]:
        return (TileType(self.dtype, self.shape),)

    def verify(self) -> str | None:
        return None if len(self.strides) == len(self.shape) else "one stride per dimension is needed"
