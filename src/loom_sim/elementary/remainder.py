"""Exact remainders: fmod and the IEEE remainder.

In float64 the quotient of two float32 is an exact integer after truncation as long as it is below 2**51, and so is the
remainder; the functions named `*_ordinary` hold there and vectorise. Larger quotients are taken off in pieces.
"""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN32,
    Bool,
    Float32,
    Float64,
    abs32,
    abs64,
    bits32,
    bits64,
    copysign32,
    div64,
    float64_from_bits,
    fma64,
    scalar,
    select,
    trunc64,
)
from loom_sim.elementary.numbers import INFINITY, ZERO

_QUOTIENT_LIMIT = np.float64(2.0**51)
_ZERO = np.float64(0.0)
_TWO = np.float64(2.0)
_MANTISSA_BITS = np.int64(52)
_STEP_EXPONENT = np.int64(50)


@scalar
def remainder_is_ordinary(x: Float32, y: Float32) -> Bool:
    """Whether the `*_ordinary` functions hold: |x / y| below 2**51, or a result that needs no quotient."""
    fits = abs64(np.float64(x)) <= _QUOTIENT_LIMIT * abs64(np.float64(y))
    return fits | (y == ZERO) | (y != y) | (x != x) | (abs32(x) == INFINITY)


@scalar
def _reduce_once(a: Float64, b: Float64) -> Float64:
    """a mod b for 0 <= a <= 2**51 * b, b > 0, both with at most 24 significant bits over a common grid."""
    r = fma64(-trunc64(div64(a, b)), b, a)
    r = select(r < _ZERO, r + b, r)
    return select(r >= b, r - b, r)


@scalar
def _reduce_fully(a: Float64, b: Float64) -> Float64:
    """a mod b for any finite a >= 0 and b > 0 that are float32 values: b times powers of two is taken off first."""
    r = a
    while r > _QUOTIENT_LIMIT * b:
        gap = (bits64(r) >> _MANTISSA_BITS) - (bits64(b) >> _MANTISSA_BITS) - _STEP_EXPONENT
        r = _reduce_once(r, float64_from_bits(bits64(b) + (gap << _MANTISSA_BITS)))
    return _reduce_once(r, b)


@scalar
def _fmod_special(x: Float32, y: Float32, result: Float32) -> Float32:
    """NaN where an operand is one, x is infinite or y zero; x where y is infinite; else the result with x's sign."""
    signed = copysign32(select(abs32(y) == INFINITY, abs32(x), result), x)
    invalid = (x != x) | (y != y) | (abs32(x) == INFINITY) | (y == ZERO)
    return select(invalid, NAN32, signed)


@scalar
def fmodf_ordinary(x: Float32, y: Float32) -> Float32:
    """(f32, f32) -> f32: `fmodf` where `remainder_is_ordinary`."""
    r = _reduce_once(np.float64(abs32(x)), np.float64(abs32(y)))
    return _fmod_special(x, y, np.float32(r))


@scalar
def fmodf(x: Float32, y: Float32) -> Float32:
    """(f32, f32) -> f32: x - y * trunc(x / y), exact; the sign of x; NaN for infinite x or zero y."""
    if remainder_is_ordinary(x, y):
        return fmodf_ordinary(x, y)
    r = _reduce_fully(np.float64(abs32(x)), np.float64(abs32(y)))
    return _fmod_special(x, y, np.float32(r))


@scalar
def _nearest(r: Float64, b: Float64) -> Float64:
    """From r = |x| mod 2b to |x| minus the nearest multiple of b, ties to an even multiple."""
    above = r + r > b
    r = select(above, r - b, r)
    return select(above & (r + r >= b), r - b, r)


@scalar
def _remainder_signed(x: Float32, y: Float32, r: Float64) -> Float32:
    magnitude = _fmod_special(abs32(x), y, np.float32(abs64(r)))
    flipped = (r < _ZERO) & (abs32(y) < INFINITY)
    with_sign = select(flipped, -magnitude, magnitude)
    signed = select(bits32(x) < np.int32(0), -with_sign, with_sign)
    return select(magnitude != magnitude, NAN32, signed)


@scalar
def remainderf_ordinary(x: Float32, y: Float32) -> Float32:
    """(f32, f32) -> f32: `remainderf` where `remainder_is_ordinary`."""
    b = np.float64(abs32(y))
    r = _nearest(_reduce_once(np.float64(abs32(x)), _TWO * b), b)
    return _remainder_signed(x, y, r)


@scalar
def remainderf(x: Float32, y: Float32) -> Float32:
    """(f32, f32) -> f32: x - y * n, n the integer nearest x / y (ties to even), exact; a zero has the sign of x."""
    if remainder_is_ordinary(x, y):
        return remainderf_ordinary(x, y)
    b = np.float64(abs32(y))
    r = _nearest(_reduce_fully(np.float64(abs32(x)), _TWO * b), b)
    return _remainder_signed(x, y, r)
