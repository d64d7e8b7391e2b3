"""asin, acos, atan, atan2."""

from __future__ import annotations

import numpy as np

from loom_core.reference.arith import Float64s, canonical64, fma64
from loom_core.reference.double.evaluation import HALF_PI, HALF_PI_LOW, horner


def _asin_of_root(z: Float64s) -> tuple[Float64s, Float64s]:
    """(s, c) of step asinOfRoot."""
    s = np.sqrt(z)
    s_low = np.where(z == 0, 0.0, fma64(-s, s, z) / (s + s))
    return s, fma64(horner(z, "asin_double") * z, s, s_low)


def asin(x: Float64s) -> Float64s:
    a = np.abs(x)
    z = a * a
    small = fma64(horner(z, "asin_double") * z, a, a)
    s, c = _asin_of_root((1.0 - a) * 0.5)
    d = HALF_PI - 2.0 * s
    d_low = (HALF_PI - d) - 2.0 * s
    large = d - (fma64(2.0, c, -HALF_PI_LOW) - d_low)
    v = np.copysign(np.where(a < 0.5, small, large), x)
    return canonical64(np.where(a > 1, np.nan, v))


def acos(x: Float64s) -> Float64s:
    a = np.abs(x)
    z = a * a
    middle = HALF_PI - (x + fma64(horner(z, "asin_double") * z, x, -HALF_PI_LOW))
    s, c = _asin_of_root((1.0 - a) * 0.5)
    outer = 2.0 * np.where(x < 0, HALF_PI - (s + (c - HALF_PI_LOW)), s + c)
    return canonical64(np.where(a > 1, np.nan, np.where(a < 0.5, middle, outer)))


def _atan_kernel(t: Float64s, t_low: Float64s) -> Float64s:
    z = t * t
    slope = fma64(-0.5, z, 1.0)
    return np.asarray(t + fma64(horner(z, "atan_double") * z, t, t_low * slope))


def atan(x: Float64s) -> Float64s:
    a = np.abs(x)
    zero = np.zeros_like(a)
    beyond = HALF_PI - (_atan_kernel(1.0 / a, zero) - HALF_PI_LOW)
    return canonical64(np.copysign(np.where(a > 1, beyond, _atan_kernel(a, zero)), x))


def atan2(y: Float64s, x: Float64s) -> Float64s:
    ay, ax = np.abs(y), np.abs(x)
    steep, left = ay > ax, np.signbit(x)
    small, large = np.minimum(ax, ay), np.maximum(ax, ay)
    t = small / large
    t_low = fma64(-t, large, small) / large
    t_low = np.where((large == 0) | np.isinf(large), 0.0, t_low)
    t = np.where(large == 0, 0.0, np.where(np.isinf(small), 1.0, t))
    p = _atan_kernel(t, t_low)
    quarters = np.where(steep, 1.0, np.where(left, 2.0, 0.0))
    v = quarters * HALF_PI + (quarters * HALF_PI_LOW + np.where(steep != left, -p, p))
    return canonical64(np.copysign(v, y))
