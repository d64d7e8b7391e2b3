"""Random numbers, the device library, conversions, aggregates, messages."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ltl
from ltl import libdevice
from tests.ltl.kernel_runs import interpret, result

# ---- random numbers --------------------------------------------------------------------------------------------------


@ltl.jit
def philox_block(out, seed, c0, c1, c2, c3, DTYPE: ltl.constexpr):
    counters = [ltl.full((1,), 0, DTYPE) + c.to(DTYPE) for c in (c0, c1, c2, c3)]
    parts = ltl.philox(seed, *counters)
    for place in ltl.static_range(4):
        ltl.store(out + place + ltl.arange(0, 1), parts[place])


# Known answers of the Random123 distribution, file kat_vectors.
@pytest.mark.parametrize(
    ("seed", "counters", "expected"),
    [
        (0, (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (2**64 - 1, (2**32 - 1,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            0x299F31D0A4093822,
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_numbers(seed: int, counters: tuple[int, ...], expected: tuple[int, ...]) -> None:
    got = result(philox_block, 4, np.uint32, seed, *counters, DTYPE=ltl.uint32)
    assert tuple(got.tolist()) == expected


def test_philox_of_64_bits() -> None:
    """The same rounds with Python's integers."""
    got = result(philox_block, 4, np.uint64, 3, 1, 2, 3, 4, DTYPE=ltl.uint64)
    mask, c, k = (1 << 64) - 1, [1, 2, 3, 4], [3, 0]
    for _ in range(10):
        p0, p1 = c[0] * 0xD2E7470EE14C6C93, c[2] * 0xCA5A826395121157
        c = [(p1 >> 64) ^ c[1] ^ k[0], p1 & mask, (p0 >> 64) ^ c[3] ^ k[1], p0 & mask]
        k = [(k[0] + 0x9E3779B97F4A7C15) & mask, (k[1] + 0xBB67AE8584CAA73B) & mask]
    assert got.tolist() == c


