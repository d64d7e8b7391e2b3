"""What people met with other implementations of the language, each report as a test of what should happen.

Kernels run by the reference interpreter, and compiled.
"""

from __future__ import annotations

import linecache
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import loom
import ltl
from loom_core.base.diagnostics import LoomError
from tests.ltl import test_stale_caches
from tests.ltl.kernel_runs import interpret, result

BF16 = ml_dtypes.bfloat16

REPORTS = {
    "P01": "products of bfloat16 matrices",
    "P02": "arithmetic of bfloat16",
    "P03": "casts to 8-bit floats",
    "P05": "floats that no integer can hold",
    "P06": "while loops that run no time",
    "P07": "NaN in reductions",
    "P10": "cumsum in a loop",
    "P13": "boundary checks of some dimensions",
    "P14": "masked elements without `other`",
    "P16": "memory behind masked elements",
    "P18": "views with offset and strides",
    "P23": "offsets that wrap in int32",
    "P24": "atomic loads and stores",
    "P26": "precisions of dot",
    "P27": "rounding of narrow products",
    "P30": "helpers that a string chooses",
    "P31": "numbers of one divisibility",
    "P32": "tuples as arguments",
    "P33": "None as argument",
    "P35": "shifts of unsigned integers",
}
"""Ids of the reports about kernels in Triton's language, and what each is about."""


def test_every_report_has_a_test() -> None:
    functions = [value for module in (sys.modules[__name__], test_stale_caches) for value in vars(module).values()]
    marks = [mark for function in functions for mark in getattr(function, "pytestmark", [])]
    assert {id for mark in marks if mark.name == "report" for id in mark.args} == set(REPORTS)


# ---- bfloat16 --------------------------------------------------------------------------------------------------------


@ltl.jit
def product(out, a, b, N: ltl.constexpr):
    i = ltl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    ltl.store(out + at, ltl.dot(ltl.load(a + at), ltl.load(b + at)))


@pytest.mark.report("P01")
def test_products_of_small_bf16_integers_are_exact() -> None:
    generator = np.random.default_rng(1)
    a, b = (generator.integers(-2, 3, (16, 16)).astype(BF16) for _ in range(2))
    exact = a.astype(np.float32) @ b.astype(np.float32)
    assert np.array_equal(result(product, (16, 16), np.float32, a, b, N=16), exact)


@ltl.jit
def narrow_arithmetic(total, times, less, negated, fused, x, y, N: ltl.constexpr):
    i = ltl.arange(0, N)
    a, b = ltl.load(x + i), ltl.load(y + i)
    ltl.store(total + i, a + b)
    ltl.store(times + i, a * b)
    ltl.store(less + i, a < b)
    ltl.store(negated + i, -a)
    ltl.store(fused + i, ltl.fma(a, b, a))


@pytest.mark.report("P02")
def test_bf16_arithmetic_computes_in_float32_and_rounds_once() -> None:
    x, y = np.array([2.5, -5], BF16), np.array([2, -2], BF16)
    total, times, negated, fused = (np.zeros(2, BF16) for _ in range(4))
    less = np.zeros(2, bool)
    interpret(narrow_arithmetic, total, times, less, negated, fused, x, y, N=2)
    assert total.tolist() == [4.5, -7]
    assert times.tolist() == [5, 10]
    assert less.tolist() == [False, True]
    assert negated.tolist() == [-2.5, 5]
    assert fused.tolist() == [7.5, 5]


@pytest.mark.report("P27")
@pytest.mark.parametrize("dtype", [BF16, np.float16])
def test_narrow_multiplication_rounds_to_nearest_even(dtype: Any) -> None:
    generator = np.random.default_rng(2)
    size = 1 << 16
    x, y = (generator.standard_normal(size).astype(dtype) for _ in range(2))
    total, times, negated, fused = (np.zeros(size, dtype) for _ in range(4))
    interpret(narrow_arithmetic, total, times, np.zeros(size, bool), negated, fused, x, y, N=size)
    wide_x, wide_y = x.astype(np.float32), y.astype(np.float32)
    assert np.array_equal(times, (wide_x * wide_y).astype(dtype))
    assert np.array_equal(total, (wide_x + wide_y).astype(dtype))


