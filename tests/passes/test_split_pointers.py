"""Pointers that control flow chooses: compiled kernels leave the bits that the interpreter leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ltl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs
from loom_core.ops import control
from loom_core.passes.split_pointers import split_pointers

KERNELS: list[ltl.JitFunction] = []


def kernel(function: Any) -> ltl.JitFunction:
    """A kernel (out, x, y, n, N)."""
    made = ltl.jit(function)
    KERNELS.append(made)
    return made


@kernel
def branch_moves(out, x, y, n, N: ltl.constexpr):
    i, p = ltl.arange(0, N), x
    if n > 3:
        p += n
    ltl.store(out + i, ltl.load(p + i))


@kernel
def branch_of_two_arrays(out, x, y, n, N: ltl.constexpr):
    i = ltl.arange(0, N)
    if n > 3:
        p = x + 1
    else:
        p = y + 2
    ltl.store(out + i, ltl.load(p + i, mask=i < N - 1, other=-7))
    ltl.store(out + N, ltl.load(p))


@kernel
def branch_of_outputs(out, x, y, n, N: ltl.constexpr):
    """Stores and atomics through a chosen pointer, whose old elements are used."""
    i = ltl.arange(0, N)
    p = out + 3 if n > 3 else y
    ltl.store(p + i, ltl.load(x + i), mask=i > 1)
    old = ltl.atomic_add(p + i, ltl.load(x + i), mask=i < 5)
    ltl.store(out + 2 * N + i, old)
    ltl.store(out + 3 * N, ltl.atomic_max(p, 3))


@kernel
def tiles_of_a_branch(out, x, y, n, N: ltl.constexpr):
    i = ltl.arange(0, N)
    p = x + i
    if n > 3:
        p = y + (N - 1 - i)
    elif n == 2:
        p += 2
    ltl.store(out + i, ltl.load(p))


@kernel
def while_moves(out, x, y, n, N: ltl.constexpr):
    i, p, k = ltl.arange(0, N), x, 0
    total = ltl.zeros((N,), ltl.int32)
    while k < n:
        total += ltl.load(p + i)
        p += N if k % 2 == 0 else 1
        k += 1
    ltl.store(out + i, total)
    ltl.store(out + N, ltl.load(p))


@kernel
def swapped(out, x, y, n, N: ltl.constexpr):
    i, a, b = ltl.arange(0, N), x, y
    for k in range(n):
        ltl.store(out + k * N + i, ltl.load(a + i))
        a, b = b, a + 1


@kernel
def moved_sometimes(out, x, y, n, N: ltl.constexpr):
    """The outer loop carries what the inner one may move; a second pointer is only moved."""
    i = ltl.arange(0, N)
    p, q = x + i, y + i
    for k in range(n):
        for j in range(k):
            if (j + k) % 3 == 0:
                p += 1
            q += 1
        ltl.store(out + k * N + i, ltl.load(p) + ltl.load(q))


@kernel
def moved_by_data(out, x, y, n, N: ltl.constexpr):
    """Every iteration moves each element by another number, which is loaded."""
    i = ltl.arange(0, N)
    p = x + i
    for k in range(n):
        step = ltl.load(y + k * N + i) % 3
        ltl.store(out + k * N + i, ltl.load(p))
        p += step
    ltl.store(out + n * N + i, ltl.load(p))


@kernel
def spread(out, x, y, n, N: ltl.constexpr):
    """The distance of the elements grows, in a loop around one that only moves."""
    i = ltl.arange(0, N)
    p = x + i
    for k in range(n):
        q = p
        for j in range(2):
            ltl.store(out + (2 * k + j) * N + i, ltl.load(q))
            q += 1
        p += i % 2


@kernel
def selected(out, x, y, n, N: ltl.constexpr):
    i = ltl.arange(0, N)
    p = ltl.where(i < n, x + i, x + (2 * N - i))
    ltl.store(out + i, ltl.load(p, mask=i != 1, other=9))


@kernel
def selected_arrays(out, x, y, n, N: ltl.constexpr):
    """Elements of one tile point into different arrays."""
    i = ltl.arange(0, N)
    p = ltl.where(i < n, x + i, y + (N - i))
    q = ltl.where(i % 2 == 0, p + 1, out + 4 * N + i)
    ltl.store(out + i, ltl.load(p, mask=i != 1, other=9))
    ltl.store(ltl.where(i < 4, q, out + 5 * N + i), i + 50)
    ltl.store(out + 2 * N + i, ltl.atomic_add(q, i, mask=i > 2))
    ltl.store(out + 3 * N + i[:, None] + i[None, :] * 0, ltl.load(ltl.broadcast_to(p[:, None], (N, N))))


@kernel
def reshaped(out, x, y, n, N: ltl.constexpr):
    i = ltl.arange(0, N)
    p = ltl.reshape(x + i[:, None] * 3 + i[None, :], (N * N,))
    j = ltl.arange(0, N * N)
    ltl.store(out + j, ltl.load(p), mask=j < 4 * N)


@ltl.jit
def nearer(x, y, n):
    if n > 3:
        return x
    if n == 2:
        return y + 1
    return x + 5


@kernel
def returned(out, x, y, n, N: ltl.constexpr):
    i = ltl.arange(0, N)
    p = nearer(x, y, n)
    for k in range(2):
        q = nearer(p, y + k, n + k)
        ltl.store(out + k * N + i, ltl.load(q + i) + ltl.load(p))


@kernel
def block_pointers(out, x, y, n, N: ltl.constexpr):
    i = ltl.arange(0, N)
    block = ltl.make_block_ptr(x, (4 * N,), (1,), (0,), (N,), (0,))
    if n > 3:
        block = ltl.advance(block, (n,))
    for k in range(n):
        ltl.store(out + k * N + i, ltl.load(block, boundary_check=(0,)))
        if k % 2:
            block = ltl.advance(block, (1,))


@kernel
def windows(out, x, y, n, N: ltl.constexpr):
    i = ltl.arange(0, N)
    first, second = ltl.window((N,), ltl.int32), ltl.window((N,), ltl.int32)
    ltl.store(first, ltl.load(x + i))
    ltl.store(second, ltl.load(y + i))
    p = first.base if n > 3 else second.base
    for k in range(n):
        ltl.store(p + i, ltl.load(p + i) * 2 + k)
    ltl.store(out + i, ltl.load(first))
    ltl.store(out + N + i, ltl.load(second))


@pytest.mark.parametrize("n", [0, 2, 3, 4])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_bits(kernel: ltl.JitFunction, n: int) -> None:
    outs = []
    for interpret in (True, False):
        out, x, y = np.zeros(64, np.int32), np.arange(64, dtype=np.int32) % 11, np.arange(100, 164, dtype=np.int32)
        with knobs.override(interpret=interpret, verify="each"):
            kernel[(1,)](out, x, y, n, N=8)
        outs.append((out.tolist(), y.tolist()))
    assert outs[0] == outs[1]


def test_no_pointer_is_carried_or_given() -> None:
    for one in KERNELS:
        function = split_pointers(one.lower("*i32", "*i32", "*i32", "i32", N=8))
        for op in function.walk():
            if isinstance(op, control.If | control.While):
                assert not any(result.type.is_pointer for result in op.results), one.__name__


def test_pointers_that_only_move_stay() -> None:
    """Transfers with strides, and loads that run ahead, are made of these."""

    @ltl.jit
    def moving(out, x, n, N: ltl.constexpr):
        p, i = x + ltl.arange(0, N), ltl.arange(0, N)
        for k in range(n):
            ltl.store(out + k * N + i, ltl.load(p))
            p += N

    function = moving.lower("*i32", "*i32", "i32", N=8)
    before = str(function)
    assert str(split_pointers(function)) == before
    assert "gather" not in moving.compile("*i32", "*i32", "i32", N=8).manifest["commands"]


def test_a_compare_and_swap_of_a_chosen_array() -> None:
    @ltl.jit
    def swap(x, y, z, old, n):
        p = x if n > 3 else y
        if n > 5:
            p = z
        ltl.store(old, ltl.atomic_cas(p + 1, n, 100))

    for n in (1, 4, 6):
        for interpret in (True, False):
            arrays = [np.array([7, n, 7], np.int32) for _ in range(3)]
            old = np.zeros(1, np.int32)
            with knobs.override(interpret=interpret):
                swap[(1,)](*arrays, old, n)
            assert [int(array[1]) for array in arrays] == [100 if i == {1: 1, 4: 0, 6: 2}[n] else n for i in range(3)]
            assert old[0] == n and all(array[0] == array[2] == 7 for array in arrays)


def test_a_compare_and_swap_of_tiles_of_a_chosen_array_is_refused() -> None:
    @ltl.jit
    def swap(x, y, n):
        p = x if n > 3 else y
        ltl.atomic_cas(p + ltl.arange(0, 4), 0, 1)

    with pytest.raises(LoomError, match="LOOM-C110"):
        swap.compile("*i32", "*i32", "i32")
