"""Integers that wrap in kernels which are debugged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ltl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs


@ltl.jit
def arithmetic(out, x, y, WHAT: ltl.constexpr, CHECKED: ltl.constexpr, N: ltl.constexpr):
    i = ltl.arange(0, N)
    a, b = ltl.load(x + i), ltl.load(y + i)
    if not CHECKED:
        result = getattr(ltl, WHAT)(a, b, sanitize_overflow=False)
    elif WHAT == "add":
        result = a + b
    elif WHAT == "sub":
        result = a - b
    else:
        result = a * b
    ltl.store(out + i, result)


CASES: list[tuple[Any, str, int, int, bool]] = [
    (np.int32, "add", 2**31 - 1, 1, True), (np.int32, "add", 2**31 - 2, 1, False), (np.int8, "sub", -128, 1, True),
    (np.int8, "sub", -127, 1, False), (np.int16, "mul", 256, 128, True), (np.int16, "mul", 255, 128, False),
    (np.uint8, "sub", 0, 1, True), (np.uint8, "add", 255, 0, False), (np.uint32, "mul", 2**32 - 1, 2**32 - 1, True),
    (np.uint32, "mul", 65536, 65535, False), (np.int64, "add", 2**63 - 1, 1, False), (np.uint64, "sub", 0, 1, False),
]  # fmt: skip


@pytest.mark.parametrize("interpret", [True, False])
@pytest.mark.parametrize(("dtype", "what", "a", "b", "wraps"), CASES)
def test_what_wraps_stops_the_run(dtype: Any, what: str, a: int, b: int, wraps: bool, interpret: bool) -> None:
    x, y = np.array([1, a], dtype), np.array([1, b], dtype)
    out = np.zeros(2, dtype)

    def launch(checked: bool, debug: bool) -> int:
        with knobs.override(interpret=interpret):
            arithmetic[(1,)](out, x, y, WHAT=what, CHECKED=checked, N=2, debug=debug)
        return int(out[1])

    wrapped = launch(True, False)
    assert launch(False, True) == wrapped
    if wraps:
        name = np.dtype(dtype).name
        with pytest.raises(LoomError, match=rf"{name} overflow detected for operation {what} .*element \(1,\)"):
            launch(True, True)
    else:
        assert launch(True, True) == wrapped


@ltl.jit
def product(a, b):
    return a * b


@ltl.jit
def without_checks(out, x, N: ltl.constexpr):
    """Functions that fold elements only compute; random numbers wrap on purpose; pointers are no integers."""
    i = ltl.arange(0, N)
    v = ltl.load(x + i)
    ltl.store(out, ltl.reduce(v, 0, product))
    ltl.store(out + 1, ltl.sum(v))
    ltl.store(out + 2 + i, ltl.randint(123456789, i))
    ltl.store(out + 2 + N + i, ltl.associative_scan(v, 0, product))


def test_what_is_not_checked() -> None:
    x = np.array([2**20, 2**20, 3, 2**31 - 1], np.int32)
    outs = []
    for debug in (False, True):
        out = np.zeros(16, np.int32)
        without_checks[(1,)](out, x, N=4, debug=debug)
        outs.append(out.tolist())
    assert outs[0] == outs[1]
