"""Elementary functions of float32 arrays, the steps of `docs/numerics.md` in NumPy with an emulated fused multiply-add.

`REFERENCE_F32` maps a function name of the command table (`exp` of `exp.f32`) to its reference. Arguments broadcast;
results are new float32 arrays (bool for `isnan`), NaN-canonical.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from loom_core.reference import arith
from loom_core.reference.elementary import error_function, exponential, logarithm, trigonometric


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` without NumPy's floating-point warnings: overflow and invalid operations are results here."""

    @functools.wraps(function)
    def quiet(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return quiet


exp = _quiet(exponential.exp)
exp2 = _quiet(exponential.exp2)
expm1 = _quiet(exponential.expm1)
sigmoid = _quiet(exponential.sigmoid)
tanh = _quiet(exponential.tanh)
log = _quiet(logarithm.log)
log2 = _quiet(logarithm.log2)
log10 = _quiet(logarithm.log10)
log1p = _quiet(logarithm.log1p)
sin = _quiet(trigonometric.sin)
cos = _quiet(trigonometric.cos)
erf = _quiet(error_function.erf)
gelu = _quiet(error_function.gelu)

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
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log2": log2,
    "log10": log10,
    "log1p": log1p,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "erf": erf,
    "gelu": gelu,
    "sin": sin,
    "cos": cos,
}

__all__ = ["REFERENCE_F32"]
