"""Hyperbolic functions and their inverses: sinh, cosh, asinh, acosh, atanh."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN32,
    Float32,
    abs32,
    abs64,
    canonical32,
    copysign32,
    div32,
    div64,
    fma32,
    fma64,
    polynomial32,
    propagate_nan32,
    scalar,
    select,
    sqrt64,
)
from loom_sim.elementary.exponential import exp_fraction, reduce_exp, scale_by_power_of_two
from loom_sim.elementary.numbers import INFINITY, ONE, coefficients32
from loom_sim.elementary.wide import HALF_WIDE, ONE_WIDE, log_wide

_SINH = coefficients32("sinh")
_HIGHEST = np.float32(90.0)
_QUARTER = np.float32(0.25)
# Below this, asinh(a) = a - a**3 / 6 and atanh(a) = a + a**3 / 3 to far less than a float32 ulp.
_CUBIC_LIMIT = np.float64(2.0**-12)
_ASINH_CUBIC = np.float64(-1.0 / 6.0)
_ATANH_CUBIC = np.float64(1.0 / 3.0)


@scalar
def _half_exp(a: Float32) -> Float32:
    """e**a / 2 for 0 <= a <= 90."""
    r, n = reduce_exp(a)
    return scale_by_power_of_two(exp_fraction(r), np.int32(n - 1))


@scalar
def sinhf(x: Float32) -> Float32:
    """f32 -> f32: hyperbolic sine."""
    a = abs32(x)
    z = a * a
    small = fma32(polynomial32(z, _SINH) * z, a, a)
    h = _half_exp(select(a > _HIGHEST, _HIGHEST, a))
    large = h - div32(_QUARTER, h)
    return propagate_nan32(x, copysign32(select(a < ONE, small, large), x))


@scalar
def coshf(x: Float32) -> Float32:
    """f32 -> f32: hyperbolic cosine."""
    a = abs32(x)
    h = _half_exp(select(a > _HIGHEST, _HIGHEST, a))
    return propagate_nan32(x, h + div32(_QUARTER, h))


@scalar
def asinhf(x: Float32) -> Float32:
    """f32 -> f32: inverse hyperbolic sine."""
    a = np.float64(abs32(x))
    square = a * a
    large = log_wide(a + sqrt64(fma64(a, a, ONE_WIDE)))
    wide = select(a < _CUBIC_LIMIT, fma64(square * a, _ASINH_CUBIC, a), large)
    result = select(abs32(x) == INFINITY, INFINITY, np.float32(wide))
    return propagate_nan32(x, copysign32(result, x))


@scalar
def acoshf(x: Float32) -> Float32:
    """f32 -> f32: inverse hyperbolic cosine; NaN below 1."""
    a = np.float64(x)
    result = np.float32(log_wide(a + sqrt64(abs64(fma64(a, a, -ONE_WIDE)))))
    return select(x >= ONE, select(x == INFINITY, INFINITY, result), NAN32)


@scalar
def atanhf(x: Float32) -> Float32:
    """f32 -> f32: inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond."""
    a = np.float64(abs32(x))
    large = HALF_WIDE * log_wide(div64(ONE_WIDE + a, ONE_WIDE - a))
    wide = select(a < _CUBIC_LIMIT, fma64((a * a) * a, _ATANH_CUBIC, a), large)
    result = select(abs32(x) == ONE, INFINITY, np.float32(wide))
    return canonical32(select(abs32(x) <= ONE, copysign32(result, x), NAN32))
