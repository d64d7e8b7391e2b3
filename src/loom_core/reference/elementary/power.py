"""pow, cbrt, hypot, and the functions of the exponent."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loom_core.reference.arith import Float32s, bits32, canonical32, f32, from_bits32
from loom_core.reference.elementary.evaluation import INFINITY, NAN, ONE
from loom_core.reference.elementary.wide import exp2_wide, f64, log2_wide


def pow_(x: ArrayLike, y: ArrayLike) -> Float32s:
    """x^y."""
    base, exponent = np.broadcast_arrays(f32(x), f32(y))
    a = np.abs(f64(base))
    logarithm = np.where(a == 0, -np.inf, np.where(np.isinf(a), np.inf, log2_wide(a)))
    m = exp2_wide(f64(exponent) * logarithm).astype(np.float32)
    m = np.where(a == 1, ONE, m)
    integral = np.rint(exponent) == exponent
    odd = integral & (np.abs(exponent) < 2.0**24) & (np.mod(exponent, np.float32(2)) == 1)
    result = np.where(np.signbit(base) & odd, -m, m)
    result = np.where((base < 0) & np.isfinite(base) & ~integral, NAN, result)
    result = np.where(np.isnan(base) | np.isnan(exponent), NAN, result)
    return canonical32(np.where((exponent == 0) | (base == 1), ONE, result))


def cbrt(x: ArrayLike) -> Float32s:
    """Cube root."""
    a = np.abs(f64(x))
    high = a.view(np.int64) >> 32
    r = ((((high * 0x55555556) >> 32) + 715094163) << 32).view(np.float64)
    for _ in range(2):
        c = r * r * r
        r = r * ((a + a + c) / (a + c + c))
    v = np.copysign(r.astype(np.float32), f32(x))
    return canonical32(np.where((a == 0) | np.isinf(a), f32(x), v))


def hypot(x: ArrayLike, y: ArrayLike) -> Float32s:
    """sqrt(x^2 + y^2)."""
    a, b = f64(x), f64(y)
    v = np.sqrt(a * a + b * b).astype(np.float32)
    return canonical32(np.where(np.isinf(a) | np.isinf(b), INFINITY, v))


def ldexp(x: ArrayLike, exponent: ArrayLike) -> Float32s:
    """x * 2^exponent, exponent an int32 array."""
    n = np.clip(np.asarray(exponent, np.int32), -300, 300)
    return canonical32((f64(x) * np.exp2(n.astype(np.float64))).astype(np.float32))


def _split(x: ArrayLike) -> tuple[Float32s, NDArray[np.int32]]:
    value = f32(x)
    shift = np.where(np.abs(value) < np.float32(2.0**-126), np.int32(24), np.int32(0))
    pattern = bits32(np.where(shift == 24, value * np.float32(2.0**24), value))
    fraction = from_bits32((pattern & ~np.int32(0x7F800000)) | np.int32(0x3F000000))
    exponent = ((pattern >> 23) & 255) - 126 - shift
    plain = (value == 0) | ~np.isfinite(value)
    return f32(np.where(plain, value, fraction)), np.where(plain, 0, exponent).astype(np.int32)


def frexp_fraction(x: ArrayLike) -> Float32s:
    """m of x = m * 2^e."""
    return canonical32(_split(x)[0])


def frexp_exponent(x: ArrayLike) -> NDArray[np.int32]:
    """e of x = m * 2^e."""
    return _split(x)[1]
