"""fmod and remainder, exact: NumPy's fmod of float64 is exact for any two float32 values."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from loom_core.reference.arith import Float32s, canonical32
from loom_core.reference.elementary.wide import f64


def fmod(x: ArrayLike, y: ArrayLike) -> Float32s:
    """x - y * trunc(x / y)."""
    return canonical32(np.fmod(f64(x), f64(y)).astype(np.float32))


def remainder(x: ArrayLike, y: ArrayLike) -> Float32s:
    """x - y * n, n the integer nearest to x / y."""
    a, b = np.broadcast_arrays(np.abs(f64(x)), np.abs(f64(y)))
    r = np.where(np.isinf(b), a, np.fmod(a, b + b))  # |x| - 2kb, between 0 and 2b
    r = np.where(r + r > b, np.where(r + r >= 3.0 * b, r - b - b, r - b), r)
    r = np.where(np.isnan(b) | np.isinf(a), np.nan, r)
    return canonical32(np.copysign(1.0, f64(x)).astype(np.float32) * r.astype(np.float32))
