"""asin, acos, atan, atan2."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from loom_core.reference.arith import Float32s, canonical32, f32, fma32
from loom_core.reference.elementary.evaluation import HALF, INFINITY, NAN, ONE, horner, number

_TWO = np.float32(2)


def _asin_kernel(s: Float32s, z: Float32s) -> Float32s:
    return fma32(horner(z, "asin") * z, s, s)


def asin(x: ArrayLike) -> Float32s:
    """Arc sine."""
    a = np.abs(f32(x))
    z = (ONE - a) * HALF
    p = _asin_kernel(np.sqrt(z), z)
    outer = number("half_pi_1") - fma32(_TWO, p, -number("half_pi_2"))
    v = np.where(a < HALF, _asin_kernel(a, a * a), outer)
    return canonical32(np.where(a > ONE, NAN, np.copysign(v, f32(x))))


def acos(x: ArrayLike) -> Float32s:
    """Arc cosine."""
    argument = f32(x)
    a = np.abs(argument)
    z = a * a
    low = fma32(horner(z, "asin") * z, argument, -number("half_pi_2"))
    middle = number("half_pi_1") - (argument + low)
    z = (ONE - a) * HALF
    q = _asin_kernel(np.sqrt(z), z)
    outer = np.where(argument < 0, _TWO * (number("half_pi_1") - (q - number("half_pi_2"))), q + q)
    return canonical32(np.where(a > ONE, NAN, np.where(a < HALF, middle, outer)))


def _atan_kernel(t: Float32s) -> Float32s:
    z = t * t
    return fma32(horner(z, "atan") * z, t, t)


def atan(x: ArrayLike) -> Float32s:
    """Arc tangent."""
    a = np.abs(f32(x))
    beyond = number("half_pi_1") - (_atan_kernel(f32(ONE / a)) - number("half_pi_2"))
    v = np.where(a > ONE, beyond, _atan_kernel(a))
    return canonical32(np.copysign(v, f32(x)))


def atan2(y: ArrayLike, x: ArrayLike) -> Float32s:
    """The angle of the point (x, y)."""
    height, width = np.broadcast_arrays(f32(y), f32(x))
    ay, ax = np.abs(height), np.abs(width)
    steep, left = ay > ax, np.signbit(width)
    small, large = np.minimum(ax, ay), np.maximum(ax, ay)
    t = np.where(large == 0, np.float32(0), np.where(small == INFINITY, ONE, small / large))
    p = _atan_kernel(f32(t))
    quarters = np.where(steep, np.float32(1), np.where(left, _TWO, np.float32(0)))
    h, low = quarters * number("half_pi_1"), quarters * number("half_pi_2")
    v = h + (low + np.where(steep != left, -p, p))
    return canonical32(np.copysign(v, height))
