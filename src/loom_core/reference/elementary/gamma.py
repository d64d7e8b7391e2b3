"""lgamma, digamma."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from loom_core.isa.coefficients import constant
from loom_core.reference.arith import Float32s, Float64s, canonical32, f32, fma64
from loom_core.reference.elementary.wide import f64, horner_wide, log_wide, sinpi_wide


def _lgamma_near(a: Float64s) -> Float64s:
    """P of lgamma's steps for a < 3."""
    u = np.where(a < 1, a, a - 1.0)
    return (u * (u - 1.0)) * horner_wide(u, "lgamma_wide") - log_wide(np.where(a < 1, a, 1.0))


def _lgamma_far(a: Float64s) -> Float64s:
    """P of lgamma's steps for a >= 3."""
    y = np.where(a < 8, a + 5.0, a)
    g = 1.0 / y
    c = fma64(g, horner_wide(g * g, "stirling_wide"), constant("half_log_two_pi_wide"))
    return fma64(y - 0.5, log_wide(y), c - y)


def lgamma(x: ArrayLike) -> Float32s:
    """log|gamma(x)|."""
    a = np.abs(f64(x))
    p = np.where(a < 3, _lgamma_near(np.minimum(a, 3.0)), _lgamma_far(np.maximum(a, 3.0)))
    product = a * (a + 1.0) * (a + 2.0) * (a + 3.0) * (a + 4.0)
    q = np.where((a >= 3) & (a < 8), product, 1.0)
    s = sinpi_wide(np.abs(a - np.rint(a)))
    reflected = (constant("log_pi_wide") - p) + log_wide(q / (a * s))
    v = np.where(np.signbit(f32(x)), reflected, (0.0 - log_wide(q)) + p)
    infinite = np.isinf(a) | ((f64(x) <= 0) & (a == np.rint(a)))
    return canonical32(np.where(np.isnan(a), np.nan, np.where(infinite, np.inf, v)).astype(np.float32))


def digamma(x: ArrayLike) -> Float32s:
    """The derivative of log(gamma(x))."""
    argument = f64(x)
    a = np.where(argument < 0, 1.0 - argument, argument)
    near = np.minimum(a, 8.0)
    numerator, denominator = np.ones_like(a), near
    for i in range(1, 8):
        numerator = fma64(numerator, near + i, denominator)
        denominator = denominator * (near + i)
    s = np.where(a < 8, numerator / denominator, 0.0)
    y = np.where(a < 8, a + 8.0, a)
    g = 1.0 / y
    square = g * g
    v = fma64(square, horner_wide(square, "digamma_wide"), fma64(-0.5, g, log_wide(y))) - s
    t = argument - np.rint(argument)
    cotangent = (constant("pi_wide") * sinpi_wide(0.5 - np.abs(t))) / sinpi_wide(t)
    v = np.where(argument < 0, v - cotangent, v)
    v = np.where(argument == np.inf, np.inf, v)
    v = np.where(argument == 0, np.where(np.signbit(argument), np.inf, -np.inf), v)
    v = np.where((argument < 0) & (argument == np.rint(argument)), np.nan, v)
    return canonical32(v.astype(np.float32))
