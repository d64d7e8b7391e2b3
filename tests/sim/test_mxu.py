"""The matrix unit: panels from any layout, products bit for bit."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from loom_sim import mxu_kernel

if __name__ == "__main__" and len(sys.argv) > 1:  # a process of `test_the_tile_of_other...`
    mxu_kernel.REGISTER_TILE = mxu_kernel.FUSED_TILES[int(sys.argv[1])]

from exhaustive import matrix
from exhaustive.matrix import Guarded, Words, multiplied, multiplier, packer, round_up
from loom_sim import bits, mxu

Floats = npt.NDArray[np.float32]

QUIET_NAN = np.uint32(0x7FC00000)

SHAPES = [
    (1, 1, 1),
    (1, 1, 128),
    (3, 5, 7),
    (8, 32, 16),
    (9, 33, 17),
    (24, 32, 128),
    (25, 33, 129),
    (23, 31, 127),
    (6, 16, 130),
    (64, 64, 32),
    (13, 70, 257),
    (49, 97, 300),
]


# ---- references ------------------------------------------------------------------------------------------------------


def fma_reference(a: Floats, b: Floats, c: Floats) -> Floats:
    """float32 a * b + c rounded once, by lane: exact float64 product, two-sum, round to odd, round."""
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    taken = total - product
    error = (product - (total - taken)) + (addend - taken)
    even = (total.view(np.uint64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0)
    odd = np.where(inexact & even, np.nextafter(total, np.copysign(np.inf, error)), total)
    return odd.astype(np.float32)


def numpy_matmul(acc: Floats, a: Floats, b: Floats) -> Floats:
    """The dot rule of the machine on whole arrays."""
    with np.errstate(all="ignore"):
        for first in range(0, a.shape[1], 128):
            total = np.zeros_like(acc)
            for k in range(first, min(first + 128, a.shape[1])):
                total = fma_reference(*np.broadcast_arrays(a[:, k, None], b[None, k, :], total))
            acc = acc + total
    return acc


@njit
def _scalar_matmul(acc, a, b):  # type: ignore[no-untyped-def]
    for i in range(acc.shape[0]):
        for j in range(acc.shape[1]):
            for first in range(0, a.shape[1], 128):
                total = np.float32(0)
                for k in range(first, min(first + 128, a.shape[1])):
                    total = bits.fma32(a[i, k], b[k, j], total)
                acc[i, j] += total


def scalar_matmul(acc: Floats, a: Floats, b: Floats) -> Floats:
    """The same, one element after the other, with the host's own fused multiply-add."""
    result = acc.copy()
    _scalar_matmul(result, a, b)
    return result


def patterns(values: Floats) -> Words:
    """Bits, with one pattern for all NaNs: an accumulator's payloads are nobody's business before the drain."""
    return np.where(np.isnan(values), QUIET_NAN, np.ascontiguousarray(values).view(np.uint32))


# ---- the unit under test ---------------------------------------------------------------------------------------------


def packed(side: int, operand: Floats, box: tuple[int, int, int, int] | None = None, fill: int = 0) -> Guarded:
    """Panel of `operand`, [extent, depth] of any strides; box is (ext_lo, ext_hi, k_lo, k_hi)."""
    return matrix.packed("f32", side, operand, box, fill)


def multiply(acc: Floats, a: Floats, b: Floats) -> Floats:
    """acc + a b by the unit."""
    return multiplied("f32", acc, packed(mxu.SIDE_A, a), packed(mxu.SIDE_B, b.T), a.shape[1])


def normal(shape: tuple[int, ...], seed: int = 0, scale: float = 1.0) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * np.float32(scale)


def any_bits(shape: tuple[int, ...], seed: int) -> Floats:
    """Every exponent, so also subnormals, infinities and NaNs of both kinds."""
    return np.random.default_rng(seed).integers(0, 1 << 32, shape, np.uint32).view(np.float32)


