"""Functions of f64 of the stream engine, as those of f32 in the package above: IEEE operations and fused multiply-adds
in the order of `docs/numerics.md`, no libm. `FUNCTIONS_F64` maps the function names of the command table to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loom_sim.bits import canonical64
from loom_sim.elementary import Ordinary
from loom_sim.elementary.double import arithmetic, remainder

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
}

ORDINARY_F64: dict[str, Ordinary] = {
    "fmod": Ordinary(remainder.fmod_ordinary, remainder.remainder_is_ordinary),
    "remainder": Ordinary(remainder.remainder_ordinary, remainder.remainder_is_ordinary),
}

__all__ = ["FUNCTIONS_F64", "ORDINARY_F64"]
