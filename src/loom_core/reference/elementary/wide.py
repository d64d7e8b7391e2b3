"""Kernels in float64: log, log2, 2**x, sin(pi * t)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from loom_core.isa.coefficients import POLYNOMIALS, constant
from loom_core.reference.arith import Float64s, fma64

_ROOT_BITS = np.int64(0x3FE6A09E667F3BCD)


def horner_wide(x: Float64s, table: str) -> Float64s:
    """The float64 polynomial `table` at x."""
    coefficients = POLYNOMIALS[table].values
    result: Float64s = np.full(np.shape(x), coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = fma64(result, x, coefficient)
    return result


def f64(x: ArrayLike) -> Float64s:
    """float32 values widened."""
    return np.asarray(x, np.float32).astype(np.float64)


def log_split(x: Float64s) -> tuple[Float64s, Float64s]:
    """(L, e) of step logSplit64."""
    i = x.view(np.int64) - _ROOT_BITS
    f = ((i & (2**52 - 1)) + _ROOT_BITS).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    return fma64(s * z, horner_wide(z, "log_wide"), s + s), (i >> 52).astype(np.float64)


def log_wide(x: Float64s) -> Float64s:
    log_m, e = log_split(x)
    return fma64(e, constant("ln2_wide"), log_m)


def log2_wide(x: Float64s) -> Float64s:
    log_m, e = log_split(x)
    return fma64(log_m, constant("log2_e_wide"), e)


def exp2_wide(x: Float64s) -> Float64s:
    limited = np.clip(x, -200.0, 200.0)
    n = np.rint(limited)
    return fma64(horner_wide(limited - n, "exp2_wide"), limited - n, 1.0) * np.exp2(n)


def sinpi_wide(t: Float64s) -> Float64s:
    return t * horner_wide(t * t, "sinpi_wide")