@ltl.jit
def uniform_and_normal(u, n, seed, N: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(u + i, ltl.rand(seed, i))
    ltl.store(n + i, ltl.randn(seed, i))
    for place, part in enumerate(ltl.rand4x(seed, i)):
        ltl.static_assert(part.dtype == ltl.float32)
        if place == 0:
            ltl.device_assert(part == ltl.rand(seed, i))


def test_uniform_and_normal_numbers() -> None:
    u, n = np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    interpret(uniform_and_normal, u, n, 42, N=4096, debug=True)
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.02
    assert abs(n.mean()) < 0.05 and abs(n.std() - 1) < 0.05


# ---- the device library ----------------------------------------------------------------------------------------------

UNARY: dict[str, Any] = {
    "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh,
    "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc), "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "floor": np.floor, "nearbyint": np.rint, "rint": np.rint, "sin": np.sin, "sinh": np.sinh, "tan": np.tan,
    "tanh": np.tanh, "trunc": np.trunc, "asinh": np.arcsinh, "cbrt": np.cbrt, "isnan": np.isnan, "isinf": np.isinf,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_libdevice(name: str, dtype: Any) -> None:
    function = getattr(libdevice, name)

    @ltl.jit
    def kernel(out, x, N: ltl.constexpr):
        i = ltl.arange(0, N)
        ltl.store(out + i, function(ltl.load(x + i)))

    x = np.linspace(-0.96, 0.97, 17).astype(dtype)
    got = result(kernel, 17, dtype, x, N=17)
    assert np.allclose(got, UNARY[name](x.astype(np.float64)), rtol=4e-7, atol=1e-30)


@ltl.jit
def integer_functions(out, x, N: ltl.constexpr):
    i = ltl.arange(0, N)
    v = ltl.load(x + i)
    ltl.store(out + i, libdevice.popc(v))
    ltl.store(out + N + i, libdevice.clz(v))
    ltl.store(out + 2 * N + i, libdevice.brev(v))
    ltl.store(out + 3 * N + i, libdevice.ffs(v))
    ltl.store(out + 4 * N + i, libdevice.hadd(v, v + 3))
    ltl.store(out + 5 * N + i, ltl.umulhi(v, v))
    ltl.store(out + 6 * N + i, libdevice.mulhi(v, v))


def test_integer_functions() -> None:
    x = np.array([0, 1, -1, 12, 2**31 - 1, -(2**31)], np.int32)
    got = result(integer_functions, (7, 6), np.int32, x, N=6)
    patterns = [int(v) & 0xFFFFFFFF for v in x]
    texts = [f"{p:032b}" for p in patterns]
    assert got[0].tolist() == [t.count("1") for t in texts]
    assert got[1].tolist() == [len(t) - len(t.lstrip("0")) for t in texts]
    assert (got[2].view(np.uint32)).tolist() == [int(t[::-1], 2) for t in texts]
    assert got[3].tolist() == [0 if "1" not in t else len(t) - t.rindex("1") for t in texts]
    wrapped = (x.astype(np.int64) + 3).astype(np.int32).astype(np.int64)
    assert got[4].tolist() == ((x.astype(np.int64) + wrapped) >> 1).tolist()
    assert (got[5].view(np.uint32)).tolist() == [p * p >> 32 for p in patterns]
    assert got[6].tolist() == [int(v) * int(v) >> 32 for v in x]


@ltl.jit
def extremes_of_truths(out, x, y, N: ltl.constexpr):
    i = ltl.arange(0, N)
    a, b = ltl.load(x + i), ltl.load(y + i)
    ltl.store(out + i, ltl.minimum(a, b))
    ltl.store(out + N + i, ltl.maximum(a, b))


def test_extremes_of_truths() -> None:
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    assert result(extremes_of_truths, (2, 4), bool, x, y, N=4).tolist() == [(x & y).tolist(), (x | y).tolist()]


@ltl.jit
def rounded_to_integers(out, x, N: ltl.constexpr):
    i = ltl.arange(0, N)
    v = ltl.load(x + i)
    ltl.store(out + i, libdevice.float2int_rn(v))
    ltl.store(out + N + i, libdevice.float2int_rz(v))
    ltl.store(out + 2 * N + i, libdevice.float2int_rd(v))
    ltl.store(out + 3 * N + i, libdevice.float2int_ru(v))
    ltl.store(out + 4 * N + i, libdevice.signbit(v))
    ltl.store(out + 5 * N + i, libdevice.ilogb(v))


def test_directed_conversions() -> None:
    x = np.array([2.5, -2.5, -0.25, 7.0, -0.0], np.float32)
    got = result(rounded_to_integers, (6, 5), np.int32, x, N=5)
    assert got[:4].tolist() == [[2, -2, 0, 7, 0], [2, -2, 0, 7, 0], [2, -3, -1, 7, 0], [3, -2, 0, 7, 0]]
    assert got[4].tolist() == [0, 1, 1, 0, 1]
    assert got[5].tolist() == [1, 1, -2, 2, -(2**31)]


# ---- arithmetic and conversions --------------------------------------------------------------------------------------


@ltl.jit
def float_remainder(out, x, y, N: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(out + i, ltl.load(x + i) % ltl.load(y + i))


def test_remainder_of_floats_is_exact() -> None:
    x, y = np.array([5.5, -5.5, 1e30, 3.0], np.float32), np.array([2, 2, 3, np.inf], np.float32)
    assert np.array_equal(result(float_remainder, 4, np.float32, x, y, N=4), np.fmod(x, y))


@ltl.jit
def truncated(out, x, N: ltl.constexpr, DTYPE: ltl.constexpr):
    i = ltl.arange(0, N)
    ltl.store(out + i, ltl.load(x + i).to(DTYPE, fp_downcast_rounding="rtz"))


@pytest.mark.parametrize(("dtype", "own"), [(ltl.float16, np.float16), (ltl.bfloat16, ml_dtypes.bfloat16)])
def test_casts_towards_zero(dtype: Any, own: Any) -> None:
    x = np.concatenate([np.random.default_rng(0).standard_normal(500), [1e30, -1e30, np.inf, 1e-30]]).astype(np.float32)
    got = result(truncated, x.size, own, x, N=x.size, DTYPE=dtype).astype(np.float32)
    finite = np.isfinite(x)
    assert (np.abs(got[finite]) <= np.abs(x[finite])).all()
    largest = float(ml_dtypes.finfo(own).max)
    with np.errstate(over="ignore"):
        next_up = np.nextafter(np.abs(got).astype(own), own(np.inf)).astype(np.float32)
    inside = finite & (np.abs(x) < largest)
    assert (next_up[inside] > np.abs(x[inside])).all()
    assert got[-2] == np.inf


@ltl.jit
def wrapped_integers(out, x, N: ltl.constexpr):
    i = ltl.arange(0, N)
    v = ltl.load(x + i)
    ltl.store(out + i, v * v + v)
    ltl.store(out + N + i, v - 1)
    ltl.store(out + 2 * N + i, v // 3)
    ltl.store(out + 3 * N + i, v % 7)
    ltl.store(out + 4 * N + i, v << 3)
    ltl.store(out + 5 * N + i, (v > 100).to(v.dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_integers_of_every_width_wrap(dtype: Any) -> None:
    info = np.iinfo(dtype)
    x = np.array([0, 1, 100, 127, info.max, info.min, info.max // 3], dtype)
    got = result(wrapped_integers, (6, 7), dtype, x, N=7)
    exact = [int(v) for v in x]
    modulo = 1 << info.bits

    def wrap(value: int) -> int:
        low = value % modulo
        return low - modulo if info.min < 0 and low > info.max else low

    def quotient(a: int, b: int) -> int:
        return abs(a) // b * (1 if a >= 0 else -1)

    expected = [
        [wrap(v * v + v) for v in exact], [wrap(v - 1) for v in exact], [quotient(v, 3) for v in exact],
        [v - 7 * quotient(v, 7) for v in exact], [wrap(v << 3) for v in exact], [int(v > 100) for v in exact],
    ]  # fmt: skip
    assert got.tolist() == expected


@ltl.jit
def batched(out, a, b, B: ltl.constexpr, N: ltl.constexpr):
    i, j, k = ltl.arange(0, B)[:, None, None], ltl.arange(0, N)[None, :, None], ltl.arange(0, N)[None, None, :]
    at = i * N * N + j * N + k
    ltl.store(out + at, ltl.dot(ltl.load(a + at), ltl.load(b + at), out_dtype=ltl.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_batched_dot(dtype: Any) -> None:
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-3, 4, (3, 16, 16)).astype(dtype) for _ in range(2))
    expected = a.astype(np.float32) @ b.astype(np.float32)
    assert np.array_equal(result(batched, expected.shape, np.float32, a, b, B=3, N=16), expected)


@ltl.jit
def wide_products(out8, out64, a8, a64, N: ltl.constexpr):
    i = ltl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    x, y = ltl.load(a8 + at), ltl.load(a64 + at)
    ltl.store(out8 + at, ltl.dot(x, x))
    ltl.store(out64 + at, ltl.dot(y, y))


def test_dot_of_integers_and_doubles() -> None:
    generator = np.random.default_rng(0)
    a8, a64 = generator.integers(-128, 128, (16, 16)).astype(np.int8), generator.standard_normal((16, 16))
    out8, out64 = np.zeros((16, 16), np.int32), np.zeros((16, 16))
    interpret(wide_products, out8, out64, a8, a64, N=16)
    assert np.array_equal(out8, a8.astype(np.int32) @ a8.astype(np.int32))
    assert np.allclose(out64, a64 @ a64, rtol=1e-14)


# ---- aggregates ------------------------------------------------------------------------------------------------------


@ltl.aggregate
class Span:
    start: ltl.tensor
    size: ltl.constexpr

    def __init__(self, start, size):
        self.start = start
        self.size = size

    @ltl.jit
    def indices(self):
        return self.start + ltl.arange(0, self.size)

    @ltl.jit
    def moved(self, step):
        return Span(self.start + step, self.size)


@ltl.jit
def last_span(n, SIZE: ltl.constexpr):
    span = Span(0, SIZE)
    for _ in range(n):
        span = span.moved(SIZE)
    if n > 1:
        span = ltl.aggregate_replace(span, start=span.start + 1)
    return span


@ltl.jit
def fill(out, n, SIZE: ltl.constexpr):
    span = last_span(n, SIZE)
    ltl.store(out + span.indices(), span.start)


def test_aggregates_go_through_calls_loops_and_branches() -> None:
    assert result(fill, 12, np.int32, 1, SIZE=4).tolist() == [0] * 4 + [4] * 4 + [0] * 4
    assert result(fill, 13, np.int32, 2, SIZE=4).tolist() == [0] * 9 + [9] * 4
