"""`loom.check()`: programs of a grid that meet in memory are found at their line; what is well ordered is not."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loom
import loom.triton.language as ltl
from examples import flash_attention, layer_norm, matmul, softmax, vector_add
from loom_core.base.diagnostics import Diagnostic

N = 64


@ltl.jit
def overlapping_stores(out, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * (BLOCK - 1) + ltl.arange(0, BLOCK)
    ltl.store(out + at, at * 0 + ltl.program_id(0))  # found here


@ltl.jit
def stencil_in_place(out, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    left = ltl.load(out + at - 1, mask=at > 0, other=0)  # found here
    ltl.store(out + at, left + 1)


@ltl.jit
def read_of_the_next(out, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    right = ltl.load(out + at + BLOCK, mask=at + BLOCK < 64, other=0)
    ltl.store(out + at, right + at)  # found here


@ltl.jit
def scattered_to_one_place(out, index, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(out + ltl.load(index + at), at)  # found here


@ltl.jit
def sum_without_atomics(out, BLOCK: ltl.constexpr):
    total = ltl.load(out)  # found here
    ltl.store(out, total + ltl.program_id(0))


@ltl.jit
def own_blocks(out, BLOCK: ltl.constexpr):
    at = out + ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(at, ltl.load(at) * 2)
    ltl.store(at, ltl.load(at) + 1)


@ltl.jit
def one_value_from_all(out, BLOCK: ltl.constexpr):
    ltl.store(out + ltl.arange(0, BLOCK), 7)


@ltl.jit
def atomic_sum(out, BLOCK: ltl.constexpr):
    ltl.atomic_add(out + ltl.arange(0, BLOCK), ltl.program_id(0))


@ltl.jit
def last_program_sums_up(out, count, BLOCK: ltl.constexpr):
    pid = ltl.program_id(0)
    ltl.store(out + pid, pid)
    if ltl.atomic_add(count, 1) == 3:
        ltl.store(out + 32, ltl.sum(ltl.load(out + ltl.arange(0, 4)), 0))


def findings(kernel: Any, *arrays: np.ndarray[Any, Any], grid: int = 4) -> tuple[Diagnostic, ...]:
    with loom.check():
        try:
            kernel[(grid,)](*arrays, BLOCK=8)
        except loom.LoomError as error:
            return error.diagnostics
    return ()


def array() -> np.ndarray[Any, Any]:
    return np.zeros(N, np.int32)


@pytest.mark.parametrize(
    ("kernel", "code", "more"),
    [
        (overlapping_stores, "LOOM-S205", []),
        (stencil_in_place, "LOOM-S204", []),
        (read_of_the_next, "LOOM-S205", []),
        (scattered_to_one_place, "LOOM-S205", [np.zeros(N, np.int32)]),
        (sum_without_atomics, "LOOM-S204", []),
    ],
    ids=lambda case: case.traced.name if hasattr(case, "traced") else "",
)
def test_programs_that_meet(kernel: Any, code: str, more: list[Any]) -> None:
    found = findings(kernel, array(), *more)
    lines = {d.code: linecache.getline(d.location.file, d.location.line) for d in found}
    assert lines.get(code, "").endswith("# found here\n"), found


@pytest.mark.parametrize(
    ("kernel", "more"),
    [(own_blocks, []), (one_value_from_all, []), (atomic_sum, []), (last_program_sums_up, [np.zeros(1, np.int32)])],
    ids=lambda case: case.traced.name if hasattr(case, "traced") else "",
)
def test_programs_that_do_not(kernel: Any, more: list[Any]) -> None:
    assert findings(kernel, array(), *more) == ()


def test_a_finding_names_programs_and_element() -> None:
    (found, *_) = findings(sum_without_atomics, array())
    assert found.message == "program (1, 0, 0) reads out[0], which program (0, 0, 0) has written"
    assert "total = ltl.load(out)" in linecache.getline(found.location.file, found.location.line)


def test_the_results_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, checked = array(), array()
    own_blocks[(4,)](plain, BLOCK=8)
    monkeypatch.setenv("LOOM_CHECK", "1")
    own_blocks[(4,)](checked, BLOCK=8)
    assert (plain == checked).all() and plain.any()


@pytest.mark.parametrize("example", [vector_add, softmax, layer_norm, matmul, flash_attention])
def test_examples_are_clean(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run: Callable[[], None] = example.main
    with loom.check():
        run()
    assert capsys.readouterr().out
