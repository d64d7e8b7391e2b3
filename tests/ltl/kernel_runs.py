"""Running small kernels by the reference interpreter, which needs no engines and so is quick."""

from __future__ import annotations

from typing import Any

import numpy as np

import ltl
from loom_core.base.knobs import knobs


def interpret(kernel: ltl.JitFunction, *args: Any, grid: Any = (1,), **kwargs: Any) -> None:
    """Launch by the meaning of the operations."""
    with knobs.override(interpret=True):
        kernel[grid](*args, **kwargs)


def result(kernel: ltl.JitFunction, shape: Any, dtype: Any, *args: Any, grid: Any = (1,), **kwargs: Any) -> Any:
    """What the kernel stores through its first parameter, an array of zeros before."""
    out = np.zeros(shape, dtype)
    interpret(kernel, out, *args, grid=grid, **kwargs)
    return out
