"""Parts that the float64 references share: Horner's rule, sums with their errors, rounding to an integer, scaling."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loom_core.isa.coefficients import POLYNOMIALS, constant
from loom_core.reference.arith import Float64s, fma64

Int64s: TypeAlias = NDArray[np.int64]

MAGIC = 1.5 * 2.0**52
LN2 = constant("ln2_wide")
LN2_LOW = constant("ln2_wide_low")
LOG2_E = constant("log2_e_wide")
LOG2_E_LOW = constant("log2_e_wide_low")
HALF_PI = constant("half_pi_wide_1")
HALF_PI_LOW = constant("half_pi_wide_2")


def horner(x: ArrayLike, table: str, skip: int = 0) -> Float64s:
    """The polynomial `table` at x, without its `skip` lowest coefficients."""
    coefficients = POLYNOMIALS[table].values[skip:]
    result = np.full(np.shape(x), coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = fma64(result, x, coefficient)
    return result


def magic_integer(shifted: Float64s) -> tuple[Float64s, Int64s]:
    """(n as a float, n as an int64) of s = y + M."""
    return shifted - MAGIC, shifted.view(np.int64) - np.float64(MAGIC).view(np.int64)


def power_of_two(exponent: Int64s) -> Float64s:
    """2^exponent for exponents of normal numbers; elsewhere anything."""
    return ((exponent + 1023) << 52).view(np.float64)


def scale(y: Float64s, exponent: Int64s) -> Float64s:
    """y * 2^exponent by two exact halves."""
    half = exponent >> 1
    return y * power_of_two(half) * power_of_two(exponent - half)


def two_sum(x: ArrayLike, y: ArrayLike) -> tuple[Float64s, Float64s]:
    """(s, e): the rounded sum and its error."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    s = a + b
    taken = s - a
    return s, (a - (s - taken)) + (b - taken)
