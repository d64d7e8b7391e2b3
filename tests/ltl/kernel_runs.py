"""Running small kernels by the reference interpreter, and compiled: bits are equal."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import ltl
from loom_core.base.knobs import knobs


def interpret(kernel: ltl.JitFunction, *args: Any, grid: Any = (1,), **kwargs: Any) -> None:
    """Launch by the meaning of the operations, and compiled on copies of the arrays; both must leave the same bits."""
    compiled = copied(args)
    with knobs.override(interpret=True):
        kernel[grid](*args, **kwargs)
    if compiled is not None:
        kernel[grid](*compiled, **kwargs)
        for ours, theirs in zip(args, compiled, strict=True):
            if isinstance(ours, np.ndarray):
                assert ours.tobytes() == theirs.tobytes(), f"interpreted {ours}, compiled {theirs}"


def copied(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments with arrays copied, memory that they share shared again; None if they are of other kinds too."""
    if not all(isinstance(arg, (np.ndarray, np.generic, bool, int, float, tuple, type(None))) for arg in args):
        return None
    if any(isinstance(arg, np.ndarray) and arg.base is not None for arg in args):
        return None
    return tuple(copy.deepcopy(args))


def result(kernel: ltl.JitFunction, shape: Any, dtype: Any, *args: Any, grid: Any = (1,), **kwargs: Any) -> Any:
    """What the kernel stores through its first parameter, an array of zeros before."""
    out = np.zeros(shape, dtype)
    interpret(kernel, out, *args, grid=grid, **kwargs)
    return out
