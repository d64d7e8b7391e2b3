"""erf, erfc, erfinv, gelu."""

from __future__ import annotations

import numpy as np

from loom_core.isa.coefficients import POLYNOMIALS, constant
from loom_core.reference.arith import Float64s, canonical64, fma64
from loom_core.reference.double.evaluation import LN2, LN2_LOW, LOG2_E, MAGIC, horner, magic_integer, scale
from loom_core.reference.double.exponential import exp_fraction, reduce_exp
from loom_core.reference.double.logarithm import log_of


def _tail_weight(b: Float64s, b_low: Float64s | float = 0.0) -> tuple[Float64s, Float64s]:
    """(w, w') of step tailWeight."""
    d = fma64(0.25, b, 1.0)
    d_low = fma64(0.25, b_low, fma64(0.25, b, 1.0 - d))
    t = 1.0 / d
    t_low = t * fma64(-t, d_low, fma64(-t, d, 1.0))
    u = b - 3.875
    u_low = (b - (u + 3.875)) + b_low
    m = fma64(u, t_low, u_low * t)
    v = fma64(u, t, m)
    v_low = fma64(u, t, -v) + m
    c0, c1 = POLYNOMIALS["erfc_double"].values[:2]
    tail = horner(v, "erfc_double", skip=2)
    slope = fma64(tail, v, c1)
    slope_low = fma64(tail, v, c1 - slope)
    rest = fma64(slope, v, fma64(slope_low, v, c0))
    p = 0.28125 + rest
    p_low = fma64(-0.625 * (p * p), v_low, rest - (p - 0.28125))
    w = p * t
    return w, fma64(p, t, -w) + fma64(p, t_low, p_low * t)


def _times_gauss(w: Float64s, w_low: Float64s, s: Float64s, s_low: Float64s) -> Float64s:
    n, integer = magic_integer(fma64(-s, LOG2_E, MAGIC))
    high = fma64(n, -LN2, -s)
    low = fma64(n, LN2_LOW, s_low)
    r = high - low
    q = fma64(horner(r, "expm1_double"), r * r, (high - r) - low)
    return scale(w + fma64(w, r, fma64(w, q, w_low)), integer)


def _erfc_tail(b: Float64s) -> Float64s:
    w, w_low = _tail_weight(b)
    s = b * b
    return _times_gauss(w, w_low, s, fma64(b, b, -s))


def erf(x: Float64s) -> Float64s:
    a = np.abs(x)
    small = fma64(horner(a * a, "erf_double"), a, a)
    large = 1.0 - _erfc_tail(np.minimum(a, 6.0))
    return canonical64(np.copysign(np.where(a < 0.85, small, large), x))


def erfc(x: Float64s) -> Float64s:
    a = np.abs(x)
    small = 1.0 - fma64(horner(a * a, "erf_double"), x, x)
    v = _erfc_tail(np.minimum(a, 27.5))
    return canonical64(np.where(a < 0.46875, small, np.where(x < 0, 2.0 - v, v)))


def gelu(x: Float64s) -> Float64s:
    z = 0.5 * (x * x)
    q = z * constant("sqrt_half_wide")
    small = fma64(horner(z, "erf_double"), q, q) + 0.5 * x
    a = np.minimum(np.abs(x), 38.75)
    b = a * constant("sqrt_half_wide")
    b_low = fma64(a, constant("sqrt_half_wide_low"), fma64(a, constant("sqrt_half_wide"), -b))
    w, w_low = _tail_weight(b, b_low)
    c = 0.5 * a
    g = c * w
    g_low = fma64(c, w_low, fma64(c, w, -g))
    s = c * a
    tail = _times_gauss(g, g_low, s, fma64(c, a, -s))
    large = np.where(x < 0, -0.0, x) - tail
    return canonical64(np.where(np.abs(x) < 0.5, small, large))


def erfinv(x: Float64s) -> Float64s:
    inside = np.abs(x) < 1
    a = np.where(inside, np.abs(x), 0.5)
    w = -log_of((1.0 - a) * (1.0 + a))
    high = horner(np.sqrt(np.abs(w)) - 4.1875, "erfinv_double")
    y = a * np.where(w < 5.5, horner(w, "erfinv_low"), high)
    z = y * y
    small = y < 0.85
    excess = fma64(horner(z, "erf_double"), y, y - a)
    shortage = (1.0 - a) - _erfc_tail(np.where(small, 1.0, y))
    r, n = reduce_exp(z)
    step = np.where(small, excess, shortage) * (constant("half_root_pi_wide") * scale(exp_fraction(r), n))
    v = y - step / fma64(y, step, 1.0)
    v = np.where(inside, v, np.where(np.abs(x) == 1, np.inf, np.nan))
    return canonical64(np.where(x == 0, x, np.copysign(v, x)))
