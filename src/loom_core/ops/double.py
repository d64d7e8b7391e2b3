"""float64 meanings of the elementwise operations, by name.

ARITHMETIC is exact by IEEE rules. ELEMENTARY holds NumPy's and Python's own functions until Loom's float64 algorithms
exist: near the true value by an ulp or two, and not the same bits on every host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.reference import arith

Array = npt.NDArray[Any]
Function = Callable[..., Any]


def _order_key(x: Array) -> Array:
    """Integers ordered as the numbers are, -0 just below +0."""
    pattern = x.view(np.int64)
    return np.where(pattern < 0, np.int64(-1) - (pattern & np.int64(0x7FFF_FFFF_FFFF_FFFF)), pattern)


def _extreme(smaller: bool, propagate: bool) -> Function:
    def choose(x: Array, y: Array) -> Array:
        a, b = np.broadcast_arrays(x, y)
        first = _order_key(a) <= _order_key(b) if smaller else _order_key(a) >= _order_key(b)
        result = np.where(first, a, b)
        if propagate:
            return np.where(np.isnan(a) | np.isnan(b), np.nan, result)
        return np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))

    return choose


def _round_away(x: Array) -> Array:
    fraction, whole = np.modf(x)
    return np.copysign(whole + np.where(np.abs(fraction) >= 0.5, np.copysign(1.0, x), 0.0), x)


def _each(function: Callable[..., float]) -> Function:
    """A function of Python floats over arrays; errors of its domain are NaN."""

    def one(*values: Any) -> float:
        try:
            return function(*(float(value) for value in values))
        except (ValueError, OverflowError):
            return math.nan

    vectorised = np.vectorize(one, otypes=[np.float64])
    return lambda *arrays: vectorised(*arrays) if arrays[0].size else np.zeros(arrays[0].shape)


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


ARITHMETIC: Final[dict[str, Function]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs,
    "min": _extreme(True, False), "max": _extreme(False, False),
    "minp": _extreme(True, True), "maxp": _extreme(False, True),
    "copy": np.copy, "sqrt": np.sqrt, "rsqrt": lambda x: 1.0 / np.sqrt(x), "recip": lambda x: 1.0 / x,
    "floor": np.floor, "ceil": np.ceil, "rint": np.rint, "trunc": np.trunc, "round": _round_away, "fma": arith.fma64,
    "isnan": np.isnan, "select": np.where, "copysign": np.copysign, "nextafter": np.nextafter, "fmod": np.fmod,
    "remainder": _each(math.remainder),
}  # fmt: skip
ELEMENTARY: Final[dict[str, Function]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "tanh": np.tanh, "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)), "erf": _each(math.erf),
    "erfc": _each(math.erfc), "gelu": lambda x: 0.5 * x * _each(math.erfc)(x * -math.sqrt(0.5)),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "cbrt": np.cbrt, "pow": np.float_power, "lgamma": _each(_lgamma), "hypot": np.hypot,
}  # fmt: skip
FLOAT64: Final[dict[str, Function]] = {**ARITHMETIC, **ELEMENTARY}
