"""Checked runs against plain ones: the same launches, of the same arrays, with and without `loom.check()`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import loom
import loom.triton.language as ltl
from benchmarks.interpreter import cases
from benchmarks.language import kernels_in
from benchmarks.measure import compare
from benchmarks.result import Result
from examples.layer_norm import run as layer_norm

BAR = 5.0
ROWS = 1024


@ltl.jit
def gather_rows(table, index, out, COLUMNS: ltl.constexpr):
    """out[i] = table[index[i]], a row a program."""
    row = ltl.program_id(0)
    column = ltl.arange(0, COLUMNS)
    ltl.store(out + row * COLUMNS + column, ltl.load(table + ltl.load(index + row) * COLUMNS + column))


@ltl.jit
def gather_elements(table, index, out, BLOCK: ltl.constexpr):
    """out[i] = table[index[i]], an element each."""
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(out + at, ltl.load(table + ltl.load(index + at)))


@ltl.jit
def scatter_elements(table, index, out, BLOCK: ltl.constexpr):
    """out[index[i]] = table[i], an element each."""
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(out + ltl.load(index + at), ltl.load(table + at))


def run() -> list[Result]:
    """CPU time of a checked run over that of a plain one. Scattered elements are looked at one by one: reported."""
    return [_overhead(name, launch, None if "scatter" in name else BAR) for name, launch in _launches()]


def _launches() -> list[tuple[str, Callable[[], object]]]:
    kernels = kernels_in(ltl, ltl.jit)
    found: list[tuple[str, Callable[[], object]]] = []
    for claim, _, name, grid, arrays, scalars, blocks in cases():
        launch, out = getattr(kernels, name)[grid], np.zeros_like(arrays[-1])

        def triton(launch=launch, arrays=arrays, out=out, scalars=scalars, blocks=blocks) -> None:  # type: ignore[no-untyped-def]
            launch(*arrays[:-1], out, *scalars, **blocks)

        found.append((claim, triton))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, ROWS), dtype=np.float32)
    out = np.zeros_like(x)
    rows = rng.permutation(ROWS).astype(np.int32)
    places = rng.permutation(x.size).astype(np.int32)
    blocks = (x.size // 1024,)
    found += [
        ("layer norm 1024x1024", lambda: layer_norm(x, x[0], x[1], block=1024)),
        ("gather of 1024 rows", lambda: gather_rows[(ROWS,)](x, rows, out, COLUMNS=ROWS)),
        ("gather of 1M elements", lambda: gather_elements[blocks](x, places, out, BLOCK=1024)),
        ("scatter of 1M elements", lambda: scatter_elements[blocks](x, places, out, BLOCK=1024)),
    ]
    return found


def _overhead(claim: str, plain: Callable[[], object], bar: float | None) -> Result:
    def checked() -> None:
        with loom.check():
            plain()

    def on_one_core() -> None:
        with loom.cores(1):  # the time of other threads would not count
            plain()

    measured = compare(on_one_core, checked)
    detail = {"plain_ms": measured.ours * 1e3, "checked_ms": measured.theirs * 1e3}
    return Result(f"checked: {claim}, time against plain", measured.ratio, bar, "<=", detail=detail)
