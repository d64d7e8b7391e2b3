"""pow, cbrt, hypot."""

from __future__ import annotations

import numpy as np

from loom_core.isa.coefficients import constant
from loom_core.reference.arith import Float64s, canonical64, fma64
from loom_core.reference.double.evaluation import (
    LOG2_E,
    LOG2_E_LOW,
    MAGIC,
    horner,
    magic_integer,
    scale,
)
from loom_core.reference.double.exponential import exp2_fraction
from loom_core.reference.double.logarithm import split_exponent


def _log2_in_two_parts(a: Float64s) -> tuple[Float64s, Float64s]:
    """(h, h') of step log2Long."""
    f, e = split_exponent(a)
    d = 2.0 + f
    d_low = (2.0 - d) + f
    s = f / d
    s_low = fma64(-s, d_low, fma64(-s, d, f)) / d
    z = s * s
    z_low = fma64(s + s, s_low, fma64(s, s, -z))
    c, c_low = constant("two_thirds_wide"), constant("two_thirds_wide_low")
    k = z * c
    k_low = fma64(z, c, -k) + fma64(z_low, c, z * c_low)
    tail = (z * z) * horner(z, "pow_double")
    total = k + tail
    k_low = ((k - total) + tail) + k_low
    u = s * total
    u_low = fma64(s, total, -u) + fma64(s, k_low, s_low * total)
    y = s + s
    m = y + u
    m_low = ((y - m) + u) + (u_low + (s_low + s_low))
    w = m * LOG2_E
    w_low = fma64(m, LOG2_E, -w) + fma64(m_low, LOG2_E, m * LOG2_E_LOW)
    h = e + w
    return h, ((e - h) + w) + w_low


def power(x: Float64s, y: Float64s) -> Float64s:
    a = np.abs(x)
    h, h_low = _log2_in_two_parts(a)
    h = np.where(a == 0, -np.inf, np.where(np.isinf(a), np.inf, h))
    p = y * h
    p_low = fma64(y, h_low, fma64(y, h, -p))
    inside = np.abs(p) < 1200
    p_low = np.where(inside, p_low, 0.0)
    p = np.where(inside, p, np.copysign(1200.0, p))
    n, integer = magic_integer(p + MAGIC)
    m = scale(exp2_fraction((p - n) + p_low), integer)
    m = np.where(a == 1, 1.0, m)
    integral = np.rint(y) == y
    odd = integral & (np.rint(0.5 * y) != 0.5 * y)
    result = np.where(np.signbit(x) & odd, -m, m)
    result = np.where((x < 0) & np.isfinite(x) & ~integral, np.nan, result)
    result = np.where(np.isnan(x) | np.isnan(y), np.nan, result)
    return canonical64(np.where((y == 0) | (x == 1), 1.0, result))


def cbrt(x: Float64s) -> Float64s:
    large, small = np.abs(x) >= 2.0**1000, np.abs(x) < 2.0**-1000
    a = np.abs(x) * np.where(large, 2.0**-54, np.where(small, 2.0**54, 1.0))
    r = (((((a.view(np.int64) >> 32) * 0x55555556) >> 32) + 715094163) << 32).view(np.float64)
    for _ in range(2):
        c = r * r * r
        r = r * ((a + a + c) / (a + c + c))
    q = r * r
    q_low = fma64(r, r, -q)
    c = q * r
    c_low = fma64(q_low, r, fma64(q, r, -c))
    r = fma64(r, ((a - c) - c_low) / (a + c + c), r)
    v = np.copysign(r * np.where(large, 2.0**18, np.where(small, 2.0**-18, 1.0)), x)
    return canonical64(np.where((x == 0) | np.isinf(x), x, v))


def hypot(x: Float64s, y: Float64s) -> Float64s:
    most, least = np.maximum(np.abs(x), np.abs(y)), np.minimum(np.abs(x), np.abs(y))
    large, small = most >= 2.0**500, most < 2.0**-500
    m = np.where(large, 2.0**-600, np.where(small, 2.0**600, 1.0))
    a, b = most * m, least * m
    p, q = a * a, b * b
    s = p + q
    s_low = ((p - s) + q) + (fma64(a, a, -p) + fma64(b, b, -q))
    r = np.sqrt(s)
    r = r + np.where(s == 0, 0.0, (fma64(-r, r, s) + s_low) / (r + r))
    v = r * np.where(large, 2.0**600, np.where(small, 2.0**-600, 1.0))
    return canonical64(np.where(np.isinf(x) | np.isinf(y), np.inf, v))
