"""Functions of f64 of the stream engine, as those of f32 in the package above: IEEE operations and fused multiply-adds
in the order of `docs/numerics.md`, no libm. `FUNCTIONS_F64` maps the function names of the command table to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loom_sim.bits import canonical64
from loom_sim.elementary import Ordinary
from loom_sim.elementary.double import (
    arithmetic,
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

FUNCTIONS_F64: dict[str, Callable[..., Any]] = {
    "mov": canonical64,
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "div": arithmetic.divide,
    "fma": arithmetic.fused_multiply_add,
    "neg": arithmetic.negate,
    "abs": arithmetic.absolute,
    "min": arithmetic.smaller,
    "max": arithmetic.larger,
    "minp": arithmetic.smaller_or_nan,
    "maxp": arithmetic.larger_or_nan,
    "sqrt": arithmetic.square_root,
    "rsqrt": arithmetic.reciprocal_root,
    "recip": arithmetic.reciprocal,
    "floor": arithmetic.floor,
    "ceil": arithmetic.ceil,
    "rint": arithmetic.rint,
    "trunc": arithmetic.truncate,
    "round": arithmetic.round_away,
    "select": arithmetic.choose,
    "isnan": arithmetic.is_nan,
    "copysign": arithmetic.with_sign,
    "nextafter": arithmetic.next_after,
    "fmod": remainder.fmod,
    "remainder": remainder.remainder,
    "ldexp": arithmetic.load_exponent,
    "frexp_fraction": arithmetic.fraction,
    "frexp_exponent": arithmetic.exponent_of,
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

ORDINARY_F64: dict[str, Ordinary] = {
    "sin": Ordinary(trigonometric.sin_ordinary, trigonometric.trigonometric_is_ordinary),
    "cos": Ordinary(trigonometric.cos_ordinary, trigonometric.trigonometric_is_ordinary),
    "tan": Ordinary(trigonometric.tan_ordinary, trigonometric.trigonometric_is_ordinary),
    "fmod": Ordinary(remainder.fmod_ordinary, remainder.remainder_is_ordinary),
    "remainder": Ordinary(remainder.remainder_ordinary, remainder.remainder_is_ordinary),
}

__all__ = ["FUNCTIONS_F64", "ORDINARY_F64"]