def extremes(shape: tuple[int, ...], seed: int) -> Floats:
    largest, least_normal, least = 3.4028235e38, 1.17549435e-38, 1e-45
    common = [0.0, 1.0, 1e20, 1e-20, largest, least_normal, least, 1.0000001, 0.99999994, 16777215.0]
    rare = [np.inf, -np.inf, np.nan]
    values = np.array([*common, *(-value for value in common), *rare], np.float32)
    weights = np.array([1.0] * 2 * len(common) + [0.03] * len(rare))
    return np.random.default_rng(seed).choice(values, shape, p=weights / weights.sum())


# ---- products --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_product_equals_both_references(m: int, n: int, k: int) -> None:
    acc, a, b = normal((m, n), 1), normal((m, k), 2), normal((k, n), 3)
    expected = patterns(numpy_matmul(acc, a, b))
    np.testing.assert_array_equal(patterns(scalar_matmul(acc, a, b)), expected)
    np.testing.assert_array_equal(patterns(multiply(acc, a, b)), expected)


def test_product_of_many_tiles_equals_the_scalar_loop() -> None:
    acc, a, b = normal((200, 260), 1), normal((200, 700), 2), normal((700, 260), 3)
    np.testing.assert_array_equal(patterns(multiply(acc, a, b)), patterns(scalar_matmul(acc, a, b)))


@pytest.mark.parametrize("scale", [2.0**-75, 2.0**-70, 2.0**-65])
def test_subnormal_results_are_kept(scale: float) -> None:
    acc, a, b = normal((16, 40), 1, scale * scale), normal((16, 150), 2, scale), normal((150, 40), 3, scale)
    expected = patterns(numpy_matmul(acc, a, b))
    assert (((expected & 0x7F800000) == 0) & ((expected & 0x007FFFFF) != 0)).any()
    np.testing.assert_array_equal(patterns(multiply(acc, a, b)), expected)


def test_sums_overflow_to_infinity() -> None:
    acc, a, b = normal((16, 40), 1), normal((16, 150), 2, 2.0**63), normal((150, 40), 3, 2.0**62)
    expected = patterns(numpy_matmul(acc, a, b))
    infinite = (expected & 0x7FFFFFFF) == 0x7F800000
    assert infinite.any()
    assert not infinite.all()
    np.testing.assert_array_equal(patterns(multiply(acc, a, b)), expected)


@pytest.mark.parametrize("make", [any_bits, extremes])
@pytest.mark.parametrize("k", [1, 2, 3, 12, 140])
def test_product_of_special_values(make: Callable[[tuple[int, ...], int], Floats], k: int) -> None:
    acc, a, b = make((30, 50), 1), make((30, k), 2), make((k, 50), 3)
    expected = patterns(numpy_matmul(acc, a, b))
    np.testing.assert_array_equal(patterns(multiply(acc, a, b)), expected)


def test_no_sum_is_rounded_twice() -> None:
    a, b = matrix.near_ties()
    product = multiply(np.zeros((16, 2), np.float32), a, b)
    np.testing.assert_array_equal(product, numpy_matmul(np.zeros((16, 2), np.float32), a, b))
    # float64 gives ties first: these would go to the even neighbour.
    assert (a[0, 0], product[0, 0]) == (np.float32(1 + 2.0**-23), np.float32(1 + 2.0**-23))
    assert (a[10, 0], product[10, 1]) == (np.float32(1), np.float32(1 + 2.0**-23))


@pytest.mark.parametrize("start", [0.0, -0.0])
def test_a_sum_starts_at_plus_zero(start: float) -> None:
    acc = np.full((3, 3), start, np.float32)
    negative_zeros = np.full((3, 3), -0.0, np.float32)
    # +0 + (-0 * 1) stays +0, and so does the accumulator, whatever zero it held.
    np.testing.assert_array_equal(multiply(acc, negative_zeros, np.ones((3, 3), np.float32)).view(np.uint32), 0)


def test_a_pass_is_added_as_a_whole() -> None:
    a = np.zeros((1, 129), np.float32)
    a[0, [0, 127, 128]] = [1.0, 2.0**-30, 2.0**-30]
    ones = np.ones((129, 1), np.float32)
    # One chain over all k would give 0, one that started from the accumulator 2^-29.
    assert multiply(np.full((1, 1), -1.0, np.float32), a, ones)[0, 0] == np.float32(2.0**-30)