@pytest.mark.report("P02")
def test_narrow_fma_rounds_once() -> None:
    """x * y + x is 1 + 2^-8 + 2^-16, above the midpoint between neighbours of bfloat16, which a float32 sum is not."""
    x, y = np.array([2.0**-8 * (1 + 2.0**-7), 3.0], BF16), np.array([1.0, 5.0], BF16)
    outs = [np.zeros(2, BF16) for _ in range(4)]
    interpret(narrow_arithmetic, outs[0], outs[1], np.zeros(2, bool), outs[2], outs[3], x, y, N=2)
    exact = x.astype(np.float64) * y.astype(np.float64) + x.astype(np.float64)
    assert np.array_equal(outs[3], exact.astype(BF16))


# ---- conversions -----------------------------------------------------------------------------------------------------


@ltl.jit
def through(out, x, N: ltl.constexpr, DTYPE: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(out + i, ltl.load(x + i).to(DTYPE).to(ltl.float32))


@pytest.mark.report("P03")
def test_fp8_casts_round_once_to_even_and_saturate() -> None:
    x = np.array([126.24, 465, 1.0625, np.nan, 1.5 * 2.0**-10, np.inf, -1e9], np.float32)
    got = result(through, 7, np.float32, x, N=7, DTYPE=ltl.float8e4nv)
    assert np.array_equal(got, np.array([128, 448, 1, np.nan, 2.0**-9, 448, -448], np.float32), equal_nan=True)


@pytest.mark.report("P03")
@pytest.mark.parametrize(
    ("dtype", "own"), [(ltl.float8e4nv, ml_dtypes.float8_e4m3fn), (ltl.float8e5, ml_dtypes.float8_e5m2)]
)
def test_fp8_casts_of_every_half(dtype: Any, own: Any) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    largest = float(ml_dtypes.finfo(own).max)
    got = result(through, halves.size, np.float32, halves, N=halves.size, DTYPE=dtype)
    clipped = np.clip(halves.astype(np.float32), -largest, largest)
    with np.errstate(invalid="ignore"):
        expected = clipped.astype(own).astype(np.float32)
    assert np.array_equal(got, expected, equal_nan=True)


@ltl.jit
def to_integers(i8, u8, i16, i32, x, N: ltl.constexpr):
    i = ltl.arange(0, N)
    v = ltl.load(x + i)
    ltl.store(i8 + i, v.to(ltl.int8))
    ltl.store(u8 + i, v.to(ltl.uint8))
    ltl.store(i16 + i, v.to(ltl.int16))
    ltl.store(i32 + i, v.to(ltl.int32))


@pytest.mark.report("P05")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, BF16, np.float64])
def test_float_to_integer_saturates_and_nan_is_zero(dtype: Any) -> None:
    x = np.array([np.inf, 510, -200, np.nan, -np.inf, 2.75], dtype)
    outs = [np.zeros(6, t) for t in (np.int8, np.uint8, np.int16, np.int32)]
    interpret(to_integers, *outs, x, N=6)
    high, low = 2**31 - 1, -(2**31)
    assert outs[0].tolist() == [127, 127, -128, 0, -128, 2]
    assert outs[1].tolist() == [255, 255, 0, 0, 0, 2]
    assert outs[2].tolist() == [32767, 510, -200, 0, -32768, 2]
    assert outs[3].tolist() == [high, 510, -200, 0, low, 2]


# ---- while -----------------------------------------------------------------------------------------------------------


@ltl.jit
def count(out, n):
    i = 0
    while ltl.condition(i < n):
        i += 1
    ltl.store(out, i)


@pytest.mark.report("P06")
@pytest.mark.parametrize("n", [0, 5])
def test_while_whose_condition_starts_false(n: int) -> None:
    assert result(count, 1, np.int32, n)[0] == n


# ---- NaN in reductions -----------------------------------------------------------------------------------------------


@ltl.jit
def extremes(values, places, x, N: ltl.constexpr, LEFT: ltl.constexpr):
    v = ltl.load(x + ltl.arange(0, N))
    ltl.store(values, ltl.max(v, 0))
    ltl.store(values + 1, ltl.min(v, 0))
    ltl.store(places, ltl.argmax(v, 0, tie_break_left=LEFT))
    ltl.store(places + 1, ltl.argmin(v, 0, tie_break_left=LEFT))


@pytest.mark.report("P07")
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("where", [0, 1, 2, 3])
def test_reductions_skip_nan(where: int, left: bool) -> None:
    x = np.insert(np.array([6, 8, 1], np.float32), where, np.nan)
    values, places = np.zeros(2, np.float32), np.zeros(2, np.int32)
    interpret(extremes, values, places, x, N=4, LEFT=left)
    assert values.tolist() == [8, 1]
    assert places.tolist() == [int(np.nanargmax(x)), int(np.nanargmin(x))]


