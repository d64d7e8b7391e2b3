"""Claimed error bounds of the elementary functions: data, printed in `docs/numerics.md` and held by tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loom_core.base.dtype import by_name
from loom_core.isa.sce import SceOp


@dataclass(frozen=True)
class Accuracy:
    """Bounds of |result - exact| in units in the last place of the exact result rounded to the type.

    `ulp` holds where that is a normal number (or infinite), `subnormal_ulp` where it is subnormal or zero, in units of
    the smallest subnormal number; None where the function has no such results or they are exact.
    """

    ulp: float
    subnormal_ulp: float | None = None
    note: str = ""


ACCURACY_F32: dict[str, Accuracy] = {
    "rsqrt": Accuracy(1.5),
    "exp": Accuracy(1.05, 0.8),
    "exp2": Accuracy(0.9, 0.95),
    "expm1": Accuracy(1.5),
    "log": Accuracy(0.9),
    "log2": Accuracy(1.1),
    "log10": Accuracy(1.0),
    "log1p": Accuracy(1.5),
    "sigmoid": Accuracy(1.6, 0.8),
    "tanh": Accuracy(1.4),
    "erf": Accuracy(1.3, 0.6),
    "gelu": Accuracy(2.2, 1.3),
    "sin": Accuracy(0.9),
    "cos": Accuracy(0.9),
    "tan": Accuracy(2.2),
    "asin": Accuracy(2.45),
    "acos": Accuracy(1.2),
    "atan": Accuracy(1.4),
    "atan2": Accuracy(2.0, 1.0),
    "sinh": Accuracy(1.7),
    "cosh": Accuracy(1.5),
    "asinh": Accuracy(0.51),
    "acosh": Accuracy(0.51),
    "atanh": Accuracy(0.51),
    "erfc": Accuracy(2.4, 1.3),
    "erfinv": Accuracy(1.9, 0.9),
    "softplus": Accuracy(1.8, 0.8),
    "cbrt": Accuracy(0.51),
    "pow": Accuracy(0.51, 0.51),
    "lgamma": Accuracy(0.51, note="x > 0; for negative x also 2⁻⁴⁰ absolute, which shows next to the zeros"),
    "digamma": Accuracy(0.51, note="x > 0; for negative x also 2⁻⁴⁰ absolute, which shows next to the zeros"),
    "hypot": Accuracy(0.51, 0.51),
}

ACCURACY_F64: dict[str, Accuracy] = {
    "rsqrt": Accuracy(1.5),
    "exp": Accuracy(1.1, 0.8),
    "exp2": Accuracy(0.9, 0.8),
    "expm1": Accuracy(1.9),
    "log": Accuracy(0.9),
    "log2": Accuracy(0.8),
    "log10": Accuracy(0.8),
    "log1p": Accuracy(1.6),
    "sigmoid": Accuracy(1.5, 0.8),
    "softplus": Accuracy(1.7, 0.8),
    "tanh": Accuracy(1.5),
    "sinh": Accuracy(1.7),
    "cosh": Accuracy(1.6),
    "asinh": Accuracy(1.8),
    "acosh": Accuracy(1.6),
    "atanh": Accuracy(1.7),
    "sin": Accuracy(1.0),
    "cos": Accuracy(1.0),
    "tan": Accuracy(1.4),
    "asin": Accuracy(0.9),
    "acos": Accuracy(1.0),
    "atan": Accuracy(1.7),
    "atan2": Accuracy(1.7, 1.0),
    "erf": Accuracy(1.2),
    "erfc": Accuracy(2.0, 1.0),
    "erfinv": Accuracy(1.5, 1.0),
    "gelu": Accuracy(2.0, 1.0),
    "lgamma": Accuracy(2.0, note="x > 0; for negative x also 2⁻⁴⁴ absolute, which shows next to the zeros"),
    "digamma": Accuracy(2.0, note="or 2⁻⁴⁹ absolute; for negative x 2⁻⁴⁴, which shows next to the zeros"),
    "cbrt": Accuracy(0.51),
    "pow": Accuracy(1.1, 1.0),
    "hypot": Accuracy(0.6, 0.6),
}

_EXACT: Final = frozenset(
    {"mov", "neg", "abs", "min", "max", "minp", "maxp", "floor", "ceil", "rint",
     "trunc", "round", "select", "copysign", "nextafter", "fmod", "remainder", "frexp_fraction"}
)  # fmt: skip
"""Functions whose results of float type need no rounding."""

_ROUNDED: Final = frozenset(
    {"add", "sub", "mul", "div", "fma", "sqrt", "recip", "ldexp", "cast", "cast_sat", "round_mantissa"}
)
"""Those whose results are the exact ones, rounded once to nearest even."""


def largest_error(op: SceOp) -> float:
    """Bound of an elementwise opcode's error in units in the last place; 0 where every result is exact.

    Functions of 8- and 16-bit floats round the f32 result once more. KeyError for a function that claims nothing.
    """
    if op.result.isdigit() or not by_name(op.result).is_float or op.function in _EXACT:
        return 0.0
    if op.function == "cast_rtz":
        return 1.0
    if op.function in _ROUNDED:
        return 0.5
    if op.result == "f64":
        return ACCURACY_F64[op.function].ulp
    ulp = ACCURACY_F32[op.function].ulp
    return ulp if op.result == "f32" else 0.5 + ulp * 2.0 ** (by_name(op.result).mantissa - 23)
