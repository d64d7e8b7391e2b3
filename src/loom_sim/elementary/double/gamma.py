"""Logarithm of the gamma function of f64, and its derivative."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN64,
    Float64,
    abs64,
    bits64,
    div64,
    fma64,
    polynomial64,
    propagate_nan64,
    rint64,
    scalar,
    select,
)
from loom_sim.elementary.double.logarithm import log_sum, log_tail, split_exponent
from loom_sim.elementary.double.numbers import HALF, INFINITY, LN2, LN2_LOW, ONE, TWO, ZERO
from loom_sim.elementary.numbers import coefficients64, constant64

_LGAMMA = coefficients64("lgamma_double")
_STIRLING = coefficients64("stirling_double")
_DIGAMMA = coefficients64("digamma_double")
_SINPI = coefficients64("sinpi_double")
_PI = constant64("pi_wide")
_LOG_PI = constant64("log_pi_wide")
_HALF_LOG_TWO_PI_OVER_E = constant64("half_log_two_pi_over_e_wide")

_THREE = np.float64(3.0)
_EIGHT = np.float64(8.0)
_LARGEST = np.float64(np.finfo(np.float64).max)


@scalar
def _log(x: Float64) -> Float64:
    """Natural logarithm of a finite x > 0."""
    f, e = split_exponent(x)
    return log_sum(f, e, ZERO)


@scalar
def _sinpi(t: Float64) -> Float64:
    """sin(pi * t) for |t| <= 0.5."""
    return t * polynomial64(t * t, _SINPI)


@scalar
def _to_nearest_integer(x: Float64) -> Float64:
    """x minus the nearest integer; exact."""
    return x - rint64(x)


@scalar
def _lgamma_below_one(a: Float64, polynomial: Float64) -> Float64:
    """lgamma(a) = lgamma(1 + a) - log(a) for 0 < a < 1, where lgamma(1 + a) = (a - 1) * a * polynomial."""
    f, e = split_exponent(a)
    h, t = log_tail(f)
    # Next to 1 both terms vanish; log(a) is f - (h - t) there, and f is a - 1.
    near_one = fma64(f, fma64(a, polynomial, -ONE), h - t)
    t = fma64(e, LN2_LOW, t)
    apart = ((a - ONE) * a) * polynomial - fma64(e, LN2, f - (h - t))
    return select(e == ZERO, near_one, apart)


@scalar
def _lgamma_to_eight(a: Float64) -> Float64:
    """lgamma(a) for 0 < a < 8: from [0, 3) by a polynomial, above by factors a - 1, a - 2, ... first."""
    product = ONE
    y = a
    for i in range(1, 6):
        taken = a >= np.float64(i + 2)
        product = product * select(taken, a - np.float64(i), ONE)
        y = select(taken, a - np.float64(i), y)
    below = a < ONE
    polynomial = polynomial64(select(below, a - ONE, y - TWO), _LGAMMA)
    above_one = ((y - TWO) * (y - ONE)) * polynomial + select(a >= _THREE, _log(product), ZERO)
    return select(below, _lgamma_below_one(a, polynomial), above_one)


@scalar
def _lgamma_from_eight(a: Float64) -> Float64:
    """lgamma(a) for finite a >= 8: (a - 1/2) * (log(a) - 1) + log(2 * pi / e) / 2 + a series in 1 / a."""
    f, e = split_exponent(a)
    h, t = log_tail(f)
    t = fma64(e, LN2_LOW, t)
    logarithm_less_one = fma64(e, LN2, (f - (h - t)) - ONE)
    inverse = div64(ONE, a)
    rest = fma64(inverse, polynomial64(inverse * inverse, _STIRLING), _HALF_LOG_TWO_PI_OVER_E)
    return fma64(a - HALF, logarithm_less_one, rest)


@scalar
def lgamma(x: Float64) -> Float64:
    """log|gamma(x)|; infinite at zero and the negative integers."""
    a = abs64(x)
    small = _lgamma_to_eight(select(a < _EIGHT, a, ONE))
    large = _lgamma_from_eight(select(a > _LARGEST, _LARGEST, select(a < _EIGHT, _EIGHT, a)))
    positive = select(a < _EIGHT, small, large)
    # lgamma(-a) = log(pi) - log(a * |sin(pi * a)|) - lgamma(a)
    sine = _sinpi(abs64(_to_nearest_integer(a)))
    reflected = (_LOG_PI - positive) - _log(a * sine)
    result = select(bits64(x) < np.int64(0), reflected, positive)
    pole = (x <= ZERO) & (sine == ZERO)
    return propagate_nan64(x, select(pole | (a == INFINITY), INFINITY, result))


@scalar
def digamma(x: Float64) -> Float64:
    """The derivative of log(gamma(x)); -inf at +0, inf at -0, NaN at negative integers and -inf."""
    negative = x < ZERO
    a = select(negative, ONE - x, x)
    shifted = a < _EIGHT
    # The sum of 1 / (a + i) for i = 0..7 as one quotient.
    near = select(shifted, a, _EIGHT)
    numerator = ONE
    denominator = near
    for i in range(1, 8):
        term = near + np.float64(i)
        numerator = fma64(numerator, term, denominator)
        denominator = denominator * term
    y = select(shifted, a + _EIGHT, a)
    inverse = div64(ONE, y)
    square = inverse * inverse
    asymptotic = fma64(square, polynomial64(square, _DIGAMMA), fma64(-HALF, inverse, _log(y)))
    result = asymptotic - select(shifted, div64(numerator, denominator), ZERO)
    # digamma(x) = digamma(1 - x) - pi / tan(pi * x)
    t = _to_nearest_integer(x)
    sine = _sinpi(t)
    reflected = result - div64(_PI * _sinpi(HALF - abs64(t)), sine)
    result = select(negative, reflected, result)
    result = select(x == INFINITY, INFINITY, result)
    result = select(x == ZERO, select(bits64(x) < np.int64(0), INFINITY, -INFINITY), result)
    pole = negative & (sine == ZERO)
    return propagate_nan64(x, select(pole | (x == -INFINITY), NAN64, result))
