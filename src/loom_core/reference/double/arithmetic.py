"""IEEE arithmetic and exact functions of float64 arrays; NaN results are canonical."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loom_core.reference.arith import Bools, Float64s, canonical64


def f64(x: ArrayLike) -> Float64s:
    """`x` as a float64 array; TypeError for an array of another type."""
    if type(x) in (int, float):
        return np.asarray(x, np.float64)
    array = np.asarray(x)
    if array.dtype != np.float64:
        raise TypeError(f"float64 expected, got {array.dtype}")
    return array


def add(x: ArrayLike, y: ArrayLike) -> Float64s:
    with np.errstate(all="ignore"):
        return canonical64(f64(x) + f64(y))


def sub(x: ArrayLike, y: ArrayLike) -> Float64s:
    with np.errstate(all="ignore"):
        return canonical64(f64(x) - f64(y))


def mul(x: ArrayLike, y: ArrayLike) -> Float64s:
    with np.errstate(all="ignore"):
        return canonical64(f64(x) * f64(y))


def div(x: ArrayLike, y: ArrayLike) -> Float64s:
    with np.errstate(all="ignore"):
        return canonical64(f64(x) / f64(y))


def neg(x: ArrayLike) -> Float64s:
    return canonical64(-f64(x))


def absolute(x: ArrayLike) -> Float64s:
    return canonical64(np.abs(f64(x)))


def sqrt(x: ArrayLike) -> Float64s:
    with np.errstate(all="ignore"):
        return canonical64(np.sqrt(f64(x)))


def recip(x: ArrayLike) -> Float64s:
    """1 / x."""
    return div(1.0, x)


def rsqrt(x: ArrayLike) -> Float64s:
    """1 / sqrt(x), two roundings."""
    return recip(sqrt(x))


def floor(x: ArrayLike) -> Float64s:
    return canonical64(np.floor(f64(x)))


def ceil(x: ArrayLike) -> Float64s:
    return canonical64(np.ceil(f64(x)))


def rint(x: ArrayLike) -> Float64s:
    """Nearest integral value, ties to even."""
    return canonical64(np.rint(f64(x)))


def trunc(x: ArrayLike) -> Float64s:
    return canonical64(np.trunc(f64(x)))


def round_away(x: ArrayLike) -> Float64s:
    """Nearest integral value, ties away from zero."""
    value = f64(x)
    fraction, whole = np.modf(value)
    up = np.where(np.abs(fraction) >= 0.5, np.copysign(1.0, value), 0.0)
    return canonical64(np.copysign(whole + up, value))


def select(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Float64s:
    return canonical64(np.where(np.asarray(condition, np.bool_), f64(x), f64(y)))


def isnan(x: ArrayLike) -> Bools:
    return np.isnan(f64(x))


def copysign(x: ArrayLike, y: ArrayLike) -> Float64s:
    return canonical64(np.copysign(f64(x), f64(y)))


def nextafter(x: ArrayLike, y: ArrayLike) -> Float64s:
    with np.errstate(all="ignore"):
        return canonical64(np.nextafter(f64(x), f64(y)))


def _extreme(x: ArrayLike, y: ArrayLike, smaller: bool, propagate: bool) -> Float64s:
    a, b = np.broadcast_arrays(f64(x), f64(y))
    # Equal operands differ at most in the sign of a zero.
    first = (a < b) | ((a == b) & np.signbit(a)) if smaller else (a > b) | ((a == b) & ~np.signbit(a))
    result = np.where(first, a, b)
    if propagate:
        return canonical64(np.where(np.isnan(a), a, result))
    return canonical64(np.where(np.isnan(b), a, result))


def minimum(x: ArrayLike, y: ArrayLike) -> Float64s:
    """The smaller; a number wins over a NaN; -0 < +0."""
    return _extreme(x, y, smaller=True, propagate=False)


def maximum(x: ArrayLike, y: ArrayLike) -> Float64s:
    """The larger; a number wins over a NaN; -0 < +0."""
    return _extreme(x, y, smaller=False, propagate=False)


def minimum_propagating(x: ArrayLike, y: ArrayLike) -> Float64s:
    """The smaller; a NaN wins over a number; -0 < +0."""
    return _extreme(x, y, smaller=True, propagate=True)


def maximum_propagating(x: ArrayLike, y: ArrayLike) -> Float64s:
    """The larger; a NaN wins over a number; -0 < +0."""
    return _extreme(x, y, smaller=False, propagate=True)


def _each(function: Any, *arrays: ArrayLike) -> Float64s:
    """A function of Python floats, element by element; what it refuses is a NaN."""

    def one(*values: float) -> float:
        try:
            return float(function(*values))
        except ValueError:
            return math.nan

    columns = np.broadcast_arrays(*(f64(array) for array in arrays))
    values = [one(*row) for row in zip(*(column.ravel().tolist() for column in columns), strict=True)]
    return canonical64(np.array(values, np.float64).reshape(columns[0].shape))


def fmod(x: ArrayLike, y: ArrayLike) -> Float64s:
    """x - y * trunc(x / y), exact; a zero has the sign of x."""
    return _each(math.fmod, x, y)


def remainder(x: ArrayLike, y: ArrayLike) -> Float64s:
    """x - y * n, n the integer nearest to x / y, ties to even; exact; a zero has the sign of x."""
    result = _each(math.remainder, x, y)
    return np.where(result == 0, np.copysign(result, f64(x)), result)


def _split(x: ArrayLike) -> tuple[Float64s, NDArray[np.int32]]:
    value = f64(x)
    plain = (value == 0) | ~np.isfinite(value)
    fraction, exponent = np.frexp(np.where(plain, 1.0, value))
    return canonical64(np.where(plain, value, fraction)), np.where(plain, 0, exponent).astype(np.int32)


def frexp_fraction(x: ArrayLike) -> Float64s:
    """m of x = m * 2^e with 0.5 <= |m| < 1; zeros, infinities and NaN as they are."""
    return _split(x)[0]


def frexp_exponent(x: ArrayLike) -> NDArray[np.int32]:
    """e of x = m * 2^e with 0.5 <= |m| < 1; 0 for zeros, infinities and NaN."""
    return _split(x)[1]


def ldexp(x: ArrayLike, exponent: ArrayLike) -> Float64s:
    """x * 2^exponent, rounded once; exponent is an int32 array."""
    value, n = np.broadcast_arrays(f64(x), np.clip(np.asarray(exponent, np.int64), -2200, 2200))
    fraction, own = _split(value)
    total = own.astype(np.int64) + n
    with np.errstate(all="ignore"):
        # A fraction of exponent `total` that is too small for a normal number gets its last factor alone.
        near = np.ldexp(fraction, np.clip(total, -1021, 1030).astype(np.int32))
        result = near * np.ldexp(1.0, np.clip(total + 1021, -100, 0).astype(np.int32))
    return canonical64(np.where((value == 0) | ~np.isfinite(value), value, result))
