"""Reduction engines against scalar programs of their definitions; `test_elements` has them against the references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from exhaustive.engines import run_rows
from loom_core.base.dtype import by_name
from loom_core.isa.sce import ALL_SCE_OPS, SCE_OPS
from loom_core.reference.opcodes import reference_of

Array = NDArray[Any]

_REDUCTIONS = [op for op in ALL_SCE_OPS if op.is_reduction and not op.is_argument]


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


def extreme(row: Array, largest: bool, propagates: bool) -> Any:
    """Maximum or minimum by sorting on (value, sign)."""
    numbers = [v for v in row.tolist() if v == v]
    if len(numbers) < len(row) and (propagates or not numbers):
        return np.nan
    ordered = sorted(numbers, key=lambda v: (v, np.copysign(1.0, v)))
    return ordered[-1 if largest else 0]


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize("length", [*range(1, 70), 95, 96, 97, 1000, 1024, 4095, 4096])
def test_sums_and_products_fold_in_the_published_order(length: int, dtype: str) -> None:
    x = np.random.default_rng(length).uniform(0.9, 1.1, (11, length)).astype(by_name(dtype).numpy)
    with np.errstate(over="ignore"):
        for function, combine in (("sum", np.add), ("prod", np.multiply)):  # of float16 they round every time
            expected = np.array([ordered_fold(row, combine) for row in x], x.dtype)
            assert run_rows(SCE_OPS[f"reduce_{function}.{dtype}"], x).tobytes() == expected.tobytes()


def test_a_sum_starts_from_its_first_element() -> None:
    negative_zero = np.full((1, 64), -0.0, np.float32)
    assert run_rows(SCE_OPS["reduce_sum.f32"], negative_zero).view(np.uint32).tolist() == [0x80000000]


def test_a_sum_that_is_nan_is_canonical() -> None:
    rows = np.array([[np.inf, -np.inf, 1.0], [1.0, 2.0, np.inf]], np.float32)
    assert run_rows(SCE_OPS["reduce_sum.f32"], rows).view(np.uint32).tolist() == [0x7FC00000, 0x7F800000]
    for dtype, unsigned, nan, payload in (
        ("f32", np.uint32, 0x7FC00000, 0xFFA00001),
        ("f64", np.uint64, 0x7FF8000000000000, 0xFFF8000000000001),
        ("bf16", np.uint16, 0x7FC0, 0xFF81),
        ("f8e4m3", np.uint8, 0x7F, 0xFF),
    ):
        row = np.full((9, 40), payload, unsigned).view(by_name(dtype).numpy)
        for op in _REDUCTIONS:
            if op.result == dtype:
                assert set(run_rows(op, row).view(unsigned).tolist()) == {nan}, op.mnemonic


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("length", [1, 2, 17, 64, 1000])
def test_float_extremes_in_both_forms(length: int, dtype: str) -> None:
    rng = np.random.default_rng(length)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.0e38])
    x = np.where(
        rng.random((40, length)) < 0.3, special[rng.integers(0, 8, (40, length))], rng.standard_normal((40, length))
    )
    x = x.astype(by_name(dtype).numpy)
    x[:10] = np.nan_to_num(x[:10], nan=2.0)
    x[10:13] = np.nan
    x[13:16] = -0.0
    x[14, length // 2] = 0.0
    for function, largest, propagates in (
        ("max", True, False), ("min", False, False), ("maxp", True, True), ("minp", False, True),
    ):  # fmt: skip
        expected = np.array([extreme(row, largest, propagates) for row in x], x.dtype)
        assert run_rows(SCE_OPS[f"reduce_{function}.{dtype}"], x).tobytes() == expected.tobytes(), function


@pytest.mark.parametrize("dtype", ["i8", "u16", "i32", "u64"])
@pytest.mark.parametrize("length", [1, 3, 33, 1000])
def test_integer_reductions(dtype: str, length: int) -> None:
    limits = np.iinfo(by_name(dtype).numpy)
    x = np.random.default_rng(length).integers(limits.min, limits.max, (5, length), limits.dtype, endpoint=True)
    for op in _REDUCTIONS:
        if op.result == dtype:
            assert run_rows(op, x).tobytes() == reference_of(op)(x).tobytes(), op.mnemonic


def test_every_type_has_reductions() -> None:
    everything = {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"}
    assert {op.result for op in _REDUCTIONS} == everything | {"bool"}
