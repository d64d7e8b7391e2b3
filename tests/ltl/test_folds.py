"""Reductions, scans and functions applied element by element, with functions of the user."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ltl
from loom_core.base.diagnostics import LoomError
from loom_core.ir.printer import print_function
from tests.ltl.kernel_runs import interpret, result


@ltl.jit
def add(a, b):
    return a + b


@ltl.jit
def multiply(a, b):
    return a * b


@ltl.jit
def larger(a, b):
    if a > b:
        return a
    return b


@ltl.jit
def affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@ltl.jit
def reduce_rows(out, x, M: ltl.constexpr, N: ltl.constexpr, FN: ltl.constexpr, KEEP: ltl.constexpr = False):
    at = ltl.arange(0, M)[:, None] * N + ltl.arange(0, N)[None, :]
    r = ltl.reduce(ltl.load(x + at), 1, FN, keep_dims=KEEP)
    ltl.store(out + ltl.arange(0, M)[:, None] if KEEP else out + ltl.arange(0, M), r)


def rows(dtype: Any, shape: tuple[int, int] = (3, 37)) -> Any:
    generator = np.random.default_rng(shape[1])
    return generator.integers(-50, 50, shape).astype(dtype)


def operations(kernel: ltl.JitFunction, *args: Any, **kwargs: Any) -> set[str]:
    return {op.name for op in kernel.lower(*args, **kwargs).walk()}


@pytest.mark.parametrize("keep", [False, True])
def test_reduce_by_an_addition_is_a_sum(keep: bool) -> None:
    x = rows(np.float32)
    got = result(reduce_rows, 3, np.float32, x, M=3, N=37, FN=add, KEEP=keep)
    assert np.array_equal(got, x.sum(1))
    names = operations(reduce_rows, "*fp32", "*fp32", M=3, N=37, FN=add, KEEP=keep)
    assert "reduce" in names and "reduce_region" not in names


def test_branches_in_combine_functions_become_selects() -> None:
    x = rows(np.int32)
    assert np.array_equal(result(reduce_rows, 3, np.int32, x, M=3, N=37, FN=larger), x.max(1))
    names = operations(reduce_rows, "*i32", "*i32", M=3, N=37, FN=larger)
    assert "reduce_region" in names and "select" in names and "if" not in names


@ltl.jit
def compose(out_a, out_b, a, b, N: ltl.constexpr):
    i = ltl.arange(0, N)
    x, y = ltl.reduce((ltl.load(a + i), ltl.load(b + i)), 0, affine)
    ltl.store(out_a, x)
    ltl.store(out_b, y)


@pytest.mark.parametrize("size", [1, 2, 7, 16])
def test_reduce_keeps_the_order_of_several_tiles(size: int) -> None:
    """Composition of affine functions does not commute."""
    a, b = rows(np.int64, (2, size))
    outs = np.zeros(1, np.int64), np.zeros(1, np.int64)
    interpret(compose, *outs, a, b, N=size)
    with np.errstate(over="ignore"):
        slope, shift = np.int64(1), np.int64(0)
        for p, q in zip(a, b, strict=True):
            slope, shift = slope * p, shift * p + q
    assert (outs[0][0], outs[1][0]) == (slope, shift)


def test_reduce_all_dimensions() -> None:
    @ltl.jit
    def total(out, x, N: ltl.constexpr):
        at = ltl.arange(0, 4)[:, None] * N + ltl.arange(0, N)[None, :]
        ltl.store(out + ltl.arange(0, 1)[:, None], ltl.reduce(ltl.load(x + at), None, larger, keep_dims=True))

    x = rows(np.int32, (4, 9))
    assert result(total, 1, np.int32, x, N=9)[0] == x.max()


@ltl.jit
def scan_rows(
    out, x, M: ltl.constexpr, N: ltl.constexpr, FN: ltl.constexpr, REVERSE: ltl.constexpr, AXIS: ltl.constexpr = 1
):
    at = ltl.arange(0, M)[:, None] * N + ltl.arange(0, N)[None, :]
    ltl.store(out + at, ltl.associative_scan(ltl.load(x + at), AXIS, FN, reverse=REVERSE))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("function", "exact"), [(add, np.cumsum), (larger, np.maximum.accumulate)])
def test_scan(function: Any, exact: Any, axis: int, reverse: bool) -> None:
    x = rows(np.int64)
    got = result(scan_rows, x.shape, np.int64, x, M=3, N=37, FN=function, REVERSE=reverse, AXIS=axis)
    expected = np.flip(exact(np.flip(x, axis), axis), axis) if reverse else exact(x, axis)
    assert np.array_equal(got, expected)


@ltl.jit
def recurrence(out, a, b, N: ltl.constexpr):
    i = ltl.arange(0, N)
    _, y = ltl.associative_scan((ltl.load(a + i), ltl.load(b + i)), 0, affine)
    ltl.store(out + i, y)


def test_scan_of_two_tiles_solves_a_recurrence() -> None:
    a, b = rows(np.float32, (2, 12)) / 16
    got = result(recurrence, 12, np.float32, a, b, N=12)
    y, expected = np.float32(0), []
    for p, q in zip(a, b, strict=True):
        y = q if not expected else np.float32(np.float32(y * p) + q)
        expected.append(y)
    assert np.array_equal(got, np.array(expected))


@ltl.jit
def running(out_sum, out_product, x, N: ltl.constexpr):
    i = ltl.arange(0, N)
    v = ltl.load(x + i)
    ltl.store(out_sum + i, ltl.cumsum(v))
    ltl.store(out_product + i, v.cumprod(dtype=ltl.int64))


def test_cumsum_and_cumprod_widen_narrow_integers() -> None:
    x = np.array([100, 100, 3, -2], np.int8)
    sums, products = np.zeros(4, np.int32), np.zeros(4, np.int64)
    interpret(running, sums, products, x, N=4)
    assert sums.tolist() == [100, 200, 203, 201]
    assert products.tolist() == [100, 10000, 30000, -60000]


def test_float_scans_go_element_after_element() -> None:
    x = np.random.default_rng(5).standard_normal(100).astype(np.float32)
    sums, products = np.zeros(100, np.float32), np.zeros(100, np.float32)

    @ltl.jit
    def kernel(a, b, x, N: ltl.constexpr):
        i = ltl.arange(0, N)
        ltl.store(a + i, ltl.cumsum(ltl.load(x + i)))
        ltl.store(b + i, ltl.cumprod(ltl.load(x + i)))

    interpret(kernel, sums, products, x, N=100)
    assert np.array_equal(sums, np.cumsum(x, dtype=np.float32))
    assert np.array_equal(products, np.cumprod(x, dtype=np.float32))


@ltl.jit
def running_products(out, x, N: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(out + i, ltl.associative_scan(ltl.load(x + i), 0, multiply))


@ltl.jit
def running_sums(out, x, N: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(out + i, ltl.cumsum(ltl.load(x + i), reverse=True))


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_scans_of_narrow_floats_round_each_result_once(name: str) -> None:
    """As those of torch do."""
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(np.random.default_rng(7).uniform(0.9, 1.1, 1000).astype(np.float32)).to(getattr(torch, name))
    sums, products = torch.empty_like(x), torch.empty_like(x)
    running_sums[(1,)](sums, x, N=1000)
    running_products[(1,)](products, x, N=1000)
    assert torch.equal(sums, torch.cumsum(x.flip(0), 0).flip(0))
    assert torch.equal(products, torch.cumprod(x, 0))


@ltl.jit
def column_extremes(values, places, x, M: ltl.constexpr, N: ltl.constexpr):
    at = ltl.arange(0, M)[:, None] * N + ltl.arange(0, N)[None, :]
    v, i = ltl.max(ltl.load(x + at), 0, return_indices=True)
    ltl.store(values + ltl.arange(0, N), v)
    ltl.store(places + ltl.arange(0, N), i)
    ltl.store(places + N + ltl.arange(0, N), ltl.load(x + at).argmin(0))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float16, np.int64])
def test_extremes_with_indices(dtype: Any) -> None:
    x = rows(dtype, (8, 5))
    x[6] = x[2]
    values, places = np.zeros(5, dtype), np.zeros((2, 5), np.int32)
    interpret(column_extremes, values, places, x, M=8, N=5)
    assert np.array_equal(values, x.max(0))
    assert np.array_equal(places, [x.argmax(0), x.argmin(0)])


def test_sums_of_bf16_round_each_time() -> None:
    """256 ones added to 256, one after another in each lane, stay 256: the next bfloat16 is 258."""
    x = np.full((1, 1024), 1, ml_dtypes.bfloat16)

    @ltl.jit
    def total(out, x, N: ltl.constexpr):
        ltl.store(out, ltl.sum(ltl.load(x + ltl.arange(0, N)), 0))

    assert result(total, 1, np.float32, x, N=1024)[0] == 1024
    x[0, 0] = 256.0
    lanes = 256 + np.arange(1, 32)
    assert len(lanes) == 31
    assert result(total, 1, np.float32, x, N=1024)[0] == 1248


@ltl.jit
def clipped_square(x, limit):
    if x > limit:
        y = limit * limit
    elif x < 0:
        return -x, x
    else:
        y = x * x
    return y, x + 1


@ltl.jit
def mapped(out, x, N: ltl.constexpr):
    i = ltl.arange(0, N)
    first, second = ltl.map_elementwise(clipped_square, ltl.load(x + i), 3)
    ltl.store(out + i, first)
    ltl.store(out + N + i, second)


def test_map_elementwise_computes_branches() -> None:
    got = result(mapped, (2, 4), np.int32, np.array([-2, 1, 3, 9], np.int32), N=4)
    assert got.tolist() == [[2, 1, 9, 9], [-2, 2, 4, 10]]


@ltl.jit
def swap_neighbours(a, b):
    return b, a


@ltl.jit
def swapped(out, x, N: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(out + i, ltl.map_elementwise(swap_neighbours, ltl.load(x + i), pack=2))


def test_map_elementwise_of_packs() -> None:
    assert result(swapped, 6, np.int32, np.arange(6, dtype=np.int32), N=6).tolist() == [1, 0, 3, 2, 5, 4]


def test_combine_functions_may_not_loop_at_run_time() -> None:
    @ltl.jit
    def looping(a, b):
        for _ in range(a):
            b += 1
        return b

    with pytest.raises(LoomError) as caught:
        reduce_rows.lower("*i32", "*i32", M=2, N=4, FN=looping)
    assert caught.value.diagnostics[0].code == "LOOM-F113"


def test_regions_survive_their_text() -> None:
    import loom_core.ops  # noqa: F401
    from loom_core.ir.parser import parse_function

    text = print_function(compose.lower("*i64", "*i64", "*i64", "*i64", N=16))
    assert print_function(parse_function(text)) == text
