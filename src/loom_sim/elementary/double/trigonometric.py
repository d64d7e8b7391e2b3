"""Sine, cosine and tangent of f64.

Every finite f64 is reduced exactly enough: |x| <= 2**30 by three-part multiples of pi / 2, all else by a product with
the bits of 2 / pi. The functions named `*_ordinary` hold for the first range alone and vectorise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loom_core.isa.coefficients import TWO_OVER_PI_WORDS
from loom_sim.bits import (
    NAN64,
    Bool,
    Float64,
    Int64,
    abs64,
    bits64,
    canonical64,
    div64,
    float64_from_bits,
    fma64,
    polynomial64,
    scalar,
    select,
)
from loom_sim.elementary.double.numbers import (
    HALF,
    HALF_PI,
    HALF_PI_LOW,
    INFINITY,
    ONE,
    ROUND_MAGIC,
    ROUND_MAGIC_BITS,
    ZERO,
)
from loom_sim.elementary.numbers import coefficients64, constant64
from loom_sim.integers import combine_function

_LIMIT = np.float64(2.0**30)
_SIN = coefficients64("sin_double")
_COS = coefficients64("cos_double")
_TAN = coefficients64("tan_double")
_TWO_OVER_PI = constant64("two_over_pi_wide")
_HALF_PI_3 = constant64("half_pi_wide_3")
_TURNS = np.float64(constant64("half_pi_wide_1") * 2.0**-62)
_TURNS_LOW = np.float64(constant64("half_pi_wide_2") * 2.0**-62)
_DOWN_32 = np.float64(2.0**-32)
_DOWN_64 = np.float64(2.0**-64)

_PI_WORDS = np.array((0, *TWO_OVER_PI_WORDS), dtype=np.uint64)  # the word before the point too
_MANTISSA_MASK = np.int64(0x000FFFFFFFFFFFFF)
_IMPLICIT_BIT = np.int64(0x0010000000000000)
_LOW_WORD = np.uint64(0xFFFFFFFF)
_multiply_high = combine_function("mulhi", "u64")


@scalar
def reduce_ordinary(x: Float64) -> tuple[Float64, Float64, Int64]:
    """(r, r_low, quadrant) with x = quadrant * pi / 2 + r + r_low, for |x| <= 2**30."""
    shifted = fma64(x, _TWO_OVER_PI, ROUND_MAGIC)
    n = shifted - ROUND_MAGIC
    first = fma64(n, -HALF_PI, x)
    # `first` is exact: a multiple of 2**-53 below 1. The second product is not, so its low part is kept; and it may be
    # the larger of the two.
    second = n * HALF_PI_LOW
    second_low = fma64(n, HALF_PI_LOW, -second)
    r = first - second
    taken = r - first
    error = (first - (r - taken)) - (second + taken)
    return r, fma64(n, -_HALF_PI_3, error - second_low), bits64(shifted) - ROUND_MAGIC_BITS


@scalar
def _two_over_pi_bits(word: Int64, offset: Int64) -> Any:
    """64 bits of 2 / pi from bit `offset` of a word on."""
    up, back = np.uint64(offset), np.uint64(np.int64(32) - offset)
    high = ((_PI_WORDS[word] << up) | (_PI_WORDS[word + 1] >> back)) & _LOW_WORD
    low = ((_PI_WORDS[word + 1] << up) | (_PI_WORDS[word + 2] >> back)) & _LOW_WORD
    return (high << np.uint64(32)) | low


@scalar
def reduce_large(x: Float64) -> tuple[Float64, Float64, Int64]:
    """The same for 2**29 <= |x| < inf: the significand times the 192 bits of 2 / pi that decide the quadrant."""
    pattern = bits64(x)
    significand = np.uint64((pattern & _MANTISSA_MASK) | _IMPLICIT_BIT)
    # |x| = significand * 2**(exponent - 1075); bits of 2 / pi above weight 2**(1076 - exponent) only add whole turns.
    first_bit = ((pattern >> np.int64(52)) & np.int64(2047)) - np.int64(1077) + np.int64(32)
    word, offset = first_bit >> np.int64(5), first_bit & np.int64(31)
    high = _two_over_pi_bits(word, offset)
    middle = _two_over_pi_bits(word + 2, offset)
    low = _two_over_pi_bits(word + 4, offset)
    # Units of 2**-62 of a quadrant, modulo four quadrants, and below them 64 bits more.
    product = significand * middle
    fine = product + _multiply_high(significand, low)
    carry = np.uint64(fine < product)
    coarse = significand * high + _multiply_high(significand, middle) + carry
    quadrant = np.int64((coarse + (np.uint64(1) << np.uint64(61))) >> np.uint64(62))
    units = np.int64(coarse - (np.uint64(quadrant) << np.uint64(62)))
    h = np.float64(units)
    below = np.float64(fine >> np.uint64(32)) * _DOWN_32
    lowest = np.float64(fine & _LOW_WORD) * _DOWN_64
    part = below + lowest
    rest = np.float64(units - np.int64(h)) + part
    total = h + rest
    total_low = ((h - total) + rest) + ((below - part) + lowest)
    r = total * _TURNS
    r_low = fma64(total, _TURNS, -r) + fma64(total, _TURNS_LOW, total_low * _TURNS)
    if pattern < np.int64(0):
        return -r, -r_low, -quadrant
    return r, r_low, quadrant


@scalar
def sin_kernel(r: Float64, r_low: Float64) -> Float64:
    """sin(r + r_low) for |r| < 0.787."""
    z = r * r
    return r + fma64(r * z, polynomial64(z, _SIN), r_low)


@scalar
def cos_kernel(r: Float64, r_low: Float64) -> Float64:
    """cos(r + r_low) for |r| < 0.787."""
    z = r * r
    half_z = HALF * z
    head = ONE - half_z
    head_low = (ONE - head) - half_z
    return head + fma64(polynomial64(z, _COS) * z, z, fma64(-r, r_low, head_low))


@scalar
def _sine_of_quadrant(r: Float64, r_low: Float64, quadrant: Int64) -> Float64:
    value = select((quadrant & np.int64(1)) == np.int64(0), sin_kernel(r, r_low), cos_kernel(r, r_low))
    return float64_from_bits(bits64(value) ^ ((quadrant & np.int64(2)) << np.int64(62)))


@scalar
def _tangent_of_quadrant(r: Float64, r_low: Float64, quadrant: Int64) -> Float64:
    z = r * r
    w = fma64(r * z, polynomial64(z, _TAN), fma64(z, r_low, r_low))
    t = r + w
    t_low = (r - t) + w
    q = div64(-ONE, t)
    q = fma64(q, fma64(q, t_low, fma64(q, t, ONE)), q)
    return select((quadrant & np.int64(1)) == np.int64(0), t, q)


@scalar
def trigonometric_is_ordinary(x: Float64) -> Bool:
    """Whether the `*_ordinary` functions hold for x."""
    return not abs64(x) > _LIMIT  # true of a NaN; one comparison, or the loop over it would not vectorise


@scalar
def sin_ordinary(x: Float64) -> Float64:
    """Sine, for |x| <= 2**30 or NaN."""
    r, r_low, quadrant = reduce_ordinary(x)
    return canonical64(select(x == ZERO, x, _sine_of_quadrant(r, r_low, quadrant)))


@scalar
def cos_ordinary(x: Float64) -> Float64:
    """Cosine, for |x| <= 2**30 or NaN."""
    r, r_low, quadrant = reduce_ordinary(x)
    return canonical64(_sine_of_quadrant(r, r_low, quadrant + np.int64(1)))


@scalar
def tan_ordinary(x: Float64) -> Float64:
    """Tangent, for |x| <= 2**30 or NaN."""
    r, r_low, quadrant = reduce_ordinary(x)
    return canonical64(select(x == ZERO, x, _tangent_of_quadrant(r, r_low, quadrant)))


@scalar
def sin(x: Float64) -> Float64:
    """Sine of any float; NaN at infinities."""
    if trigonometric_is_ordinary(x):
        return sin_ordinary(x)
    if abs64(x) == INFINITY:
        return NAN64
    r, r_low, quadrant = reduce_large(x)
    return _sine_of_quadrant(r, r_low, quadrant)


@scalar
def cos(x: Float64) -> Float64:
    """Cosine of any float; NaN at infinities."""
    if trigonometric_is_ordinary(x):
        return cos_ordinary(x)
    if abs64(x) == INFINITY:
        return NAN64
    r, r_low, quadrant = reduce_large(x)
    return _sine_of_quadrant(r, r_low, quadrant + np.int64(1))


@scalar
def tan(x: Float64) -> Float64:
    """Tangent of any float; NaN at infinities."""
    if trigonometric_is_ordinary(x):
        return tan_ordinary(x)
    if abs64(x) == INFINITY:
        return NAN64
    r, r_low, quadrant = reduce_large(x)
    return _tangent_of_quadrant(r, r_low, quadrant)
