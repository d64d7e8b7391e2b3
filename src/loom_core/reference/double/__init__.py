"""Functions of float64 arrays. `REFERENCE_F64` maps a function name of the command table (`exp` of `exp.f64`) to its
reference; arguments broadcast, results are new arrays, NaN-canonical.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from loom_core.reference import arith
from loom_core.reference.double import arithmetic

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
}

__all__ = ["REFERENCE_F64"]
