"""Sine, cosine and tangent.

Every finite float32 is reduced exactly enough: |x| <= 2**20 by three-part multiples of pi / 2, all else by a product
with the bits of 2 / pi. The functions named `*_ordinary` hold for the first range alone and vectorise.
"""

from __future__ import annotations

import numpy as np

from loom_core.isa.coefficients import TWO_OVER_PI_WORDS
from loom_sim.bits import (
    NAN32,
    Bool,
    Float32,
    Int32,
    abs32,
    bits32,
    canonical32,
    div32,
    float32_from_bits,
    fma32,
    polynomial32,
    scalar,
    select,
)
from loom_sim.elementary.numbers import (
    HALF,
    INFINITY,
    ONE,
    ROUND_MAGIC,
    ROUND_MAGIC_BITS,
    ZERO,
    coefficients32,
    constant32,
    constant64,
)

_LIMIT = np.float32(2.0**20)

_SIN = coefficients32("sin")
_COS = coefficients32("cos")
_TAN = coefficients32("tan")
_TWO_OVER_PI = constant32("two_over_pi")
_HALF_PI_1 = constant32("half_pi_1")
_HALF_PI_2 = constant32("half_pi_2")
_HALF_PI_3 = constant32("half_pi_3")
_HALF_PI_TURNS = constant64("half_pi_scaled")

_PI_WORDS = np.array((0, *TWO_OVER_PI_WORDS), dtype=np.uint64)  # the word before the point too
_MANTISSA_MASK = np.int32(0x007FFFFF)
_IMPLICIT_BIT = np.int32(0x00800000)


@scalar
def reduce_ordinary(x: Float32) -> tuple[Float32, Float32, Int32]:
    """(r, r_low, quadrant) with x = quadrant * pi / 2 + r + r_low, for |x| <= 2**20."""
    shifted = fma32(x, _TWO_OVER_PI, ROUND_MAGIC)
    n = shifted - ROUND_MAGIC
    first = fma32(n, -_HALF_PI_1, x)
    # `first` is exact: a multiple of 2**-24 below 1. The second product is not, so its low part is kept.
    second = n * _HALF_PI_2
    second_low = fma32(n, _HALF_PI_2, -second)
    r = first - second
    r_low = fma32(n, -_HALF_PI_3, ((first - r) - second) - second_low)
    return r, r_low, np.int32(bits32(shifted) - ROUND_MAGIC_BITS)


@scalar
def reduce_large(x: Float32) -> tuple[Float32, Float32, Int32]:
    """The same for 1 <= |x| < inf: the significand times the 96 bits of 2 / pi that decide quadrant and fraction."""
    pattern = bits32(x)
    significand = np.uint64((pattern & _MANTISSA_MASK) | _IMPLICIT_BIT)
    # |x| = significand * 2**(exponent - 150); bits of 2 / pi above weight 2**(151 - exponent) only add whole turns.
    first_bit = ((pattern >> 23) & 255) - 152 + 32
    word = first_bit >> 5
    offset = np.uint64(first_bit & 31)
    back = np.uint64(32) - offset
    mask = np.uint64(0xFFFFFFFF)
    high = ((_PI_WORDS[word] << offset) | (_PI_WORDS[word + 1] >> back)) & mask
    middle = ((_PI_WORDS[word + 1] << offset) | (_PI_WORDS[word + 2] >> back)) & mask
    low = ((_PI_WORDS[word + 2] << offset) | (_PI_WORDS[word + 3] >> back)) & mask
    # Units of 2**-62 of a quadrant, modulo four quadrants.
    product = ((significand * high) << np.uint64(32)) + significand * middle + ((significand * low) >> np.uint64(32))
    quadrant = np.int32((product + (np.uint64(1) << np.uint64(61))) >> np.uint64(62))
    fraction = np.int64(product - (np.uint64(quadrant) << np.uint64(62)))
    angle = np.float64(fraction) * _HALF_PI_TURNS
    angle = -angle if pattern < np.int32(0) else angle
    r = np.float32(angle)
    r_low = np.float32(angle - np.float64(r))
    return r, r_low, -quadrant if pattern < np.int32(0) else quadrant


