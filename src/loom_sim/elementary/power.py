"""Powers, roots and exponents: pow, cbrt, hypot, ldexp, frexp."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN32,
    Float32,
    Int32,
    abs32,
    bits32,
    bits64,
    canonical32,
    copysign32,
    div64,
    float32_from_bits,
    float64_from_bits,
    propagate_nan32,
    rint32,
    scalar,
    select,
    sqrt64,
)
from loom_sim.elementary.numbers import HALF, INFINITY, ONE, SMALLEST_NORMAL, ZERO
from loom_sim.elementary.wide import exp2_wide, log2_wide, power_of_two_wide

_INFINITY_WIDE = np.float64(np.inf)
_ZERO_WIDE = np.float64(0.0)
_CBRT_BIAS = np.int64(715094163)
_THIRD = np.int64(0x55555556)
_LDEXP_HIGHEST = np.int32(300)
_LDEXP_LOWEST = np.int32(-300)
_SUBNORMAL_SCALE = np.float32(2.0**24)
_MANTISSA_AND_SIGN = np.int32(-0x7F800001)
_HALF_EXPONENT = np.int32(0x3F000000)


@scalar
def powf(x: Float32, y: Float32) -> Float32:
    """(f32, f32) -> f32: x**y with the special cases of C's `pow`: x**0 and 1**y are 1 even for a NaN."""
    a = abs32(x)
    wide = np.float64(a)
    log2_x = log2_wide(wide)
    log2_x = select(a == ZERO, -_INFINITY_WIDE, log2_x)
    log2_x = select(a == INFINITY, _INFINITY_WIDE, log2_x)
    magnitude = np.float32(exp2_wide(np.float64(y) * log2_x))
    magnitude = select(a == ONE, ONE, magnitude)
    fractional = rint32(y) != y
    odd = (rint32(y) == y) & (rint32(HALF * y) != HALF * y)
    negative = bits32(x) < np.int32(0)
    result = select(negative & odd, -magnitude, magnitude)
    invalid = (x < ZERO) & (a < INFINITY) & fractional
    result = select(invalid | (x != x) | (y != y), NAN32, result)
    return select((y == ZERO) | (x == ONE), ONE, result)


@scalar
def cbrtf(x: Float32) -> Float32:
    """f32 -> f32: cube root."""
    a = np.float64(abs32(x))
    # A third of the high half of the bit pattern is a root to 5 bits; Halley's iteration triples that.
    third = ((bits64(a) >> 32) * _THIRD) >> 32
    root = float64_from_bits((third + _CBRT_BIAS) << 32)
    cube = root * root * root
    root = root * div64(a + a + cube, a + cube + cube)
    cube = root * root * root
    root = root * div64(a + a + cube, a + cube + cube)
    result = copysign32(np.float32(root), x)
    return propagate_nan32(x, select((x == ZERO) | (abs32(x) == INFINITY), x, result))


@scalar
def hypotf(x: Float32, y: Float32) -> Float32:
    """(f32, f32) -> f32: sqrt(x**2 + y**2) without overflow inside; infinite for an infinite operand, NaN or not."""
    wide_x = np.float64(x)
    wide_y = np.float64(y)
    result = canonical32(np.float32(sqrt64(wide_x * wide_x + wide_y * wide_y)))
    return select((abs32(x) == INFINITY) | (abs32(y) == INFINITY), INFINITY, result)


@scalar
def ldexpf(x: Float32, exponent: Int32) -> Float32:
    """(f32, i32) -> f32: x * 2**exponent, rounded once."""
    n = select(exponent > _LDEXP_HIGHEST, _LDEXP_HIGHEST, exponent)
    n = select(n < _LDEXP_LOWEST, _LDEXP_LOWEST, n)
    return canonical32(np.float32(np.float64(x) * power_of_two_wide(np.int64(n))))


@scalar
def _exponent_field(x: Float32) -> Int32:
    return np.int32((bits32(x) >> 23) & 255)


@scalar
def frexp_fractionf(x: Float32) -> Float32:
    """f32 -> f32: m of x = m * 2**e with 0.5 <= |m| < 1; x itself where it is zero or not finite."""
    scaled = select(abs32(x) < SMALLEST_NORMAL, x * _SUBNORMAL_SCALE, x)
    fraction = float32_from_bits(np.int32((bits32(scaled) & _MANTISSA_AND_SIGN) | _HALF_EXPONENT))
    return canonical32(select((x == ZERO) | (_exponent_field(x) == np.int32(255)), x, fraction))


@scalar
def frexp_exponentf(x: Float32) -> Int32:
    """f32 -> i32: e of x = m * 2**e with 0.5 <= |m| < 1; 0 where x is zero or not finite."""
    subnormal = abs32(x) < SMALLEST_NORMAL
    scaled = select(subnormal, x * _SUBNORMAL_SCALE, x)
    exponent = np.int32(_exponent_field(scaled) - select(subnormal, np.int32(150), np.int32(126)))
    return select((x == ZERO) | (_exponent_field(x) == np.int32(255)), np.int32(0), exponent)
