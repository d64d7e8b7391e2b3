"""Correctly rounded and exact functions: roots, reciprocals, rounding to integers, minima and maxima, signs."""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN32,
    Bool,
    Float32,
    abs32,
    bits32,
    canonical32,
    ceil32,
    copysign32,
    div32,
    float32_from_bits,
    floor32,
    rint32,
    scalar,
    select,
    sqrt32,
    trunc32,
)
from loom_sim.elementary.numbers import HALF, ONE, ZERO

_SIGN_BIT = np.int32(-(2**31))
_INFINITY_BITS = np.uint32(0x7F800000)
_NEGATIVE_ZERO_BITS = np.uint32(0x80000000)


@scalar
def sqrtf(x: Float32) -> Float32:
    """f32 -> f32: square root, correctly rounded; NaN below zero, -0 at -0."""
    # Asked of the operand's bits: LLVM removes "x < 0 ? NaN : sqrt(x)" as redundant, whatever sign the root's NaN has.
    unsigned = np.uint32(bits32(x))
    invalid = (unsigned > _INFINITY_BITS) & (unsigned != _NEGATIVE_ZERO_BITS)
    return select(invalid, NAN32, sqrt32(x))


@scalar
def rsqrtf(x: Float32) -> Float32:
    """f32 -> f32: 1 / sqrt(x): the root is rounded, then the quotient; inf and -inf at +0 and -0."""
    return canonical32(div32(ONE, sqrt32(x)))


@scalar
def recip(x: Float32) -> Float32:
    """f32 -> f32: 1 / x, correctly rounded."""
    return canonical32(div32(ONE, x))


@scalar
def floorf(x: Float32) -> Float32:
    """f32 -> f32: largest integral value <= x."""
    return canonical32(floor32(x))


@scalar
def ceilf(x: Float32) -> Float32:
    """f32 -> f32: smallest integral value >= x; -0 in (-1, 0)."""
    return canonical32(ceil32(x))


@scalar
def rintf(x: Float32) -> Float32:
    """f32 -> f32: nearest integral value, ties to even, sign kept."""
    return canonical32(rint32(x))


@scalar
def truncf(x: Float32) -> Float32:
    """f32 -> f32: x without its fraction, sign kept."""
    return canonical32(trunc32(x))


@scalar
def roundf(x: Float32) -> Float32:
    """f32 -> f32: nearest integral value, ties away from zero, sign kept."""
    whole = trunc32(x)
    away = abs32(x - whole) >= HALF
    return canonical32(copysign32(select(away, abs32(whole) + ONE, whole), x))


@scalar
def copysignf(magnitude: Float32, sign: Float32) -> Float32:
    """(f32, f32) -> f32: the magnitude of the first with the sign bit of the second, be that a NaN's."""
    return canonical32(copysign32(magnitude, sign))


@scalar
def nextafterf(x: Float32, y: Float32) -> Float32:
    """(f32, f32) -> f32: the float next to x in the direction of y; y where they are equal."""
    pattern = bits32(x)
    outward = (x < y) == (pattern >= np.int32(0))
    step = np.int32(pattern + select(outward, np.int32(1), np.int32(-1)))
    smallest = np.int32((bits32(y) & _SIGN_BIT) | np.int32(1))
    moved = select(x == ZERO, float32_from_bits(smallest), float32_from_bits(step))
    return canonical32(select(x != x, x, select(x == y, y, select(y != y, y, moved))))


@scalar
def negf(x: Float32) -> Float32:
    """f32 -> f32: the sign flipped."""
    return canonical32(-x)


@scalar
def absf(x: Float32) -> Float32:
    """f32 -> f32: the sign cleared."""
    return canonical32(abs32(x))


@scalar
def isnanf(x: Float32) -> Bool:
    """f32 -> bool: x is a NaN."""
    return x != x


@scalar
def selectf(condition: Bool, x: Float32, y: Float32) -> Float32:
    """(bool, f32, f32) -> f32: x where the condition holds, else y."""
    return canonical32(select(condition, x, y))


@scalar
def minf(x: Float32, y: Float32) -> Float32:
    """(f32, f32) -> f32: the smaller; a number wins over a NaN; -0 < +0."""
    smaller = select(x < y, x, y)
    # Equal operands differ at most in the sign of zero: or gives -0 where one is -0.
    smaller = select(x == y, float32_from_bits(bits32(x) | bits32(y)), smaller)
    return canonical32(select(y != y, x, smaller))


@scalar
def maxf(x: Float32, y: Float32) -> Float32:
    """(f32, f32) -> f32: the larger; a number wins over a NaN; -0 < +0."""
    larger = select(x > y, x, y)
    larger = select(x == y, float32_from_bits(bits32(x) & bits32(y)), larger)
    return canonical32(select(y != y, x, larger))


@scalar
def minpf(x: Float32, y: Float32) -> Float32:
    """(f32, f32) -> f32: the smaller; a NaN wins over a number; -0 < +0."""
    smaller = select(x < y, x, y)
    smaller = select(x == y, float32_from_bits(bits32(x) | bits32(y)), smaller)
    return canonical32(select(x != x, x, smaller))


@scalar
def maxpf(x: Float32, y: Float32) -> Float32:
    """(f32, f32) -> f32: the larger; a NaN wins over a number; -0 < +0."""
    larger = select(x > y, x, y)
    larger = select(x == y, float32_from_bits(bits32(x) & bits32(y)), larger)
    return canonical32(select(x != x, x, larger))
