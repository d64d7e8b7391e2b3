"""Powers and roots of f64: pow, cbrt, hypot."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN64,
    Float64,
    abs64,
    bits64,
    copysign64,
    div64,
    float64_from_bits,
    fma64,
    polynomial64,
    propagate_nan64,
    rint64,
    scalar,
    select,
    sqrt64,
)
from loom_sim.elementary.double.exponential import exp2_fraction, scale_by_power_of_two
from loom_sim.elementary.double.logarithm import split_exponent
from loom_sim.elementary.double.numbers import (
    HALF,
    INFINITY,
    LOG2_E,
    LOG2_E_LOW,
    ONE,
    ROUND_MAGIC,
    ROUND_MAGIC_BITS,
    TWO,
    ZERO,
)
from loom_sim.elementary.numbers import coefficients64, constant64

_POW = coefficients64("pow_double")
_TWO_THIRDS = constant64("two_thirds_wide")
_TWO_THIRDS_LOW = constant64("two_thirds_wide_low")
_EXPONENT_LIMIT = np.float64(1200.0)
_CBRT_BIAS = np.int64(715094163)
_THIRD = np.int64(0x55555556)
_CBRT_LARGE = np.float64(2.0**1000)
_CBRT_SMALL = np.float64(2.0**-1000)
_HYPOT_LARGE = np.float64(2.0**500)
_HYPOT_SMALL = np.float64(2.0**-500)
_UP_54 = np.float64(2.0**54)
_DOWN_54 = np.float64(2.0**-54)
_UP_18 = np.float64(2.0**18)
_DOWN_18 = np.float64(2.0**-18)
_UP_600 = np.float64(2.0**600)
_DOWN_600 = np.float64(2.0**-600)


@scalar
def _log2_in_two_parts(a: Float64) -> tuple[Float64, Float64]:
    """(h, h_low): log2 of a finite a > 0 to about 2**-66 relative."""
    f, e = split_exponent(a)
    d = TWO + f
    d_low = (TWO - d) + f
    s = div64(f, d)
    s_low = div64(fma64(-s, d_low, fma64(-s, d, f)), d)
    z = s * s
    z_low = fma64(s + s, s_low, fma64(s, s, -z))
    # log((1 + s) / (1 - s)) = 2 * s + s * k with k = 2/3 * z + z**2 * P(z)
    k = z * _TWO_THIRDS
    k_low = fma64(z, _TWO_THIRDS, -k) + fma64(z_low, _TWO_THIRDS, z * _TWO_THIRDS_LOW)
    tail = (z * z) * polynomial64(z, _POW)
    k_sum = k + tail
    k_low = ((k - k_sum) + tail) + k_low
    u = s * k_sum
    u_low = fma64(s, k_sum, -u) + fma64(s, k_low, s_low * k_sum)
    double_s = s + s
    log_m = double_s + u
    log_low = ((double_s - log_m) + u) + (u_low + (s_low + s_low))
    w = log_m * LOG2_E
    w_low = fma64(log_m, LOG2_E, -w) + fma64(log_low, LOG2_E, log_m * LOG2_E_LOW)
    h = e + w
    return h, ((e - h) + w) + w_low


@scalar
def power(x: Float64, y: Float64) -> Float64:
    """x**y with the special cases of C's `pow`: x**0 and 1**y are 1 even for a NaN."""
    a = abs64(x)
    h, h_low = _log2_in_two_parts(a)
    h = select(a == ZERO, -INFINITY, select(a == INFINITY, INFINITY, h))
    p = y * h
    p_low = fma64(y, h_low, fma64(y, h, -p))
    inside = abs64(p) < _EXPONENT_LIMIT
    p_low = select(inside, p_low, ZERO)
    p = select(inside, p, copysign64(_EXPONENT_LIMIT, p))
    shifted = p + ROUND_MAGIC
    r = (p - (shifted - ROUND_MAGIC)) + p_low
    magnitude = scale_by_power_of_two(exp2_fraction(r), bits64(shifted) - ROUND_MAGIC_BITS)
    magnitude = select(a == ONE, ONE, magnitude)
    integral = rint64(y) == y
    odd = integral & (rint64(HALF * y) != HALF * y)
    result = select((bits64(x) < np.int64(0)) & odd, -magnitude, magnitude)
    invalid = (x < ZERO) & (a < INFINITY) & (rint64(y) != y)
    result = select(invalid | (x != x) | (y != y), NAN64, result)
    return select((y == ZERO) | (x == ONE), ONE, result)


@scalar
def cbrt(x: Float64) -> Float64:
    """Cube root."""
    large = abs64(x) >= _CBRT_LARGE
    small = abs64(x) < _CBRT_SMALL
    a = abs64(x) * select(large, _DOWN_54, select(small, _UP_54, ONE))
    # A third of the high half of the bit pattern is a root to 5 bits; Halley's iteration triples that.
    third = ((bits64(a) >> np.int64(32)) * _THIRD) >> np.int64(32)
    root = float64_from_bits((third + _CBRT_BIAS) << np.int64(32))
    cube = root * root * root
    root = root * div64(a + a + cube, a + cube + cube)
    cube = root * root * root
    root = root * div64(a + a + cube, a + cube + cube)
    # The last time with the exact difference of a and the cube.
    square = root * root
    square_low = fma64(root, root, -square)
    cube = square * root
    cube_low = fma64(square_low, root, fma64(square, root, -cube))
    difference = (a - cube) - cube_low
    root = fma64(root, div64(difference, a + cube + cube), root)
    result = copysign64(root * select(large, _UP_18, select(small, _DOWN_18, ONE)), x)
    return propagate_nan64(x, select((x == ZERO) | (abs64(x) == INFINITY), x, result))


@scalar
def hypot(x: Float64, y: Float64) -> Float64:
    """sqrt(x**2 + y**2) without overflow inside; infinite for an infinite operand, NaN or not."""
    steep = abs64(y) > abs64(x)
    most = select(steep, abs64(y), abs64(x))
    least = select(steep, abs64(x), abs64(y))
    large = most >= _HYPOT_LARGE
    small = most < _HYPOT_SMALL
    scale = select(large, _DOWN_600, select(small, _UP_600, ONE))
    a = most * scale
    b = least * scale
    p = a * a
    q = b * b
    s = p + q
    s_low = ((p - s) + q) + (fma64(a, a, -p) + fma64(b, b, -q))
    r = sqrt64(s)
    r = r + select(s == ZERO, ZERO, div64(fma64(-r, r, s) + s_low, r + r))
    result = r * select(large, _UP_600, select(small, _DOWN_600, ONE))
    result = select((x != x) | (y != y), NAN64, result)
    return select((abs64(x) == INFINITY) | (abs64(y) == INFINITY), INFINITY, result)
