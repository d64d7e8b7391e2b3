"""Reductions along one axis."""

from __future__ import annotations

from loom_core.ir.op import Op, attribute, operand
from loom_core.ir.types import TileType

KINDS = ("sum", "prod", "max", "min", "maxp", "minp", "and", "or", "xor")


class Reduce(Op):
    """Folds dimension `axis` by `kind`; sums and products of floats in the fixed order of docs/numerics.md.

    max and min prefer numbers to NaN, maxp and minp propagate NaN.
    """

    name = "reduce"
    operand = operand()
    kind = attribute()
    axis = attribute()

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
