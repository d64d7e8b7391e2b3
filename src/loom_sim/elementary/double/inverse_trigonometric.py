"""Inverse trigonometric functions of f64: asin, acos, atan, atan2."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN64,
    Float64,
    abs64,
    bits64,
    canonical64,
    copysign64,
    div64,
    fma64,
    polynomial64,
    propagate_nan64,
    scalar,
    select,
    sqrt64,
)
from loom_sim.elementary.double.numbers import HALF, HALF_PI, HALF_PI_LOW, INFINITY, ONE, TWO, ZERO
from loom_sim.elementary.numbers import coefficients64

_ASIN = coefficients64("asin_double")
_ATAN = coefficients64("atan_double")
_PI = TWO * HALF_PI
_PI_LOW = TWO * HALF_PI_LOW


@scalar
def _root_and_excess(z: Float64) -> tuple[Float64, Float64]:
    """(s, c) with asin(sqrt(z)) = s + c, for 0 <= z <= 0.25."""
    s = sqrt64(z)
    s_low = select(z == ZERO, ZERO, div64(fma64(-s, s, z), s + s))
    return s, fma64(polynomial64(z, _ASIN) * z, s, s_low)


@scalar
def asin(x: Float64) -> Float64:
    """Arc sine; NaN beyond [-1, 1]."""
    a = abs64(x)
    z = a * a
    small = fma64(polynomial64(z, _ASIN) * z, a, a)
    s, c = _root_and_excess((ONE - a) * HALF)
    d = HALF_PI - TWO * s
    d_low = (HALF_PI - d) - TWO * s
    large = d - (fma64(TWO, c, -HALF_PI_LOW) - d_low)
    return select(a <= ONE, copysign64(select(a < HALF, small, large), x), NAN64)


@scalar
def acos(x: Float64) -> Float64:
    """Arc cosine; NaN beyond [-1, 1]."""
    a = abs64(x)
    z = x * x
    middle = HALF_PI - (x + fma64(polynomial64(z, _ASIN) * z, x, -HALF_PI_LOW))
    s, c = _root_and_excess((ONE - a) * HALF)
    outer = TWO * select(x < ZERO, HALF_PI - (s + (c - HALF_PI_LOW)), s + c)
    return select(a <= ONE, select(a < HALF, middle, outer), NAN64)


@scalar
def _atan_kernel(t: Float64, t_low: Float64) -> Float64:
    """atan(t + t_low) for 0 <= t <= 1; t_low is at most an ulp."""
    z = t * t
    # The derivative of atan at t, to a few bits.
    slope = fma64(-HALF, z, ONE)
    return t + fma64(polynomial64(z, _ATAN) * z, t, t_low * slope)


@scalar
def atan(x: Float64) -> Float64:
    """Arc tangent."""
    a = abs64(x)
    inverted = a > ONE
    p = _atan_kernel(select(inverted, div64(ONE, a), a), ZERO)
    result = select(inverted, HALF_PI - (p - HALF_PI_LOW), p)
    return propagate_nan64(x, copysign64(result, x))


@scalar
def atan2(y: Float64, x: Float64) -> Float64:
    """The angle of the point (x, y) in [-pi, pi]; signed zeros and infinities as limits."""
    ax = abs64(x)
    ay = abs64(y)
    steep = ay > ax
    left = bits64(x) < np.int64(0)
    large = select(steep, ay, ax)
    small = select(steep, ax, ay)
    t = div64(small, large)
    t_low = div64(fma64(-t, large, small), large)
    plain = (large == ZERO) | (large == INFINITY)
    t = select(large == ZERO, ZERO, select(small == INFINITY, ONE, t))
    p = _atan_kernel(t, select(plain, ZERO, t_low))
    high = select(steep, HALF_PI, select(left, _PI, ZERO))
    low = select(steep, HALF_PI_LOW, select(left, _PI_LOW, ZERO))
    result = high + (low + select(steep != left, -p, p))
    return canonical64(select(y != y, NAN64, select(x != x, NAN64, copysign64(result, y))))