def test_split_at_a_pass_boundary_changes_no_bit() -> None:
    acc, a, b = normal((30, 40), 1), normal((30, 384), 2), normal((384, 40), 3)
    in_two = multiply(multiply(acc, a[:, :256], b[:256]), a[:, 256:], b[256:])
    np.testing.assert_array_equal(patterns(in_two), patterns(multiply(acc, a, b)))


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 5), (5, 0, 5), (5, 5, 0), (-1, 5, 5), (5, -40, 5), (5, 5, -2)])
def test_empty_products_touch_nothing(m: int, n: int, k: int) -> None:
    acc = Guarded(24 * 32)
    multiplier("f32")(acc.address, 0, 0, m, n, k)
    assert (acc.checked() == 0x12345678).all()


# ---- panels ----------------------------------------------------------------------------------------------------------

LAYOUTS: dict[str, Callable[[Floats], Floats]] = {
    "contiguous in k": lambda x: x.copy(),
    "contiguous in rows": lambda x: np.asfortranarray(x),
    "wide rows": lambda x: np.hstack([x, x])[:, : x.shape[1]],
    "wide columns": lambda x: np.asfortranarray(np.vstack([x, x]))[: x.shape[0]],
    "every second": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "every second, k outside": lambda x: np.repeat(np.repeat(x.T, 2, axis=0), 3, axis=1)[::2, ::3].T,
    "rows upside down": lambda x: x[::-1].copy()[::-1],
    "k backwards": lambda x: x[:, ::-1].copy()[:, ::-1],
    "both backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "transposed backwards": lambda x: x.T[::-1, ::-1].copy()[::-1, ::-1].T,
    "odd address": lambda x: np.frombuffer(b"?" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape),
}


@pytest.mark.parametrize("side", [mxu.SIDE_A, mxu.SIDE_B])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_panel_does_not_depend_on_strides(layout: str, side: int) -> None:
    for extent, depth in [(1, 1), (5, 3), (24, 16), (32, 128), (33, 50), (70, 141), (96, 256), (31, 300)]:
        operand = any_bits((extent, depth), extent)
        view = LAYOUTS[layout](operand)
        assert view.shape == operand.shape
        np.testing.assert_array_equal(packed(side, view).words, packed(side, operand).words)


@pytest.mark.parametrize("side", [mxu.SIDE_A, mxu.SIDE_B])
@pytest.mark.parametrize("axis", [0, 1])
def test_panel_of_a_broadcast_operand(axis: int, side: int) -> None:
    shape = (50, 140)
    line = any_bits((1, 140) if axis == 0 else (50, 1), 7)
    view = np.broadcast_to(line, shape)
    assert view.strides[axis] == 0
    np.testing.assert_array_equal(packed(side, view).words, packed(side, view.copy()).words)


