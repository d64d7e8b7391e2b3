"""Atomics, block pointers, tensor descriptors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loom
import ltl
from loom_core.base.diagnostics import LoomError
from ltl.host_descriptor import TensorDescriptor
from tests.ltl.kernel_runs import interpret, result


@ltl.jit
def modify(memory, old, index, values, n, N: ltl.constexpr, KIND: ltl.constexpr):
    i = ltl.arange(0, N)
    mask = i < n
    p = memory + ltl.load(index + i)
    v = ltl.load(values + i)
    if KIND == "add":
        before = ltl.atomic_add(p, v, mask=mask, sem="relaxed", scope="gpu")
    elif KIND == "max":
        before = ltl.atomic_max(p, v, mask=mask)
    elif KIND == "min":
        before = ltl.atomic_min(p, v, mask=mask)
    elif KIND == "xchg":
        before = ltl.atomic_xchg(p, v, mask=mask)
    elif KIND == "and":
        before = p.atomic_and(v, mask=mask)
    elif KIND == "or":
        before = p.atomic_or(v, mask=mask)
    else:
        before = p.atomic_xor(v, mask=mask)
    ltl.store(old + i, before)


STEPS: dict[str, Any] = {
    "add": lambda a, b: a + b, "max": max, "min": min, "xchg": lambda a, b: b, "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.float32])
@pytest.mark.parametrize("kind", STEPS)
def test_atomics_go_in_order_of_the_elements(kind: str, dtype: Any) -> None:
    if dtype == np.float32 and kind in ("and", "or", "xor"):
        pytest.skip("integers only")
    generator = np.random.default_rng(0)
    index = generator.integers(0, 3, 12).astype(np.int32)
    values = generator.integers(0, 100, 12).astype(dtype)
    memory, old = np.array([7, 60, 33], dtype), np.zeros(12, dtype)
    expected, seen = memory.tolist(), []
    for i, (place, value) in enumerate(zip(index, values.tolist(), strict=True)):
        seen.append(expected[place] if i < 10 else 0)
        if i < 10:
            expected[place] = STEPS[kind](expected[place], value)
    interpret(modify, memory, old, index, values, 10, N=12, KIND=kind)
    assert memory.tolist() == expected
    assert old.tolist() == seen


@ltl.jit
def exchange_if(memory, old, index, N: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(old + i, ltl.atomic_cas(memory + ltl.load(index + i), i, i + 10))


def test_atomic_cas_sees_what_elements_before_it_stored() -> None:
    memory, old = np.array([0, 1], np.int32), np.zeros(4, np.int32)
    interpret(exchange_if, memory, old, np.array([0, 1, 0, 1], np.int32), N=4)
    assert memory.tolist() == [10, 11]
    assert old.tolist() == [0, 1, 10, 11]


@ltl.jit
def polled(flags, out, N: ltl.constexpr, TIMEOUT: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(out + i, ltl.atomic_poll(flags + i, 1, timeout_ns=TIMEOUT))


def test_poll_answers_at_once_or_fails() -> None:
    out = np.zeros(2, bool)
    interpret(polled, np.array([1, 2], np.int32), out, N=2, TIMEOUT=0)
    assert out.tolist() == [True, False]
    interpret(polled, np.array([1, 1], np.int32), out, N=2, TIMEOUT=None)
    assert out.all()
    with pytest.raises(LoomError, match="LOOM-R212"):
        interpret(polled, np.array([1, 2], np.int32), out, N=2, TIMEOUT=None)


@ltl.jit
def transpose(y, x, M, N, B: ltl.constexpr):
    i, j = ltl.program_id(0) * B, ltl.program_id(1) * B
    p = ltl.make_block_ptr(x, (M, N), (N, 1), (i, j), (B, B), (1, 0))
    q = ltl.make_block_ptr(y, (N, M), (M, 1), (j, i), (B, B), (1, 0))
    ltl.store(q, ltl.load(p, boundary_check=(0, 1)).T, boundary_check=(0, 1))


def test_block_pointers_and_their_boundaries() -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    assert np.array_equal(result(transpose, (5, 3), np.float32, x, 3, 5, B=4, grid=(1, 2)), x.T)


@ltl.jit
def row_sums(out, x, M, N, B: ltl.constexpr):
    p = ltl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (4, B), (1, 0))
    total = ltl.zeros((4,), ltl.float32)
    for _ in range(0, N, B):
        total += ltl.sum(ltl.load(p, boundary_check=(0, 1), padding_option="zero"), 1)
        p = p.advance((0, B))
    if M > 2:
        p = ltl.advance(p, (0, -N))
    ltl.store(out + ltl.arange(0, 4), total)
    ltl.store(out + 4, ltl.sum(ltl.load(p, boundary_check=(1,))[:, None]))


def test_block_pointers_go_through_loops_and_branches() -> None:
    x = np.arange(28, dtype=np.float32).reshape(4, 7)
    got = result(row_sums, 5, np.float32, x, 4, 7, B=4)
    assert np.array_equal(got[:4], x.sum(1))
    assert got[4] == x[:, 1:5].sum()


@ltl.jit
def padded(y, x, n, PAD: ltl.constexpr):
    p = ltl.make_block_ptr(x, (n,), (1,), (0,), (8,), (0,))
    ltl.store(y + ltl.arange(0, 8), ltl.load(p, boundary_check=(0,), padding_option=PAD))


def test_padding_that_is_asked_for_is_defined() -> None:
    x, y = np.arange(1, 9, dtype=np.float32), np.zeros(8, np.float32)
    with loom.check():
        padded[(1,)](y, x, 5, PAD="zero")
        assert y.tolist() == [1, 2, 3, 4, 5, 0, 0, 0]
        padded[(1,)](y, x, 5, PAD="nan")
        assert np.isnan(y[5:]).all()
        with pytest.raises(LoomError, match="LOOM-R213"):
            padded[(1,)](y, x, 5, PAD="")


@ltl.jit
def scale(y, x, M, N, A: ltl.constexpr, B: ltl.constexpr, PAD: ltl.constexpr):
    d = ltl.make_tensor_descriptor(x, [M, N], [N, 1], [A, B], padding_option=PAD)
    e = ltl.make_tensor_descriptor(y, shape=[M, N + 4], strides=[N + 4, 1], block_shape=[A, B])
    ltl.static_assert(d.dtype == ltl.float32)
    e.store([0, 2], d.load([1, 2]) * 2)
    ltl.store_tensor_descriptor(e, [2, 0], ltl.load_tensor_descriptor(d, [0, 0]))


@pytest.mark.parametrize(("padding", "outside"), [("zero", 0), ("nan", np.nan)])
def test_tensor_descriptors(padding: str, outside: float) -> None:
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    got = result(scale, (3, 8), np.float32, x, 3, 4, A=2, B=4, PAD=padding)
    expected = np.zeros((3, 8), np.float32)
    expected[:2, 2:6] = outside
    expected[:2, 2:4] = x[1:3, 2:4] * 2
    expected[2, :4] = x[0]
    assert np.array_equal(got, expected, equal_nan=True)


@ltl.jit
def rows_by_index(y, d, index, K: ltl.constexpr):
    i = ltl.load(index + ltl.arange(0, K))
    v = d.gather(i, 1)
    ltl.store(y + ltl.arange(0, K)[:, None] * 4 + ltl.arange(0, 4)[None, :], v)
    d.scatter(v * 10, i, 1)


def test_descriptors_made_outside_gather_and_scatter() -> None:
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    original, index = x.copy(), np.array([2, 0, 7], np.int32)
    descriptor = TensorDescriptor.from_tensor(x, [1, 4])
    got = result(rows_by_index, (3, 4), np.float32, descriptor, index, K=3)
    assert np.array_equal(got, [original[2, 1:], original[0, 1:], np.zeros(4)])
    assert np.array_equal(x[2], [original[2, 0], *original[2, 1:] * 10])
    assert np.array_equal(x[1], original[1])


@ltl.jit
def accumulate(d):
    d.atomic_add([0, 2], ltl.full((2, 4), 1, ltl.int32))


def test_descriptors_add_to_memory_inside_their_shape() -> None:
    x = np.zeros((3, 4), np.int32)
    interpret(accumulate, TensorDescriptor.from_tensor(x, [2, 4]), grid=3)
    expected = np.zeros((3, 4), np.int32)
    expected[:2, 2:] = 3
    assert np.array_equal(x, expected)


@ltl.jit
def read_flags(out, flags, N: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(out + i, ltl.load(flags + i).to(ltl.int32))


def test_bytes_of_bools_that_are_not_zero_are_true() -> None:
    raw = np.array([0, 1, 2, 255], np.uint8)
    assert result(read_flags, 4, np.int32, raw.view(np.bool_), N=4).tolist() == [0, 1, 1, 1]


@ltl.jit
def either(out, a, n):
    i = ltl.arange(0, 4)
    ltl.store(out + i, ltl.load(ltl.where(i < n, a + i, a + 4 + i)))


def test_select_of_pointers_into_one_array() -> None:
    a = np.arange(8, dtype=np.float32)
    assert result(either, 4, np.float32, a, 2).tolist() == [0, 1, 6, 7]
