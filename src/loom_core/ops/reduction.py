"""Reductions along one axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from loom_core.ir.op import Op, attribute, operand
from loom_core.ir.types import TileType
from loom_core.ops.references import Array
from loom_core.reference import reduce

_FLOAT: dict[str, Callable[[Array, int], Array]] = {
    "sum": reduce.sum32,
    "prod": reduce.prod32,
    "max": reduce.max32_over,
    "min": reduce.min32_over,
    "maxp": lambda x, axis: reduce.max32_over(x, axis, propagate_nan=True),
    "minp": lambda x, axis: reduce.min32_over(x, axis, propagate_nan=True),
}
_INTEGER: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
KINDS = ("sum", "prod", "max", "min", "maxp", "minp", "and", "or", "xor")


class Reduce(Op):
    """Folds dimension `axis` by `kind`; sums and products of floats in the fixed order of docs/numerics.md.

    max and min prefer numbers to NaN, maxp and minp propagate NaN.
    """

    name = "reduce"
    operand = operand()
    kind = attribute()
    axis = attribute()

    def ref(self, x: Array) -> Array:
        if x.dtype == np.float32:
            return np.asarray(_FLOAT[self.kind](x, self.axis))
        return np.asarray(_INTEGER[self.kind].reduce(x, axis=self.axis)).astype(x.dtype)

    def infer(self) -> tuple[TileType, ...]:
        shape = self.operand.type.shape
        return (self.operand.type.with_shape((*shape[: self.axis], *shape[self.axis + 1 :])),)

    def verify(self) -> str | None:
        type = self.operand.type
        if not 0 <= self.axis < len(type.shape):
            return f"axis {self.axis} is out of range for {type}"
        if self.kind not in KINDS:
            return f"unknown reduction {self.kind!r}"
        return None
