"""Matrix products of every operand type, from the language to the simulator, against the references' bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import loom
import loom.triton.language as ltl


@ltl.jit
def product(a, b, c, m, n, k, ACC: ltl.constexpr, M: ltl.constexpr, N: ltl.constexpr, K: ltl.constexpr):
    row = ltl.program_id(0) * M + ltl.arange(0, M)
    column = ltl.program_id(1) * N + ltl.arange(0, N)
    acc = ltl.zeros((M, N), dtype=ACC)
    for start in range(0, k, K):
        depth = start + ltl.arange(0, K)
        x = ltl.load(a + row[:, None] * k + depth[None, :], mask=(row[:, None] < m) & (depth[None, :] < k), other=0)
        covered = (depth[:, None] < k) & (column[None, :] < n)
        y = ltl.load(b + column[None, :] * k + depth[:, None], mask=covered, other=0)
        acc = ltl.dot(x, y, acc, out_dtype=ACC)
    ltl.store(c + row[:, None] * n + column[None, :], acc, mask=(row[:, None] < m) & (column[None, :] < n))


FLOATS = [np.float32, ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


def _run(a: np.ndarray, b: np.ndarray, dtype: Any, accumulator: Any) -> np.ndarray:
    (m, k), n = a.shape, b.shape[0]
    c = np.zeros((m, n), dtype)
    product[ltl.cdiv(m, 32), ltl.cdiv(n, 32)](a, b, c, m, n, k, ACC=accumulator, M=32, N=32, K=16)
    return c


def _same_as_reference(a: np.ndarray, b: np.ndarray, dtype: Any, accumulator: Any) -> np.ndarray:
    got = _run(a, b, dtype, accumulator)
    with loom.knobs.override(interpret=True):
        expected = _run(a, b, dtype, accumulator)
    assert np.array_equal(got.view(np.uint32), expected.view(np.uint32))
    return got


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_floats(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, 41)).astype(dtype) for rows in (37, 50))
    got = _same_as_reference(a, b, np.float32, ltl.float32)
    np.testing.assert_allclose(got, a.astype(np.float64) @ b.astype(np.float64).T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_small_integers_in_floats_are_exact(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-2, 3, (rows, 64)).astype(dtype) for rows in (16, 16))
    assert np.array_equal(_run(a, b, np.float32, ltl.float32), a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_integers(dtype: Any) -> None:
    rng = np.random.default_rng(2)
    limits = np.iinfo(dtype)
    a, b = (rng.integers(limits.min, limits.max + 1, (rows, 70)).astype(dtype) for rows in (33, 40))
    got = _same_as_reference(a, b, np.int32, ltl.int32)
    assert np.array_equal(got, a.astype(np.int64) @ b.astype(np.int64).T)
