"""Reduction engines against scalar programs of their definitions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from loom_core.isa.sce import ALL_SCE_OPS, SCE_OPS, SceOp
from loom_sim.engines import element_address
from tests.sim.harness import Buffer

Array = NDArray[Any]

_CALL = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)
_REDUCTIONS = [op for op in ALL_SCE_OPS if op.is_reduction]


def reduce_rows(op: SceOp, x: Array) -> Array:
    """The engine's result for each row of a matrix."""
    source, result = Buffer(x), Buffer(np.zeros(x.shape[0], x.dtype))
    _CALL(element_address(op))(result.array.ctypes.data, source.array.ctypes.data, 0, x.shape[1], x.shape[0])
    source.check_guards()
    result.check_guards()
    return result.array.copy()


def ordered_fold(row: Array, combine: Callable[[Any, Any], Any]) -> Any:
    """One block by the definition: 32 lanes from their first element, then halves; absent lanes are skipped."""
    lanes: dict[int, Any] = {}
    for index, value in enumerate(row):
        lane = index % 32
        lanes[lane] = combine(lanes[lane], value) if lane in lanes else value
    for half in (16, 8, 4, 2, 1):
        for lane in range(half):
            if lane + half in lanes:
                lanes[lane] = combine(lanes[lane], lanes.pop(lane + half))
    return lanes[0]


def extreme(row: Array, largest: bool, propagates: bool) -> np.float32:
    """Maximum or minimum by sorting on (value, sign)."""
    numbers = [v for v in row.tolist() if v == v]
    if len(numbers) < len(row) and (propagates or not numbers):
        return np.float32(np.nan)
    ordered = sorted(numbers, key=lambda v: (v, np.copysign(1.0, v)))
    return np.float32(ordered[-1 if largest else 0])


@pytest.mark.parametrize("length", [*range(1, 70), 95, 96, 97, 1000, 1024, 4095, 4096])
def test_sums_and_products_fold_in_the_published_order(length: int) -> None:
    x = np.random.default_rng(length).uniform(0.9, 1.1, (3, length)).astype(np.float32)
    for mnemonic, combine in (("reduce_sum.f32", np.add), ("reduce_prod.f32", np.multiply)):
        expected = np.array([ordered_fold(row, combine) for row in x], np.float32)
        assert reduce_rows(SCE_OPS[mnemonic], x).tobytes() == expected.tobytes()


def test_a_sum_starts_from_its_first_element() -> None:
    negative_zero = np.full((1, 64), -0.0, np.float32)
    assert reduce_rows(SCE_OPS["reduce_sum.f32"], negative_zero).view(np.uint32).tolist() == [0x80000000]


def test_a_sum_that_is_nan_is_canonical() -> None:
    rows = np.array([[np.inf, -np.inf, 1.0], [1.0, 2.0, np.inf]], np.float32)
    assert reduce_rows(SCE_OPS["reduce_sum.f32"], rows).view(np.uint32).tolist() == [0x7FC00000, 0x7F800000]
    payload = np.full((1, 40), 0xFFA00001, np.uint32).view(np.float32)
    for op in _REDUCTIONS:
        if op.result == "f32":
            assert reduce_rows(op, payload).view(np.uint32).tolist() == [0x7FC00000], op.mnemonic


@pytest.mark.parametrize("length", [1, 2, 17, 64, 1000])
def test_float_extremes_in_both_forms(length: int) -> None:
    rng = np.random.default_rng(length)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.0e38], np.float32)
    x = np.where(
        rng.random((40, length)) < 0.3, special[rng.integers(0, 8, (40, length))], rng.standard_normal((40, length))
    )
    x = x.astype(np.float32)
    x[:10] = np.nan_to_num(x[:10], nan=2.0)
    x[10:13] = np.nan
    x[13:16] = -0.0
    x[14, length // 2] = 0.0
    for mnemonic, largest, propagates in (
        ("reduce_max.f32", True, False),
        ("reduce_min.f32", False, False),
        ("reduce_maxp.f32", True, True),
        ("reduce_minp.f32", False, True),
    ):
        expected = np.array([extreme(row, largest, propagates) for row in x], np.float32)
        assert reduce_rows(SCE_OPS[mnemonic], x).tobytes() == expected.tobytes(), mnemonic


@pytest.mark.parametrize("dtype", ["i32", "i64"])
@pytest.mark.parametrize("length", [1, 3, 33, 1000])
def test_integer_reductions(dtype: str, length: int) -> None:
    limits = np.iinfo(dtype.replace("i", "int"))
    x = np.random.default_rng(length).integers(limits.min, limits.max, (5, length), limits.dtype, endpoint=True)
    for function, fold in (
        ("sum", np.add),
        ("max", np.maximum),
        ("min", np.minimum),
        ("and", np.bitwise_and),
        ("or", np.bitwise_or),
        ("xor", np.bitwise_xor),
    ):
        expected = fold.reduce(x, axis=1, dtype=x.dtype)
        assert reduce_rows(SCE_OPS[f"reduce_{function}.{dtype}"], x).tobytes() == expected.tobytes(), function


def test_every_reduction_is_tested_here() -> None:
    assert {op.result for op in _REDUCTIONS} == {"f32", "i32", "i64"}
