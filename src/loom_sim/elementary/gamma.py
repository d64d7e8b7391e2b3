"""Logarithm of the gamma function and its derivative, evaluated in float64."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN32,
    Float32,
    Float64,
    abs32,
    abs64,
    bits32,
    div64,
    fma64,
    polynomial64,
    propagate_nan32,
    scalar,
    select,
)
from loom_sim.elementary.numbers import INFINITY, ZERO, coefficients64, constant64
from loom_sim.elementary.wide import HALF_WIDE, ONE_WIDE, log_wide, sinpi_wide, to_nearest_integer

_LGAMMA = coefficients64("lgamma_wide")
_STIRLING = coefficients64("stirling_wide")
_DIGAMMA = coefficients64("digamma_wide")
_PI = constant64("pi_wide")
_LOG_PI = constant64("log_pi_wide")
_HALF_LOG_TWO_PI = constant64("half_log_two_pi_wide")

_ZERO = np.float64(0.0)
_TWO = np.float64(2.0)
_THREE = np.float64(3.0)
_FOUR = np.float64(4.0)
_FIVE = np.float64(5.0)
_EIGHT = np.float64(8.0)


@scalar
def _shifted_product(a: Float64) -> Float64:
    """a * (a + 1) * (a + 2) * (a + 3) * (a + 4)."""
    return a * (a + ONE_WIDE) * (a + _TWO) * (a + _THREE) * (a + _FOUR)


@scalar
def lgammaf(x: Float32) -> Float32:
    """f32 -> f32: log|gamma(x)|; infinite at zero and the negative integers."""
    a = np.float64(abs32(x))
    near = a < _THREE
    tiny = a < ONE_WIDE
    shifted = (a >= _THREE) & (a < _EIGHT)
    # lgamma(a) is `small` - log(a) for a < 1, `small` for a < 3, else `large` - log(product), product = 1 from 8 on.
    u = select(tiny, a, a - ONE_WIDE)
    small = u * (u - ONE_WIDE) * polynomial64(u, _LGAMMA)
    y = select(near, select(tiny, a, ONE_WIDE), select(shifted, a + _FIVE, a))
    log_y = log_wide(y)
    inverse = div64(ONE_WIDE, y)
    rest = fma64(inverse, polynomial64(inverse * inverse, _STIRLING), _HALF_LOG_TWO_PI)
    large = fma64(y - HALF_WIDE, log_y, rest - y)
    positive = select(near, small - log_y, large)
    product = select(shifted, _shifted_product(a), ONE_WIDE)
    # lgamma(-a) = log(pi) - log(a * |sin(pi * a)|) - lgamma(a)
    sine = sinpi_wide(abs64(to_nearest_integer(a)))
    negative = bits32(x) < np.int32(0)
    divisor = select(negative, a * sine, ONE_WIDE)
    log_product = log_wide(div64(product, divisor))
    # 0 - log(1) and not -log(1), so that lgamma(1) = +0.
    wide = select(negative, (_LOG_PI - positive) + log_product, (_ZERO - log_product) + positive)
    pole = (x <= ZERO) & (sine == _ZERO)
    result = select(pole | (abs32(x) == INFINITY), INFINITY, np.float32(wide))
    return propagate_nan32(x, result)


@scalar
def digammaf(x: Float32) -> Float32:
    """f32 -> f32: the derivative of log(gamma(x)); -inf at +0, inf at -0, NaN at negative integers and -inf."""
    wide_x = np.float64(x)
    negative = wide_x < _ZERO
    a = select(negative, ONE_WIDE - wide_x, wide_x)
    shifted = a < _EIGHT
    # The sum of 1 / (a + i) for i = 0..7 as one quotient.
    numerator = ONE_WIDE
    denominator = a
    for i in range(1, 8):
        term = a + np.float64(i)
        numerator = fma64(numerator, term, denominator)
        denominator = denominator * term
    y = select(shifted, a + _EIGHT, a)
    inverse = div64(ONE_WIDE, y)
    square = inverse * inverse
    asymptotic = fma64(square, polynomial64(square, _DIGAMMA), fma64(-HALF_WIDE, inverse, log_wide(y)))
    result = asymptotic - select(shifted, div64(numerator, denominator), _ZERO)
    # digamma(x) = digamma(1 - x) - pi / tan(pi * x)
    t = to_nearest_integer(wide_x)
    sine = sinpi_wide(t)
    cosine = sinpi_wide(HALF_WIDE - abs64(t))
    reflected = result - div64(_PI * cosine, sine)
    narrow = np.float32(select(negative, reflected, result))
    narrow = select(x == INFINITY, INFINITY, narrow)
    narrow = select(x == ZERO, select(bits32(x) < np.int32(0), INFINITY, -INFINITY), narrow)
    pole = negative & (sine == _ZERO)
    return propagate_nan32(x, select(pole | (x == -INFINITY), NAN32, narrow))
