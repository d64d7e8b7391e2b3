"""log, log2, log10, log1p, softplus."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from loom_core.reference.arith import Float32s, bits32, canonical32, f32, fma32, from_bits32
from loom_core.reference.elementary.evaluation import (
    HALF,
    INFINITY,
    NAN,
    ONE,
    horner,
    number,
    power_of_two,
)
from loom_core.reference.elementary.exponential import exp

_ROOT_BITS = np.int32(0x3F3504F3)
_QUARTER = np.float32(0.25)


def split_exponent(x: Float32s) -> tuple[Float32s, Float32s]:
    """(f, e) of step splitExponent."""
    subnormal = x < np.float32(2.0**-126)
    i = bits32(np.where(subnormal, x * np.float32(2.0**23), x)) - _ROOT_BITS
    e = (i >> 23).astype(np.float32) - np.where(subnormal, np.float32(23), np.float32(0))
    return from_bits32((i & 0x7FFFFF) + _ROOT_BITS) - ONE, f32(e)


def log_tail(f: Float32s) -> Float32s:
    z = f * f
    return fma32(-HALF, z, (f * z) * horner(f, "log"))


def log_sum(f: Float32s, e: Float32s) -> Float32s:
    z = f * f
    t = fma32(e, number("ln2_low"), (f * z) * horner(f, "log"))
    t = fma32(-HALF, z, t) + f
    return fma32(e, number("ln2_high"), t)


def log_special(argument: Float32s, ordinary: Float32s) -> Float32s:
    """The special cases of a logarithm of `argument`."""
    result = np.where(argument == 0, -INFINITY, ordinary)
    result = np.where(argument < 0, NAN, result)
    result = np.where(argument == INFINITY, INFINITY, result)
    return canonical32(np.where(np.isnan(argument), NAN, result))


def log(x: ArrayLike) -> Float32s:
    """Natural logarithm."""
    f, e = split_exponent(f32(x))
    return log_special(f32(x), log_sum(f, e))


def log2(x: ArrayLike) -> Float32s:
    """Logarithm to base 2."""
    f, e = split_exponent(f32(x))
    t = fma32(log_tail(f), number("log2_e"), f * number("log2_e_low"))
    return log_special(f32(x), e + fma32(f, number("log2_e"), t))


def log10(x: ArrayLike) -> Float32s:
    """Logarithm to base 10."""
    f, e = split_exponent(f32(x))
    t = fma32(log_tail(f), number("log10_e"), f * number("log10_e_low"))
    t = fma32(e, number("log10_2_low"), t)
    return log_special(f32(x), fma32(e, number("log10_2_high"), fma32(f, number("log10_e"), t)))


def log1p_split(x: Float32s) -> tuple[Float32s, Float32s]:
    """(f, e) with 1 + x = 2^e * (1 + f), of log1p's steps."""
    e = (bits32(x + ONE) - _ROOT_BITS) >> 23
    m = power_of_two(2 - e)
    return fma32(m, _QUARTER * x, fma32(_QUARTER, m, -ONE)), e.astype(np.float32)


def log1p(x: ArrayLike) -> Float32s:
    """log(1 + x)."""
    argument = f32(x)
    f, e = log1p_split(argument)
    result = log_special(argument + ONE, log_sum(f, e))
    return canonical32(np.where(np.abs(argument) < np.float32(2.0**-25), argument, result))


def softplus(x: ArrayLike) -> Float32s:
    """log(1 + e^x)."""
    t = log1p(exp(-np.abs(f32(x))))
    return canonical32(np.where(f32(x) > 0, f32(x), np.float32(0)) + t)
