"""Kernels in float64 for float32 functions that need a few more bits inside: log, 2**x, sin(pi * x)."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    Float64,
    Int64,
    bits64,
    div64,
    float64_from_bits,
    fma64,
    polynomial64,
    rint64,
    scalar,
    select,
)
from loom_sim.elementary.numbers import coefficients64, constant64

_LOG = coefficients64("log_wide")
_EXP2 = coefficients64("exp2_wide")
_SINPI = coefficients64("sinpi_wide")
_LN2 = constant64("ln2_wide")
_LOG2_E = constant64("log2_e_wide")

ONE_WIDE = np.float64(1.0)
HALF_WIDE = np.float64(0.5)
_TWO = np.float64(2.0)
_SQRT_HALF_BITS = np.float64(float.fromhex("0x1.6a09e667f3bcdp-1")).view(np.int64)
_MANTISSA_MASK = np.int64(0x000FFFFFFFFFFFFF)
# Adding and subtracting 1.5 * 2**52 rounds to an integer, which then also stands in the low bits of the sum.
_MAGIC = np.float64(1.5 * 2.0**52)
_MAGIC_BITS = _MAGIC.view(np.int64)
_EXP2_LOWEST = np.float64(-200.0)
_EXP2_HIGHEST = np.float64(200.0)


@scalar
def power_of_two_wide(exponent: Int64) -> Float64:
    """2**exponent for an i64 in [-1022, 1023]."""
    return float64_from_bits((exponent + 1023) << 52)


@scalar
def split_exponent_wide(x: Float64) -> tuple[Float64, Float64]:
    """(log(m), e) with x = 2**e * m and sqrt(1/2) <= m < sqrt(2), for a normal x > 0; e is an integral float."""
    offset = bits64(x) - _SQRT_HALF_BITS
    # The integer goes through the mantissa of a float, since a conversion from i64 vectorises on few targets.
    e = float64_from_bits((offset >> 52) + _MAGIC_BITS) - _MAGIC
    f = float64_from_bits((offset & _MANTISSA_MASK) + _SQRT_HALF_BITS) - ONE_WIDE
    s = div64(f, _TWO + f)
    z = s * s
    return fma64(s * z, polynomial64(z, _LOG), s + s), e


@scalar
def log_wide(x: Float64) -> Float64:
    """Natural logarithm of a normal x > 0 to about 2**-50."""
    log_m, e = split_exponent_wide(x)
    return fma64(e, _LN2, log_m)


@scalar
def log2_wide(x: Float64) -> Float64:
    """Logarithm to base 2 of a normal x > 0 to about 2**-50; exact for powers of two."""
    log_m, e = split_exponent_wide(x)
    return fma64(log_m, _LOG2_E, e)


@scalar
def exp2_wide(x: Float64) -> Float64:
    """2**x to about 2**-38, for any x: beyond +-200 as at +-200, NaN for NaN."""
    clamped = select(x > _EXP2_HIGHEST, _EXP2_HIGHEST, x)
    clamped = select(clamped < _EXP2_LOWEST, _EXP2_LOWEST, clamped)
    shifted = clamped + _MAGIC
    r = clamped - (shifted - _MAGIC)
    return fma64(polynomial64(r, _EXP2), r, ONE_WIDE) * power_of_two_wide(bits64(shifted) - _MAGIC_BITS)


@scalar
def sinpi_wide(t: Float64) -> Float64:
    """sin(pi * t) for |t| <= 0.5."""
    return t * polynomial64(t * t, _SINPI)


@scalar
def to_nearest_integer(x: Float64) -> Float64:
    """x minus the nearest integer, in [-0.5, 0.5]; exact."""
    return x - rint64(x)
