"""Hyperbolic functions of f64 and their inverses: sinh, cosh, asinh, acosh, atanh."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN64,
    Float64,
    abs64,
    canonical64,
    copysign64,
    div64,
    fma64,
    polynomial64,
    propagate_nan64,
    scalar,
    select,
    sqrt64,
)
from loom_sim.elementary.double.exponential import exp_fraction, reduce_exp, scale_by_power_of_two
from loom_sim.elementary.double.logarithm import log1p_sum, log_sum, split_exponent
from loom_sim.elementary.double.numbers import HALF, INFINITY, ONE, QUARTER, ZERO
from loom_sim.elementary.numbers import coefficients64

_SINH = coefficients64("sinh_double")
_HIGHEST = np.float64(711.0)
_LARGE = np.float64(2.0**28)


@scalar
def _half_exp(a: Float64) -> Float64:
    """e**a / 2 for 0 <= a <= 711."""
    r, n = reduce_exp(a)
    return scale_by_power_of_two(exp_fraction(r), n - np.int64(1))


@scalar
def sinh(x: Float64) -> Float64:
    """Hyperbolic sine."""
    a = abs64(x)
    z = a * a
    small = fma64(polynomial64(z, _SINH) * z, a, a)
    h = _half_exp(select(a > _HIGHEST, _HIGHEST, a))
    large = h - div64(QUARTER, h)
    return propagate_nan64(x, copysign64(select(a < ONE, small, large), x))


@scalar
def cosh(x: Float64) -> Float64:
    """Hyperbolic cosine."""
    a = abs64(x)
    h = _half_exp(select(a > _HIGHEST, _HIGHEST, a))
    return propagate_nan64(x, h + div64(QUARTER, h))


@scalar
def _log_of_twice(a: Float64) -> Float64:
    """log(2 * a) for finite a > 0."""
    f, e = split_exponent(a)
    return log_sum(f, e + ONE, ZERO)


@scalar
def _sum(x: Float64, y: Float64) -> tuple[Float64, Float64]:
    """(s, e): the rounded sum and its exact error."""
    s = x + y
    taken = s - x
    return s, (x - (s - taken)) + (y - taken)


@scalar
def _root(high: Float64, low: Float64) -> tuple[Float64, Float64]:
    """(r, r_low): the square root of high + low, high >= 0."""
    r = sqrt64(high)
    return r, select(high == ZERO, ZERO, div64(fma64(-r, r, high) + low, r + r))


@scalar
def asinh(x: Float64) -> Float64:
    """Inverse hyperbolic sine: log1p(a + a**2 / (1 + sqrt(a**2 + 1)))."""
    a = abs64(x)
    b = select(a > _LARGE, _LARGE, a)
    p = b * b
    p_low = fma64(b, b, -p)
    h, h_low = _sum(ONE, p)
    r, r_low = _root(h, h_low + p_low)
    d = ONE + r
    d_low = ((r - d) + ONE) + r_low
    q = div64(p, d)
    q_low = div64(fma64(-q, d_low, fma64(-q, d, p) + p_low), d)
    u, u_low = _sum(b, q)
    small = log1p_sum(u, u_low + q_low)
    result = select(a < _LARGE, small, _log_of_twice(a))
    return propagate_nan64(x, copysign64(select(a == INFINITY, INFINITY, result), x))


@scalar
def acosh(x: Float64) -> Float64:
    """Inverse hyperbolic cosine, log1p(t + sqrt(t**2 + 2 * t)) with t = x - 1; NaN below 1."""
    t = select(x > _LARGE, _LARGE, x) - ONE
    p = t * t
    h, h_low = _sum(t + t, p)
    r, r_low = _root(h, h_low + fma64(t, t, -p))
    u, u_low = _sum(t, r)
    small = log1p_sum(u, u_low + r_low)
    result = select(x < _LARGE, small, _log_of_twice(x))
    return select(x >= ONE, select(x == INFINITY, INFINITY, result), NAN64)


@scalar
def atanh(x: Float64) -> Float64:
    """Inverse hyperbolic tangent, log1p(2 * a / (1 - a)) / 2; infinite at -1 and 1, NaN beyond."""
    a = abs64(x)
    d = ONE - a
    d_low = (ONE - d) - a
    u = div64(a + a, d)
    u_low = div64(fma64(-u, d_low, fma64(-u, d, a + a)), d)
    result = select(a == ONE, INFINITY, HALF * log1p_sum(u, u_low))
    return canonical64(select(a <= ONE, copysign64(result, x), NAN64))
