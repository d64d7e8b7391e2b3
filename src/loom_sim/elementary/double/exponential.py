"""Exponential family of f64: exp, exp2, expm1, sigmoid, tanh."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    Float64,
    Int64,
    abs64,
    bits64,
    copysign64,
    div64,
    float64_from_bits,
    fma64,
    polynomial64,
    propagate_nan64,
    scalar,
    select,
)
from loom_sim.elementary.double.arithmetic import power_of_two
from loom_sim.elementary.double.numbers import (
    HALF,
    LN2,
    LN2_LOW,
    LOG2_E,
    ONE,
    ROUND_MAGIC,
    ROUND_MAGIC_BITS,
    TWO,
    ZERO,
)
from loom_sim.elementary.numbers import coefficients64

_EXP = coefficients64("exp_double")
EXPM1 = coefficients64("expm1_double")
_EXP2 = coefficients64("exp2_double")
_TANH = coefficients64("tanh_double")

# Beyond these the result is infinite or rounds to zero. Below its lowest argument a function is computed at 0 instead:
# the way through subnormal numbers that the documented clamp takes is slow on most processors.
_EXP_HIGHEST = np.float64(710.0)
_EXP_LOWEST = np.float64(-746.0)
_EXP2_HIGHEST = np.float64(1025.0)
_EXP2_LOWEST = np.float64(-1076.0)
_EXPM1_LOWEST = np.float64(-38.0)
_TANH_SMALL = np.float64(0.625)
_TANH_ONE = np.float64(22.0)


@scalar
def scale_by_power_of_two(x: Float64, exponent: Int64) -> Float64:
    """x * 2**exponent for an i64 in [-1900, 1900] and 0.25 < |x| < 4: two exact halves, only the last product rounds.

    Of a NaN anything: the first half is added to the exponent field.
    """
    half = exponent >> np.int64(1)
    return float64_from_bits(bits64(x) + (half << np.int64(52))) * power_of_two(exponent - half)


@scalar
def reduce_exp(x: Float64) -> tuple[Float64, Int64]:
    """(r, n) with x = n * ln 2 + r and |r| < 0.3467, for |x| < 2**20."""
    shifted = fma64(x, LOG2_E, ROUND_MAGIC)
    n = shifted - ROUND_MAGIC
    return fma64(n, -LN2_LOW, fma64(n, -LN2, x)), bits64(shifted) - ROUND_MAGIC_BITS


@scalar
def exp_fraction(r: Float64) -> Float64:
    """e**r for |r| < 0.3467."""
    return fma64(polynomial64(r, _EXP), r * r, r) + ONE


@scalar
def expm1_fraction(r: Float64) -> Float64:
    """e**r - 1 for |r| < 0.3467."""
    return fma64(polynomial64(r, EXPM1), r * r, r)


@scalar
def exp2_fraction(r: Float64) -> Float64:
    """2**r for |r| <= 0.5."""
    return fma64(polynomial64(r, _EXP2), r, ONE)


@scalar
def exp_nonpositive(x: Float64) -> Float64:
    """e**x for x <= 0; of a NaN anything."""
    vanishes = x < _EXP_LOWEST
    r, n = reduce_exp(select(vanishes, ZERO, x))
    return select(vanishes, ZERO, scale_by_power_of_two(exp_fraction(r), n))


@scalar
def exp(x: Float64) -> Float64:
    """e**x."""
    vanishes = x < _EXP_LOWEST
    r, n = reduce_exp(select(vanishes, ZERO, select(x > _EXP_HIGHEST, _EXP_HIGHEST, x)))
    return propagate_nan64(x, select(vanishes, ZERO, scale_by_power_of_two(exp_fraction(r), n)))


@scalar
def exp2(x: Float64) -> Float64:
    """2**x; exact for integers."""
    vanishes = x < _EXP2_LOWEST
    clamped = select(vanishes, ZERO, select(x > _EXP2_HIGHEST, _EXP2_HIGHEST, x))
    shifted = clamped + ROUND_MAGIC
    r = clamped - (shifted - ROUND_MAGIC)
    power = scale_by_power_of_two(exp2_fraction(r), bits64(shifted) - ROUND_MAGIC_BITS)
    return propagate_nan64(x, select(vanishes, ZERO, power))


@scalar
def expm1(x: Float64) -> Float64:
    """e**x - 1 without cancellation near 0."""
    clamped = select(x > _EXP_HIGHEST, _EXP_HIGHEST, x)
    clamped = select(clamped < _EXPM1_LOWEST, _EXPM1_LOWEST, clamped)
    r, n = reduce_exp(clamped)
    p = expm1_fraction(r)
    # Half of 2**n, because 2**1024 is no float; and p itself for n = 0, because half a subnormal may round.
    half_scale = power_of_two(n - np.int64(1))
    scaled = fma64(half_scale, p, half_scale - HALF) * TWO
    return propagate_nan64(x, copysign64(select(n == np.int64(0), p, scaled), x))


@scalar
def sigmoid(x: Float64) -> Float64:
    """1 / (1 + e**-x)."""
    e = exp_nonpositive(-abs64(x))
    d = e + ONE
    d_low = (ONE - d) + e
    numerator = select(x < ZERO, e, ONE)
    reciprocal = div64(ONE, d)
    q = numerator * reciprocal
    residual = fma64(-q, d_low, fma64(-q, d, numerator))
    return propagate_nan64(x, fma64(residual, reciprocal, q))


@scalar
def tanh(x: Float64) -> Float64:
    """Hyperbolic tangent."""
    a = abs64(x)
    z = x * x
    small = fma64(polynomial64(z, _TANH) * z, a, a)
    clamped = select(a > _TANH_ONE, _TANH_ONE, a)
    r, n = reduce_exp(clamped + clamped)
    large = ONE - div64(TWO, fma64(exp_fraction(r), power_of_two(n), ONE))
    return propagate_nan64(x, copysign64(select(a < _TANH_SMALL, small, large), x))
