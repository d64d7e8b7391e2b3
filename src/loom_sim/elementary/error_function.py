"""Error function family: erf, erfc, erfinv, gelu."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN32,
    Float32,
    Int32,
    abs32,
    bits32,
    copysign32,
    div32,
    fma32,
    polynomial32,
    propagate_nan32,
    scalar,
    select,
    sqrt32,
)
from loom_sim.elementary.exponential import (
    exp2_fraction,
    expm1_fraction,
    power_of_two,
    reduce_exp,
    scale_by_power_of_two,
)
from loom_sim.elementary.logarithm import log_sum, split_exponent
from loom_sim.elementary.numbers import HALF, INFINITY, ONE, ROUND_MAGIC, ROUND_MAGIC_BITS, TWO, ZERO, coefficients32

_ERF = coefficients32("erf")
_ERF_TAIL = coefficients32("erf_tail")
_ERFC = coefficients32("erfc")
_ERFINV_LOW = coefficients32("erfinv_low")
_ERFINV_HIGH = coefficients32("erfinv_high")
_GELU_SMALL = coefficients32("gelu_small")
_GELU_TAIL = coefficients32("gelu_tail")

_ERF_SMALL = np.float32(0.85)
_ERF_ONE = np.float32(3.9375)
_ERFC_SMALL = np.float32(0.75)
_ERFC_ZERO = np.float32(10.25)
_ERFC_SLOPE = np.float32(0.625)
_ERFC_CENTRE = np.float32(2.0546875)
_ERFINV_SPLIT = np.float32(5.5)
_ERFINV_CENTRE = np.float32(2.1875)
_GELU_ZERO = np.float32(14.5)


@scalar
def erff(x: Float32) -> Float32:
    """f32 -> f32: error function."""
    a = abs32(x)
    small = fma32(polynomial32(x * x, _ERF), a, a)
    clamped = select(a > _ERF_ONE, _ERF_ONE, a)
    exponent = -polynomial32(clamped, _ERF_TAIL)
    shifted = exponent + ROUND_MAGIC
    r = exponent - (shifted - ROUND_MAGIC)
    n = np.int32(bits32(shifted) - ROUND_MAGIC_BITS)
    large = fma32(-exp2_fraction(r), power_of_two(n), ONE)
    return propagate_nan32(x, copysign32(select(a < _ERF_SMALL, small, large), x))


@scalar
def gauss_exp(s: Float32, s_low: Float32) -> tuple[Float32, Int32]:
    """(p, n) with exp(-(s + s_low)) = 2**n * (1 + p), for 0 <= s < 2**20."""
    r, n = reduce_exp(-s)
    return expm1_fraction(r - s_low), n


@scalar
def geluf(x: Float32) -> Float32:
    """f32 -> f32: x * Phi(x), Phi the normal distribution function, accurate in the negative tail; -0 at -inf."""
    z = x * x
    small = fma32(polynomial32(z, _GELU_SMALL), z, HALF * x)
    a = abs32(x)
    a = select(a > _GELU_ZERO, _GELU_ZERO, a)
    # a * Phi(-a) = P(v) * exp(-a**2 / 2)
    weight = polynomial32(div32(a - ONE, fma32(HALF, a, ONE)), _GELU_TAIL)
    half_a = HALF * a
    s = half_a * a
    p, n = gauss_exp(s, fma32(half_a, a, -s))
    tail = scale_by_power_of_two(fma32(weight, p, weight), n)
    large = select(x < ZERO, ZERO, x) - tail
    return propagate_nan32(x, copysign32(select(a < ONE, small, large), x))


@scalar
def erfcf(x: Float32) -> Float32:
    """f32 -> f32: 1 - erf(x), accurate in the positive tail."""
    a = abs32(x)
    small = ONE - fma32(polynomial32(x * x, _ERF), x, x)
    b = select(a > _ERFC_ZERO, _ERFC_ZERO, a)
    # erfc(b) = t * P(v) * exp(-b**2) with t = 1 / (1 + 0.625 * b) to twice the precision
    d = fma32(_ERFC_SLOPE, b, ONE)
    d_low = fma32(_ERFC_SLOPE, b, ONE - d)
    t = div32(ONE, d)
    t_low = t * fma32(-t, d_low, fma32(-t, d, ONE))
    v = (b - _ERFC_CENTRE) * t
    rest = polynomial32(v, _ERFC[1:])
    factor = fma32(rest, v, _ERFC[0])
    factor_low = fma32(rest, v, _ERFC[0] - factor)
    weight = factor * t
    weight_low = fma32(factor_low, t, fma32(factor, t_low, fma32(factor, t, -weight)))
    s = b * b
    p, n = gauss_exp(s, fma32(b, b, -s))
    tail = scale_by_power_of_two(weight + fma32(weight, p, weight_low), n)
    large = select(x < ZERO, TWO - tail, tail)
    return propagate_nan32(x, select(a < _ERFC_SMALL, small, large))


@scalar
def erfinvf(x: Float32) -> Float32:
    """f32 -> f32: the inverse of erf; infinite at -1 and 1, NaN beyond."""
    f, e = split_exponent(fma32(-x, x, ONE))
    w = -log_sum(f, e)
    low = w < _ERFINV_SPLIT
    u = sqrt32(abs32(w)) - _ERFINV_CENTRE
    rest = select(low, polynomial32(w, _ERFINV_LOW[1:]), polynomial32(u, _ERFINV_HIGH[1:]))
    variable = select(low, w, u)
    first = select(low, _ERFINV_LOW[0], _ERFINV_HIGH[0])
    # The last step of Horner's rule keeps what it rounds off.
    ratio = fma32(rest, variable, first)
    ratio_low = fma32(rest, variable, first - ratio)
    result = fma32(x, ratio, x * ratio_low)
    result = select(abs32(x) == ONE, copysign32(INFINITY, x), result)
    return select(abs32(x) <= ONE, result, NAN32)
