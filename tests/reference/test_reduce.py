"""Reduction order against a scalar program of the definition, scans, and what does not depend on an order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from loom_core.reference.arith import add32, mul32
from loom_core.reference.reduce import max32_over, min32_over, prod32, reduce32, scan32, sum32

Scalar = Any


def fold_by_definition(values: Sequence[Scalar], combine: Callable[[Scalar, Scalar], Scalar]) -> Scalar:
    """Blocks of 4096, 32 lanes, halving; one Python value after the other."""
    results = []
    for start in range(0, len(values), 4096):
        block = values[start : start + 4096]
        lanes: dict[int, Scalar] = {}
        for index, value in enumerate(block):
            lane = index % 32
            lanes[lane] = combine(lanes[lane], value) if lane in lanes else value
        for half in (16, 8, 4, 2, 1):
            for lane in range(half):
                if lane + half in lanes:
                    lanes[lane] = combine(lanes[lane], lanes.pop(lane + half))
        results.append(lanes[0])
    return results[0] if len(results) == 1 else fold_by_definition(results, combine)


@pytest.mark.parametrize("count", [1, 2, 17, 31, 32, 33, 63, 100, 1000, 4095, 4096, 4097, 9000])
def test_sum_and_product_follow_the_definition(count: int) -> None:
    values = np.random.default_rng(count).uniform(0.9, 1.1, count).astype(np.float32)
    for function, combine in ((sum32, np.add), (prod32, np.multiply)):
        expected = fold_by_definition(list(values), combine)
        assert function(values).tobytes() == np.float32(expected).tobytes()


def test_axes_flatten_row_major() -> None:
    x = np.random.default_rng(1).standard_normal((3, 40, 5)).astype(np.float32)
    assert sum32(x, (0, 2)).tobytes() == sum32(x.transpose(1, 0, 2).reshape(40, 15), 1).tobytes()
    assert sum32(x, (2, 0)).tobytes() == sum32(x, (-3, -1)).tobytes()
    assert sum32(x).tobytes() == sum32(x.ravel(), 0).tobytes()
    assert sum32(x, ()).tobytes() == x.tobytes()
    with pytest.raises(ValueError, match="axes"):
        sum32(x, 3)


def test_no_elements_give_the_identity() -> None:
    empty = np.zeros((2, 0), np.float32)
    for function, identity in (("sum", 0.0), ("prod", 1.0), ("min", np.inf), ("max", -np.inf), ("maxp", -np.inf)):
        assert reduce32(function, empty, 1).tolist() == [identity] * 2


def test_extremes_in_both_forms() -> None:
    x = np.array([[1.0, np.nan, -2.0], [0.0, -0.0, 0.0], [np.nan] * 3], np.float32)
    assert min32_over(x, 1).view(np.uint32).tolist() == [0xC0000000, 0x80000000, 0x7FC00000]
    assert max32_over(x, 1).view(np.uint32).tolist() == [0x3F800000, 0, 0x7FC00000]
    assert np.isnan(max32_over(x, 1, propagate_nan=True)).tolist() == [True, False, True]
    shuffled = np.random.default_rng(2).permutation(x.ravel())
    assert min32_over(shuffled).tobytes() == min32_over(x).tobytes()


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_carries_one_state(reverse: bool) -> None:
    x = np.random.default_rng(3).standard_normal((4, 50)).astype(np.float32)
    for name, combine in (("sum", add32), ("prod", mul32)):
        got = scan32(name, x, 1, reverse)
        for row in range(4):
            state: NDArray[np.float32] | None = None
            for column in range(49, -1, -1) if reverse else range(50):
                state = x[row, column] if state is None else combine(state, x[row, column])
                assert np.float32(state).tobytes() == got[row, column].tobytes()
    assert scan32("sum", x, 0).tobytes() == np.ascontiguousarray(scan32("sum", x.T, 1).T).tobytes()
