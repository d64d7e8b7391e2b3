"""Integers that order as the values of a type do, for searches of extremes and for sorting.

The bit pattern of a float is a sign and a magnitude that grows with the number, whatever its format; magnitudes past
that of infinity are NaNs. So `(sign ? -magnitude : magnitude)` orders numbers, with -0 and +0 equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from loom_core.base.dtype import DType, by_name


def largest_magnitude(dtype: DType) -> int:
    """The pattern of a float type's largest magnitude that is no NaN: infinity, or the largest finite one."""
    if dtype.name == "f8e4m3":  # no infinity, and one NaN a sign
        return 0x7E
    exponent_bits = dtype.bits - 1 - dtype.mantissa
    return ((1 << exponent_bits) - 1) << dtype.mantissa


def canonical_nan(dtype: DType) -> int:
    """The pattern of a float type's canonical NaN."""
    return largest_magnitude(dtype) | 1 << (dtype.mantissa - 1) if dtype.name != "f8e4m3" else 0x7F


def make_key(name: str, largest: bool, nan_leads: bool) -> Any:
    """Intrinsic: pattern (a signed integer of the type's bytes) -> signed integer of the same width.

    The larger the key, the better the value: the larger it is, or the smaller if not `largest`. NaNs have one key,
    above all numbers if `nan_leads`, else below.
    """
    dtype = by_name(name)
    bits = 8 * dtype.itemsize
    width, held = ir.IntType(bits), types.Integer.from_bitwidth(bits, signed=True)
    most, least = (1 << (bits - 1)) - 1, -(1 << (bits - 1))

    @intrinsic
    def key(typing_context, pattern):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
            (pattern,) = values
            if not dtype.is_float:
                if not dtype.is_signed:
                    pattern = builder.xor(pattern, width(least))
                return pattern if largest else builder.not_(pattern)
            magnitude = builder.and_(pattern, width(most))
            negated = builder.sub(width(0), magnitude)
            is_low = builder.icmp_signed("<" if largest else ">=", pattern, width(0))
            number = builder.select(is_low, negated, magnitude)
            is_nan = builder.icmp_signed(">", magnitude, width(largest_magnitude(dtype)))
            return builder.select(is_nan, width(most if nan_leads else least), number)

        return held(held), generate

    return key
