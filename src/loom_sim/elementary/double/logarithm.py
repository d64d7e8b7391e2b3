"""Logarithm family of f64: log, log2, log10, log1p, softplus."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN64,
    Float64,
    abs64,
    bits64,
    canonical64,
    div64,
    float64_from_bits,
    fma64,
    polynomial64,
    propagate_nan64,
    scalar,
    select,
)
from loom_sim.elementary.double.exponential import exp_nonpositive
from loom_sim.elementary.double.numbers import (
    HALF,
    INFINITY,
    LN2,
    LN2_LOW,
    LOG2_E,
    LOG2_E_LOW,
    ONE,
    QUARTER,
    ROUND_MAGIC,
    ROUND_MAGIC_BITS,
    SMALLEST_NORMAL,
    TWO,
    ZERO,
)
from loom_sim.elementary.numbers import coefficients64, constant64

_LOG = coefficients64("log_double")
_LOG10_E = constant64("log10_e_wide")
_LOG10_E_LOW = constant64("log10_e_wide_low")
_LOG10_2 = constant64("log10_2_wide")
_LOG10_2_LOW = constant64("log10_2_wide_low")

_SQRT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)
_MANTISSA_MASK = np.int64(0x000FFFFFFFFFFFFF)
_SUBNORMAL_SCALE = np.float64(2.0**54)
_SUBNORMAL_EXPONENT = np.float64(54.0)
_LOG1P_IDENTITY = np.float64(2.0**-54)


@scalar
def split_exponent(x: Float64) -> tuple[Float64, Float64]:
    """(f, e) with x = 2**e * (1 + f) and sqrt(1/2) <= 1 + f < sqrt(2), for finite x > 0; e is an integral float."""
    subnormal = x < SMALLEST_NORMAL
    offset = bits64(select(subnormal, x * _SUBNORMAL_SCALE, x)) - _SQRT_HALF_BITS
    # The integer goes through the mantissa of a float, since a conversion from i64 vectorises on few targets.
    exponent = float64_from_bits((offset >> np.int64(52)) + ROUND_MAGIC_BITS) - ROUND_MAGIC
    f = float64_from_bits((offset & _MANTISSA_MASK) + _SQRT_HALF_BITS) - ONE
    return f, exponent - select(subnormal, _SUBNORMAL_EXPONENT, ZERO)


@scalar
def log_tail(f: Float64) -> tuple[Float64, Float64]:
    """(h, t) with log(1 + f) = f - h + t and h = f**2 / 2 rounded, for sqrt(1/2) <= 1 + f < sqrt(2)."""
    s = div64(f, TWO + f)
    z = s * s
    h = (HALF * f) * f
    return h, s * fma64(z, polynomial64(z, _LOG), h)


@scalar
def log_sum(f: Float64, e: Float64, correction: Float64) -> Float64:
    """log(1 + f) + e * ln 2 + correction."""
    h, t = log_tail(f)
    t = fma64(e, LN2_LOW, t + correction)
    return fma64(e, LN2, f - (h - t))


@scalar
def _log_in_base(f: Float64, factor: Float64, factor_low: Float64) -> tuple[Float64, Float64]:
    """(p, p_low): log(1 + f) * (factor + factor_low) to about 2**-66 relative."""
    h, t = log_tail(f)
    h_low = fma64(HALF * f, f, -h)
    g = f - h
    rest = (((f - g) - h) - h_low) + t
    p = g * factor
    return p, fma64(g, factor, -p) + fma64(rest, factor, g * factor_low)


@scalar
def log_special(x: Float64, ordinary: Float64) -> Float64:
    """The special cases of a logarithm: -inf at zeros, inf at inf, the canonical NaN below zero and for NaN."""
    result = select(x > ZERO, ordinary, select(x == ZERO, -INFINITY, NAN64))
    return select(x == INFINITY, INFINITY, result)


@scalar
def log(x: Float64) -> Float64:
    """Natural logarithm."""
    f, e = split_exponent(x)
    return log_special(x, log_sum(f, e, ZERO))


@scalar
def log2(x: Float64) -> Float64:
    """Logarithm to base 2; exact for powers of two."""
    f, e = split_exponent(x)
    p, p_low = _log_in_base(f, LOG2_E, LOG2_E_LOW)
    q = e + p
    return log_special(x, q + (((e - q) + p) + p_low))


@scalar
def log10(x: Float64) -> Float64:
    """Logarithm to base 10."""
    f, e = split_exponent(x)
    p, p_low = _log_in_base(f, _LOG10_E, _LOG10_E_LOW)
    w = e * _LOG10_2
    w_low = fma64(e, _LOG10_2_LOW, fma64(e, _LOG10_2, -w))
    q = w + p
    return log_special(x, q + (((w - q) + p) + (p_low + w_low)))


@scalar
def log1p_split(x: Float64, x_low: Float64) -> tuple[Float64, Float64, Float64]:
    """(f, e, c) with log(1 + x + x_low) = log(1 + f) + e * ln 2 + c, for x > -1; x_low is at most an ulp of x."""
    offset = (bits64(x + ONE) - _SQRT_HALF_BITS) >> np.int64(52)
    # Four times 2**-e, because 2**-1024 is no normal float.
    scale = float64_from_bits((np.int64(1025) - offset) << np.int64(52))
    f = fma64(scale, QUARTER * x, fma64(QUARTER, scale, -ONE))
    correction = div64(scale * (QUARTER * x_low), ONE + f)
    return f, float64_from_bits(offset + ROUND_MAGIC_BITS) - ROUND_MAGIC, correction


@scalar
def log1p_sum(x: Float64, x_low: Float64) -> Float64:
    """log(1 + x + x_low) for finite x > -1."""
    f, e, correction = log1p_split(x, x_low)
    return select(abs64(x) < _LOG1P_IDENTITY, x, log_sum(f, e, correction))


@scalar
def log1p(x: Float64) -> Float64:
    """log(1 + x) without cancellation near 0."""
    result = log1p_sum(x, ZERO)
    result = select(x > -ONE, result, select(x == -ONE, -INFINITY, NAN64))
    return canonical64(select(x == INFINITY, INFINITY, result))


@scalar
def softplus(x: Float64) -> Float64:
    """log(1 + e**x)."""
    tail = log1p_sum(exp_nonpositive(-abs64(x)), ZERO)
    return propagate_nan64(x, select(x > ZERO, x, ZERO) + tail)
