"""Engines around the matrix unit: PACK, MATMUL, ACCFILL and ACCLOAD, with the bounds checks that `mxu` leaves to its
callers.

Sizes are those of `isa.machine`: a packed operand of E rows (columns) and depth K takes round_up(E, panel) * K elements
of 4 bytes, an accumulator tile round_up(m, 24) * round_up(n, 32).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from loom_sim import mxu
from loom_sim.jit import subroutine
from loom_sim.memory import bounded_product, larger, load32, load_word, move_bytes, set32, smaller
from loom_sim.mxu_elements import ELEMENTS
from loom_sim.spaces import ELEMENT_LIMIT, check_range, check_sram, is_wild, out_of_bounds, oversized, space_base
from loom_sim.state import OK, SRAM

_ELEMENT: Final = 4
_PANEL_ROWS: Final = mxu.PANEL_ROWS
_PANEL_COLS: Final = mxu.PANEL_COLS
MULTIPLY_LIMIT: Final = 1 << 40
"""Multiply-adds that one MATMUL may do: half a minute of host time, since a command cannot be interrupted."""


@subroutine("int64(int64, int64)", inline=True)
def padded(extent, multiple):  # type: ignore[no-untyped-def]
    """`extent` rounded up to a multiple; extents near the end of int64 give the largest multiple instead."""
    return (smaller(extent, (1 << 62)) + (multiple - 1)) // multiple * multiple


@subroutine("int64(int64, int64)", inline=True)
def tile_bytes(m, n):  # type: ignore[no-untyped-def]
    """Bytes of an accumulator tile, saturating."""
    return bounded_product(bounded_product(padded(m, _PANEL_ROWS), padded(n, _PANEL_COLS)), _ELEMENT)


@subroutine("int64(int64, int64, int64)", inline=True)
def panel_bytes(extent, depth, multiple):  # type: ignore[no-untyped-def]
    """Bytes of a packed operand, saturating."""
    return bounded_product(bounded_product(padded(extent, multiple), depth), _ELEMENT)


def build_matmul(multiply: Any = mxu.multiply_floats) -> Callable[[int, int], int]:
    """The engine of a product of packed operands, by a subroutine of `mxu`."""

    def matmul_engine(operands, state):  # type: ignore[no-untyped-def]
        acc, a, b = load_word(operands, 0), load_word(operands, 1), load_word(operands, 2)
        m, n, k = load_word(operands, 3), load_word(operands, 4), load_word(operands, 5)
        if m <= 0 or n <= 0 or k <= 0:
            return OK
        status = check_sram(state, acc, tile_bytes(m, n))
        if status != OK:
            return status
        status = check_sram(state, a, panel_bytes(m, k, _PANEL_ROWS))
        if status != OK:
            return status
        status = check_sram(state, b, panel_bytes(n, k, _PANEL_COLS))
        if status != OK:
            return status
        work = bounded_product(bounded_product(m, n), k)
        if work > MULTIPLY_LIMIT:
            return oversized(state, work, MULTIPLY_LIMIT)
        sram = load_word(state, SRAM)
        multiply(sram + acc, sram + a, sram + b, m, n, k)
        return OK

    return matmul_engine


def build_integer_matmul() -> Callable[[int, int], int]:
    """The engine of a product of packed integers."""
    return build_matmul(mxu.multiply_pairs)


def build_pack(name: str = "f32") -> Callable[[int, int], int]:
    """The engine that packs elements of the type called `name`."""
    pack, element = mxu.packing(name), ELEMENTS[name].bytes

    def pack_engine(operands, state):  # type: ignore[no-untyped-def]
        side = load_word(operands, -2) >> 24 & 1
        space, src, dst = load_word(operands, 0), load_word(operands, 1), load_word(operands, 2)
        extent, depth = load_word(operands, 3), load_word(operands, 4)
        if extent <= 0 or depth <= 0:
            return OK
        size = panel_bytes(extent, depth, _PANEL_COLS if side else _PANEL_ROWS)
        status = check_sram(state, dst, size)
        if status != OK:
            return status
        if size > ELEMENT_LIMIT * _ELEMENT:
            return oversized(state, size // _ELEMENT, ELEMENT_LIMIT)
        extent_stride, depth_stride = load_word(operands, 5), load_word(operands, 6)
        ext_lo, ext_hi = larger(load_word(operands, 7), 0), smaller(load_word(operands, 8), extent)
        k_lo, k_hi = larger(load_word(operands, 9), 0), smaller(load_word(operands, 10), depth)
        if ext_lo < ext_hi and k_lo < k_hi:
            status = check_box(
                state, space, src, ext_lo, ext_hi - ext_lo, extent_stride, k_lo, k_hi - k_lo, depth_stride, element
            )
            if status != OK:
                return status
            src += space_base(state, space)
        else:
            ext_lo, ext_hi, k_lo, k_hi = 0, 0, 0, 0  # nothing is read
        pack(
            src,
            load_word(state, SRAM) + dst,
            extent,
            depth,
            extent_stride,
            depth_stride,
            ext_lo,
            ext_hi,
            k_lo,
            k_hi,
            load_word(operands, 11),
            side,
        )
        return OK

    return pack_engine


@subroutine("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def check_box(state, space, offset, row, rows, row_stride, column, columns, column_stride, element):  # type: ignore[no-untyped-def]
    """OK if a non-empty box of elements of `element` bytes, from element (row, column) on, lies in its space."""
    to_row, row_span = bounded_product(row, row_stride), bounded_product(rows - 1, row_stride)
    to_column, column_span = bounded_product(column, column_stride), bounded_product(columns - 1, column_stride)
    first = to_row + to_column
    low = first + smaller(row_span, 0) + smaller(column_span, 0)
    high = first + larger(row_span, 0) + larger(column_span, 0) + element
    if is_wild(to_row) or is_wild(row_span) or is_wild(to_column) or is_wild(column_span):
        return out_of_bounds(state, space, offset, low, high)
    return check_range(state, space, offset, low, high)


def build_accfill() -> Callable[[int, int], int]:
    """The ACCFILL engine."""

    def accfill_engine(operands, state):  # type: ignore[no-untyped-def]
        acc, m, n = load_word(operands, 0), load_word(operands, 1), load_word(operands, 2)
        if m <= 0 or n <= 0:
            return OK
        size = tile_bytes(m, n)
        status = check_sram(state, acc, size)
        if status != OK:
            return status
        base, bits = load_word(state, SRAM) + acc, load_word(operands, 3)
        for i in range(size // _ELEMENT):
            set32(base, i, bits)
        return OK

    return accfill_engine


def build_accload() -> Callable[[int, int], int]:
    """The ACCLOAD engine."""

    def accload_engine(operands, state):  # type: ignore[no-untyped-def]
        acc, src = load_word(operands, 0), load_word(operands, 1)
        m, n = load_word(operands, 2), load_word(operands, 3)
        row_stride, column_stride = load_word(operands, 4), load_word(operands, 5)
        if m <= 0 or n <= 0:
            return OK
        status = check_sram(state, acc, tile_bytes(m, n))
        if status != OK:
            return status
        status = check_box(state, 0, src, 0, m, row_stride, 0, n, column_stride, _ELEMENT)
        if status != OK:
            return status
        sram = load_word(state, SRAM)
        columns = padded(n, _PANEL_COLS)
        for i in range(padded(m, _PANEL_ROWS)):
            row, source = sram + acc + i * columns * _ELEMENT, sram + src + i * row_stride
            present = n if i < m else 0
            if column_stride == _ELEMENT:
                move_bytes(row, source, present * _ELEMENT)
            else:
                for j in range(present):
                    set32(row, j, load32(source + j * column_stride))
            for j in range(present, columns):
                set32(row, j, 0)
        return OK

    return accload_engine
