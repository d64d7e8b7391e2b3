"""Logarithm family: log, log2, log10, log1p, softplus."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN32,
    Float32,
    abs32,
    bits32,
    canonical32,
    float32_from_bits,
    fma32,
    i32_to_f32,
    polynomial32,
    propagate_nan32,
    scalar,
    select,
)
from loom_sim.elementary.exponential import LN2_HIGH, LN2_LOW, LOG2_E, exp_nonpositive
from loom_sim.elementary.numbers import HALF, INFINITY, ONE, SMALLEST_NORMAL, ZERO, coefficients32, constant32

_LOG = coefficients32("log")
_LOG2_E_LOW = constant32("log2_e_low")
_LOG10_E = constant32("log10_e")
_LOG10_E_LOW = constant32("log10_e_low")
_LOG10_2_HIGH = constant32("log10_2_high")
_LOG10_2_LOW = constant32("log10_2_low")

_SQRT_HALF_BITS = np.int32(0x3F3504F3)
_MANTISSA_MASK = np.int32(0x007FFFFF)
_SUBNORMAL_SCALE = np.float32(2.0**23)
_SUBNORMAL_EXPONENT = np.float32(23.0)
_QUARTER = np.float32(0.25)
_LOG1P_IDENTITY = np.float32(2.0**-25)


@scalar
def split_exponent(x: Float32) -> tuple[Float32, Float32]:
    """(f, e) with x = 2**e * (1 + f) and sqrt(1/2) <= 1 + f < sqrt(2), for finite x > 0; e is an integral float."""
    subnormal = x < SMALLEST_NORMAL
    scaled = select(subnormal, x * _SUBNORMAL_SCALE, x)
    offset = np.int32(bits32(scaled) - _SQRT_HALF_BITS)
    e = i32_to_f32(np.int32(offset >> 23)) - select(subnormal, _SUBNORMAL_EXPONENT, ZERO)
    f = float32_from_bits(np.int32((offset & _MANTISSA_MASK) + _SQRT_HALF_BITS)) - ONE
    return f, e


@scalar
def log_tail(f: Float32) -> Float32:
    """log(1 + f) - f for sqrt(1/2) <= 1 + f < sqrt(2)."""
    z = f * f
    return fma32(-HALF, z, (f * z) * polynomial32(f, _LOG))


@scalar
def log_sum(f: Float32, e: Float32) -> Float32:
    """log(1 + f) + e * ln 2."""
    z = f * f
    t = fma32(e, LN2_LOW, (f * z) * polynomial32(f, _LOG))
    return fma32(e, LN2_HIGH, fma32(-HALF, z, t) + f)


@scalar
def log_special(x: Float32, ordinary: Float32) -> Float32:
    """The special cases of a logarithm: -inf at zeros, inf at inf, the canonical NaN below zero and for NaN."""
    result = select(x > ZERO, ordinary, select(x == ZERO, -INFINITY, NAN32))
    return select(x == INFINITY, INFINITY, result)


@scalar
def logf(x: Float32) -> Float32:
    """f32 -> f32: natural logarithm."""
    f, e = split_exponent(x)
    return log_special(x, log_sum(f, e))


@scalar
def log2f(x: Float32) -> Float32:
    """f32 -> f32: logarithm to base 2; exact for powers of two."""
    f, e = split_exponent(x)
    low = fma32(log_tail(f), LOG2_E, f * _LOG2_E_LOW)
    return log_special(x, e + fma32(f, LOG2_E, low))


@scalar
def log10f(x: Float32) -> Float32:
    """f32 -> f32: logarithm to base 10."""
    f, e = split_exponent(x)
    low = fma32(e, _LOG10_2_LOW, fma32(log_tail(f), _LOG10_E, f * _LOG10_E_LOW))
    return log_special(x, fma32(e, _LOG10_2_HIGH, fma32(f, _LOG10_E, low)))


@scalar
def log1p_split(x: Float32) -> tuple[Float32, Float32]:
    """(f, e) with 1 + x = 2**e * (1 + f), f rounded once, for finite x > -1."""
    e = np.int32((bits32(x + ONE) - _SQRT_HALF_BITS) >> 23)
    # Four times 2**-e, because 2**-128 is no normal float32.
    scale = float32_from_bits(np.int32((np.int32(129) - e) << 23))
    f = fma32(scale, _QUARTER * x, fma32(_QUARTER, scale, -ONE))
    return f, i32_to_f32(e)


@scalar
def log1pf(x: Float32) -> Float32:
    """f32 -> f32: log(1 + x) without cancellation near 0."""
    f, e = log1p_split(x)
    result = log_sum(f, e)
    result = select(x > -ONE, result, select(x == -ONE, -INFINITY, NAN32))
    result = select(x == INFINITY, INFINITY, result)
    return canonical32(select(abs32(x) < _LOG1P_IDENTITY, x, result))


@scalar
def softplusf(x: Float32) -> Float32:
    """f32 -> f32: log(1 + e**x)."""
    tail = exp_nonpositive(-abs32(x))
    f, e = log1p_split(tail)
    tail = select(tail < _LOG1P_IDENTITY, tail, log_sum(f, e))
    return propagate_nan32(x, select(x > ZERO, x, ZERO) + tail)
