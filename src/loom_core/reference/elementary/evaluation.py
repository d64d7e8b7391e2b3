"""Parts that the elementary references share: Horner's rule, rounding to an integer, scaling, named numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loom_core.isa.coefficients import POLYNOMIALS, constant
from loom_core.reference.arith import Float32s, bits32, f32, fma32, from_bits32

Int32s = NDArray[np.int32]

ONE = np.float32(1.0)
HALF = np.float32(0.5)
INFINITY = np.float32(np.inf)
NAN = np.float32(np.nan)
_MAGIC = np.float32(1.5 * 2.0**23)


def number(name: str) -> np.float32:
    """A named constant of the coefficient tables."""
    return np.float32(constant(name))


def horner(x: ArrayLike, table: str, last: int = 0) -> Float32s:
    """The polynomial `table` at x: one fma a step, from the highest coefficient down to that of power `last`."""
    coefficients = [np.float32(value) for value in POLYNOMIALS[table].values[last:]]
    result = np.broadcast_to(coefficients[-1], np.shape(x))
    for coefficient in coefficients[-2::-1]:
        result = fma32(result, x, coefficient)
    return f32(result)


def first_coefficient(table: str) -> np.float32:
    """The coefficient of power 0."""
    return np.float32(POLYNOMIALS[table].values[0])


def magic_integer(shifted: Float32s) -> tuple[Float32s, Int32s]:
    """(n as a float, n as an int32) of s = y + M."""
    return shifted - _MAGIC, bits32(shifted) - bits32(_MAGIC)


def add_magic(y: Float32s) -> Float32s:
    """s = y + M."""
    return f32(y + _MAGIC)


def fma_magic(y: ArrayLike, factor: ArrayLike) -> Float32s:
    """s = fma(y, factor, M)."""
    return fma32(y, factor, _MAGIC)


def power_of_two(exponent: Int32s) -> Float32s:
    """2^exponent for exponents of normal numbers; elsewhere anything."""
    return from_bits32((np.asarray(exponent, np.int32) + 127) << 23)


def scale(y: ArrayLike, exponent: Int32s) -> Float32s:
    """y * 2^exponent by two exact halves."""
    half = exponent >> 1
    return f32((f32(y) * power_of_two(half)) * power_of_two(exponent - half))