@pytest.mark.parametrize("side", [mxu.SIDE_A, mxu.SIDE_B])
@pytest.mark.parametrize("extent", [1, 7, 8, 23, 31, 33, 49])
def test_panel_is_padded_with_plus_zero_and_moves_bits(extent: int, side: int) -> None:
    operand = any_bits((extent, 150), extent)
    multiple = mxu.PANEL_ROWS if side == mxu.SIDE_A else mxu.PANEL_COLS
    padded = np.zeros((round_up(extent, multiple), 150), np.float32)
    padded[:extent] = operand
    panel = packed(side, operand).words
    np.testing.assert_array_equal(panel, packed(side, padded).words)
    np.testing.assert_array_equal(np.sort(panel), np.sort(padded.view(np.uint32).ravel()))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_outside_of_the_box_is_the_fill(data: st.DataObject) -> None:
    extent, depth = data.draw(st.integers(1, 70)), data.draw(st.integers(1, 300))
    ext_lo, ext_hi = data.draw(st.integers(-5, extent + 5)), data.draw(st.integers(-5, extent + 5))
    k_lo, k_hi = data.draw(st.integers(-5, depth + 5)), data.draw(st.integers(-5, depth + 5))
    side = data.draw(st.sampled_from([mxu.SIDE_A, mxu.SIDE_B]))
    layout = data.draw(st.sampled_from([*LAYOUTS]))
    fill = data.draw(st.sampled_from([0, 0x3F800000, 0xFF800000, 0x7FABCDEF]))
    operand = any_bits((extent, depth), extent)
    inside = np.zeros(operand.shape, bool)
    inside[max(ext_lo, 0) : max(ext_hi, 0), max(k_lo, 0) : max(k_hi, 0)] = True
    filled = np.where(inside, operand.view(np.uint32), np.uint32(fill)).view(np.float32)
    panel = packed(side, LAYOUTS[layout](operand), (ext_lo, ext_hi, k_lo, k_hi), fill)
    np.testing.assert_array_equal(panel.words, packed(side, filled).words)


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
@pytest.mark.parametrize("side", [mxu.SIDE_A, mxu.SIDE_B])
@pytest.mark.parametrize("contiguous_in_k", [True, False])
def test_nothing_outside_of_the_box_is_read(contiguous_in_k: bool, side: int) -> None:
    # The box's last element is the last of a page, and the next page faults.
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 64 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(base + 63 * page), ctypes.c_size_t(page), 0) == 0
    extent, depth, rows, steps = 70, 300, 61, 275
    strides = (4 * steps, 4) if contiguous_in_k else (4, 4 * rows)
    last = (rows - 1) * strides[0] + (steps - 1) * strides[1]
    multiple = mxu.PANEL_ROWS if side == mxu.SIDE_A else mxu.PANEL_COLS
    panel = Guarded(round_up(extent, multiple) * depth)
    packer("f32")(
        base + 63 * page - 4 - last, panel.address, extent, depth, *strides, 0, rows, 0, steps, 0x3F800000, side
    )
    words, counts = np.unique(panel.checked(), return_counts=True)
    outside = extent * depth - rows * steps
    expected = {0: panel.words.size - outside, 0x3F800000: outside}
    assert dict(zip(words.tolist(), counts.tolist(), strict=True)) == expected
    assert libc.mprotect(ctypes.c_void_p(base + 63 * page), ctypes.c_size_t(page), 3) == 0


@pytest.mark.parametrize(("extent", "depth"), [(0, 5), (5, 0), (-3, 5), (-10, 5), (-25, 5), (5, -3)])
def test_empty_operands_touch_nothing(extent: int, depth: int) -> None:
    panel = Guarded(24 * 32)
    for side in (mxu.SIDE_A, mxu.SIDE_B):
        packer("f32")(0, panel.address, extent, depth, 4, 4, 0, extent, 0, depth, 0, side)
    assert (panel.checked() == 0x12345678).all()


# ---- instruction sets ------------------------------------------------------------------------------------------------


def test_the_tile_of_other_processors_computes_the_same_bits() -> None:
    """That of 128 bits, which no x86-64 target has."""
    folders = Path(mxu.__file__).resolve().parents[1], Path(__file__).resolve().parents[2]
    path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, "2"]
    environment = {**os.environ, "PYTHONPATH": path}
    output = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True).stdout
    assert output.strip() == f"{mxu_kernel.FUSED_TILES[2]} {matrix.digest('f32')}"


def test_tiles_divide_the_panels() -> None:
    for tile in (*mxu_kernel.FUSED_TILES, mxu_kernel.EMULATED_TILE):
        assert mxu.PANEL_ROWS % tile.rows == 0
        assert mxu.PANEL_COLS % tile.columns == 0
        assert tile.columns % tile.b_transpose_rows == 0
        assert tile.unroll & (tile.unroll - 1) == 0
    assert mxu_kernel.choose_register_tile() == mxu_kernel.REGISTER_TILE


if __name__ == "__main__":
    print(mxu_kernel.REGISTER_TILE, matrix.digest("f32"))
