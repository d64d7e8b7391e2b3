"""Matrix products."""

from __future__ import annotations

from loom_core.ir.op import Op, attribute, operand, optional_operand
from loom_core.ir.types import TileType
from loom_core.ops.references import Array
from loom_core.reference.dot import dot32


class Dot(Op):
    """a[M, K] times b[K, N] plus acc[M, N] (+0 where absent), accumulated in `dtype` in the order of docs/numerics.md."""

    name = "dot"
    a = operand()
    b = operand()
    acc = optional_operand()
    dtype = attribute()

    def ref(self, a: Array, b: Array, acc: Array | None = None) -> Array:
        return dot32(a, b, acc)

    def infer(self) -> tuple[TileType, ...]:
        return (TileType(self.dtype, (self.a.type.shape[0], self.b.type.shape[1])),)

    def verify(self) -> str | None:
        a, b = self.a.type, self.b.type
        if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
            return f"shapes do not multiply: {a} and {b}"
        if a.element != b.element:
            return f"operands differ: {a} and {b}"
        if self.acc is not None and self.acc.type != self.result.type:
            return f"acc is {self.acc.type}, {self.result.type} is needed"
        return None
