"""Engines that decode weights into panels: DECODEF and DECODEI.

A block of one panel's rows and one pass of k is decoded to a row-major buffer on the stack, of f32 or i8, and goes from
there the ordinary way of packing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from loom_core.isa.codes import FIRST_INTEGER_FORMAT
from loom_sim import mxu
from loom_sim.jit import subroutine
from loom_sim.matrix import check_box, panel_bytes
from loom_sim.memory import PRODUCT_LIMIT, larger, load_word, smaller, store_word
from loom_sim.mxu_codes import (
    CODES_BYTES,
    ONE_BITS,
    STRING_BYTES,
    TABLE_BYTES,
    entries_of,
    half_bits,
    look_up,
    split_codes,
    stack_buffer,
    string_range,
    tabulate_halves,
    tabulate_integers,
    to_integers,
)
from loom_sim.mxu_elements import ELEMENTS
from loom_sim.mxu_emission import WORD_BYTES
from loom_sim.mxu_moves import zero_bytes
from loom_sim.spaces import ELEMENT_LIMIT, check_sram, out_of_bounds, oversized, space_base
from loom_sim.state import OK, SRAM

# Operands.
_SRC_SPACE, _SRC, _DST, _EXTENT, _DEPTH, _ROW_STRIDE, _FIRST_K = range(7)
_EXT_LO, _EXT_HI, _K_LO, _K_HI = range(7, 11)
_TABLE_SPACE, _TABLE, _TABLE_ROW_STRIDE, _TABLE_GROUP_STRIDE = range(11, 15)
_SCALE_SPACE, _SCALE, _SCALE_ROW_STRIDE, _GROUP = range(15, 19)

# Words of the frame of a running command: addresses of its sources (0: none) and buffers, and what the table holds.
_CODES, _TABLES, _SCALES, _STRING, _SPLIT, _VALUES, _TABULATED, _FORMAT = range(8)

_BLOCK_ROWS: Final = max(mxu.PANEL_ROWS, mxu.PANEL_COLS)
_FIRST_K_LIMIT: Final = PRODUCT_LIMIT >> 8  # of which the bit numbers of codes fit well
_frame_buffer: Final = stack_buffer(8 * 8)
_string_buffer: Final = stack_buffer(STRING_BYTES)
_split_buffer: Final = stack_buffer(CODES_BYTES)
_table_buffer: Final = stack_buffer(TABLE_BYTES)


@subroutine("int64(int64, int64)", inline=True)
def group_of(operands, k):  # type: ignore[no-untyped-def]
    """The group of code `k` of a row."""
    group = load_word(operands, _GROUP)
    return k // group if group > 0 else 0


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def floats_of_row(frame, operands, dst, row, k, count):  # type: ignore[no-untyped-def]
    """The values of codes k to k + count of a row, group by group."""
    code_format, values = load_word(frame, _FORMAT), load_word(frame, _VALUES)
    tables, scales = load_word(frame, _TABLES), load_word(frame, _SCALES)
    source = load_word(frame, _CODES) + row * load_word(operands, _ROW_STRIDE)
    codes = split_codes(load_word(frame, _SPLIT), load_word(frame, _STRING), source, code_format, k, count)
    done = 0
    while done < count:
        number, length = group_of(operands, k + done), count - done
        if load_word(operands, _GROUP) > 0:
            length = smaller(length, (number + 1) * load_word(operands, _GROUP) - (k + done))
        if tables != 0:
            halves = tables + row * load_word(operands, _TABLE_ROW_STRIDE)
            halves += number * load_word(operands, _TABLE_GROUP_STRIDE)
            if halves != load_word(frame, _TABULATED):
                tabulate_halves(values, halves, code_format)
                store_word(frame, _TABULATED, halves)
        scale = ONE_BITS
        if scales != 0:
            scale = half_bits(scales + row * load_word(operands, _SCALE_ROW_STRIDE) + 2 * number)
        look_up(dst + done * WORD_BYTES, codes + done, values, length, scale)
        done += length


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def integers_of_row(frame, operands, dst, row, k, count):  # type: ignore[no-untyped-def]
    code_format = load_word(frame, _FORMAT)
    source = load_word(frame, _CODES) + row * load_word(operands, _ROW_STRIDE)
    codes = split_codes(load_word(frame, _SPLIT), load_word(frame, _STRING), source, code_format, k, count)
    to_integers(dst, codes, count, code_format)


def _decode_routine(name: str, values_of_row: Any) -> Any:
    """Subroutine that decodes a whole operand to elements of the type called `name`, and packs them.

    decode(frame, operands, dst, ext_lo, ext_hi, k_lo, k_hi, side): the frame is complete, the box lies in the operand.
    """
    pack, element = mxu.packing(name), ELEMENTS[name]
    size, steps_per_word = element.bytes, element.steps
    row_bytes = mxu.PASS_DEPTH * size
    block_buffer = stack_buffer(_BLOCK_ROWS * row_bytes)

    @subroutine("void(int64, int64, int64, int64, int64, int64, int64, int64)")
    def decode(frame, operands, dst, ext_lo, ext_hi, k_lo, k_hi, side):  # type: ignore[no-untyped-def]
        extent, depth, first_k = (
            load_word(operands, _EXTENT),
            load_word(operands, _DEPTH),
            load_word(operands, _FIRST_K),
        )
        block = block_buffer()
        panel_rows = mxu.PANEL_COLS if side else mxu.PANEL_ROWS
        padded = (extent + panel_rows - 1) // panel_rows * panel_rows
        for first in range(0, depth, mxu.PASS_DEPTH):
            steps = smaller(depth - first, mxu.PASS_DEPTH)
            words = (steps + steps_per_word - 1) // steps_per_word
            lo = smaller(larger(k_lo - first, 0), steps)
            hi = larger(smaller(k_hi - first, steps), lo)
            for start in range(0, extent, panel_rows):
                rows = smaller(extent - start, panel_rows)
                for row in range(start, start + rows):
                    values = block + (row - start) * row_bytes
                    if row >= ext_lo and row < ext_hi and lo < hi:
                        zero_bytes(values, lo * size)
                        values_of_row(frame, operands, values + lo * size, row, first_k + first + lo, hi - lo)
                        zero_bytes(values + hi * size, (steps - hi) * size)
                    else:
                        zero_bytes(values, steps * size)
                panel = dst + (first // steps_per_word * padded + start * words) * WORD_BYTES
                pack(block, panel, rows, steps, row_bytes, size, 0, rows, 0, steps, 0, side)

    return decode


@subroutine("int64(int64, int64, int64, int64, int64, int64, int64)")
def find_codes(state, frame, operands, ext_lo, ext_hi, k_lo, k_hi):  # type: ignore[no-untyped-def]
    """Status of the codes of a box that is not empty; their address to the frame."""
    space, source = load_word(operands, _SRC_SPACE), load_word(operands, _SRC)
    first_k = load_word(operands, _FIRST_K)
    if first_k < -_FIRST_K_LIMIT or first_k > _FIRST_K_LIMIT:
        return out_of_bounds(state, space, source, first_k, first_k)
    low, high = string_range(load_word(frame, _FORMAT), first_k + k_lo, k_hi - k_lo)
    stride = load_word(operands, _ROW_STRIDE)
    status = check_box(state, space, source, ext_lo, ext_hi - ext_lo, stride, low, high - low, 1, 1)
    if status == OK:
        store_word(frame, _CODES, space_base(state, space) + source)
    return status


@subroutine("int64(int64, int64, int64, int64, int64, int64, int64)")
def find_tables(state, frame, operands, ext_lo, ext_hi, k_lo, k_hi):  # type: ignore[no-untyped-def]
    """The same for the tables of those codes."""
    space, source = load_word(operands, _TABLE_SPACE), load_word(operands, _TABLE)
    first_k = load_word(operands, _FIRST_K)
    group = group_of(operands, first_k + k_lo)
    groups = group_of(operands, first_k + k_hi - 1) + 1 - group
    size = 2 * entries_of(load_word(frame, _FORMAT))
    row_stride, group_stride = load_word(operands, _TABLE_ROW_STRIDE), load_word(operands, _TABLE_GROUP_STRIDE)
    rows = ext_hi - ext_lo
    status = check_box(state, space, source, ext_lo, rows, row_stride, group, groups, group_stride, size)
    if status == OK:
        store_word(frame, _TABLES, space_base(state, space) + source)
    return status


@subroutine("int64(int64, int64, int64, int64, int64, int64, int64)")
def find_scales(state, frame, operands, ext_lo, ext_hi, k_lo, k_hi):  # type: ignore[no-untyped-def]
    """The same for their scales."""
    space, source = load_word(operands, _SCALE_SPACE), load_word(operands, _SCALE)
    first_k = load_word(operands, _FIRST_K)
    group = group_of(operands, first_k + k_lo)
    groups = group_of(operands, first_k + k_hi - 1) + 1 - group
    row_stride = load_word(operands, _SCALE_ROW_STRIDE)
    status = check_box(state, space, source, ext_lo, ext_hi - ext_lo, row_stride, group, groups, 2, 2)
    if status == OK:
        store_word(frame, _SCALES, space_base(state, space) + source)
    return status


@subroutine("void(int64, int64)")
def start_frame(frame, code_format):  # type: ignore[no-untyped-def]
    for word in range(8):
        store_word(frame, word, 0)
    store_word(frame, _FORMAT, code_format)


def build_decode(floats: bool) -> Callable[[int, int], int]:
    """The engine of DECODEF (`floats`) or DECODEI."""
    decode = _decode_routine("f32", floats_of_row) if floats else _decode_routine("i8", integers_of_row)

    def decode_engine(operands, state):  # type: ignore[no-untyped-def]
        flags = load_word(operands, -2) >> 24
        side, code_format = flags & 1, flags >> 3 & 15
        extent, depth, dst = load_word(operands, _EXTENT), load_word(operands, _DEPTH), load_word(operands, _DST)
        if extent <= 0 or depth <= 0:
            return OK
        size = panel_bytes(extent, depth, mxu.PANEL_COLS if side else mxu.PANEL_ROWS)
        status = check_sram(state, dst, size)
        if status != OK:
            return status
        if size > ELEMENT_LIMIT * WORD_BYTES:
            return oversized(state, size // WORD_BYTES, ELEMENT_LIMIT)
        ext_lo, ext_hi = larger(load_word(operands, _EXT_LO), 0), smaller(load_word(operands, _EXT_HI), extent)
        k_lo, k_hi = larger(load_word(operands, _K_LO), 0), smaller(load_word(operands, _K_HI), depth)
        frame = _frame_buffer()
        start_frame(frame, code_format)
        if ext_lo < ext_hi and k_lo < k_hi:
            status = find_codes(state, frame, operands, ext_lo, ext_hi, k_lo, k_hi)
            if floats and code_format < FIRST_INTEGER_FORMAT and status == OK:
                status = find_tables(state, frame, operands, ext_lo, ext_hi, k_lo, k_hi)
            if floats and flags & 2 != 0 and status == OK:
                status = find_scales(state, frame, operands, ext_lo, ext_hi, k_lo, k_hi)
            if status != OK:
                return status
        else:
            ext_lo, ext_hi, k_lo, k_hi = 0, 0, 0, 0  # nothing is read
        store_word(frame, _STRING, _string_buffer())
        store_word(frame, _SPLIT, _split_buffer())
        store_word(frame, _VALUES, _table_buffer())
        if floats and code_format >= FIRST_INTEGER_FORMAT:
            tabulate_integers(load_word(frame, _VALUES), code_format)
        decode(frame, operands, load_word(state, SRAM) + dst, ext_lo, ext_hi, k_lo, k_hi, side)
        return OK

    return decode_engine
