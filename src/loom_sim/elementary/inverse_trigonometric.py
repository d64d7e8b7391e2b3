"""Inverse trigonometric functions: asin, acos, atan, atan2."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN32,
    Float32,
    abs32,
    bits32,
    canonical32,
    copysign32,
    div32,
    fma32,
    polynomial32,
    propagate_nan32,
    scalar,
    select,
    sqrt32,
)
from loom_sim.elementary.numbers import HALF, INFINITY, ONE, TWO, ZERO, coefficients32, constant32

_ASIN = coefficients32("asin")
_ATAN = coefficients32("atan")
_HALF_PI_HIGH = constant32("half_pi_1")
_HALF_PI_LOW = constant32("half_pi_2")
_PI_HIGH = TWO * _HALF_PI_HIGH
_PI_LOW = TWO * _HALF_PI_LOW


@scalar
def _asin_kernel(s: Float32, z: Float32) -> Float32:
    """asin(s) with z = s**2, for 0 <= s <= 0.5."""
    return fma32(polynomial32(z, _ASIN) * z, s, s)


@scalar
def asinf(x: Float32) -> Float32:
    """f32 -> f32: arc sine; NaN beyond [-1, 1]."""
    a = abs32(x)
    small = a < HALF
    z = select(small, a * a, (ONE - a) * HALF)
    p = _asin_kernel(select(small, a, sqrt32(z)), z)
    result = select(small, p, _HALF_PI_HIGH - fma32(TWO, p, -_HALF_PI_LOW))
    return select(a <= ONE, copysign32(result, x), NAN32)


@scalar
def acosf(x: Float32) -> Float32:
    """f32 -> f32: arc cosine; NaN beyond [-1, 1]."""
    a = abs32(x)
    small = a < HALF
    z = select(small, a * a, (ONE - a) * HALF)
    s = select(small, x, sqrt32(z))
    p = polynomial32(z, _ASIN) * z
    middle = _HALF_PI_HIGH - (x + fma32(p, s, -_HALF_PI_LOW))
    q = fma32(p, s, s)
    outer = select(x < ZERO, TWO * (_HALF_PI_HIGH - (q - _HALF_PI_LOW)), q + q)
    return select(a <= ONE, select(small, middle, outer), NAN32)


@scalar
def _atan_kernel(t: Float32) -> Float32:
    """atan(t) for 0 <= t <= 1."""
    z = t * t
    return fma32(polynomial32(z, _ATAN) * z, t, t)


@scalar
def atanf(x: Float32) -> Float32:
    """f32 -> f32: arc tangent."""
    a = abs32(x)
    inverted = a > ONE
    p = _atan_kernel(select(inverted, div32(ONE, a), a))
    result = select(inverted, _HALF_PI_HIGH - (p - _HALF_PI_LOW), p)
    return propagate_nan32(x, copysign32(result, x))


@scalar
def atan2f(y: Float32, x: Float32) -> Float32:
    """(f32, f32) -> f32: the angle of the point (x, y) in [-pi, pi]; signed zeros and infinities as limits."""
    ax = abs32(x)
    ay = abs32(y)
    steep = ay > ax
    left = bits32(x) < np.int32(0)
    large = select(steep, ay, ax)
    small = select(steep, ax, ay)
    t = div32(small, large)
    t = select(large == ZERO, ZERO, t)
    t = select(small == INFINITY, ONE, t)
    p = _atan_kernel(t)
    high = select(steep, _HALF_PI_HIGH, select(left, _PI_HIGH, ZERO))
    low = select(steep, _HALF_PI_LOW, select(left, _PI_LOW, ZERO))
    result = high + (low + select(steep != left, -p, p))
    return canonical32(select(y != y, NAN32, select(x != x, NAN32, copysign32(result, y))))
