"""Operand packing and matrix multiplication of the matrix unit, by host address.

Panel layout (opaque to programs and free to differ between hosts; its size is not): an operand of `depth` steps of k
is cut into passes of `pass_depth`; a pass holds the micro-panels of all its rows (of A; columns of B), padded to a
multiple of `panel_rows` (`panel_cols`); a micro-panel holds, k by k, one float for each of its rows. So a pass of a
matmul reads both of its operands in ascending addresses.

All arguments are int64: host addresses of float32 data, element counts, strides in bytes (zero and negative ones too).
Nothing allocates, raises or checks a bound: the command's engine has done so. Counts that are not positive do nothing.
"""

from __future__ import annotations

from typing import Final

from numba import njit

from loom_core.isa.machine import L1
from loom_sim.mxu_kernel import (
    REGISTER_TILE,
    WORD_BYTES,
    copy_a_row,
    copy_b_row,
    copy_words,
    fill_words,
    micro_kernel,
    prefetch,
    transpose_a_rows,
    transpose_b_rows,
    zero_bytes,
)

SIDE_A: Final = 0
SIDE_B: Final = 1

# Compiled code folds these. A machine whose numbers differ from L1's cannot be simulated by this module.
PANEL_ROWS: Final = L1.panel_rows
PANEL_COLS: Final = L1.panel_cols
PASS_DEPTH: Final = L1.pass_depth

_A_ROWS: Final = REGISTER_TILE.rows
_B_ROWS: Final = REGISTER_TILE.columns
_TRANSPOSED_STEPS: Final = REGISTER_TILE.lanes
_TRANSPOSED_B_ROWS: Final = REGISTER_TILE.b_transpose_rows
_LINE_BYTES: Final = 64

# Rows of k that a copy runs ahead of itself: rows lie a matrix row apart, where the hardware sees no stream to fetch.
_ROWS_AHEAD: Final = 8
# Steps of k copied into one micro-panel before the next one. Micro-panels of equal sets lie 4 KiB apart, so that lines
# which are left half written would be evicted; this many steps fill whole lines.
_STEPS_TOGETHER: Final = 4


@njit(error_model="numpy", nogil=True)
def matmul(acc, a, b, m, n, k):  # type: ignore[no-untyped-def]
    """acc += A[m, k] B[k, n] in float32, pass by pass: t = +0; t = fma(a, b, t) for k ascending; acc = acc + t.

    acc  row-major float32 [round_up(m, panel_rows)][round_up(n, panel_cols)]; outside [m, n] it becomes unspecified
    a    `pack` of side A with extent m and depth k
    b    `pack` of side B with extent n and depth k
    """
    row_bytes = (n + PANEL_COLS - 1) // PANEL_COLS * PANEL_COLS * WORD_BYTES
    a_step = (m + PANEL_ROWS - 1) // PANEL_ROWS * PANEL_ROWS * WORD_BYTES
    for first in range(0, k, PASS_DEPTH):
        steps = min(k - first, PASS_DEPTH)
        a_pass = a + first * a_step
        b_pass = b + first * row_bytes
        # A micro-panel of B stays in the first-level cache while those of A stream through it from the second.
        for column in range(0, n, _B_ROWS):
            b_panel = b_pass + column * steps * WORD_BYTES
            for row in range(0, m, _A_ROWS):
                a_panel = a_pass + row * steps * WORD_BYTES
                micro_kernel(a_panel, b_panel, acc + row * row_bytes + column * WORD_BYTES, row_bytes, steps)


