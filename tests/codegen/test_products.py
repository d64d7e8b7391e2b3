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


# ---- what the matrix unit has no command for -------------------------------------------------------------------------


@ltl.jit
def batch(out, a, b, steps, B: ltl.constexpr, M: ltl.constexpr, N: ltl.constexpr, K: ltl.constexpr, ACC: ltl.constexpr):
    """Products of stacks of matrices, added over steps along k."""
    z, i, j, k = (ltl.arange(0, size) for size in (B, M, N, K))
    acc = ltl.zeros((B, M, N), ACC)
    for step in range(steps):
        depth = step * K + k
        x = ltl.load(a + (z[:, None, None] * M + i[None, :, None]) * (steps * K) + depth[None, None, :])
        y = ltl.load(b + (z[:, None, None] * N + j[None, None, :]) * (steps * K) + depth[None, :, None])
        acc = ltl.dot(x, y, acc, out_dtype=ACC)
    ltl.store(out + (z[:, None, None] * M + i[None, :, None]) * N + j[None, None, :], acc)


def _both(kernel: Any, out: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
    expected = out.copy()
    kernel[(1,)](out, *args, **kwargs)
    with loom.knobs.override(interpret=True):
        kernel[(1,)](expected, *args, **kwargs)
    assert out.tobytes() == expected.tobytes()
    return out


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int8, np.float64])
def test_stacks_of_matrices(dtype: Any) -> None:
    rng = np.random.default_rng(5)
    kinds = {np.int8: (np.int32, ltl.int32), np.float64: (np.float64, ltl.float64)}
    result, accumulator = kinds.get(dtype, (np.float32, ltl.float32))
    a, b = ((rng.standard_normal((3, rows, 32)) * 9).astype(dtype) for rows in (5, 7))
    got = _both(batch, np.zeros((3, 5, 7), result), a, b, 2, B=3, M=5, N=7, K=16, ACC=accumulator)
    expected = a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-3)


@ltl.jit
def wide(out, a, b, c, M: ltl.constexpr, N: ltl.constexpr, K: ltl.constexpr):
    i, j, k = (ltl.arange(0, size) for size in (M, N, K))
    x, y = ltl.load(a + i[:, None] * K + k[None, :]), ltl.load(b + k[:, None] * N + j[None, :])
    at = i[:, None] * N + j[None, :]
    ltl.store(out + at, ltl.dot(x, y, ltl.load(c + at), out_dtype=ltl.float64))
    ltl.store(out + M * N + at, ltl.dot(ltl.trans(ltl.trans(x) * 2), y, out_dtype=ltl.float64))


@pytest.mark.parametrize("depth", [1, 128, 200])
def test_doubles(depth: int) -> None:
    """In passes of 128; special values among the operands; an exact case."""
    rng = np.random.default_rng(depth)
    a, b, c = (rng.standard_normal(shape) for shape in ((6, depth), (depth, 5), (6, 5)))
    a[0, 0], b[0, 1], a[1, 0], c[2, 2] = np.inf, 0.0, np.nan, -0.0
    a[2], b[:, 2] = 0.0, -0.0
    got = _both(wide, np.zeros((2, 6, 5)), a, b, c, M=6, N=5, K=depth)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(got[0], a @ b + c, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(got[1], a @ b * 2, rtol=1e-12, atol=1e-12)


@ltl.jit
def whole(out, a, b, c, M: ltl.constexpr, N: ltl.constexpr, K: ltl.constexpr):
    i, j, k = (ltl.arange(0, size) for size in (M, N, K))
    x, y = ltl.load(a + i[:, None] * K + k[None, :]), ltl.load(b + k[:, None] * N + j[None, :])
    at = i[:, None] * N + j[None, :]
    ltl.store(out + at, ltl.dot(x, y, ltl.load(c + at)))
    ltl.store(out + M * N + at, ltl.dot(x, y))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_wide_integers_wrap(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    ends = np.iinfo(dtype)
    a, b, c = (rng.integers(ends.min, ends.max, shape, dtype, True) for shape in ((5, 150), (150, 9), (5, 9)))
    a[0], b[:, 0], c[0, 0] = ends.min, ends.max, ends.max
    got = _both(whole, np.zeros((2, 5, 9), dtype), a, b, c, M=5, N=9, K=150)
    exact = a.astype(object) @ b.astype(object)  # Python's integers
    for result, expected in ((got[0], exact + c.astype(object)), (got[1], exact)):
        assert not ((result.astype(object) - expected) % (1 << ends.bits)).any()
