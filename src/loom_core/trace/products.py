"""Products of matrices by precision: what float32 operands become before they are multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loom_core.base.dtype import DType, bf16, f32
from loom_core.ir.builder import Builder
from loom_core.ir.value import Value
from loom_core.ops.elementwise import Cast, Sub
from loom_core.ops.matmul import Dot
from loom_core.ops.special import RoundMantissa

PRECISIONS: Final = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
TF32_BITS: Final = 10

# The products of parts in the order in which they are added, small ones first: (part of the first, of the second).
_ORDER: Final = {
    "tf32x3": ((1, 0), (0, 1), (0, 0)),
    "bf16x3": ((1, 0), (0, 1), (0, 0)),
    "bf16x6": ((1, 1), (2, 0), (0, 2), (1, 0), (0, 1), (0, 0)),
}


def multiply(builder: Builder, a: Value, b: Value, acc: Value | None, precision: str, dtype: DType) -> Value:
    """a[M, K] times b[K, N] plus acc[M, N], accumulated in `dtype`.

    precision: "ieee" takes the operands exactly; "tf32" rounds float32 ones to 10 mantissa bits; "tf32x3", "bf16x3" and
    "bf16x6" add 3 or 6 products of their leading parts.
    """
    total = acc
    for left, right in _factors(builder, a, b, precision):
        total = builder.create(Dot, left, right, total, dtype=dtype)
    assert total is not None
    return total


def _factors(builder: Builder, a: Value, b: Value, precision: str) -> Sequence[tuple[Value, Value]]:
    """The pairs whose products are added, in order."""
    if precision == "ieee":
        return [(a, b)]
    if precision == "tf32":
        return [(_round_tf32(builder, a), _round_tf32(builder, b))]
    count = 3 if precision == "bf16x6" else 2
    split = _tf32_parts if precision == "tf32x3" else _bf16_parts
    left, right = split(builder, a, count), split(builder, b, count)
    return [(left[i], right[j]) for i, j in _ORDER[precision]]


def _round_tf32(builder: Builder, value: Value) -> Value:
    """float32 rounded to the 10 mantissa bits of tf32, to nearest even."""
    return builder.create(RoundMantissa, value, bits=TF32_BITS)  # type: ignore[no-any-return]


def _tf32_parts(builder: Builder, value: Value, count: int) -> list[Value]:
    parts: list[Value] = []
    for _ in range(count):
        parts.append(_round_tf32(builder, value))
        value = builder.create(Sub, value, parts[-1])
    return parts


def _bf16_parts(builder: Builder, value: Value, count: int) -> list[Value]:
    parts: list[Value] = []
    for _ in range(count):
        parts.append(builder.create(Cast, value, dtype=bf16))
        value = builder.create(Sub, value, builder.create(Cast, parts[-1], dtype=f32))
    return parts
