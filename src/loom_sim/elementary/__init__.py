"""Elementary functions of the stream engine: scalar float32 functions that LLVM vectorises inside loops.

Each follows the steps of `docs/numerics.md` operation by operation: IEEE operations and explicit fused multiply-adds only,
no libm, no fast-math. Every NaN result is 0x7fc00000. `FUNCTIONS_F32` maps the function names of the command table (`exp` of
`exp.f32`) to them; `ORDINARY_F32` gives, for functions that need a slow path for rare arguments, the variant without it and
the largest magnitude for which that one holds: an engine uses it for a chunk whose arguments are all within.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from loom_sim.elementary.arithmetic import (
    absf,
    ceilf,
    floorf,
    isnanf,
    maxf,
    maxpf,
    minf,
    minpf,
    negf,
    recip,
    rintf,
    rsqrtf,
    selectf,
    sqrtf,
    truncf,
)
from loom_sim.elementary.error_function import erff, geluf
from loom_sim.elementary.exponential import exp2f, expf, expm1f, sigmoidf, tanhf
from loom_sim.elementary.logarithm import log1pf, log2f, log10f, logf
from loom_sim.elementary.trigonometric import TRIGONOMETRIC_LIMIT, cosf, cosf_ordinary, sinf, sinf_ordinary

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
}

ORDINARY_F32: dict[str, tuple[Callable[..., Any], np.float32]] = {
    "sin": (sinf_ordinary, TRIGONOMETRIC_LIMIT),
    "cos": (cosf_ordinary, TRIGONOMETRIC_LIMIT),
}

__all__ = ["FUNCTIONS_F32", "ORDINARY_F32"]