@pytest.mark.report("P07")
def test_reductions_of_nothing_but_nan() -> None:
    values, places = np.zeros(2, np.float32), np.zeros(2, np.int32)
    interpret(extremes, values, places, np.full(4, np.nan, np.float32), N=4, LEFT=True)
    assert np.isnan(values).all()
    assert places.tolist() == [0, 0]


@ltl.jit
def propagating(x, y):
    return ltl.maximum(x, y, propagate_nan=ltl.PropagateNan.ALL)


@ltl.jit
def propagated(out, x, N: ltl.constexpr):
    ltl.store(out, ltl.reduce(ltl.load(x + ltl.arange(0, N)), 0, propagating))


@pytest.mark.report("P07")
def test_nan_propagates_where_it_is_asked_to() -> None:
    assert np.isnan(result(propagated, 1, np.float32, np.array([1, np.nan, 3, 2], np.float32), N=4)[0])


# ---- scans in loops --------------------------------------------------------------------------------------------------


@ltl.jit
def running_count(out, n, BLOCK: ltl.constexpr):
    base = 0
    for offset in range(0, n, BLOCK):
        at = offset + ltl.arange(0, BLOCK)[None, :]
        mask = at < n
        ones = ltl.where(mask, 1, 0)
        ltl.store(out + at, base + ltl.cumsum(ones, 1), mask=mask)
        base += ltl.sum(ones)


@pytest.mark.report("P10")
@pytest.mark.parametrize("block", [8, 32])
def test_cumsum_in_a_loop_with_a_masked_tail(block: int) -> None:
    assert result(running_count, 20, np.int32, 20, BLOCK=block).tolist() == list(range(1, 21))


# ---- partial boundary checks -----------------------------------------------------------------------------------------


@ltl.jit
def checked_on_columns(out, x, rows, columns, M: ltl.constexpr, N: ltl.constexpr):
    p = ltl.make_block_ptr(x, (rows, columns), (columns, 1), (0, 0), (M, N), (1, 0))
    v = ltl.load(p, boundary_check=(1,), padding_option="zero")
    ltl.store(out + ltl.arange(0, M)[:, None] * N + ltl.arange(0, N)[None, :], v)


@pytest.mark.report("P13")
def test_only_the_listed_dimensions_are_bounded() -> None:
    """The array has two rows by its shape; the third is in its storage, and may be read."""
    storage = np.arange(1, 13, dtype=np.float32)
    got = result(checked_on_columns, (3, 8), np.float32, storage, 2, 4, M=3, N=8)
    expected = np.zeros((3, 8), np.float32)
    expected[:, :4] = storage.reshape(3, 4)
    assert np.array_equal(got, expected)


@ltl.jit
def checked_in_three(out, x, d0, d1, d2, s0, s1, s2, B: ltl.constexpr, CHECK: ltl.constexpr):
    p = ltl.make_block_ptr(x, (d0, d1, d2), (s0, s1, s2), (0, 0, 1), (B, B, B), (0, 1, 2))
    v = ltl.load(p, boundary_check=CHECK, padding_option="nan")
    i = ltl.arange(0, B)
    ltl.store(out + i[:, None, None] * (B * B) + i[None, :, None] * B + i[None, None, :], v)


@pytest.mark.report("P13")
@pytest.mark.parametrize("check", [(2,), (1,), (0, 1), (0, 1, 2)])
def test_boundary_checks_of_three_dimensions(check: tuple[int, ...]) -> None:
    """Strides of a column-major array; what is beyond its shape is in its storage."""
    shape, block = (3, 2, 3), 4
    strides = (1, 5, 25)
    storage = np.arange(200, dtype=np.float32)
    got = result(checked_in_three, (block,) * 3, np.float32, storage, *shape, *strides, B=block, CHECK=check)
    i, j, k = np.indices((block,) * 3)
    k = k + 1
    expected = storage[i * strides[0] + j * strides[1] + k * strides[2]]
    for axis, index in zip(range(3), (i, j, k), strict=True):
        if axis in check:
            expected = np.where(index < shape[axis], expected, np.nan)
    assert np.array_equal(got, expected, equal_nan=True)


# ---- masked and strided access ---------------------------------------------------------------------------------------


