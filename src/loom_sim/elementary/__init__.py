"""Elementary functions of the stream engine: scalar float32 functions that LLVM vectorises inside loops.

Each follows the steps of `docs/numerics.md` operation by operation: IEEE operations and explicit fused multiply-adds
only, no libm, no fast-math. Every NaN result is 0x7fc00000. `FUNCTIONS_F32` maps the function names of the command
table (`exp` of `exp.f32`) to them.

A few functions need a slow path with branches for rare arguments, and a loop over them does not vectorise. For these
`ORDINARY_F32` gives a variant that holds wherever its predicate does and vectorises: an engine asks the predicate of a
whole chunk, then runs the chunk through one of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from loom_sim.elementary.arithmetic import (
    absf,
    ceilf,
    copysignf,
    floorf,
    isnanf,
    maxf,
    maxpf,
    minf,
    minpf,
    negf,
    nextafterf,
    recip,
    rintf,
    roundf,
    rsqrtf,
    selectf,
    sqrtf,
    truncf,
)
from loom_sim.elementary.error_function import erfcf, erff, erfinvf, geluf
from loom_sim.elementary.exponential import exp2f, exp_is_ordinary, expf, expf_ordinary, expm1f, sigmoidf, tanhf
from loom_sim.elementary.gamma import digammaf, lgammaf
from loom_sim.elementary.hyperbolic import acoshf, asinhf, atanhf, coshf, sinhf
from loom_sim.elementary.inverse_trigonometric import acosf, asinf, atan2f, atanf
from loom_sim.elementary.logarithm import log1pf, log2f, log10f, logf, softplusf
from loom_sim.elementary.power import cbrtf, frexp_exponentf, frexp_fractionf, hypotf, ldexpf, powf
from loom_sim.elementary.remainder import (
    fmodf,
    fmodf_ordinary,
    remainder_is_ordinary,
    remainderf,
    remainderf_ordinary,
)
from loom_sim.elementary.trigonometric import (
    cosf,
    cosf_ordinary,
    sinf,
    sinf_ordinary,
    tanf,
    tanf_ordinary,
    trigonometric_is_ordinary,
)


class Ordinary(NamedTuple):
    """A variant of a function that holds where `holds` (of the same arguments) is true, and has no branches."""

    function: Callable[..., Any]
    holds: Callable[..., Any]


FUNCTIONS_F32: dict[str, Callable[..., Any]] = {
    "neg": negf,
    "abs": absf,
    "min": minf,
    "max": maxf,
    "minp": minpf,
    "maxp": maxpf,
    "sqrt": sqrtf,
    "rsqrt": rsqrtf,
    "recip": recip,
    "floor": floorf,
    "ceil": ceilf,
    "rint": rintf,
    "trunc": truncf,
    "isnan": isnanf,
    "select": selectf,
    "exp": expf,
    "exp2": exp2f,
    "expm1": expm1f,
    "log": logf,
    "log2": log2f,
    "log10": log10f,
    "log1p": log1pf,
    "sigmoid": sigmoidf,
    "tanh": tanhf,
    "erf": erff,
    "gelu": geluf,
    "sin": sinf,
    "cos": cosf,
    "tan": tanf,
    "asin": asinf,
    "acos": acosf,
    "atan": atanf,
    "atan2": atan2f,
    "sinh": sinhf,
    "cosh": coshf,
    "asinh": asinhf,
    "acosh": acoshf,
    "atanh": atanhf,
    "erfc": erfcf,
    "erfinv": erfinvf,
    "softplus": softplusf,
    "cbrt": cbrtf,
    "pow": powf,
    "lgamma": lgammaf,
    "digamma": digammaf,
    "round": roundf,
    "fmod": fmodf,
    "remainder": remainderf,
    "copysign": copysignf,
    "nextafter": nextafterf,
    "hypot": hypotf,
    "ldexp": ldexpf,
    "frexp_fraction": frexp_fractionf,
    "frexp_exponent": frexp_exponentf,
}

ORDINARY_F32: dict[str, Ordinary] = {
    "exp": Ordinary(expf_ordinary, exp_is_ordinary),
    "sin": Ordinary(sinf_ordinary, trigonometric_is_ordinary),
    "cos": Ordinary(cosf_ordinary, trigonometric_is_ordinary),
    "tan": Ordinary(tanf_ordinary, trigonometric_is_ordinary),
    "fmod": Ordinary(fmodf_ordinary, remainder_is_ordinary),
    "remainder": Ordinary(remainderf_ordinary, remainder_is_ordinary),
}

__all__ = ["FUNCTIONS_F32", "ORDINARY_F32", "Ordinary"]
