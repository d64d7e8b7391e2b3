"""The published numbers as float32 and float64 values that numba freezes into compiled code."""

from __future__ import annotations

import numpy as np

from loom_core.isa.coefficients import POLYNOMIALS, constant


def coefficients32(name: str) -> tuple[np.float32, ...]:
    """Coefficients of a float32 polynomial, ascending."""
    return tuple(np.float32(value) for value in POLYNOMIALS[name].values)


def coefficients64(name: str) -> tuple[np.float64, ...]:
    """Coefficients of a float64 polynomial, ascending."""
    return tuple(np.float64(value) for value in POLYNOMIALS[name].values)


def constant32(name: str) -> np.float32:
    return np.float32(constant(name))


def constant64(name: str) -> np.float64:
    return np.float64(constant(name))


ZERO = np.float32(0.0)
HALF = np.float32(0.5)
ONE = np.float32(1.0)
TWO = np.float32(2.0)
INFINITY = np.float32(np.inf)
SMALLEST_NORMAL = np.float32(2.0**-126)

# Adding and subtracting 1.5 * 2**23 rounds a float32 below 2**22 to an integer (ties to even), which then also stands
# in the low bits of the sum.
ROUND_MAGIC = np.float32(1.5 * 2.0**23)
ROUND_MAGIC_BITS = ROUND_MAGIC.view(np.int32)
