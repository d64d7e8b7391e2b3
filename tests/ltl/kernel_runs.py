"""Running small kernels by the reference interpreter, and compiled where the compiler takes them: bits are equal."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import ltl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs

NOT_COMPILED = "LOOM-C"
"""Codes of the compiler: what it refuses runs by the interpreter alone."""


def interpret(kernel: ltl.JitFunction, *args: Any, grid: Any = (1,), **kwargs: Any) -> None:
    """Launch by the meaning of the operations, and compiled on copies of the arrays; both must leave the same bits."""
    compiled = copied(args)
    with knobs.override(interpret=True):
        kernel[grid](*args, **kwargs)
    if compiled is not None and compiles(kernel, grid, compiled, kwargs):
        for ours, theirs in zip(args, compiled, strict=True):
            if isinstance(ours, np.ndarray):
                assert ours.tobytes() == theirs.tobytes(), f"interpreted {ours}, compiled {theirs}"


def compiles(kernel: ltl.JitFunction, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Launch compiled; False if the compiler refuses the kernel."""
    try:
        kernel[grid](*args, **kwargs)
    except LoomError as error:
        if error.diagnostics[0].code.startswith(NOT_COMPILED):
            return False
        raise
    return True


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
