"""Correctly rounded and exact functions of f64: arithmetic, roots, rounding, minima and maxima, signs, remainders."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN64,
    Bool,
    Float64,
    Int32,
    Int64,
    abs64,
    bits64,
    canonical64,
    ceil64,
    copysign64,
    div64,
    float64_from_bits,
    floor64,
    fma64,
    rint64,
    scalar,
    select,
    sqrt64,
    trunc64,
)

_ZERO = np.float64(0.0)
_HALF = np.float64(0.5)
_ONE = np.float64(1.0)
_INFINITY = np.float64(np.inf)
_SIGN_BIT = np.int64(-(2**63))
_INFINITY_BITS = np.uint64(0x7FF0000000000000)
_NEGATIVE_ZERO_BITS = np.uint64(0x8000000000000000)
_SMALLEST_NORMAL = np.float64(2.0**-1022)
_SUBNORMAL_SCALE = np.float64(2.0**54)
_MANTISSA_AND_SIGN = np.int64(-0x7FF0000000000001)
_HALF_EXPONENT = np.int64(0x3FE0000000000000)
_LDEXP_HIGHEST = np.int32(2100)
_LDEXP_LOWEST = np.int32(-2200)


@scalar
def add(x: Float64, y: Float64) -> Float64:
    return canonical64(x + y)


@scalar
def subtract(x: Float64, y: Float64) -> Float64:
    return canonical64(x - y)


@scalar
def multiply(x: Float64, y: Float64) -> Float64:
    return canonical64(x * y)


@scalar
def divide(x: Float64, y: Float64) -> Float64:
    return canonical64(div64(x, y))


@scalar
def fused_multiply_add(x: Float64, y: Float64, z: Float64) -> Float64:
    return canonical64(fma64(x, y, z))


@scalar
def square_root(x: Float64) -> Float64:
    """Square root, correctly rounded; NaN below zero, -0 at -0."""
    # Asked of the operand's bits: LLVM removes "x < 0 ? NaN : sqrt(x)" as redundant, whatever sign the root's NaN has.
    unsigned = np.uint64(bits64(x))
    invalid = (unsigned > _INFINITY_BITS) & (unsigned != _NEGATIVE_ZERO_BITS)
    return select(invalid, NAN64, sqrt64(x))


@scalar
def reciprocal_root(x: Float64) -> Float64:
    """1 / sqrt(x), two roundings; inf and -inf at +0 and -0."""
    return canonical64(div64(_ONE, sqrt64(x)))


@scalar
def reciprocal(x: Float64) -> Float64:
    return canonical64(div64(_ONE, x))


@scalar
def floor(x: Float64) -> Float64:
    return canonical64(floor64(x))


@scalar
def ceil(x: Float64) -> Float64:
    return canonical64(ceil64(x))


@scalar
def rint(x: Float64) -> Float64:
    return canonical64(rint64(x))


@scalar
def truncate(x: Float64) -> Float64:
    return canonical64(trunc64(x))


@scalar
def round_away(x: Float64) -> Float64:
    """Nearest integral value, ties away from zero, sign kept."""
    whole = trunc64(x)
    away = abs64(x - whole) >= _HALF
    return canonical64(copysign64(select(away, abs64(whole) + _ONE, whole), x))


@scalar
def negate(x: Float64) -> Float64:
    return canonical64(-x)


@scalar
def absolute(x: Float64) -> Float64:
    return canonical64(abs64(x))


@scalar
def is_nan(x: Float64) -> Bool:
    return x != x


@scalar
def choose(condition: Bool, x: Float64, y: Float64) -> Float64:
    return canonical64(select(condition, x, y))


@scalar
def with_sign(magnitude: Float64, sign: Float64) -> Float64:
    return canonical64(copysign64(magnitude, sign))


@scalar
def next_after(x: Float64, y: Float64) -> Float64:
    """The float next to x in the direction of y; y where they are equal."""
    pattern = bits64(x)
    outward = (x < y) == (pattern >= np.int64(0))
    step = select(outward, np.int64(1), np.int64(-1))
    smallest = float64_from_bits((bits64(y) & _SIGN_BIT) | np.int64(1))
    moved = select(x == _ZERO, smallest, float64_from_bits(pattern + step))
    return canonical64(select(x != x, x, select(x == y, y, select(y != y, y, moved))))


@scalar
def smaller(x: Float64, y: Float64) -> Float64:
    """The smaller; a number wins over a NaN; -0 < +0."""
    result = select(x < y, x, y)
    result = select(x == y, float64_from_bits(bits64(x) | bits64(y)), result)
    return canonical64(select(y != y, x, result))


@scalar
def larger(x: Float64, y: Float64) -> Float64:
    """The larger; a number wins over a NaN; -0 < +0."""
    result = select(x > y, x, y)
    result = select(x == y, float64_from_bits(bits64(x) & bits64(y)), result)
    return canonical64(select(y != y, x, result))


@scalar
def smaller_or_nan(x: Float64, y: Float64) -> Float64:
    """The smaller; a NaN wins over a number; -0 < +0."""
    result = select(x < y, x, y)
    result = select(x == y, float64_from_bits(bits64(x) | bits64(y)), result)
    return canonical64(select(x != x, x, result))


@scalar
def larger_or_nan(x: Float64, y: Float64) -> Float64:
    """The larger; a NaN wins over a number; -0 < +0."""
    result = select(x > y, x, y)
    result = select(x == y, float64_from_bits(bits64(x) & bits64(y)), result)
    return canonical64(select(x != x, x, result))


@scalar
def power_of_two(exponent: Int64) -> Float64:
    """2**exponent for an i64 in [-1022, 1023]."""
    return float64_from_bits((exponent + np.int64(1023)) << np.int64(52))


@scalar
def load_exponent(x: Float64, exponent: Int32) -> Float64:
    """(f64, i32) -> f64: x * 2**exponent, rounded once.

    Three factors: those that shrink are applied so that only the last can round. A number with an exponent field that
    stays normal needs none of this; the others are scaled up first.
    """
    n = np.int64(select(exponent > _LDEXP_HIGHEST, _LDEXP_HIGHEST, exponent))
    n = select(n < np.int64(_LDEXP_LOWEST), np.int64(_LDEXP_LOWEST), n)
    subnormal = abs64(x) < _SMALLEST_NORMAL
    scaled = select(subnormal, x * _SUBNORMAL_SCALE, x)
    field = (bits64(scaled) >> np.int64(52)) & np.int64(2047)
    target = field + n - select(subnormal, np.int64(54), np.int64(0))
    # `target` is the exponent field of the result: in range, past it, or below it by so much that the result rounds.
    is_large = target > np.int64(2046)
    is_small = target < np.int64(1)
    low = select(target < np.int64(-60), np.int64(-60), target)
    inside = select(is_large, np.int64(2046), select(is_small, low + np.int64(100), target))
    normal = float64_from_bits((bits64(scaled) & _MANTISSA_AND_SIGN) | (inside << np.int64(52)))
    result = select(is_small, normal * np.float64(2.0**-100), select(is_large, copysign64(_INFINITY, x), normal))
    plain = (x == _ZERO) | (field == np.int64(2047))
    return canonical64(select(plain, x, result))


@scalar
def fraction(x: Float64) -> Float64:
    """m of x = m * 2**e with 0.5 <= |m| < 1; x itself where it is zero or not finite."""
    scaled = select(abs64(x) < _SMALLEST_NORMAL, x * _SUBNORMAL_SCALE, x)
    result = float64_from_bits((bits64(scaled) & _MANTISSA_AND_SIGN) | _HALF_EXPONENT)
    plain = (x == _ZERO) | (abs64(x) == _INFINITY) | (x != x)
    return canonical64(select(plain, x, result))


@scalar
def exponent_of(x: Float64) -> Int32:
    """e of x = m * 2**e with 0.5 <= |m| < 1; 0 where x is zero or not finite."""
    subnormal = abs64(x) < _SMALLEST_NORMAL
    scaled = select(subnormal, x * _SUBNORMAL_SCALE, x)
    field = (bits64(scaled) >> np.int64(52)) & np.int64(2047)
    exponent = np.int32(field - select(subnormal, np.int64(1076), np.int64(1022)))
    plain = (x == _ZERO) | (abs64(x) == _INFINITY) | (x != x)
    return select(plain, np.int32(0), exponent)
