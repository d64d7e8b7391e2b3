"""Operands of every element type: panels from any layout, products bit for bit."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhaustive.matrix import (
    UNTOUCHED,
    Array,
    Guarded,
    any_bits,
    canonical,
    every_pattern,
    multiplied,
    ordinary,
    packed,
    packer,
    product,
    round_up,
    tile_of,
)
from loom_core.base import dtype
from loom_core.reference.dot import dot, dot_i32
from loom_sim import mxu, mxu_kernel
from loom_sim.mxu_elements import ELEMENTS

FLOATS = ["bf16", "f16", "f8e4m3", "f8e5m2"]
INTEGERS = ["i8", "u8", "i4", "u4"]
SIDES = [mxu.SIDE_A, mxu.SIDE_B]
SHAPES = [
    (1, 1, 1),
    (3, 5, 7),
    (8, 32, 16),
    (9, 33, 17),
    (25, 33, 129),
    (23, 31, 127),
    (6, 16, 130),
    (13, 70, 257),
    (49, 97, 300),
]


def numpy_type(name: str) -> np.dtype[Any]:
    return dtype.by_name(name).numpy


def bits_of(operand: Array) -> Array:
    return operand.view(f"u{operand.dtype.itemsize}")


def integers_of(operand: Array) -> Array:
    """What the unit takes bytes of an integer type for."""
    values = bits_of(operand).astype(np.int64)
    return {
        "int8": (values ^ 128) - 128,
        "uint8": values,
        "int4": (values % 16 ^ 8) - 8,
        "uint4": values % 16,
    }[operand.dtype.name]


# ---- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", FLOATS)
def test_every_float_widens_exactly(name: str, side: int) -> None:
    patterns = every_pattern(name)
    operand = patterns.reshape(max(len(patterns) // 256, 16), -1)
    expected = canonical(packed("f32", side, operand.astype(np.float32)).words)
    for view in (operand, np.asfortranarray(operand), np.repeat(operand, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(canonical(packed(name, side, view).words), expected)


@pytest.mark.parametrize(("left", "right"), list(itertools.product(INTEGERS, INTEGERS)))
def test_every_product_of_two_integers(left: str, right: str) -> None:
    a, b = every_pattern(left)[:, None], every_pattern(right)[None, :]
    zero = np.zeros((256, 256), np.int32)
    expected = (integers_of(a) * integers_of(b)).astype(np.int32)
    np.testing.assert_array_equal(product(left, zero, a, b, right), expected)
    # In pairs: k = 0 has them in one order, k = 1 in the other.
    twice = product(left, zero, np.hstack([a, a[::-1]]), np.vstack([b, b]), right)
    np.testing.assert_array_equal(twice, expected + expected[::-1])


def test_references_agree_about_integers() -> None:
    for name in INTEGERS:
        operand = every_pattern(name)
        np.testing.assert_array_equal(operand.astype(np.int64), integers_of(operand))


# ---- products --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize("name", FLOATS)
def test_product_of_floats(name: str, m: int, n: int, k: int) -> None:
    acc = np.random.default_rng(1).standard_normal((m, n)).astype(np.float32)
    a, b = ordinary(name, (m, k), 2), ordinary(name, (k, n), 3)
    assert product(name, acc, a, b).tobytes() == dot(a, b, acc).tobytes()


@pytest.mark.parametrize("k", [1, 2, 3, 140])
@pytest.mark.parametrize("name", FLOATS)
def test_product_of_any_patterns(name: str, k: int) -> None:
    a, b = any_bits(name, (30, k), 2), any_bits(name, (k, 50), 3)
    acc = np.random.default_rng(1).integers(0, 1 << 32, (30, 50), np.uint32).view(np.float32)
    got = product(name, acc, a, b).view(np.uint32)
    np.testing.assert_array_equal(canonical(got), dot(a, b, acc).view(np.uint32))


@pytest.mark.parametrize(("left", "right"), [("bf16", "f32"), ("f32", "f16"), ("f8e4m3", "f8e5m2"), ("f8e5m2", "bf16")])
def test_floats_of_two_types(left: str, right: str) -> None:
    a, b = ordinary(left, (20, 150), 2), ordinary(right, (150, 40), 3)
    acc = np.zeros((20, 40), np.float32)
    assert product(left, acc, a, b, right).tobytes() == dot(a, b, acc).tobytes()


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize(("left", "right"), [("i8", "i8"), ("u8", "i8"), ("i4", "u4")])
def test_product_of_integers(left: str, right: str, m: int, n: int, k: int) -> None:
    acc = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, (m, n)).astype(np.int32)
    a, b = ordinary(left, (m, k), 2), ordinary(right, (k, n), 3)
    got = product(left, acc, a, b, right)
    np.testing.assert_array_equal(got, dot_i32(integers_of(a), integers_of(b), acc))


@pytest.mark.parametrize("extreme", [-128, 127, 255])
def test_integer_sums_wrap(extreme: int) -> None:
    name = "u8" if extreme == 255 else "i8"
    k = 300
    a = np.full((5, k), extreme).astype(numpy_type(name))
    acc = np.full((5, 7), 2**31 - 1, np.int32)
    exact = 2**31 - 1 + k * extreme * extreme
    got = product(name, acc, a, np.full((k, 7), extreme).astype(numpy_type(name)))
    assert (got == exact - 2**32).all()


def test_large_products_of_integers() -> None:
    a, b = any_bits("i8", (200, 700), 1), any_bits("u8", (700, 260), 2)
    acc = np.zeros((200, 260), np.int32)
    np.testing.assert_array_equal(product("i8", acc, a, b, "u8"), dot_i32(a, b))


# ---- panels ----------------------------------------------------------------------------------------------------------

LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous in k": lambda x: x.copy(),
    "contiguous in rows": lambda x: np.asfortranarray(x),
    "wide rows": lambda x: np.hstack([x, x])[:, : x.shape[1]],
    "wide columns": lambda x: np.asfortranarray(np.vstack([x, x]))[: x.shape[0]],
    "every second": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "every second, k outside": lambda x: np.repeat(np.repeat(x.T, 2, axis=0), 3, axis=1)[::2, ::3].T,
    "rows upside down": lambda x: x[::-1].copy()[::-1],
    "k backwards": lambda x: x[:, ::-1].copy()[:, ::-1],
    "both backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "odd address": lambda x: np.frombuffer(b"?" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape),
}


def content(name: str, side: int, panel: Guarded, extent: int, depth: int) -> Array:
    """The operand that a panel holds, [extent, depth]: each k, as a panel of its own by means of a product.

    Floats as float32 bits. The product is with the identity, whose zeros would turn other elements' infinities into
    NaN; callers pack finite ones.
    """
    kind = np.int32 if name in INTEGERS else np.float32
    one = "i8" if name in INTEGERS else "f32"
    identity = np.eye(depth, dtype=numpy_type(one))
    if side == mxu.SIDE_A:
        other = packed(one, mxu.SIDE_B, identity)
        return multiplied(name, np.zeros((extent, depth), kind), panel, other, depth)
    other = packed(one, mxu.SIDE_A, identity)
    return multiplied(name, np.zeros((depth, extent), kind), other, panel, depth).T


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_panel_does_not_depend_on_strides(name: str, side: int) -> None:
    for extent, depth in [(1, 1), (5, 3), (24, 16), (32, 128), (33, 50), (70, 141), (96, 256), (31, 300)]:
        operand = any_bits(name, (extent, depth), extent)
        words = packed(name, side, operand).words
        for layout, make in LAYOUTS.items():
            view = make(operand)
            assert view.shape == operand.shape
            got = packed(name, side, view).words
            np.testing.assert_array_equal(got, words, err_msg=layout)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["bf16", "f8e4m3", "i8"])
def test_panel_of_a_broadcast_operand(name: str, axis: int, side: int) -> None:
    view = np.broadcast_to(any_bits(name, (1, 140) if axis == 0 else (50, 1), 7), (50, 140))
    np.testing.assert_array_equal(packed(name, side, view).words, packed(name, side, view.copy()).words)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_outside_of_the_box_is_the_fill(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*FLOATS, *INTEGERS]))
    extent, depth = data.draw(st.integers(1, 70)), data.draw(st.integers(1, 300))
    ext_lo, ext_hi = data.draw(st.integers(-5, extent + 5)), data.draw(st.integers(-5, extent + 5))
    k_lo, k_hi = data.draw(st.integers(-5, depth + 5)), data.draw(st.integers(-5, depth + 5))
    side = data.draw(st.sampled_from(SIDES))
    layout = data.draw(st.sampled_from([*LAYOUTS]))
    size = ELEMENTS[name].bytes
    fill = data.draw(st.sampled_from([0, 1, 0x37, 0x3C00 % (1 << 8 * size)]))
    operand = ordinary(name, (extent, depth), extent)
    inside = np.zeros(operand.shape, bool)
    inside[max(ext_lo, 0) : max(ext_hi, 0), max(k_lo, 0) : max(k_hi, 0)] = True
    filled = np.where(inside, bits_of(operand), fill).astype(f"u{size}").view(operand.dtype)
    panel = packed(name, side, LAYOUTS[layout](operand), (ext_lo, ext_hi, k_lo, k_hi), fill)
    expected = integers_of(filled) if name in INTEGERS else filled.astype(np.float32)
    np.testing.assert_array_equal(content(name, side, panel, extent, depth), expected)
    np.testing.assert_array_equal(panel.words, packed(name, side, filled).words)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_rows_and_steps_of_padding_add_nothing(name: str, side: int) -> None:
    # All rows of the padded panel and an odd depth: what lies beyond the operand must be zero, whatever was there.
    extent, depth = 5, 131
    operand = ordinary(name, (extent, depth), 1)
    padded = mxu.PANEL_ROWS if side == mxu.SIDE_A else mxu.PANEL_COLS
    got = content(name, side, packed(name, side, operand, fill=1), padded, depth)
    expected = integers_of(operand) if name in INTEGERS else operand.astype(np.float32)
    np.testing.assert_array_equal(got[:extent], expected)
    assert not got[extent:].view(np.uint32).any()


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
@pytest.mark.parametrize("name", ["bf16", "f16", "f8e5m2", "i8", "u4"])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("contiguous_in_k", [True, False])
def test_nothing_outside_of_the_box_is_read(name: str, contiguous_in_k: bool, side: int) -> None:
    # The box begins with the first byte of a page and ends with the last of one; the pages around it fault.
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 64 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    size = ELEMENTS[name].bytes
    extent, depth, rows, steps = 70, 300, 61, 275
    strides = (size * steps, size) if contiguous_in_k else (size, size * rows)
    last = (rows - 1) * strides[0] + (steps - 1) * strides[1] + size
    closed = [base, base + 63 * page]
    for address in closed:
        assert libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(page), 0) == 0
    multiple = mxu.PANEL_ROWS if side == mxu.SIDE_A else mxu.PANEL_COLS
    for first in (base + page, base + 63 * page - last):
        panel = Guarded(round_up(extent, multiple) * depth)
        packer(name)(first, panel.address, extent, depth, *strides, 0, rows, 0, steps, 0, side)
        assert not panel.checked()[panel.words != UNTOUCHED].any()
    for address in closed:
        assert libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(page), 3) == 0


@pytest.mark.parametrize(("extent", "depth"), [(0, 5), (5, 0), (-3, 5), (-25, 5), (5, -3)])
@pytest.mark.parametrize("name", ["f16", "i8"])
def test_empty_operands_touch_nothing(name: str, extent: int, depth: int) -> None:
    panel = Guarded(24 * 32)
    for side in SIDES:
        packer(name)(0, panel.address, extent, depth, 4, 4, 0, extent, 0, depth, 0, side)
    assert (panel.checked() == UNTOUCHED).all()


def test_tiles_divide_the_panels() -> None:
    for tile in (*mxu_kernel.PAIR_TILES, mxu_kernel.EMULATED_PAIR_TILE):
        assert mxu.PANEL_ROWS % tile.rows == 0
        assert mxu.PANEL_COLS % tile.columns == 0
        assert tile.columns % tile.b_transpose_rows == 0
        assert tile.unroll & (tile.unroll - 1) == 0
    assert mxu_kernel.choose_pair_tile() == mxu_kernel.PAIR_TILE
    assert tile_of("i8") == mxu_kernel.PAIR_TILE
