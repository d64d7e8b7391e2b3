"""Packing: matrix operands of any strides and element type into the panel layout of `mxu`.

The algorithm is one; what differs between element types are the moves of `mxu_moves` and how many steps of k a word
holds. Whole words of whole micro-panels go by vectors, the rest row by row.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from loom_core.isa.machine import L1
from loom_sim.jit import subroutine
from loom_sim.memory import larger, smaller, store32
from loom_sim.mxu_elements import PanelElement
from loom_sim.mxu_emission import LINE_BYTES, WORD_BYTES
from loom_sim.mxu_kernel import RegisterTile
from loom_sim.mxu_moves import Moves, fill_words, moves, prefetch, zero_bytes

SIDE_A: Final = 0
SIDE_B: Final = 1

# Compiled code folds these. A machine whose numbers differ from L1's cannot be simulated by this module.
PANEL_ROWS: Final = L1.panel_rows
PANEL_COLS: Final = L1.panel_cols
PASS_DEPTH: Final = L1.pass_depth

# Rows of k that a copy runs ahead of itself: rows lie a matrix row apart, where the hardware sees no stream to fetch.
_ROWS_AHEAD: Final = 8
# Words copied into one micro-panel before the next one. Micro-panels of equal sets lie 4 KiB apart, so that lines
# which are left half written would be evicted; this many words fill whole lines.
_WORDS_TOGETHER: Final = 4


@functools.cache
def pack_routine(element: PanelElement, tile: RegisterTile) -> Any:
    """Subroutine that moves an operand of one element type into the panel layout.

    pack(src, dst, extent, depth, extent_stride, depth_stride, ext_lo, ext_hi, k_lo, k_hi, fill_bits, side): element
    (e, k), e a row of A or a column of B, is at src + e * extent_stride + k * depth_stride. Only elements in
    [ext_lo, ext_hi) x [k_lo, k_hi) are read; the others become `fill_bits`, an element's bits, and rows from `extent`
    up to the panel multiple zero. Writes within round_up(extent, panel_rows or panel_cols) * depth * 4 bytes.
    """
    moved = moves(element, tile)
    steps_per_word, element_bytes = element.steps, element.bytes
    a_rows, b_rows = tile.rows, tile.columns
    transposed_words = tile.lanes
    transpose_rows, copy_rows, gather_panel = _panel_moves(element, tile)
    pack_row = _pack_pair_row(element, moved) if element.steps == 2 else _pack_row(element, moved)
    widened_bits = moved.widened_bits

    @subroutine("void(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64, int64, int64)")
    def pack(  # type: ignore[no-untyped-def]
        src, dst, extent, depth, extent_stride, depth_stride, ext_lo, ext_hi, k_lo, k_hi, fill_bits, side
    ):
        extent = larger(extent, 0)
        rows = a_rows if side == SIDE_A else b_rows
        multiple = PANEL_ROWS if side == SIDE_A else PANEL_COLS
        padded = (extent + multiple - 1) // multiple * multiple
        used = (extent + rows - 1) // rows * rows
        fill = widened_bits(fill_bits)
        ext_lo = larger(ext_lo, 0)
        ext_hi = larger(smaller(ext_hi, extent), ext_lo)
        # Micro-panels in [whole_lo, whole_hi) lie in the box with all their rows.
        whole_lo = (ext_lo + rows - 1) // rows * rows
        whole_hi = larger(ext_hi // rows * rows, whole_lo)
        for first in range(0, depth, PASS_DEPTH):
            steps = smaller(depth - first, PASS_DEPTH)
            words = (steps + steps_per_word - 1) // steps_per_word
            k_from = smaller(larger(k_lo - first, 0), steps)
            k_to = larger(smaller(k_hi - first, steps), k_from)
            # Words in [lo, hi) lie in the box with all their steps.
            lo = (k_from + steps_per_word - 1) // steps_per_word
            hi = larger(k_to // steps_per_word, lo)
            block = dst + first // steps_per_word * padded * WORD_BYTES
            origin = src + first * depth_stride
            done = lo
            if depth_stride == element_bytes:
                done = hi - (hi - lo) % transposed_words
                transpose_rows(block, origin, whole_lo, whole_hi, lo, done, extent_stride, words, side)
            elif extent_stride == element_bytes:
                done = hi
                copy_rows(block, origin, whole_lo, whole_hi, lo, done, depth_stride, words, side)
            elif abs(extent_stride) < abs(depth_stride):
                done = hi
                for row in range(whole_lo, whole_hi, rows):
                    panel = block + row * words * WORD_BYTES
                    gather_panel(panel, origin + row * extent_stride, rows, lo, hi, extent_stride, depth_stride)
            # Row by row: rows of micro-panels that the box cuts, and what the ways above left of the others.
            for row in range(used):
                whole = row >= whole_lo and row < whole_hi
                if whole and k_from == 0 and done == words:
                    continue
                inside = row >= ext_lo and row < ext_hi
                pack_row(
                    block + (row // rows * rows * words + row % rows) * WORD_BYTES,
                    rows * WORD_BYTES,
                    origin + row * extent_stride,
                    depth_stride,
                    k_from if inside else 0,
                    k_to if inside else 0,
                    done if whole else lo,
                    steps,
                    fill if row < extent else 0,
                )
            zero_bytes(block + used * words * WORD_BYTES, (padded - used) * words * WORD_BYTES)

    return pack


def _pack_row(element: PanelElement, moved: Moves) -> Any:
    copy_words = moved.copy_words

    @subroutine("void(int64, int64, int64, int64, int64, int64, int64, int64, int64)")
    def pack_row(dst, pitch, src, stride, k_from, k_to, start, steps, outside):  # type: ignore[no-untyped-def]
        """One row of a micro-panel: the source at k in [start, k_to), `outside` before k_from and from k_to on."""
        start = smaller(larger(start, k_from), k_to)
        fill_words(dst, pitch, k_from, outside)
        copy_words(dst + start * pitch, pitch, src + start * stride, stride, 0, k_to - start)
        fill_words(dst + k_to * pitch, pitch, steps - k_to, outside)

    return pack_row


def _pack_pair_row(element: PanelElement, moved: Moves) -> Any:
    copy_words, widened = moved.copy_words, moved.widened

    @subroutine("int64(int64, int64, int64, int64, int64, int64, int64)", inline=True)
    def half(src, stride, k, k_from, k_to, steps, outside):  # type: ignore[no-untyped-def]
        if k >= k_from and k < k_to:
            return widened(src + k * stride)
        return outside if k < steps else 0

    @subroutine("void(int64, int64, int64, int64, int64, int64, int64, int64, int64)")
    def pack_row(dst, pitch, src, stride, k_from, k_to, start, steps, outside):  # type: ignore[no-untyped-def]
        """The same for words of two steps; a step past the last one is zero."""
        words = (steps + 1) // 2
        lo = (k_from + 1) // 2
        hi = larger(k_to // 2, lo)
        start = smaller(larger(start, lo), hi)
        fill_words(dst, pitch, lo, outside * 0x10001)
        copy_words(dst + start * pitch, pitch, src + 2 * start * stride, 2 * stride, stride, hi - start)
        fill_words(dst + hi * pitch, pitch, words - hi, outside * 0x10001)
        # Words that the box or the end cuts in two; the last of the three may come twice.
        for case in range(3):
            if case == 0:
                k, cut = k_from, k_from % 2 == 1
            elif case == 1:
                k, cut = k_to, k_to % 2 == 1
            else:
                k, cut = steps - 1, steps % 2 == 1
            if cut:
                k -= k % 2
                low = half(src, stride, k, k_from, k_to, steps, outside)
                high = half(src, stride, k + 1, k_from, k_to, steps, outside)
                store32(dst + k // 2 * pitch, low | high << 16)

    return pack_row


def _panel_moves(element: PanelElement, tile: RegisterTile) -> tuple[Any, Any, Any]:
    """(transpose_rows, copy_rows, gather_panel): the three ways to fill whole words of whole micro-panels."""
    moved = moves(element, tile)
    copy_a, copy_b, copy_words = moved.copy_a, moved.copy_b, moved.copy_words
    transpose_a, transpose_b = moved.transpose_a, moved.transpose_b
    steps, size = element.steps, element.bytes
    a_rows, b_rows = tile.rows, tile.columns
    words_at_once, b_rows_at_once = tile.lanes, tile.b_transpose_rows

    @subroutine("void(int64, int64, int64, int64, int64, int64, int64, int64, int64)")
    def transpose_rows(dst, src, row_lo, row_hi, lo, hi, row_bytes, words, side):  # type: ignore[no-untyped-def]
        """Rows that are contiguous in k; hi - lo is a multiple of what one call moves."""
        if side == SIDE_A:
            for row in range(row_lo, row_hi, a_rows):
                for word in range(lo, hi, words_at_once):
                    place = dst + (row * words + word * a_rows) * WORD_BYTES
                    transpose_a(place, src + row * row_bytes + word * (steps * size), row_bytes)
        else:
            for row in range(row_lo, row_hi, b_rows):
                for word in range(lo, hi, words_at_once):
                    place = dst + (row * words + word * b_rows) * WORD_BYTES
                    for part in range(0, b_rows, b_rows_at_once):
                        origin = src + (row + part) * row_bytes + word * (steps * size)
                        transpose_b(place + part * WORD_BYTES, origin, row_bytes)

    @subroutine("void(int64, int64, int64, int64, int64, int64, int64, int64, int64)")
    def copy_rows(dst, src, row_lo, row_hi, lo, hi, k_bytes, words, side):  # type: ignore[no-untyped-def]
        """Steps of k that are contiguous in rows."""
        ahead = _ROWS_AHEAD * k_bytes
        for first in range(lo, hi, _WORDS_TOGETHER):
            last = smaller(first + _WORDS_TOGETHER, hi)
            if side == SIDE_A:
                for row in range(row_lo, row_hi, a_rows):
                    for word in range(first, last):
                        origin = src + word * steps * k_bytes + row * size
                        prefetch(origin + ahead)
                        copy_a(dst + (row * words + word * a_rows) * WORD_BYTES, origin, k_bytes)
            else:
                for row in range(row_lo, row_hi, b_rows):
                    for word in range(first, last):
                        origin = src + word * steps * k_bytes + row * size
                        for line in range(0, b_rows * size, LINE_BYTES):
                            prefetch(origin + ahead + line)
                        copy_b(dst + (row * words + word * b_rows) * WORD_BYTES, origin, k_bytes)

    @subroutine("void(int64, int64, int64, int64, int64, int64, int64)")
    def gather_panel(dst, src, rows, lo, hi, row_bytes, k_bytes):  # type: ignore[no-untyped-def]
        """Rows that lie nearer to each other than their steps of k, so that they share cache lines."""
        for word in range(lo, hi):
            place = dst + word * rows * WORD_BYTES
            copy_words(place, WORD_BYTES, src + word * steps * k_bytes, row_bytes, k_bytes, rows)

    return transpose_rows, copy_rows, gather_panel
