"""sin, cos, tan and the reduction of their argument."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from loom_core.isa.coefficients import TWO_OVER_PI_WORDS, constant
from loom_core.reference.arith import Float64s, canonical64, fma64
from loom_core.reference.double.evaluation import (
    HALF_PI,
    HALF_PI_LOW,
    MAGIC,
    Int64s,
    horner,
    magic_integer,
    two_sum,
)

Reduced: TypeAlias = tuple[Float64s, Float64s, Int64s]

_DIGITS = int.from_bytes(b"".join(word.to_bytes(4, "big") for word in TWO_OVER_PI_WORDS), "big")
_DIGIT_COUNT = 32 * len(TWO_OVER_PI_WORDS)


def _reduce_ordinary(x: Float64s) -> Reduced:
    n, k = magic_integer(fma64(x, constant("two_over_pi_wide"), MAGIC))
    y = fma64(n, -HALF_PI, x)
    g = n * HALF_PI_LOW
    g_low = fma64(n, HALF_PI_LOW, -g)
    r, error = two_sum(y, -g)
    return r, fma64(n, -constant("half_pi_wide_3"), error - g_low), k


def _units(x: Float64s) -> tuple[Int64s, Int64s, NDArray[np.uint64]]:
    """k, U, V of step reduceLarge for |x|, by integers of any length."""
    quadrants, coarse, fine = [], [], []
    for value in np.abs(x).ravel().tolist():
        mantissa, exponent = np.frexp(value)
        significand, biased = int(mantissa * 2**53), int(exponent) + 1022
        window = (_DIGITS >> (_DIGIT_COUNT - (192 + biased - 1077))) % 2**192
        high, middle, low = window >> 128, (window >> 64) % 2**64, window % 2**64
        product = ((significand * high << 64) + significand * middle + (significand * low >> 64)) % 2**128
        k = ((product + 2**125) >> 126) % 4
        rest = product - (k << 126)
        rest = rest - 2**128 if rest >= 2**127 else rest
        quadrants.append(k)
        coarse.append(rest >> 64)
        fine.append(rest % 2**64)
    shape = x.shape
    return (
        np.array(quadrants, np.int64).reshape(shape),
        np.array(coarse, np.int64).reshape(shape),
        np.array(fine, np.uint64).reshape(shape),
    )


def _reduce_large(x: Float64s) -> Reduced:
    k, coarse, fine = _units(x)
    h = coarse.astype(np.float64)
    below = (fine >> np.uint64(32)).astype(np.float64) * 2.0**-32
    lowest = (fine & np.uint64(0xFFFFFFFF)).astype(np.float64) * 2.0**-64
    part = below + lowest
    rest = (coarse - h.astype(np.int64)).astype(np.float64) + part
    t = h + rest
    t_low = ((h - t) + rest) + ((below - part) + lowest)
    turns, turns_low = HALF_PI * 2.0**-62, HALF_PI_LOW * 2.0**-62
    r = t * turns
    r_low = fma64(t, turns, -r) + fma64(t, turns_low, t_low * turns)
    negative = np.signbit(x)
    return np.where(negative, -r, r), np.where(negative, -r_low, r_low), np.where(negative, -k, k)


def _reduced(x: Float64s) -> Reduced:
    """(r, r', k) of any finite x."""
    large = (np.abs(x) > 2.0**30) & np.isfinite(x)
    parts: list[Any] = list(_reduce_ordinary(np.where(large, 1.0, x)))
    if large.any():
        for part, beyond in zip(parts, _reduce_large(x[large]), strict=True):
            part[large] = beyond
    r, r_low, k = parts
    return r, r_low, k


def _sin_kernel(r: Float64s, r_low: Float64s) -> Float64s:
    z = r * r
    return np.asarray(r + fma64(r * z, horner(z, "sin_double"), r_low))


def _cos_kernel(r: Float64s, r_low: Float64s) -> Float64s:
    z = r * r
    c = 0.5 * z
    h = 1.0 - c
    h_low = (1.0 - h) - c
    return np.asarray(h + fma64(horner(z, "cos_double") * z, z, fma64(-r, r_low, h_low)))


def _sine_of_quadrant(r: Float64s, r_low: Float64s, k: Int64s) -> Float64s:
    v = np.where(k % 2 == 0, _sin_kernel(r, r_low), _cos_kernel(r, r_low))
    return np.where(k & 2 != 0, -v, v)


def _finite(x: Float64s, result: Float64s) -> Float64s:
    return canonical64(np.where(np.isfinite(x), result, np.nan))


def sin(x: Float64s) -> Float64s:
    return _finite(x, np.where(x == 0, x, _sine_of_quadrant(*_reduced(x))))


def cos(x: Float64s) -> Float64s:
    r, r_low, k = _reduced(x)
    return _finite(x, _sine_of_quadrant(r, r_low, k + 1))


def tan(x: Float64s) -> Float64s:
    r, r_low, k = _reduced(x)
    z = r * r
    w = fma64(r * z, horner(z, "tan_double"), fma64(z, r_low, r_low))
    t = r + w
    t_low = (r - t) + w
    q = -1.0 / t
    q = fma64(q, fma64(q, t_low, fma64(q, t, 1.0)), q)
    return _finite(x, np.where(x == 0, x, np.where(k % 2 == 0, t, q)))
