"""Functions that join, part, pick and order elements."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ltl
from tests.ltl.kernel_runs import interpret, result


@ltl.jit
def pairs(joined, woven, parted, a, b, N: ltl.constexpr):
    i = ltl.arange(0, N)
    x, y = ltl.load(a + i), ltl.load(b + i)
    both = ltl.join(x, y)
    ltl.store(joined + i[:, None] * 2 + ltl.arange(0, 2)[None, :], both)
    ltl.store(woven + ltl.arange(0, 2 * N), ltl.interleave(x, y))
    first, second = both.split()
    ltl.store(parted + i, first - second)


def test_join_split_interleave() -> None:
    a, b = np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32) * 10
    joined, woven, parted = np.zeros((8, 2), np.int32), np.zeros(16, np.int32), np.zeros(8, np.int32)
    interpret(pairs, joined, woven, parted, a, b, N=8)
    assert np.array_equal(joined, np.stack([a, b], 1))
    assert np.array_equal(woven, joined.ravel())
    assert np.array_equal(parted, a - b)


@ltl.jit
def cat_and_flip(behind, reversed_rows, x, M: ltl.constexpr, N: ltl.constexpr):
    at = ltl.arange(0, M)[:, None] * N + ltl.arange(0, N)[None, :]
    v = ltl.load(x + at)
    wide = ltl.cat(v, v + 100, dim=1)
    ltl.store(behind + ltl.arange(0, M)[:, None] * 2 * N + ltl.arange(0, 2 * N)[None, :], wide)
    ltl.store(reversed_rows + at, v.flip(0))


def test_cat_and_flip() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    behind, reversed_rows = np.zeros((3, 8), np.float32), np.zeros((3, 4), np.float32)
    interpret(cat_and_flip, behind, reversed_rows, x, M=3, N=4)
    assert np.array_equal(behind, np.concatenate([x, x + 100], 1))
    assert np.array_equal(reversed_rows, x[::-1])


@ltl.jit
def picked(out, x, index, M: ltl.constexpr, N: ltl.constexpr, K: ltl.constexpr):
    rows = ltl.arange(0, M)[:, None]
    v = ltl.load(x + rows * N + ltl.arange(0, N)[None, :])
    at = rows * K + ltl.arange(0, K)[None, :]
    ltl.store(out + at, ltl.gather(v, ltl.load(index + at), 1))


def test_gather() -> None:
    x = np.arange(12, dtype=np.int16).reshape(3, 4)
    index = np.array([[3, 0], [1, 1], [4, -1]], np.int32)
    got = result(picked, (3, 2), np.int16, x, index, M=3, N=4, K=2)
    assert got.tolist() == [[3, 0], [5, 5], [0, 0]], "indices outside give 0"


@ltl.jit
def ordered(up, down, best, x, M: ltl.constexpr, N: ltl.constexpr, K: ltl.constexpr):
    rows = ltl.arange(0, M)[:, None]
    at = rows * N + ltl.arange(0, N)[None, :]
    v = ltl.load(x + at)
    ltl.store(up + at, ltl.sort(v))
    ltl.store(down + at, ltl.sort(v, 1, descending=True))
    ltl.store(best + rows * K + ltl.arange(0, K)[None, :], ltl.topk(v, K))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint32, np.int64, np.float16, ml_dtypes.bfloat16])
def test_sort_and_topk(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 100, (3, 16)).astype(dtype)
    up, down, best = np.zeros_like(x), np.zeros_like(x), np.zeros((3, 4), dtype)
    interpret(ordered, up, down, best, x, M=3, N=16, K=4)
    expected = np.sort(x.astype(np.float64), 1).astype(dtype)
    assert np.array_equal(up, expected)
    assert np.array_equal(down, expected[:, ::-1])
    assert np.array_equal(best, expected[:, :-5:-1])


def test_order_of_floats_is_total() -> None:
    x = np.array([[np.nan, 1, -0.0, 0.0, -np.inf, np.inf, -1, np.nan]], np.float32)
    up, down, best = np.zeros_like(x), np.zeros_like(x), np.zeros((1, 2), np.float32)
    interpret(ordered, up, down, best, x, M=1, N=8, K=2)
    expected = np.array([[-np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan, np.nan]], np.float32)
    assert np.array_equal(up.view(np.int32), expected.view(np.int32))
    assert np.array_equal(down.view(np.int32), expected[:, ::-1].copy().view(np.int32))
    assert np.isnan(best).all()


@ltl.jit
def counted(out, x, n, N: ltl.constexpr, BINS: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(out + ltl.arange(0, BINS), ltl.histogram(ltl.load(x + i), BINS, mask=i < n))


def test_histogram() -> None:
    x = np.array([0, 1, 1, 3, 7, -1, 2, 2], np.int32)
    assert result(counted, 4, np.int32, x, 7, N=8, BINS=4).tolist() == [1, 2, 1, 1]


@ltl.jit
def swizzled(out, rows, columns, GROUP: ltl.constexpr):
    i, j = ltl.program_id(0), ltl.program_id(1)
    new_i, new_j = ltl.swizzle2d(i, j, rows, columns, GROUP)
    ltl.store(out + new_i * columns + new_j, i * columns + j)


def test_swizzle2d() -> None:
    got = result(swizzled, (4, 4), np.int32, 4, 4, GROUP=2, grid=(4, 4))
    assert got.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]]


@ltl.jit
def shapes_as_lists(out, x):
    v = ltl.load(x + ltl.arange(0, 8))
    wide = ltl.reshape(v, v.shape[:-1] + [4, 2])
    ltl.static_assert(wide.shape == [4, 2])
    ltl.static_assert(wide.shape == (4, 2))
    ltl.store(out + ltl.arange(0, 8), ltl.ravel(wide.trans()))


def test_shapes_add_to_lists() -> None:
    got = result(shapes_as_lists, 8, np.int32, np.arange(8, dtype=np.int32))
    assert got.tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
