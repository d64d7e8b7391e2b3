"""What LTL functions mean, run by the reference interpreter and compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import ltl
from tests.ltl.kernel_runs import interpret, result

WIDTH = ltl.constexpr(8)
FACTOR = 3


@ltl.jit
def integer_division(out, rem, x, y):
    i = ltl.arange(0, 8)
    a, b = ltl.load(x + i), ltl.load(y + i)
    ltl.store(out + i, a // b)
    ltl.store(rem + i, a % b)


def test_integer_division_truncates() -> None:
    x = np.array([7, -7, 7, -7, 5, -(2**31), 9, 0], np.int32)
    y = np.array([2, 2, -2, -2, 0, -1, 10, 3], np.int32)
    out, rem = np.zeros(8, np.int32), np.zeros(8, np.int32)
    interpret(integer_division, out, rem, x, y)
    assert out.tolist() == [3, -3, -3, 3, -1, -(2**31), 0, 0]
    assert rem.tolist() == [1, -1, 1, -1, 5, 0, 9, 0]


@ltl.jit
def known_numbers(out):
    a = -7
    ltl.static_assert(a // 2 == -3)
    ltl.static_assert(a % 2 == -1)
    big = 2147483647
    ltl.static_assert(big + 1 == -2147483648)
    ltl.static_assert((~a & 15) == 6)
    ltl.static_assert(-a == 7 and not (a > 0))
    size = a + 11
    ltl.store(out + ltl.arange(0, size), ltl.full((size,), a / 2, ltl.float32))


def test_arithmetic_of_known_integers_is_that_of_int32() -> None:
    assert result(known_numbers, 4, np.float32).tolist() == [-3.5] * 4


@ltl.jit
def true_division(out, a, b):
    ltl.static_assert((a / b).dtype == ltl.float32)
    ltl.store(out, a / b)


def test_true_division_of_integers_is_float32() -> None:
    assert result(true_division, 1, np.float32, 7, 2)[0] == 3.5


UNARY: list[tuple[Callable[[Any], Any], Callable[[Any], Any], float]] = [
    (ltl.exp, np.exp, 1e-6), (ltl.exp2, np.exp2, 1e-6), (ltl.log, np.log, 1e-6), (ltl.log2, np.log2, 1e-6),
    (ltl.sqrt, np.sqrt, 0), (ltl.sin, np.sin, 1e-6), (ltl.cos, np.cos, 1e-6), (ltl.tanh, np.tanh, 1e-6),
    (ltl.floor, np.floor, 0), (ltl.ceil, np.ceil, 0), (ltl.abs, np.abs, 0), (ltl.rsqrt, lambda x: 1 / np.sqrt(x), 2e-7),
    (ltl.sigmoid, lambda x: 1 / (1 + np.exp(-x)), 1e-6), (ltl.sqrt_rn, np.sqrt, 0),
]  # fmt: skip


@ltl.jit
def apply(out, x, FUNCTION: ltl.constexpr):
    i = ltl.arange(0, 8)
    ltl.store(out + i, FUNCTION(ltl.load(x + i)))


@pytest.mark.parametrize(("function", "expected", "tolerance"), UNARY, ids=lambda f: getattr(f, "__name__", ""))
def test_elementwise_functions(function: Any, expected: Any, tolerance: float) -> None:
    x = np.linspace(0.25, 4, 8, dtype=np.float32)
    out = result(apply, 8, np.float32, x, function)
    np.testing.assert_allclose(out, expected(x), rtol=tolerance, atol=tolerance)


@ltl.jit
def reductions(out, x, ROWS: ltl.constexpr, COLUMNS: ltl.constexpr):
    i = ltl.arange(0, ROWS)
    tile = ltl.load(x + i[:, None] * COLUMNS + ltl.arange(0, COLUMNS)[None, :])
    ltl.store(out + i, ltl.sum(tile, 1))
    ltl.store(out + ROWS + i, ltl.max(tile, axis=-1))
    ltl.store(out + 2 * ROWS + i, tile.min(axis=1))
    ltl.store(out + 3 * ROWS + i, ltl.sum(tile) + i * 0)
    ltl.store(out + 4 * ROWS + i[:, None], ltl.prod(tile, 1, keep_dims=True))
    ltl.store(out + 5 * ROWS, ltl.max(tile))
    ltl.static_assert(ltl.sum(tile, keep_dims=True).shape == (1, 1))


def test_reductions() -> None:
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    out = result(reductions, 16, np.float32, x, ROWS=3, COLUMNS=4)
    assert out[:15].reshape(5, 3).tolist() == [
        x.sum(1).tolist(), x.max(1).tolist(), x.min(1).tolist(), [78] * 3, x.prod(1).tolist()
    ]  # fmt: skip
    assert out[15] == 12


@ltl.jit
def narrow_sums(out, x):
    v = ltl.load(x + ltl.arange(0, 8))
    ltl.static_assert(ltl.sum(v).dtype == ltl.int32)
    ltl.static_assert(ltl.max(v).dtype == ltl.int32)
    ltl.static_assert(ltl.sum(v > 0).dtype == ltl.uint32)
    ltl.static_assert(ltl.sum(v, dtype=ltl.int64).dtype == ltl.int64)
    ltl.store(out, ltl.sum(v))
    ltl.store(out + 1, ltl.sum(v > 0).to(ltl.int32))
    ltl.store(out + 2, ltl.xor_sum(v))


def test_sums_of_narrow_integers_are_32_bit() -> None:
    x = np.array([100, 100, 100, -1, 0, 0, 0, 0], np.int8)
    assert result(narrow_sums, 3, np.int32, x).tolist() == [299, 3, 100 ^ -1]


@ltl.jit
def shapes(out):
    a = ltl.arange(0, 6)
    b = ltl.reshape(a, (2, 3))
    ltl.static_assert(b.T.shape == (3, 2) and b.numel == 6)
    ltl.static_assert(ltl.permute(b[None, :, :], (2, 0, 1)).shape == (3, 1, 2))
    ltl.static_assert(ltl.expand_dims(a, (0, 2)).shape == (1, 6, 1))
    ltl.static_assert(ltl.squeeze(a[:, None], 1).shape == (6,))
    ltl.static_assert(ltl.broadcast_to(b[:, None, :], 2, 4, 3).shape == (2, 4, 3))
    ltl.static_assert(ltl.broadcast_to(5, (4,)).shape == (4,))
    ltl.static_assert(ltl.broadcast(a[:, None], a[None, :])[1].shape == (6, 6))
    ltl.static_assert(b.reshape(6).shape == b.view(6).shape == ltl.ravel(b).shape)
    ltl.store(out + a, ltl.ravel(ltl.trans(b)))


def test_shape_functions() -> None:
    assert result(shapes, 6, np.int32).tolist() == [0, 3, 1, 4, 2, 5]


@ltl.jit
def products(out, a, b, c):
    i, j = ltl.arange(0, 3), ltl.arange(0, 5)
    x = ltl.load(a + i[:, None] * 5 + j[None, :])
    y = ltl.load(b + j[:, None] * 3 + i[None, :])
    z = ltl.load(c + i[:, None] * 3 + i[None, :])
    place = i[:, None] * 3 + i[None, :]
    ltl.store(out + place, ltl.dot(x, y))
    ltl.store(out + 9 + place, ltl.dot(x, y, z))
    ltl.store(out + 18 + place, ltl.dot(x, y, acc=z, input_precision="ieee"))


def test_dot() -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((3, 5), (5, 3), (3, 3)))
    out = result(products, 27, np.float32, a, b, c).reshape(3, 3, 3)
    assert np.array_equal(out[0], a @ b)
    assert np.array_equal(out[1], a @ b + c)
    assert np.array_equal(out[2], out[1])


@ltl.jit
def masked(out, x, n):
    i = ltl.arange(0, 8)
    v = ltl.load(x + i, mask=i < n)
    w = ltl.load(x + i, i < n, other=-1)
    u = ltl.load(x + i, mask=None)
    ltl.store(out + i, v)
    ltl.store(out + 8 + i, w, mask=i != 2)
    ltl.store(out + 16 + i, u, mask=True)


def test_masked_memory() -> None:
    x = np.arange(10, 18, dtype=np.int32)
    out = result(masked, 24, np.int32, x, 5).reshape(3, 8)
    assert out[0].tolist() == [10, 11, 12, 13, 14, 0, 0, 0]
    assert out[1].tolist() == [10, 11, 0, 13, 14, -1, -1, -1]
    assert out[2].tolist() == x.tolist()


@ltl.jit
def selections(out, x):
    i = ltl.arange(0, 4)
    v = ltl.load(x + i)
    ltl.store(out + i, ltl.where(v > 0, v, -v))
    ltl.store(out + 4 + i, ltl.where(i % 2 == 0, 1.0, v))
    ltl.store(out + 8 + i, ltl.minimum(v, 0) + ltl.maximum(v, 1.0) * 10 + ltl.clamp(v, -1, 1) * 100)
    ltl.store(out + 12 + i, ltl.fma(v, 2.0, 1))
    ltl.store(out + 16 + i, min(v, 0.5))
    ltl.store(out + 20 + i, ltl.cdiv(i, 2) + max(1, 2) + abs(-1))


def test_selection_and_extrema() -> None:
    x = np.array([-2, -0.5, 0.5, 3], np.float32)
    out = result(selections, 24, np.float32, x).reshape(6, 4)
    assert out[0].tolist() == np.abs(x).tolist()
    assert out[1].tolist() == [1, -0.5, 1, 3]
    assert out[2].tolist() == (np.minimum(x, 0) + np.maximum(x, 1) * 10 + np.clip(x, -1, 1) * 100).tolist()
    assert out[3].tolist() == (x * 2 + 1).tolist()
    assert out[4].tolist() == np.minimum(x, 0.5).tolist()
    assert out[5].tolist() == [3, 4, 4, 5]


@ltl.jit
def conversions(out, x):
    i = ltl.arange(0, 6)
    v = ltl.load(x + i)
    ltl.store(out + i, v.to(ltl.int8))
    ltl.store(out + 6 + i, v.to(ltl.int1))
    ltl.store(out + 12 + i, ltl.cast(v, ltl.int32, bitcast=True))
    ltl.static_assert(v.to("fp64").dtype == ltl.float64)


def test_casts() -> None:
    x = np.array([1.9, -1.9, 300, np.nan, 0, -0.0], np.float32)
    out = result(conversions, 18, np.int32, x).reshape(3, 6)
    assert out[0].tolist() == [1, -1, 127, 0, 0, 0]
    assert out[1].tolist() == [1, 1, 1, 1, 0, 0]
    assert out[2].tolist() == x.view(np.int32).tolist()


@ltl.jit
def row_softmax(out, x):
    i = ltl.arange(0, 3)
    place = i[:, None] * 4 + ltl.arange(0, 4)[None, :]
    ltl.store(out + place, ltl.softmax(ltl.load(x + place), 1))


def test_softmax() -> None:
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(result(row_softmax, (3, 4), np.float32, x), e / e.sum(1, keepdims=True), rtol=1e-6)


@ltl.jit
def booleans(out, flags):
    i = ltl.arange(0, 4)
    f = ltl.load(flags + i)
    ltl.static_assert(f.dtype == ltl.int1)
    t = i > 1
    ltl.store(out + i, (f & t).to(ltl.int32) + (f | t) * 10 + (f ^ t) * 100 + (~f) * 1000)
    ltl.store(out + 4 + i, (f + t).to(ltl.int32) + (f * t) * 2)


def test_booleans() -> None:
    f = np.array([0, 1, 0, 1], bool)
    t = np.array([0, 0, 1, 1], bool)
    out = result(booleans, 8, np.int32, f).reshape(2, 4)
    assert out[0].tolist() == ((f & t) + 10 * (f | t) + 100 * (f ^ t) + 1000 * ~f).tolist()
    # Arithmetic of int1 is modulo 2, as in Triton.
    assert out[1].tolist() == ((f ^ t) + 2 * (f & t)).tolist()


@ltl.jit
def shifts(out, x):
    i = ltl.arange(0, 4)
    v = ltl.load(x + i)
    ltl.store(out + i, v >> 3)
    ltl.store(out + 4 + i, v << 2)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint8, np.uint16])
def test_shifts_follow_the_sign_of_the_dtype(dtype: Any) -> None:
    x = np.array([1, 200, 255, 64], np.uint8).astype(dtype) << (np.dtype(dtype).itemsize * 8 - 8)
    out = result(shifts, 8, dtype, x).reshape(2, 4)
    assert np.array_equal(out[0], x >> 3)
    assert np.array_equal(out[1], x << 2)


@ltl.jit
def outside_values(out):
    ltl.store(out + ltl.arange(0, WIDTH), FACTOR * ltl.arange(0, WIDTH))


def test_numbers_from_outside() -> None:
    assert result(outside_values, 8, np.int32).tolist() == [0, 3, 6, 9, 12, 15, 18, 21]


class Pair(NamedTuple):
    left: Any
    right: Any


@ltl.jit
def tuples(out, pair, strides, SHAPE: ltl.constexpr):
    rows, columns = SHAPE
    i, j = ltl.arange(0, rows), ltl.arange(0, columns)
    place = i[:, None] * strides[0] + j[None, :] * strides[1]
    ltl.store(out + place, ltl.load(pair.left + place) + pair.right)


def test_tuple_arguments() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = result(tuples, (2, 3), np.float32, Pair(x, 0.5), (3, 1), (2, 3))
    assert np.array_equal(out, x + 0.5)


@ltl.jit
def optional_pointer(out, bias=None, SCALE: ltl.constexpr = 2):
    value = 1
    if bias is not None:
        value += ltl.load(bias)
    ltl.store(out, value * SCALE)


def test_none_and_default_arguments() -> None:
    assert result(optional_pointer, 1, np.int32)[0] == 2
    assert result(optional_pointer, 1, np.int32, np.array([4], np.int32), SCALE=3)[0] == 15


@ltl.jit
def weak_scalars(out, x, n):
    v = ltl.load(x + ltl.arange(0, 4))
    ltl.static_assert((v * 2).dtype == ltl.int8 and (v + 0.5).dtype == ltl.float32)
    half = v.to(ltl.float16)
    ltl.static_assert((half * 0.5).dtype == ltl.float16)
    c = 0.5
    ltl.static_assert((half * c).dtype == ltl.float32)
    ltl.static_assert((v + n).dtype == ltl.int32)
    ltl.store(out, 1)


def test_literals_are_weak_and_variables_are_not() -> None:
    weak_scalars.lower("*i32", "*i8", "i32")


def test_static_print(capsys: pytest.CaptureFixture[str]) -> None:
    @ltl.jit
    def prints(out, n, B: ltl.constexpr):
        ltl.static_print("B is", B, ltl.arange(0, B))
        print("shape", (B, 2))
        ltl.store(out, n)

    result(prints, 1, np.int32, 3, B=4)
    assert capsys.readouterr().out == "B is 4 <[4], int32>\nshape (4, 2)\n"


def test_hints_are_accepted() -> None:
    @ltl.jit
    def hints(out, n):
        ltl.assume(n > 0)
        i = ltl.max_contiguous(ltl.multiple_of(ltl.arange(0, 4), 4), 4)
        ltl.debug_barrier()
        ltl.device_assert(n > 100, "not checked")
        assert n > 100, "not checked either"
        for k in ltl.range(0, n, num_stages=3, loop_unroll_factor=2):
            ltl.store(out + i, i + k, cache_modifier=".cg", eviction_policy="evict_last")

    assert result(hints, 4, np.int32, 2).tolist() == [1, 2, 3, 4]


def test_refused_names_say_what_to_do() -> None:
    from ltl.refused import REFUSED

    for name, instead in REFUSED.items():
        assert instead
        assert getattr(ltl, name).__name__ == name
        assert name not in ltl.__all__


def test_public_names_are_documented() -> None:
    for name in ltl.__all__:
        value = getattr(ltl, name)
        if callable(value):
            assert value.__doc__, name
