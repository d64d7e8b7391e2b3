"""Elementary functions of float32 arrays, the steps of `docs/numerics.md` in NumPy with an emulated fused multiply-add.

`REFERENCE_F32` maps a function name of the command table (`exp` of `exp.f32`) to its reference. Arguments broadcast;
results are new float32 arrays (bool for `isnan`, int32 for `frexp_exponent`), NaN-canonical.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loom_core.reference import arith
from loom_core.reference.elementary import (
    error_function,
    exponential,
    gamma,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    remainder,
    trigonometric,
)

_BLOCK: Final = 1 << 14


def _evaluated(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` over broadcast arguments, without NumPy's warnings (overflow and invalid operations are results here).

    Long arrays go through in blocks: the steps make many temporaries, which should stay in the cache.
    """

    @functools.wraps(function)
    def evaluate(*arguments: ArrayLike) -> NDArray[Any]:
        arrays = np.broadcast_arrays(*arguments)
        with np.errstate(all="ignore"):
            if arrays[0].size <= _BLOCK:
                return np.asarray(function(*arrays))
            flat = [array.ravel() for array in arrays]
            starts = range(0, flat[0].size, _BLOCK)
            parts = [function(*(array[start : start + _BLOCK] for array in flat)) for start in starts]
        return np.concatenate(parts).reshape(arrays[0].shape)

    return evaluate


REFERENCE_F32: dict[str, Callable[..., Any]] = {
    "neg": arith.neg32,
    "abs": arith.abs32,
    "min": arith.min32,
    "max": arith.max32,
    "minp": arith.minp32,
    "maxp": arith.maxp32,
    "sqrt": arith.sqrt32,
    "rsqrt": arith.rsqrt32,
    "recip": arith.recip32,
    "floor": arith.floor32,
    "ceil": arith.ceil32,
    "rint": arith.rint32,
    "trunc": arith.trunc32,
    "isnan": arith.isnan32,
    "select": arith.select32,
    "exp": _evaluated(exponential.exp),
    "exp2": _evaluated(exponential.exp2),
    "expm1": _evaluated(exponential.expm1),
    "log": _evaluated(logarithm.log),
    "log2": _evaluated(logarithm.log2),
    "log10": _evaluated(logarithm.log10),
    "log1p": _evaluated(logarithm.log1p),
    "sigmoid": _evaluated(exponential.sigmoid),
    "tanh": _evaluated(exponential.tanh),
    "erf": _evaluated(error_function.erf),
    "gelu": _evaluated(error_function.gelu),
    "sin": _evaluated(trigonometric.sin),
    "cos": _evaluated(trigonometric.cos),
    "tan": _evaluated(trigonometric.tan),
    "asin": _evaluated(inverse_trigonometric.asin),
    "acos": _evaluated(inverse_trigonometric.acos),
    "atan": _evaluated(inverse_trigonometric.atan),
    "atan2": _evaluated(inverse_trigonometric.atan2),
    "sinh": _evaluated(hyperbolic.sinh),
    "cosh": _evaluated(hyperbolic.cosh),
    "asinh": _evaluated(hyperbolic.asinh),
    "acosh": _evaluated(hyperbolic.acosh),
    "atanh": _evaluated(hyperbolic.atanh),
    "erfc": _evaluated(error_function.erfc),
    "erfinv": _evaluated(error_function.erfinv),
    "softplus": _evaluated(logarithm.softplus),
    "cbrt": _evaluated(power.cbrt),
    "pow": _evaluated(power.pow_),
    "lgamma": _evaluated(gamma.lgamma),
    "digamma": _evaluated(gamma.digamma),
    "round": arith.round32,
    "fmod": _evaluated(remainder.fmod),
    "remainder": _evaluated(remainder.remainder),
    "copysign": arith.copysign32,
    "nextafter": _evaluated(arith.nextafter32),
    "hypot": _evaluated(power.hypot),
    "ldexp": _evaluated(power.ldexp),
    "frexp_fraction": _evaluated(power.frexp_fraction),
    "frexp_exponent": _evaluated(power.frexp_exponent),
}

__all__ = ["REFERENCE_F32"]