@ltl.jit
def masked_sum(out, p, n, N: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(out, ltl.sum(ltl.load(p + i, mask=i < n), 0))


@pytest.mark.report("P14")
def test_masked_elements_without_other_are_zero() -> None:
    assert result(masked_sum, 1, np.float32, np.ones(5, np.float32), 5, N=8)[0] == 5


@pytest.mark.report("P14")
def test_masked_elements_that_reach_a_store_are_reported() -> None:
    out, x = np.zeros(1, np.float32), np.ones(5, np.float32)
    with loom.check(), pytest.raises(LoomError) as caught:
        masked_sum[(1,)](out, x, 5, N=8)
    (found,) = caught.value.diagnostics
    assert found.message == "out[0] depends on masked elements of this load, which says no `other`"
    assert "ltl.load(p + i, mask=i < n)" in linecache.getline(found.location.file, found.location.line)
    assert out[0] == 5
    with loom.check():
        masked_sum[(1,)](out, np.ones(8, np.float32), 8, N=8)
        add_one[(1,)](np.ones((3, 5), np.float32), 3, 5, 5, 1, M=4, N=8)


@ltl.jit
def before_the_start(out, p, N: ltl.constexpr, BACK: ltl.constexpr, MASKED: ltl.constexpr):
    i = ltl.arange(0, N) - BACK
    if MASKED:
        ltl.store(out + ltl.arange(0, N), ltl.load(p + i, mask=i >= 0, other=-1.0))
    else:
        ltl.store(out + ltl.arange(0, N), ltl.load(p + i))


@pytest.mark.report("P16")
def test_masked_elements_touch_no_memory() -> None:
    x = np.arange(8, dtype=np.float32)
    got = result(before_the_start, 8, np.float32, x, N=8, BACK=5, MASKED=True)
    assert got.tolist() == [-1] * 5 + [0, 1, 2]
    with pytest.raises(LoomError) as caught:
        result(before_the_start, 8, np.float32, x, N=8, BACK=5, MASKED=False)
    assert caught.value.diagnostics[0].code == "LOOM-R210"


@ltl.jit
def add_one(x, rows, columns, row_stride, column_stride, M: ltl.constexpr, N: ltl.constexpr):
    i, j = ltl.arange(0, M)[:, None], ltl.arange(0, N)[None, :]
    p = x + i * row_stride + j * column_stride
    mask = (i < rows) & (j < columns)
    ltl.store(p, ltl.load(p, mask=mask) + 1, mask=mask)


@pytest.mark.report("P18")
def test_views_are_reached_through_offset_and_strides() -> None:
    torch = pytest.importorskip("torch")
    whole = torch.arange(24, dtype=torch.float32).reshape(3, 8)
    expected = whole.clone()
    expected[:, 4:] += 1
    _, right = torch.split(whole, 4, 1)
    interpret(add_one, right, 3, 4, right.stride(0), right.stride(1), M=4, N=4)
    assert torch.equal(whole, expected)


# ---- wrapping offsets ------------------------------------------------------------------------------------------------


@ltl.jit
def wrapping(out):
    ltl.store(out + ltl.program_id(0), ((ltl.program_id(0) + 319) * 7864320).to(ltl.int64))


@pytest.mark.report("P23")
def test_int32_offsets_wrap() -> None:
    assert result(wrapping, 2, np.int64, grid=2).tolist() == [-1786249216, -1778384896]


@pytest.mark.report("P23")
def test_offsets_that_wrap_are_reported_on_demand() -> None:
    with pytest.raises(LoomError, match=r"int32 overflow detected for operation mul in program \(0, 0, 0\)") as caught:
        wrapping[(2,)](np.zeros(2, np.int64), debug=True)
    location = caught.value.diagnostics[0].location
    assert (location.file, location.function) == (__file__, "wrapping")


# ---- atomic loads and stores -----------------------------------------------------------------------------------------


@ltl.jit
def atomic_copy(out, x, n, N: ltl.constexpr, MASKED: ltl.constexpr):
    i = ltl.arange(0, N)
    mask = i < n if MASKED else None
    ltl.atomic_store(out + i, ltl.atomic_load(x + i, mask=mask), mask=mask)


@pytest.mark.report("P24")
@pytest.mark.parametrize("masked", [False, True])
def test_atomic_load_and_store_copy(masked: bool) -> None:
    x = np.arange(1, 9, dtype=np.int32)
    expected = np.where(np.arange(8) < 5, x, 0) if masked else x
    assert np.array_equal(result(atomic_copy, 8, np.int32, x, 5, N=8, MASKED=masked), expected)


# ---- precisions of dot -----------------------------------------------------------------------------------------------


@ltl.jit
def precise_product(out, a, b, M: ltl.constexpr, K: ltl.constexpr, N: ltl.constexpr, PRECISION: ltl.constexpr):
    m, k, n = ltl.arange(0, M), ltl.arange(0, K), ltl.arange(0, N)
    x = ltl.load(a + m[:, None] * K + k[None, :])
    y = ltl.load(b + k[:, None] * N + n[None, :])
    ltl.store(out + m[:, None] * N + n[None, :], ltl.dot(x, y, input_precision=PRECISION))


# The largest error of each precision, in units of the sum of |a b|.
PRECISIONS = {
    None: 2.0**-20,
    "ieee": 2.0**-20,
    "tf32": 2.0**-10,
    "tf32x3": 2.0**-18,
    "bf16x3": 2.0**-14,
    "bf16x6": 2.0**-18,
}


@pytest.mark.report("P26")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_input_precision_is_honoured(precision: str | None) -> None:
    generator = np.random.default_rng(3)
    a = generator.standard_normal((3, 64)).astype(np.float32)
    b = generator.standard_normal((64, 2)).astype(np.float32)
    got = result(precise_product, (3, 2), np.float32, a, b, M=3, K=64, N=2, PRECISION=precision)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    error = np.max(np.abs(got - exact) / scale)
    assert error < PRECISIONS[precision]
    if precision == "tf32":
        assert error > 2.0**-16, "the operands were not rounded"


# ---- what a compiled kernel depends on (test_stale_caches has more) --------------------------------------------------


@ltl.jit
def specialised(out, z):
    for i in range(0, z, 16):
        ltl.store(out + i // 16, z)


@pytest.mark.report("P31")
def test_numbers_of_one_divisibility_do_not_share_what_differs() -> None:
    assert result(specialised, 64, np.int32, 32).tolist() == [32] * 2 + [0] * 62
    assert result(specialised, 64, np.int32, 1024).tolist() == [1024] * 64


# ---- tuples and None -------------------------------------------------------------------------------------------------


@ltl.jit
def static_tuple(out, S: ltl.constexpr, strides, rest):
    a, b = S
    i, j = ltl.arange(0, S[0])[:, None], ltl.arange(0, b)[None, :]
    value = ltl.full((a, b), 1, ltl.int32) * (i * 10 + j)
    if rest[1] is None:
        value += rest[0]
    ltl.store(out + i * strides[0] + j * strides[1], value)


@pytest.mark.report("P32")
def test_tuples_unpack_and_index() -> None:
    out = np.zeros((4, 8), np.int32)
    interpret(static_tuple, out, (4, 4), tuple(s // 4 for s in out.strides), (100, None))
    expected = np.zeros((4, 8), np.int32)
    expected[:, :4] = np.arange(4)[:, None] * 10 + np.arange(4) + 100
    assert np.array_equal(out, expected)


@ltl.jit
def with_bias(out, x, bias, N: ltl.constexpr, MASK: ltl.constexpr = None):
    i = ltl.arange(0, N)
    v = ltl.load(x + i, mask=MASK)
    if bias is not None:
        v += ltl.load(bias + i)
    ltl.store(out + i, v)


@pytest.mark.report("P33")
def test_none_means_absent() -> None:
    x = np.arange(4, dtype=np.float32)
    assert result(with_bias, 4, np.float32, x, None, N=4).tolist() == [0, 1, 2, 3]
    assert result(with_bias, 4, np.float32, x, x, N=4).tolist() == [0, 2, 4, 6]
    assert "%bias" not in str(with_bias.lower("*fp32", "*fp32", None, N=4))


# ---- unsigned shifts -------------------------------------------------------------------------------------------------


@ltl.jit
def shifted(out, x, N: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(out + i, ltl.load(x + i) >> 5)


@pytest.mark.report("P35")
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_unsigned_shifts_are_logical(dtype: Any) -> None:
    bits = np.iinfo(dtype).bits
    x = np.arange(1 << 16, dtype=np.uint16).astype(dtype) if bits <= 16 else np.array([1 << (bits - 1), 33], dtype)
    assert np.array_equal(result(shifted, x.size, dtype, x, N=x.size), x >> dtype(5))
