"""Functions that Triton's frontend makes blocks of: returns in the middle, loops around and behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import run
from tests.importers.ttir.upstream import module_text

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")
pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")


@triton.jit
def collatz(out, n, LIMIT: tl.constexpr):
    if n < 1:
        tl.store(out, -1)
        return
    steps = 0
    x = n
    while (x != 1) & (steps < LIMIT):
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    if x != 1:
        if n > 1000:
            return
        tl.store(out, -2)
        return
    tl.store(out, steps)


@triton.jit(noinline=True)
def first_above(x, limit, N: tl.constexpr):
    if limit < 0:
        return 0
    i = 0
    while (i < N) & (tl.load(x + i) <= limit):
        i += 1
    if i == N:
        return -1
    for k in range(i, N):
        if k % 3 == 0:
            i += 1
    return i


@triton.jit
def search(out, x, n, N: tl.constexpr):
    row = tl.program_id(0)
    if row >= n:
        return
    found = first_above(x + row * N, row * 5, N)
    if found < 0:
        tl.store(out + row, N)
        return
    tl.store(out + row, found)


STAGES = ((), ("ttir",), ("ttir", "ttgir"))


def steps_of(n: int, limit: int) -> int:
    if n < 1:
        return -1
    steps, x = 0, n
    while x != 1 and steps < limit:
        x, steps = (x // 2 if x % 2 == 0 else 3 * x + 1), steps + 1
    return steps if x == 1 else 7 if n > 1000 else -2


@pytest.mark.parametrize("stages", STAGES, ids=lambda stages: "-".join(stages) or "none")
def test_returns_before_and_behind_a_while(stages: tuple[str, ...]) -> None:
    text = module_text(collatz, {"out": "*i32", "n": "i32"}, {"LIMIT": 100}, stages=stages)
    assert "cf.cond_br" in text or stages
    for n in (-3, 1, 6, 27, 1161):
        out = np.full(1, 7, np.int32)
        run(text, out, n)
        assert out[0] == steps_of(n, 100), n


@pytest.mark.parametrize("stages", STAGES, ids=lambda stages: "-".join(stages) or "none")
def test_a_function_with_returns_that_is_called(stages: tuple[str, ...]) -> None:
    signature = {"out": "*i32", "x": "*i32", "n": "i32"}
    text = module_text(search, signature, {"N": 8}, stages=stages)
    assert "tt.call" in text
    x = np.arange(48, dtype=np.int32)
    out = np.full(6, 7, np.int32)
    run(text, out, x, 5, grid=6)
    assert out.tolist() == [*(found(x[8 * row : 8 * row + 8], row * 5) for row in range(5)), 7]


def found(row: Any, limit: int) -> int:
    i = next((i for i, value in enumerate(row.tolist()) if value > limit), 8)
    return 8 if i == 8 else i + sum(k % 3 == 0 for k in range(i, 8))


def test_a_counting_loop_of_a_function_stays_one() -> None:
    text = module_text(search, {"out": "*i32", "x": "*i32", "n": "i32"}, {"N": 8})
    names = [op.name for op in ImportedKernel(text).function.walk()]
    assert names.count("for") == 1 and names.count("while") == 1