@njit(error_model="numpy", nogil=True)
def pack(  # type: ignore[no-untyped-def]
    src, dst, extent, depth, extent_stride, depth_stride, ext_lo, ext_hi, k_lo, k_hi, fill_bits, side
):
    """Move a float32 operand tile into the panel layout; bits are kept, NaN payloads too.

    Element (e, k), e a row of A or a column of B, is at src + e * extent_stride + k * depth_stride. Only elements in
    [ext_lo, ext_hi) x [k_lo, k_hi) are read; the others become `fill_bits`, and rows from `extent` up to the panel
    multiple +0. Writes round_up(extent, panel_rows or panel_cols) * depth * 4 bytes. `side` is SIDE_A or SIDE_B.
    """
    extent = max(extent, 0)
    rows = _A_ROWS if side == SIDE_A else _B_ROWS
    multiple = PANEL_ROWS if side == SIDE_A else PANEL_COLS
    padded = (extent + multiple - 1) // multiple * multiple
    used = (extent + rows - 1) // rows * rows
    ext_lo = max(ext_lo, 0)
    ext_hi = max(min(ext_hi, extent), ext_lo)
    # Micro-panels in [whole_lo, whole_hi) lie in the box with all their rows.
    whole_lo = (ext_lo + rows - 1) // rows * rows
    whole_hi = max(ext_hi // rows * rows, whole_lo)
    for first in range(0, depth, PASS_DEPTH):
        steps = min(depth - first, PASS_DEPTH)
        lo = min(max(k_lo - first, 0), steps)
        hi = max(min(k_hi - first, steps), lo)
        block = dst + first * padded * WORD_BYTES
        origin = src + first * depth_stride
        done = lo
        if depth_stride == WORD_BYTES:
            done = hi - (hi - lo) % _TRANSPOSED_STEPS
            _transpose_rows(block, origin, whole_lo, whole_hi, lo, done, extent_stride, steps, side)
        elif extent_stride == WORD_BYTES:
            done = hi
            _copy_rows(block, origin, whole_lo, whole_hi, lo, done, depth_stride, steps, side)
        elif abs(extent_stride) < abs(depth_stride):
            done = hi
            for row in range(whole_lo, whole_hi, rows):
                panel = block + row * steps * WORD_BYTES
                _gather_panel(panel, origin + row * extent_stride, rows, lo, hi, extent_stride, depth_stride)
        # Row by row: rows of micro-panels that the box cuts, and what the ways above left of the others.
        for row in range(used):
            whole = whole_lo <= row < whole_hi
            if whole and lo == 0 and done == steps:
                continue
            inside = ext_lo <= row < ext_hi
            _pack_row(
                block + (row // rows * rows * steps + row % rows) * WORD_BYTES,
                rows * WORD_BYTES,
                origin + row * extent_stride,
                depth_stride,
                lo if inside else 0,
                done if whole else lo,
                hi if inside else 0,
                steps,
                fill_bits if row < extent else 0,
            )
        zero_bytes(block + used * steps * WORD_BYTES, (padded - used) * steps * WORD_BYTES)


@njit(error_model="numpy", nogil=True)
def _pack_row(dst, pitch, src, stride, lo, start, hi, steps, outside):  # type: ignore[no-untyped-def]
    """One row of a micro-panel: source words at k in [start, hi), `outside` in [0, lo) and [hi, steps)."""
    fill_words(dst, pitch, lo, outside)
    copy_words(dst + start * pitch, pitch, src + start * stride, stride, hi - start)
    fill_words(dst + hi * pitch, pitch, steps - hi, outside)


@njit(error_model="numpy", nogil=True)
def _gather_panel(dst, src, rows, k_lo, k_hi, row_bytes, k_bytes):  # type: ignore[no-untyped-def]
    """A whole micro-panel whose rows lie nearer to each other than its steps of k, so that they share cache lines."""
    for k in range(k_lo, k_hi):
        copy_words(dst + k * rows * WORD_BYTES, WORD_BYTES, src + k * k_bytes, row_bytes, rows)


@njit(error_model="numpy", nogil=True)
def _transpose_rows(dst, src, row_lo, row_hi, k_lo, k_hi, row_bytes, steps, side):  # type: ignore[no-untyped-def]
    """Whole micro-panels of rows that are contiguous in k; k_hi - k_lo is a multiple of what one call moves."""
    if side == SIDE_A:
        for row in range(row_lo, row_hi, _A_ROWS):
            for k in range(k_lo, k_hi, _TRANSPOSED_STEPS):
                place = dst + (row * steps + k * _A_ROWS) * WORD_BYTES
                transpose_a_rows(place, src + row * row_bytes + k * WORD_BYTES, row_bytes)
    else:
        for row in range(row_lo, row_hi, _B_ROWS):
            for k in range(k_lo, k_hi, _TRANSPOSED_STEPS):
                place = dst + (row * steps + k * _B_ROWS) * WORD_BYTES
                for part in range(0, _B_ROWS, _TRANSPOSED_B_ROWS):
                    origin = src + (row + part) * row_bytes + k * WORD_BYTES
                    transpose_b_rows(place + part * WORD_BYTES, origin, row_bytes)


@njit(error_model="numpy", nogil=True)
def _copy_rows(dst, src, row_lo, row_hi, k_lo, k_hi, k_bytes, steps, side):  # type: ignore[no-untyped-def]
    """Whole micro-panels from steps of k that are contiguous in rows."""
    ahead = _ROWS_AHEAD * k_bytes
    for first in range(k_lo, k_hi, _STEPS_TOGETHER):
        last = min(first + _STEPS_TOGETHER, k_hi)
        if side == SIDE_A:
            for row in range(row_lo, row_hi, _A_ROWS):
                for k in range(first, last):
                    origin = src + k * k_bytes + row * WORD_BYTES
                    prefetch(origin + ahead)
                    copy_a_row(dst + (row * steps + k * _A_ROWS) * WORD_BYTES, origin)
        else:
            for row in range(row_lo, row_hi, _B_ROWS):
                for k in range(first, last):
                    origin = src + k * k_bytes + row * WORD_BYTES
                    for line in range(0, _B_ROWS * WORD_BYTES, _LINE_BYTES):
                        prefetch(origin + ahead + line)
                    copy_b_row(dst + (row * steps + k * _B_ROWS) * WORD_BYTES, origin)
