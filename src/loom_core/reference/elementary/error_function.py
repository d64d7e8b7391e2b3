"""erf, erfc, erfinv, gelu."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from loom_core.reference.arith import Float32s, canonical32, f32, fma32
from loom_core.reference.elementary.evaluation import (
    HALF,
    INFINITY,
    NAN,
    ONE,
    add_magic,
    first_coefficient,
    horner,
    magic_integer,
    power_of_two,
    scale,
)
from loom_core.reference.elementary.exponential import exp2_fraction, expm1_fraction, reduce_exp
from loom_core.reference.elementary.logarithm import log_sum, split_exponent


def erf(x: ArrayLike) -> Float32s:
    """Error function."""
    a = np.abs(f32(x))
    small = fma32(horner(a * a, "erf"), a, a)
    y = -horner(np.minimum(a, np.float32(3.9375)), "erf_tail")
    n, integer = magic_integer(add_magic(y))
    large = fma32(-exp2_fraction(y - n), power_of_two(integer), ONE)
    return canonical32(np.copysign(np.where(a < np.float32(0.85), small, large), f32(x)))


def gelu(x: ArrayLike) -> Float32s:
    """x times the normal distribution function of x."""
    argument = f32(x)
    z = argument * argument
    small = fma32(horner(z, "gelu_small"), z, HALF * argument)
    b = np.minimum(np.abs(argument), np.float32(14.5))
    w = horner((b - ONE) / fma32(HALF, b, ONE), "gelu_tail")
    c = HALF * b
    s = c * b
    s_low = fma32(c, b, -s)
    r, n = reduce_exp(-s)
    p = expm1_fraction(r - s_low)
    t = scale(fma32(w, p, w), n)
    large = np.where(argument < 0, np.float32(0), argument) - t
    return canonical32(np.copysign(np.where(np.abs(argument) < ONE, small, large), argument))


def erfc(x: ArrayLike) -> Float32s:
    """1 - erf(x)."""
    argument = f32(x)
    small = ONE - fma32(horner(argument * argument, "erf"), argument, argument)
    slope = np.float32(0.625)
    b = np.minimum(np.abs(argument), np.float32(10.25))
    d = fma32(slope, b, ONE)
    d_low = fma32(slope, b, ONE - d)
    t = ONE / d
    t_low = t * fma32(-t, d_low, fma32(-t, d, ONE))
    u = (b - np.float32(2.0546875)) * t
    q, first = horner(u, "erfc", last=1), first_coefficient("erfc")
    f = fma32(q, u, first)
    f_low = fma32(q, u, first - f)
    w = f * t
    w_low = fma32(f_low, t, fma32(f, t_low, fma32(f, t, -w)))
    s = b * b
    s_low = fma32(b, b, -s)
    r, n = reduce_exp(-s)
    p = expm1_fraction(r - s_low)
    v = scale(w + fma32(w, p, w_low), n)
    large = np.where(argument < 0, np.float32(2) - v, v)
    return canonical32(np.where(np.abs(argument) < np.float32(0.75), small, large))


def erfinv(x: ArrayLike) -> Float32s:
    """The inverse of erf."""
    argument = f32(x)
    f, e = split_exponent(fma32(-argument, argument, ONE))
    w = -log_sum(f, e)
    near = w < np.float32(5.5)
    u = np.where(near, w, np.sqrt(np.abs(w)) - np.float32(2.1875))
    q = np.where(near, horner(u, "erfinv_low", last=1), horner(u, "erfinv_high", last=1))
    first = np.where(near, first_coefficient("erfinv_low"), first_coefficient("erfinv_high"))
    p = fma32(q, u, first)
    v = fma32(argument, p, argument * fma32(q, u, first - p))
    v = np.where(np.abs(argument) == 1, np.copysign(INFINITY, argument), v)
    return canonical32(np.where(np.abs(argument) > 1, NAN, v))
