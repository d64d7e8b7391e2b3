"""lgamma, digamma."""

from __future__ import annotations

import numpy as np

from loom_core.isa.coefficients import constant
from loom_core.reference.arith import Float64s, canonical64, fma64
from loom_core.reference.double.evaluation import LN2, LN2_LOW, horner
from loom_core.reference.double.logarithm import log_of, log_tail, split_exponent


def _sinpi(t: Float64s) -> Float64s:
    return t * horner(t * t, "sinpi_double")


def _below_one(a: Float64s) -> Float64s:
    polynomial = horner(a - 1.0, "lgamma_double")
    f, e = split_exponent(a)
    h, t = log_tail(f)
    near_one = fma64(f, fma64(a, polynomial, -1.0), h - t)
    logarithm = fma64(e, LN2, f - (h - fma64(e, LN2_LOW, t)))
    return np.where(e == 0, near_one, ((a - 1.0) * a) * polynomial - logarithm)


def _from_one_to_eight(a: Float64s) -> Float64s:
    product, y = np.ones_like(a), a
    for i in range(1, 6):
        taken = a >= i + 2
        product = product * np.where(taken, a - i, 1.0)
        y = np.where(taken, a - i, y)
    v = ((y - 2.0) * (y - 1.0)) * horner(y - 2.0, "lgamma_double")
    return v + np.where(a >= 3, log_of(product), 0.0)


def _from_eight(a: Float64s) -> Float64s:
    f, e = split_exponent(a)
    h, t = log_tail(f)
    less_one = fma64(e, LN2, (f - (h - fma64(e, LN2_LOW, t))) - 1.0)
    g = 1.0 / a
    rest = fma64(g, horner(g * g, "stirling_double"), constant("half_log_two_pi_over_e_wide"))
    return fma64(a - 0.5, less_one, rest)


def lgamma(x: Float64s) -> Float64s:
    a = np.abs(x)
    below = _below_one(np.where(a < 1, a, 0.5))
    middle = _from_one_to_eight(np.where((a >= 1) & (a < 8), a, 1.0))
    large = _from_eight(np.clip(np.where(np.isnan(a), 8.0, a), 8.0, np.finfo(np.float64).max))
    p = np.where(a < 1, below, np.where(a < 8, middle, large))
    s = _sinpi(np.abs(a - np.rint(a)))
    v = np.where(np.signbit(x), (constant("log_pi_wide") - p) - log_of(a * s), p)
    infinite = np.isinf(a) | ((x <= 0) & (s == 0))
    return canonical64(np.where(np.isnan(x), np.nan, np.where(infinite, np.inf, v)))


def digamma(x: Float64s) -> Float64s:
    a = np.where(x < 0, 1.0 - x, x)
    near = np.minimum(a, 8.0)
    numerator, denominator = np.ones_like(a), near
    for i in range(1, 8):
        numerator = fma64(numerator, near + i, denominator)
        denominator = denominator * (near + i)
    y = np.where(a < 8, a + 8.0, a)
    g = 1.0 / y
    square = g * g
    v = fma64(square, horner(square, "digamma_double"), fma64(-0.5, g, log_of(y)))
    v = v - np.where(a < 8, numerator / denominator, 0.0)
    t = x - np.rint(x)
    cotangent = (constant("pi_wide") * _sinpi(0.5 - np.abs(t))) / _sinpi(t)
    v = np.where(x < 0, v - cotangent, v)
    v = np.where(x == np.inf, np.inf, v)
    v = np.where(x == 0, np.where(np.signbit(x), np.inf, -np.inf), v)
    pole = (x < 0) & ((_sinpi(t) == 0) | np.isinf(x))
    return canonical64(np.where(pole, np.nan, v))
