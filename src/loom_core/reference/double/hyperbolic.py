"""sinh, cosh, asinh, acosh, atanh."""

from __future__ import annotations

import numpy as np

from loom_core.reference.arith import Float64s, canonical64, fma64
from loom_core.reference.double.evaluation import horner, scale, two_sum
from loom_core.reference.double.exponential import exp_fraction, reduce_exp
from loom_core.reference.double.logarithm import log1p_sum, log_sum, split_exponent

_LARGE = 2.0**28


def _half_exp(a: Float64s) -> Float64s:
    r, n = reduce_exp(np.minimum(a, 711.0))
    return scale(exp_fraction(r), n - 1)


def sinh(x: Float64s) -> Float64s:
    a = np.abs(x)
    z = a * a
    h = _half_exp(a)
    v = np.where(a < 1, fma64(horner(z, "sinh_double") * z, a, a), h - 0.25 / h)
    return canonical64(np.copysign(v, x))


def cosh(x: Float64s) -> Float64s:
    h = _half_exp(np.abs(x))
    return canonical64(h + 0.25 / h)


def _log_of_twice(a: Float64s) -> Float64s:
    f, e = split_exponent(a)
    return log_sum(f, e + 1.0)


def _root(h: Float64s, h_low: Float64s) -> tuple[Float64s, Float64s]:
    r = np.sqrt(h)
    return r, np.where(h == 0, 0.0, (fma64(-r, r, h) + h_low) / (r + r))


def asinh(x: Float64s) -> Float64s:
    a = np.abs(x)
    b = np.minimum(a, _LARGE)
    p = b * b
    p_low = fma64(b, b, -p)
    h, h_low = two_sum(1.0, p)
    r, r_low = _root(h, h_low + p_low)
    d = 1.0 + r
    d_low = ((r - d) + 1.0) + r_low
    q = p / d
    q_low = fma64(-q, d_low, fma64(-q, d, p) + p_low) / d
    u, u_low = two_sum(b, q)
    v = np.where(a < _LARGE, log1p_sum(u, u_low + q_low), _log_of_twice(a))
    return canonical64(np.copysign(np.where(np.isfinite(a), v, a), x))


def acosh(x: Float64s) -> Float64s:
    t = np.minimum(x, _LARGE) - 1.0
    p = t * t
    h, h_low = two_sum(t + t, p)
    r, r_low = _root(h, h_low + fma64(t, t, -p))
    u, u_low = two_sum(t, r)
    v = np.where(x < _LARGE, log1p_sum(u, u_low + r_low), _log_of_twice(x))
    v = np.where(x == np.inf, np.inf, v)
    return canonical64(np.where(x >= 1, v, np.nan))


def atanh(x: Float64s) -> Float64s:
    a = np.abs(x)
    d = 1.0 - a
    d_low = (1.0 - d) - a
    u = (a + a) / d
    u_low = fma64(-u, d_low, fma64(-u, d, a + a)) / d
    v = np.where(a == 1, np.inf, 0.5 * log1p_sum(u, u_low))
    return canonical64(np.where(a > 1, np.nan, np.copysign(v, x)))
