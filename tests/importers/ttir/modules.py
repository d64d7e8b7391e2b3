"""Triton IR modules around a few lines, and what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from loom_core.base.knobs import knobs
from ltl.imported import ImportedKernel

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
TEXTS = sorted(CORPUS.glob("*/*/kernel.ttir"))


def module(body: str, parameters: str = "", others: str = "") -> str:
    """A module with one kernel."""
    return f"module {{\n  tt.func public @kernel({parameters}) {{\n{body}\n    tt.return\n  }}\n{others}}}\n"


def elementwise(body: str, sources: str, target: str, size: int = 8) -> str:
    """A kernel that loads `%v0`, `%v1`, ... of types such as "f32 f32", and stores `%r` of type `target`."""
    types = sources.split()
    parameters = ", ".join(f"%p{i}: !tt.ptr<{type}>" for i, type in enumerate([*types, target]))
    lines = [f"%o = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>"]
    for i, type in enumerate([*types, target]):
        pointers = f"tensor<{size}x!tt.ptr<{type}>>"
        lines.append(f"%s{i} = tt.splat %p{i} : !tt.ptr<{type}> -> {pointers}")
        lines.append(f"%a{i} = tt.addptr %s{i}, %o : {pointers}, tensor<{size}xi32>")
        if i < len(types):
            lines.append(f"%v{i} = tt.load %a{i} : {pointers}")
    lines += [body, f"tt.store %a{len(types)}, %r : tensor<{size}x!tt.ptr<{target}>>"]
    return module("\n".join(lines), parameters)


def run(text: str, *arguments: Any, grid: int | tuple[int, ...] = 1) -> None:
    """Run a module by the interpreter and compiled, and hold that both leave the same bytes."""
    kernel = ImportedKernel(text)
    sizes = grid if isinstance(grid, tuple) else (grid,)
    copies = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
    with knobs.override(interpret=True):
        kernel[sizes](*copies)
    kernel[sizes](*arguments)
    for ours, theirs in zip(arguments, copies, strict=True):
        if isinstance(ours, np.ndarray):
            assert ours.tobytes() == theirs.tobytes()
