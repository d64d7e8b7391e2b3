"""sinh, cosh, asinh, acosh, atanh."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from loom_core.reference.arith import Float32s, canonical32, f32, fma32, fma64
from loom_core.reference.elementary.evaluation import INFINITY, NAN, ONE, horner, scale
from loom_core.reference.elementary.exponential import exp_fraction, reduce_exp
from loom_core.reference.elementary.wide import f64, log_wide

_QUARTER = np.float32(0.25)
_CUBIC_LIMIT = 2.0**-12


def _half_exp(a: Float32s) -> Float32s:
    r, n = reduce_exp(np.minimum(a, np.float32(90)))
    return scale(exp_fraction(r), n - 1)


def sinh(x: ArrayLike) -> Float32s:
    """Hyperbolic sine."""
    a = np.abs(f32(x))
    z = a * a
    h = _half_exp(a)
    v = np.where(a < ONE, fma32(horner(z, "sinh") * z, a, a), h - _QUARTER / h)
    return canonical32(np.copysign(v, f32(x)))


def cosh(x: ArrayLike) -> Float32s:
    """Hyperbolic cosine."""
    h = _half_exp(np.abs(f32(x)))
    return canonical32(h + _QUARTER / h)


def asinh(x: ArrayLike) -> Float32s:
    """Inverse hyperbolic sine."""
    a = np.abs(f64(x))
    large = log_wide(a + np.sqrt(fma64(a, a, 1.0)))
    v = np.where(a < _CUBIC_LIMIT, fma64(a * a * a, -1.0 / 6.0, a), large)
    v = np.where(np.isfinite(a), v, a)
    return canonical32(np.copysign(v.astype(np.float32), f32(x)))


def acosh(x: ArrayLike) -> Float32s:
    """Inverse hyperbolic cosine."""
    a = f64(x)
    v = log_wide(a + np.sqrt(np.abs(fma64(a, a, -1.0)))).astype(np.float32)
    v = np.where(a == np.inf, INFINITY, v)
    return canonical32(np.where(a >= 1, v, NAN))


def atanh(x: ArrayLike) -> Float32s:
    """Inverse hyperbolic tangent."""
    a = np.abs(f64(x))
    large = 0.5 * log_wide((1.0 + a) / (1.0 - a))
    v = np.where(a < _CUBIC_LIMIT, fma64(a * a * a, 1.0 / 3.0, a), large).astype(np.float32)
    v = np.where(a < 1, v, np.where(a == 1, INFINITY, NAN))
    return canonical32(np.copysign(v, f32(x)))
