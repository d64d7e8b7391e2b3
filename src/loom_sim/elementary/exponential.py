"""Exponential family: exp, exp2, expm1, sigmoid, tanh."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    Bool,
    Float32,
    Int32,
    abs32,
    bits32,
    copysign32,
    div32,
    float32_from_bits,
    fma32,
    polynomial32,
    propagate_nan32,
    scalar,
    select,
)
from loom_sim.elementary.numbers import (
    HALF,
    ONE,
    ROUND_MAGIC,
    ROUND_MAGIC_BITS,
    TWO,
    coefficients32,
    constant32,
)

LOG2_E = constant32("log2_e")
LN2_HIGH = constant32("ln2_high")
LN2_LOW = constant32("ln2_low")
_EXP = coefficients32("exp")
_EXPM1 = coefficients32("expm1")
_EXP2 = coefficients32("exp2")
_TANH = coefficients32("tanh")

# Beyond these the result is infinite or rounds to zero, and the integer part still fits the two-step scaling.
_EXP_HIGHEST = np.float32(89.0)
_EXP_LOWEST = np.float32(-105.0)
_EXP_NORMAL = np.float32(87.0)
_EXP2_HIGHEST = np.float32(129.0)
_EXP2_LOWEST = np.float32(-152.0)
_EXPM1_LOWEST = np.float32(-18.0)
_TANH_SMALL = np.float32(0.625)
_TANH_ONE = np.float32(10.0)


@scalar
def power_of_two(exponent: Int32) -> Float32:
    """2**exponent for an i32 in [-126, 127]."""
    return float32_from_bits(np.int32((exponent + 127) << 23))


@scalar
def scale_by_power_of_two(x: Float32, exponent: Int32) -> Float32:
    """x * 2**exponent for an i32 in [-240, 240] and 0.25 < x < 2: two exact halves, so only the last product rounds.

    Of a NaN anything: the first half is added to the exponent field. From 2**-151 down the product rounds to zero, and
    the second factor is zero from the start: an underflow costs several times as much on most processors, and masked
    attention scores are full of them.
    """
    half = np.int32(exponent >> 1)
    rest = select(exponent < np.int32(-150), np.int32(0), np.int32((exponent - half + 127) << 23))
    return float32_from_bits(np.int32(bits32(x) + (half << 23))) * float32_from_bits(rest)


@scalar
def reduce_exp(x: Float32) -> tuple[Float32, Int32]:
    """(r, n) with x = n * ln 2 + r and |r| < 0.3467, for |x| < 2**21."""
    shifted = fma32(x, LOG2_E, ROUND_MAGIC)
    n = shifted - ROUND_MAGIC
    r = fma32(n, -LN2_LOW, fma32(n, -LN2_HIGH, x))
    return r, np.int32(bits32(shifted) - ROUND_MAGIC_BITS)


@scalar
def exp_fraction(r: Float32) -> Float32:
    """e**r for |r| < 0.3467."""
    return fma32(polynomial32(r, _EXP), r * r, r) + ONE


@scalar
def expm1_fraction(r: Float32) -> Float32:
    """e**r - 1 for |r| < 0.3467."""
    return fma32(polynomial32(r, _EXPM1), r * r, r)


@scalar
def exp2_fraction(r: Float32) -> Float32:
    """2**r for |r| <= 0.5."""
    return fma32(polynomial32(r, _EXP2), r, ONE)


@scalar
def exp_nonpositive(x: Float32) -> Float32:
    """e**x for x <= 0; of a NaN anything."""
    r, n = reduce_exp(select(x < _EXP_LOWEST, _EXP_LOWEST, x))
    return scale_by_power_of_two(exp_fraction(r), n)


@scalar
def expf(x: Float32) -> Float32:
    """f32 -> f32: e**x."""
    clamped = select(x > _EXP_HIGHEST, _EXP_HIGHEST, x)
    r, n = reduce_exp(select(clamped < _EXP_LOWEST, _EXP_LOWEST, clamped))
    return propagate_nan32(x, scale_by_power_of_two(exp_fraction(r), n))


@scalar
def exp_is_ordinary(x: Float32) -> Bool:
    """Whether `expf_ordinary` holds for x: e**x is a normal number."""
    return abs32(x) <= _EXP_NORMAL


@scalar
def expf_ordinary(x: Float32) -> Float32:
    """f32 -> f32: e**x for |x| <= 87; the integer part goes straight to the exponent field."""
    r, n = reduce_exp(x)
    return float32_from_bits(np.int32(bits32(exp_fraction(r)) + (n << 23)))


@scalar
def exp2f(x: Float32) -> Float32:
    """f32 -> f32: 2**x; exact for integers."""
    clamped = select(x > _EXP2_HIGHEST, _EXP2_HIGHEST, x)
    clamped = select(clamped < _EXP2_LOWEST, _EXP2_LOWEST, clamped)
    shifted = clamped + ROUND_MAGIC
    r = clamped - (shifted - ROUND_MAGIC)
    n = np.int32(bits32(shifted) - ROUND_MAGIC_BITS)
    return propagate_nan32(x, scale_by_power_of_two(exp2_fraction(r), n))


@scalar
def expm1f(x: Float32) -> Float32:
    """f32 -> f32: e**x - 1 without cancellation near 0."""
    clamped = select(x > _EXP_HIGHEST, _EXP_HIGHEST, x)
    clamped = select(clamped < _EXPM1_LOWEST, _EXPM1_LOWEST, clamped)
    r, n = reduce_exp(clamped)
    p = expm1_fraction(r)
    # Half of 2**n, because 2**128 is no float32; and p itself for n = 0, because half a subnormal may round.
    half_scale = power_of_two(np.int32(n - 1))
    scaled = fma32(half_scale, p, half_scale - HALF) * TWO
    return propagate_nan32(x, copysign32(select(n == np.int32(0), p, scaled), x))


@scalar
def sigmoidf(x: Float32) -> Float32:
    """f32 -> f32: 1 / (1 + e**-x)."""
    e = exp_nonpositive(-abs32(x))
    d = e + ONE
    d_low = (ONE - d) + e
    numerator = select(x < np.float32(0.0), e, ONE)
    reciprocal = div32(ONE, d)
    q = numerator * reciprocal
    residual = fma32(-q, d_low, fma32(-q, d, numerator))
    return propagate_nan32(x, fma32(residual, reciprocal, q))


@scalar
def tanhf(x: Float32) -> Float32:
    """f32 -> f32: hyperbolic tangent."""
    a = abs32(x)
    z = x * x
    small = fma32(polynomial32(z, _TANH) * z, a, a)
    clamped = select(a > _TANH_ONE, _TANH_ONE, a)
    r, n = reduce_exp(clamped + clamped)
    large = ONE - div32(TWO, fma32(exp_fraction(r), power_of_two(n), ONE))
    return propagate_nan32(x, copysign32(select(a < _TANH_SMALL, small, large), x))