@scalar
def sin_kernel(r: Float32, r_low: Float32) -> Float32:
    """sin(r + r_low) for |r| < 0.834."""
    z = r * r
    return r + fma32(r * z, polynomial32(z, _SIN), r_low)


@scalar
def cos_kernel(r: Float32, r_low: Float32) -> Float32:
    """cos(r + r_low) for |r| < 0.834."""
    z = r * r
    half_z = HALF * z
    head = ONE - half_z
    head_low = (ONE - head) - half_z
    return head + fma32(polynomial32(z, _COS) * z, z, fma32(-r, r_low, head_low))


@scalar
def _sine_of_quadrant(r: Float32, r_low: Float32, quadrant: Int32) -> Float32:
    value = select((quadrant & np.int32(1)) == np.int32(0), sin_kernel(r, r_low), cos_kernel(r, r_low))
    return float32_from_bits(np.int32(bits32(value) ^ np.int32((quadrant & np.int32(2)) << 30)))


@scalar
def _tangent_of_quadrant(r: Float32, r_low: Float32, quadrant: Int32) -> Float32:
    z = r * r
    t = r + fma32(r * z, polynomial32(z, _TAN), fma32(z, r_low, r_low))
    return select((quadrant & np.int32(1)) == np.int32(0), t, div32(-ONE, t))


@scalar
def trigonometric_is_ordinary(x: Float32) -> Bool:
    """Whether the `*_ordinary` functions hold for x."""
    return not abs32(x) > _LIMIT  # true of a NaN; one comparison, or the loop over it would not vectorise


@scalar
def sinf_ordinary(x: Float32) -> Float32:
    """f32 -> f32: sine, for |x| <= 2**20 or NaN."""
    r, r_low, quadrant = reduce_ordinary(x)
    return canonical32(select(x == ZERO, x, _sine_of_quadrant(r, r_low, quadrant)))


@scalar
def cosf_ordinary(x: Float32) -> Float32:
    """f32 -> f32: cosine, for |x| <= 2**20 or NaN."""
    r, r_low, quadrant = reduce_ordinary(x)
    return canonical32(_sine_of_quadrant(r, r_low, np.int32(quadrant + 1)))


@scalar
def sinf(x: Float32) -> Float32:
    """f32 -> f32: sine of any float; NaN at infinities."""
    if trigonometric_is_ordinary(x):
        return sinf_ordinary(x)
    if abs32(x) == INFINITY:
        return NAN32
    r, r_low, quadrant = reduce_large(x)
    return _sine_of_quadrant(r, r_low, quadrant)


@scalar
def cosf(x: Float32) -> Float32:
    """f32 -> f32: cosine of any float; NaN at infinities."""
    if trigonometric_is_ordinary(x):
        return cosf_ordinary(x)
    if abs32(x) == INFINITY:
        return NAN32
    r, r_low, quadrant = reduce_large(x)
    return _sine_of_quadrant(r, r_low, np.int32(quadrant + 1))


@scalar
def tanf_ordinary(x: Float32) -> Float32:
    """f32 -> f32: tangent, for |x| <= 2**20 or NaN."""
    r, r_low, quadrant = reduce_ordinary(x)
    return canonical32(select(x == ZERO, x, _tangent_of_quadrant(r, r_low, quadrant)))


@scalar
def tanf(x: Float32) -> Float32:
    """f32 -> f32: tangent of any float; NaN at infinities."""
    if trigonometric_is_ordinary(x):
        return tanf_ordinary(x)
    if abs32(x) == INFINITY:
        return NAN32
    r, r_low, quadrant = reduce_large(x)
    return _tangent_of_quadrant(r, r_low, quadrant)
