"""Error function family of f64: erf, erfc, gelu."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN64,
    Float64,
    Int64,
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
from loom_sim.elementary.double.exponential import EXPM1, exp_fraction, reduce_exp, scale_by_power_of_two
from loom_sim.elementary.double.logarithm import log_sum, split_exponent
from loom_sim.elementary.double.numbers import (
    HALF,
    INFINITY,
    LN2,
    LN2_LOW,
    LOG2_E,
    ONE,
    QUARTER,
    ROUND_MAGIC,
    ROUND_MAGIC_BITS,
    TWO,
    ZERO,
)
from loom_sim.elementary.numbers import coefficients64, constant64

_ERF = coefficients64("erf_double")
_ERFC_0, _ERFC_1, *_ERFC_REST = coefficients64("erfc_double")
_ERFC_TAIL = tuple(_ERFC_REST)
# A first approximation may have the coefficients of f32.
_ERFINV_LOW = coefficients64("erfinv_low")
_ERFINV_HIGH = coefficients64("erfinv_double")
_HALF_ROOT_PI = constant64("half_root_pi_wide")
_SQRT_HALF = constant64("sqrt_half_wide")
_SQRT_HALF_LOW = constant64("sqrt_half_wide_low")

_CENTRE = np.float64(3.875)
_BASE = np.float64(0.28125)
_DERIVATIVE = np.float64(-0.625)
_ERF_SMALL = np.float64(0.85)
_ERF_ONE = np.float64(6.0)
_ERFC_SMALL = np.float64(0.46875)
_ERFC_ZERO = np.float64(27.5)
_ERFINV_SPLIT = np.float64(5.5)
_ERFINV_CENTRE = np.float64(4.1875)
_GELU_SMALL = np.float64(0.5)
_GELU_ZERO = np.float64(38.75)


@scalar
def _tail_weight(b: Float64, b_low: Float64) -> tuple[Float64, Float64]:
    """(w, w_low): exp(z**2) * erfc(z) at z = b + b_low, for 0.35 <= b <= 28."""
    d = fma64(QUARTER, b, ONE)
    d_low = fma64(QUARTER, b_low, fma64(QUARTER, b, ONE - d))
    t = div64(ONE, d)
    t_low = t * fma64(-t, d_low, fma64(-t, d, ONE))
    u = b - _CENTRE
    u_low = (b - (u + _CENTRE)) + b_low
    m = fma64(u, t_low, u_low * t)
    v = fma64(u, t, m)
    v_low = fma64(u, t, -v) + m
    # The last two steps of Horner's rule carry their rounding errors along: |v| passes 3 and would magnify them.
    tail = polynomial64(v, _ERFC_TAIL)
    slope = fma64(tail, v, _ERFC_1)
    slope_low = fma64(tail, v, _ERFC_1 - slope)
    rest = fma64(slope, v, fma64(slope_low, v, _ERFC_0))
    p = _BASE + rest
    # The derivative of the polynomial is about -0.625 * p**2, near enough for what v lost.
    p_low = fma64(_DERIVATIVE * (p * p), v_low, rest - (p - _BASE))
    w = p * t
    return w, fma64(p, t, -w) + fma64(p, t_low, p_low * t)


@scalar
def _times_gauss(w: Float64, w_low: Float64, s: Float64, s_low: Float64) -> Float64:
    """(w + w_low) * exp(-(s + s_low)) for 0 <= s < 2**20."""
    shifted = fma64(-s, LOG2_E, ROUND_MAGIC)
    n = shifted - ROUND_MAGIC
    high = fma64(n, -LN2, -s)
    low = fma64(n, LN2_LOW, s_low)
    r = high - low
    q = fma64(polynomial64(r, EXPM1), r * r, (high - r) - low)
    return scale_by_power_of_two(w + fma64(w, r, fma64(w, q, w_low)), bits64(shifted) - ROUND_MAGIC_BITS)


@scalar
def _erfc_tail(b: Float64) -> Float64:
    """erfc(b) for 0.35 <= b <= 28."""
    w, w_low = _tail_weight(b, ZERO)
    s = b * b
    return _times_gauss(w, w_low, s, fma64(b, b, -s))


@scalar
def erf(x: Float64) -> Float64:
    """Error function."""
    a = abs64(x)
    small = fma64(polynomial64(x * x, _ERF), a, a)
    large = ONE - _erfc_tail(select(a > _ERF_ONE, _ERF_ONE, a))
    return propagate_nan64(x, copysign64(select(a < _ERF_SMALL, small, large), x))


@scalar
def erfc(x: Float64) -> Float64:
    """1 - erf(x), accurate in the positive tail."""
    a = abs64(x)
    small = ONE - fma64(polynomial64(x * x, _ERF), x, x)
    tail = _erfc_tail(select(a > _ERFC_ZERO, _ERFC_ZERO, a))
    large = select(x < ZERO, TWO - tail, tail)
    return propagate_nan64(x, select(a < _ERFC_SMALL, small, large))


@scalar
def gelu(x: Float64) -> Float64:
    """x * Phi(x), Phi the normal distribution function, accurate in the negative tail; -0 at -inf."""
    z = HALF * (x * x)
    q = z * _SQRT_HALF
    small = fma64(polynomial64(z, _ERF), q, q) + HALF * x
    a = abs64(x)
    a = select(a > _GELU_ZERO, _GELU_ZERO, a)
    # a * Phi(-a) = a / 2 * erfc(a / sqrt(2))
    b = a * _SQRT_HALF
    w, w_low = _tail_weight(b, fma64(a, _SQRT_HALF_LOW, fma64(a, _SQRT_HALF, -b)))
    half_a = HALF * a
    g = half_a * w
    g_low = fma64(half_a, w_low, fma64(half_a, w, -g))
    s = half_a * a
    tail = _times_gauss(g, g_low, s, fma64(half_a, a, -s))
    large = select(x < ZERO, -ZERO, x) - tail
    return propagate_nan64(x, select(a < _GELU_SMALL, small, large))


@scalar
def _exp_parts(z: Float64) -> tuple[Float64, Int64]:
    """(y, n) with exp(z) = y * 2**n."""
    r, n = reduce_exp(z)
    return exp_fraction(r), n


@scalar
def erfinv(x: Float64) -> Float64:
    """The inverse of erf, by one step of Halley's iteration; infinite at -1 and 1, NaN beyond."""
    a = abs64(x)
    inside = a < ONE
    a = select(inside, a, HALF)
    f, e = split_exponent((ONE - a) * (ONE + a))
    w = -log_sum(f, e, ZERO)
    low = polynomial64(w, _ERFINV_LOW)
    high = polynomial64(sqrt64(abs64(w)) - _ERFINV_CENTRE, _ERFINV_HIGH)
    y = a * select(w < _ERFINV_SPLIT, low, high)
    small = y < _ERF_SMALL
    z = y * y
    excess = fma64(polynomial64(z, _ERF), y, y - a)
    shortage = (ONE - a) - _erfc_tail(select(small, ONE, y))
    # Both are erf(y) - a, over the derivative of erf.
    fraction, n = _exp_parts(z)
    grown = scale_by_power_of_two(fraction, n)
    step = select(small, excess, shortage) * (_HALF_ROOT_PI * grown)
    result = y - div64(step, fma64(y, step, ONE))
    result = select(inside, result, select(abs64(x) == ONE, INFINITY, NAN64))
    return canonical64(select(a == ZERO, x, copysign64(result, x)))
