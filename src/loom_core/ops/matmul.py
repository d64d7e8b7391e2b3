"""Matrix products."""

from __future__ import annotations

import numpy as np

from loom_core.ir.op import Op, attribute, operand, optional_operand
from loom_core.ir.types import TileType
from loom_core.ops.formats import canonical, round_float, widen
from loom_core.ops.references import Array
from loom_core.reference.arith import canonical64, fma64
from loom_core.reference.dot import PASS_DEPTH, dot32


class Dot(Op):
    """a[M, K] times b[K, N] plus acc[M, N] (+0 where absent), accumulated in `dtype` in the order of docs/numerics.md.

    With three dimensions the first one counts products. Accumulators are f32, i32 (operands i8 or u8), f64, and
    integers of 32 and 64 bits for operands of their type, modulo 2**32 and 2**64; one of f16 is one of f32 that is
    rounded once at the end.
    """

    name = "dot"
    a = operand()
    b = operand()
    acc = optional_operand()
    dtype = attribute()

    def ref(self, a: Array, b: Array, acc: Array | None = None) -> Array:
        if self.dtype.is_integer:
            product = a.astype(np.int64) @ b.astype(np.int64)
            total = product if acc is None else product + acc.astype(np.int64)
            return np.asarray(total.astype(self.dtype.numpy))
        if self.dtype.itemsize == 8:
            return dot64(a, b, acc)
        exact = dot32(widen(a), widen(b), None if acc is None else widen(acc))
        return exact if self.dtype.itemsize == 4 else round_float(exact, self.dtype)

    def infer(self) -> tuple[TileType, ...]:
        a, b = self.a.type.shape, self.b.type.shape
        return (TileType(self.dtype, (*a[:-1], b[-1])),)

    def verify(self) -> str | None:
        a, b = self.a.type, self.b.type
        if not (len(a.shape) == len(b.shape) in (2, 3) and a.shape[-1] == b.shape[-2] and a.shape[:-2] == b.shape[:-2]):
            return f"shapes do not multiply: {a} and {b}"
        if a.element != b.element and not (
            a.dtype.bits == b.dtype.bits == 8 and a.dtype.kind == b.dtype.kind == "float"
        ):
            return f"operands differ: {a} and {b}"
        if self.acc is not None and self.acc.type != self.result.type:
            return f"acc is {self.acc.type}, {self.result.type} is needed"
        return None


def dot64(a: Array, b: Array, acc: Array | None) -> Array:
    """The rule of `dot32` with float64 operands and accumulator."""
    depth = a.shape[-1]
    shape = (*a.shape[:-1], b.shape[-1])
    result = np.zeros(shape) if acc is None else np.array(canonical(acc))
    for start in range(0, depth, PASS_DEPTH):
        t = np.zeros(shape)
        for k in range(start, min(start + PASS_DEPTH, depth)):
            t = fma64(a[..., :, k, None], b[..., None, k, :], t)
        with np.errstate(all="ignore"):
            result = canonical64(result + t)
    return result
