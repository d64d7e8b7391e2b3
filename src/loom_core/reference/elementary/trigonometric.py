"""sin, cos, tan and the reduction of their argument."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from loom_core.isa.coefficients import TWO_OVER_PI_WORDS, constant
from loom_core.reference.arith import Float32s, bits32, canonical32, f32, fma32
from loom_core.reference.elementary.evaluation import HALF, NAN, ONE, Int32s, fma_magic, horner, magic_integer, number

Reduced: TypeAlias = tuple[Float32s, Float32s, Int32s]

_DIGITS = int.from_bytes(b"".join(word.to_bytes(4, "big") for word in TWO_OVER_PI_WORDS), "big")
_DIGIT_COUNT = 32 * len(TWO_OVER_PI_WORDS)


def _reduce_ordinary(x: Float32s) -> Reduced:
    n, k = magic_integer(fma_magic(x, number("two_over_pi")))
    y = fma32(n, -number("half_pi_1"), x)
    g = n * number("half_pi_2")
    g_low = fma32(n, number("half_pi_2"), -g)
    r = y - g
    r_low = fma32(n, -number("half_pi_3"), ((y - r) - g) - g_low)
    return r, r_low, k


def _digits_of_two_over_pi(first_weight: int) -> int:
    """The 96 binary digits of 2/pi from the one of weight 2^first_weight on."""
    end = 95 - first_weight  # digits behind the point that the window reaches
    return (_DIGITS >> (_DIGIT_COUNT - end)) % 2**96


_WINDOWS = np.array(
    [
        [(_digits_of_two_over_pi(151 - biased) >> shift) & 0xFFFFFFFF for shift in (64, 32, 0)]
        for biased in range(127, 255)
    ],
    np.uint64,
)


def _reduce_large(x: Float32s) -> Reduced:
    pattern = bits32(x)
    significand = ((pattern & 0x7FFFFF) | 0x800000).astype(np.uint64)
    biased = np.clip((pattern >> 23) & 255, 127, 254)
    high, middle, low = (_WINDOWS[biased - 127, part] for part in range(3))
    product = (significand * high << np.uint64(32)) + significand * middle + (significand * low >> np.uint64(32))
    k = (product + np.uint64(2**61)) >> np.uint64(62)
    fraction = (product - (k << np.uint64(62))).view(np.int64)
    theta = fraction.astype(np.float64) * constant("half_pi_scaled")
    negative = np.signbit(x)
    theta = np.where(negative, -theta, theta)
    r = theta.astype(np.float32)
    quadrant = k.astype(np.int32)
    return r, (theta - r.astype(np.float64)).astype(np.float32), np.where(negative, -quadrant, quadrant)


def reduce_angle(x: Float32s) -> Reduced:
    """(r, r', k) of any finite x."""
    ordinary = np.abs(x) <= np.float32(2.0**20)
    parts = zip(_reduce_ordinary(np.where(ordinary, x, ONE)), _reduce_large(x), strict=True)
    r, r_low, k = (np.where(ordinary, near, far) for near, far in parts)
    return f32(r), f32(r_low), k.astype(np.int32)


def sin_kernel(r: Float32s, r_low: Float32s) -> Float32s:
    z = r * r
    return f32(r + fma32(r * z, horner(z, "sin"), r_low))


def cos_kernel(r: Float32s, r_low: Float32s) -> Float32s:
    z = r * r
    c = HALF * z
    h = ONE - c
    h_low = (ONE - h) - c
    return f32(h + fma32(horner(z, "cos") * z, z, fma32(-r, r_low, h_low)))


def _sine_of_quadrant(r: Float32s, r_low: Float32s, k: Int32s) -> Float32s:
    v = np.where(k % 2 == 0, sin_kernel(r, r_low), cos_kernel(r, r_low))
    return f32(np.where(k & 2 != 0, -v, v))


def sin(x: ArrayLike) -> Float32s:
    """Sine."""
    angle = f32(x)
    result = np.where(angle == 0, angle, _sine_of_quadrant(*reduce_angle(angle)))
    return canonical32(np.where(np.isfinite(angle), result, NAN))


def cos(x: ArrayLike) -> Float32s:
    """Cosine."""
    angle = f32(x)
    r, r_low, k = reduce_angle(angle)
    return canonical32(np.where(np.isfinite(angle), _sine_of_quadrant(r, r_low, k + 1), NAN))


def tan(x: ArrayLike) -> Float32s:
    """Tangent."""
    angle = f32(x)
    r, r_low, k = reduce_angle(angle)
    z = r * r
    t = r + fma32(r * z, horner(z, "tan"), fma32(z, r_low, r_low))
    result = np.where(angle == 0, angle, np.where(k % 2 == 0, t, -ONE / t))
    return canonical32(np.where(np.isfinite(angle), result, NAN))
