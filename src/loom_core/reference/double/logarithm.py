"""log, log2, log10, log1p, softplus."""

from __future__ import annotations

import numpy as np

from loom_core.isa.coefficients import constant
from loom_core.reference.arith import Float64s, canonical64, fma64
from loom_core.reference.double.evaluation import LN2, LN2_LOW, LOG2_E, LOG2_E_LOW, horner, power_of_two
from loom_core.reference.double.exponential import exp

_ROOT_BITS = np.int64(0x3FE6A09E667F3BCD)


def split_exponent(x: Float64s) -> tuple[Float64s, Float64s]:
    """(f, e) of step splitExponent."""
    subnormal = x < 2.0**-1022
    i = np.where(subnormal, x * 2.0**54, x).view(np.int64) - _ROOT_BITS
    f = ((i & (2**52 - 1)) + _ROOT_BITS).view(np.float64) - 1.0
    return f, (i >> 52).astype(np.float64) - np.where(subnormal, 54.0, 0.0)


def log_tail(f: Float64s) -> tuple[Float64s, Float64s]:
    """(h, t) of step logTail."""
    s = f / (2.0 + f)
    z = s * s
    h = (0.5 * f) * f
    return h, s * fma64(z, horner(z, "log_double"), h)


def log_sum(f: Float64s, e: Float64s, c: Float64s | float = 0.0) -> Float64s:
    h, t = log_tail(f)
    t = fma64(e, LN2_LOW, t + c)
    return fma64(e, LN2, f - (h - t))


def log_of(x: Float64s) -> Float64s:
    """log(x) of a finite x > 0; elsewhere anything."""
    return log_sum(*split_exponent(x))


def _special(argument: Float64s, ordinary: Float64s) -> Float64s:
    result = np.where(argument == 0, -np.inf, ordinary)
    result = np.where(argument < 0, np.nan, result)
    result = np.where(argument == np.inf, np.inf, result)
    return canonical64(np.where(np.isnan(argument), np.nan, result))


def _in_base(f: Float64s, c: float, c_low: float) -> tuple[Float64s, Float64s]:
    """(p, p') of step logInBase."""
    h, t = log_tail(f)
    h_low = fma64(0.5 * f, f, -h)
    g = f - h
    rest = (((f - g) - h) - h_low) + t
    p = g * c
    return p, fma64(g, c, -p) + fma64(rest, c, g * c_low)


def log(x: Float64s) -> Float64s:
    return _special(x, log_of(x))


def log2(x: Float64s) -> Float64s:
    f, e = split_exponent(x)
    p, p_low = _in_base(f, LOG2_E, LOG2_E_LOW)
    q = e + p
    return _special(x, q + (((e - q) + p) + p_low))


def log10(x: Float64s) -> Float64s:
    f, e = split_exponent(x)
    p, p_low = _in_base(f, constant("log10_e_wide"), constant("log10_e_wide_low"))
    w = e * constant("log10_2_wide")
    w_low = fma64(e, constant("log10_2_wide_low"), fma64(e, constant("log10_2_wide"), -w))
    q = w + p
    return _special(x, q + (((w - q) + p) + (p_low + w_low)))


def log1p_sum(x: Float64s, x_low: Float64s | float = 0.0) -> Float64s:
    """log(1 + x + x') of step log1pSum."""
    e = ((x + 1.0).view(np.int64) - _ROOT_BITS) >> 52
    m = power_of_two(2 - e)
    f = fma64(m, 0.25 * x, fma64(0.25, m, -1.0))
    c = (m * (0.25 * x_low)) / (1.0 + f)
    return np.where(np.abs(x) < 2.0**-54, x, log_sum(f, e.astype(np.float64), c))


def log1p(x: Float64s) -> Float64s:
    return np.where(np.abs(x) < 2.0**-54, x, _special(x + 1.0, log1p_sum(x)))


def softplus(x: Float64s) -> Float64s:
    t = log1p_sum(exp(-np.abs(x)))
    return canonical64(np.where(x > 0, x, 0.0) + t)
