"""Exact remainders of f64: fmod and the IEEE remainder.

As long as a quotient is below 2**52, its rounded value is at most one too large once truncated, and one fused
multiply-add gives the remainder; the functions named `*_ordinary` hold there and vectorise. Larger quotients are taken
off in pieces.
"""

from __future__ import annotations

import numpy as np

from loom_sim.bits import (
    NAN64,
    Bool,
    Float64,
    abs64,
    bits64,
    copysign64,
    div64,
    fma64,
    scalar,
    select,
    trunc64,
)
from loom_sim.elementary.double.arithmetic import exponent_of, power_of_two

_ZERO = np.float64(0.0)
_ONE = np.float64(1.0)
_QUARTER = np.float64(0.25)
_INFINITY = np.float64(np.inf)
_QUOTIENT_LIMIT = np.float64(2.0**52)
_STEP_BITS = np.int64(50)
_LARGEST_STEP = np.int64(1000)
_LARGE = np.float64(2.0**1000)
_SHRINK = np.float64(2.0**-60)
_GROW = np.float64(2.0**60)


@scalar
def remainder_is_ordinary(x: Float64, y: Float64) -> Bool:
    """Whether the `*_ordinary` functions hold: |x / y| below 2**52, or a result that needs no quotient."""
    fits = abs64(x) <= _QUOTIENT_LIMIT * abs64(y)
    return fits | (y == _ZERO) | (y != y) | (x != x) | (abs64(x) == _INFINITY)


@scalar
def _reduce_once(a: Float64, b: Float64) -> Float64:
    """a mod b for 0 <= a <= 2**52 * b, b > 0."""
    r = fma64(-trunc64(div64(a, b)), b, a)
    return select(r < _ZERO, r + b, r)


@scalar
def _reduce_fully(a: Float64, b: Float64) -> Float64:
    """a mod b for any finite a >= 0 and b > 0: b times powers of two is taken off first."""
    r = a
    while r > _QUOTIENT_LIMIT * b:
        gap = np.int64(exponent_of(r)) - np.int64(exponent_of(b)) - _STEP_BITS
        first = select(gap > _LARGEST_STEP, _LARGEST_STEP, gap)
        second = select(gap - first > _LARGEST_STEP, _LARGEST_STEP, gap - first)
        r = _reduce_once(r, b * power_of_two(first) * power_of_two(second) * power_of_two(gap - first - second))
    return _reduce_once(r, b)


@scalar
def _special(x: Float64, y: Float64, result: Float64) -> Float64:
    """NaN where an operand is one, x is infinite or y zero; x where y is infinite; else the result with x's sign."""
    signed = copysign64(select(abs64(y) == _INFINITY, abs64(x), result), x)
    invalid = (x != x) | (y != y) | (abs64(x) == _INFINITY) | (y == _ZERO)
    return select(invalid, NAN64, signed)


@scalar
def fmod_ordinary(x: Float64, y: Float64) -> Float64:
    """`fmod` where `remainder_is_ordinary`."""
    return _special(x, y, _reduce_once(abs64(x), abs64(y)))


@scalar
def fmod(x: Float64, y: Float64) -> Float64:
    """x - y * trunc(x / y), exact; the sign of x; NaN for infinite x or zero y."""
    if remainder_is_ordinary(x, y):
        return fmod_ordinary(x, y)
    return _special(x, y, _reduce_fully(abs64(x), abs64(y)))


@scalar
def _nearest(b: Float64, r: Float64) -> Float64:
    """From r = a mod 2b to a minus the nearest multiple of b, ties to an even multiple."""
    above = r + r > b
    first = select(above, r - b, r)
    return select(above & (first + first >= b), first - b, first)


@scalar
def _scale(b: Float64) -> Float64:
    """A power of two that keeps twice b finite."""
    return select(b >= _LARGE, _SHRINK, _ONE)


@scalar
def _signed(x: Float64, y: Float64, r: Float64) -> Float64:
    magnitude = _special(abs64(x), y, abs64(r))
    flipped = (r < _ZERO) & (abs64(y) < _INFINITY)
    with_sign = select(flipped, -magnitude, magnitude)
    signed = select(bits64(x) < np.int64(0), -with_sign, with_sign)
    return select(magnitude != magnitude, NAN64, signed)


@scalar
def _from_residue(x: Float64, y: Float64, residue: Float64, scale: Float64) -> Float64:
    """The remainder from |x| * scale mod 2 * |y| * scale."""
    back = select(scale == _ONE, _ONE, _GROW)
    r = _nearest(abs64(y) * scale, residue) * back
    # A small x is its own remainder, and may have lost bits to the scale.
    return _signed(x, y, select(abs64(x) <= _QUARTER * abs64(y), abs64(x), r))


@scalar
def remainder_ordinary(x: Float64, y: Float64) -> Float64:
    """`remainder` where `remainder_is_ordinary`."""
    scale = _scale(abs64(y))
    b = abs64(y) * scale
    return _from_residue(x, y, _reduce_once(abs64(x) * scale, b + b), scale)


@scalar
def remainder(x: Float64, y: Float64) -> Float64:
    """x - y * n, n the integer nearest x / y (ties to even), exact; a zero has the sign of x."""
    if remainder_is_ordinary(x, y):
        return remainder_ordinary(x, y)
    scale = _scale(abs64(y))
    b = abs64(y) * scale
    return _from_residue(x, y, _reduce_fully(abs64(x) * scale, b + b), scale)
