"""Scans by a known operation: sums and products of narrow floats are carried in float32."""

from __future__ import annotations

from loom_core.base.dtype import f32
from loom_core.ir.builder import Builder
from loom_core.ir.value import Value
from loom_core.ops.elementwise import Cast
from loom_core.ops.reduction import Scan


def scan(builder: Builder, value: Value, kind: str, axis: int, reverse: bool) -> Value:
    """The folds of all prefixes (of all suffixes if `reverse`) along `axis`, of the type of `value`.

    Of a float narrower than float32, what a sum or product carries is a float32, so that each result is rounded once:
    rounding each step to 8 bits stops a long sum from growing.
    """
    dtype = value.type.dtype
    if kind not in ("sum", "prod") or not dtype.is_float or dtype.bits >= f32.bits:
        folded: Value = builder.create(Scan, value, kind=kind, axis=axis, reverse=reverse)
        return folded
    wide = builder.create(Cast, value, dtype=f32)
    folded = builder.create(Scan, wide, kind=kind, axis=axis, reverse=reverse)
    narrow: Value = builder.create(Cast, folded, dtype=dtype)
    return narrow


__all__ = ["scan"]
