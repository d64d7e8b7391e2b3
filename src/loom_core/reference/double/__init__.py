"""Functions of float64 arrays. `REFERENCE_F64` maps a function name of the command table (`exp` of `exp.f64`) to its
reference; arguments broadcast, results are new arrays, NaN-canonical.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loom_core.reference import arith
from loom_core.reference.double import (
    arithmetic,
    error_function,
    exponential,
    gamma,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    trigonometric,
)

_BLOCK = 1 << 13


def _evaluated(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` over broadcast float64 arguments, in blocks that stay in the cache, without NumPy's warnings."""

    @functools.wraps(function)
    def evaluate(*arguments: ArrayLike) -> NDArray[Any]:
        arrays = np.broadcast_arrays(*(arithmetic.f64(argument) for argument in arguments))
        flat = [np.ascontiguousarray(array).ravel() for array in arrays]
        with np.errstate(all="ignore"):
            starts = range(0, max(flat[0].size, 1), _BLOCK)
            parts = [function(*(array[start : start + _BLOCK] for array in flat)) for start in starts]
        return np.concatenate(parts).reshape(arrays[0].shape)

    return evaluate


_ELEMENTARY: dict[str, Callable[..., Any]] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "log": logarithm.log,
    "log2": logarithm.log2,
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "sigmoid": exponential.sigmoid,
    "softplus": logarithm.softplus,
    "tanh": exponential.tanh,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "asinh": hyperbolic.asinh,
    "acosh": hyperbolic.acosh,
    "atanh": hyperbolic.atanh,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "asin": inverse_trigonometric.asin,
    "acos": inverse_trigonometric.acos,
    "atan": inverse_trigonometric.atan,
    "atan2": inverse_trigonometric.atan2,
    "erf": error_function.erf,
    "erfc": error_function.erfc,
    "erfinv": error_function.erfinv,
    "gelu": error_function.gelu,
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
    "cbrt": power.cbrt,
    "pow": power.power,
    "hypot": power.hypot,
}
REFERENCE_F64: dict[str, Callable[..., Any]] = {
    "mov": arith.canonical64,
    "add": arithmetic.add,
    "sub": arithmetic.sub,
    "mul": arithmetic.mul,
    "div": arithmetic.div,
    "fma": arith.fma64,
    "neg": arithmetic.neg,
    "abs": arithmetic.absolute,
    "min": arithmetic.minimum,
    "max": arithmetic.maximum,
    "minp": arithmetic.minimum_propagating,
    "maxp": arithmetic.maximum_propagating,
    "sqrt": arithmetic.sqrt,
    "rsqrt": arithmetic.rsqrt,
    "recip": arithmetic.recip,
    "floor": arithmetic.floor,
    "ceil": arithmetic.ceil,
    "rint": arithmetic.rint,
    "trunc": arithmetic.trunc,
    "round": arithmetic.round_away,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "select": arithmetic.select,
    "isnan": arithmetic.isnan,
    "copysign": arithmetic.copysign,
    "nextafter": arithmetic.nextafter,
    "fmod": arithmetic.fmod,
    "remainder": arithmetic.remainder,
    "ldexp": arithmetic.ldexp,
    "frexp_fraction": arithmetic.frexp_fraction,
    "frexp_exponent": arithmetic.frexp_exponent,
    **{name: _evaluated(function) for name, function in _ELEMENTARY.items()},
}

__all__ = ["REFERENCE_F64"]
