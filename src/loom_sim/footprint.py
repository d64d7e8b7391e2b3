"""Which bytes a command reads and writes: its footprint, as boxes, for the checking interpreter.

`find_boxes` leaves one record of BOX_WORDS words a box at an address that the caller gives. A box is WIDTH bytes at
every point of a grid of up to RANK dimensions; with an index tile, at BASE + SCALE * index + the sum of stride * i.
What lies outside of its space is left to the engine, which refuses it.

Of weights that are decoded, codes count from the first byte of their part of a row to its last.
"""

from __future__ import annotations

from typing import Final

from loom_core.isa.codes import ALL_CODE_FORMATS, FIRST_INTEGER_FORMAT
from loom_core.isa.commands import (
    OP_ACCFILL,
    OP_ACCLOAD,
    OP_COMBINE,
    OP_COMPARE_SWAP,
    OP_COPY,
    OP_DECODEF,
    OP_DECODEI,
    OP_GATHER,
    OP_HISTOGRAM,
    OP_LDS,
    OP_MATMUL,
    OP_MATMULF,
    OP_MATMULI,
    OP_PACK,
    OP_PACKF,
    OP_PACKI,
    OP_PROGRAM,
    OP_SCATTER,
    OP_SCATTER_REDUCE,
    OP_SORT,
    OP_STS,
    SPACE_SRAM,
)
from loom_core.isa.sce import STREAM_LOAD, STREAM_STORE
from loom_sim import descriptors as d
from loom_sim import mxu
from loom_sim.jit import subroutine
from loom_sim.matrix import padded, panel_bytes, tile_bytes
from loom_sim.memory import larger, load_word, smaller, store_word
from loom_sim.state import MAX_STREAMS, PROGRAMS

# ---- a box ----

SPACE: Final = 0
BASE: Final = 1  # byte offset of the first point
WIDTH: Final = 2  # bytes at each point
MODE: Final = 3  # READS, WRITES, both, and ATOMIC
LAYOUT: Final = 4
RANK_USED: Final = 5
SIZES: Final = 6
STRIDES: Final = 11  # bytes
INDEX: Final = 16  # SRAM offset of the index tile, or NONE
INDEX_LOG2: Final = 17
SCALE: Final = 18
INDEX_STRIDES: Final = 19
MASK: Final = 24  # SRAM offset of the mask tile, or NONE
MASK_STRIDES: Final = 25
BOX_WORDS: Final = 30
BOX_BYTES: Final = 8 * BOX_WORDS
RANK: Final = 5
MOST_BOXES: Final = MAX_STREAMS + 8

READS: Final = 1
WRITES: Final = 2
ATOMIC: Final = 4

PLAIN: Final = 1
ACCUMULATOR: Final = 2
PANEL: Final = 3

NONE: Final = -1

_UNIT_CODES: Final = tuple(row.unit_codes for row in ALL_CODE_FORMATS)
_UNIT_BYTES: Final = tuple(row.unit_bytes for row in ALL_CODE_FORMATS)
_ENTRIES: Final = tuple(row.entries for row in ALL_CODE_FORMATS)


@subroutine("int64(int64, int64, int64, int64, int64, int64, int64)")
def add_box(boxes, count, space, base, width, mode, layout):  # type: ignore[no-untyped-def]
    """Begin box number `count`, of one point and without index; returns its address."""
    box = boxes + count * BOX_BYTES
    store_word(box, SPACE, space)
    store_word(box, BASE, base)
    store_word(box, WIDTH, width)
    store_word(box, MODE, mode)
    store_word(box, LAYOUT, layout)
    store_word(box, RANK_USED, 0)
    store_word(box, INDEX, NONE)
    store_word(box, MASK, NONE)
    return box


@subroutine("void(int64, int64, int64)")
def add_dim(box, size, stride):  # type: ignore[no-untyped-def]
    """One more dimension, inside of those that the box has."""
    rank = load_word(box, RANK_USED)
    store_word(box, SIZES + rank, size)
    store_word(box, STRIDES + rank, stride)
    store_word(box, RANK_USED, rank + 1)


@subroutine("int64(int64, int64, int64, int64)")
def any_empty(operands, first, step, ndim):  # type: ignore[no-untyped-def]
    """1 if one of `ndim` sizes, `step` operands apart, is not positive."""
    for dim in range(ndim):
        if load_word(operands, first + step * dim) <= 0:
            return 1
    return 0


# ---- families of commands ----


@subroutine("int64(int64, int64, int64)")
def copy_boxes(operands, flags, boxes):  # type: ignore[no-untyped-def]
    ndim, width, skip = flags & 7, 1 << (flags >> 3 & 3), flags >> 5 & 1
    if any_empty(operands, 5, 5, ndim) == 1:
        return 0
    source = add_box(boxes, 0, load_word(operands, 0), load_word(operands, 1), width, READS, PLAIN)
    target = add_box(boxes, 1, load_word(operands, 2), load_word(operands, 3), width, WRITES, PLAIN)
    none_valid = False
    for dim in range(ndim):
        at = 5 + 5 * dim
        size, from_stride, to_stride = load_word(operands, at), load_word(operands, at + 1), load_word(operands, at + 2)
        low, high = larger(load_word(operands, at + 3), 0), smaller(load_word(operands, at + 4), size)
        none_valid |= low >= high
        add_dim(source, high - low, from_stride)
        store_word(source, BASE, load_word(source, BASE) + low * from_stride)
        if skip == 1:
            add_dim(target, high - low, to_stride)
            store_word(target, BASE, load_word(target, BASE) + low * to_stride)
        else:
            add_dim(target, size, to_stride)
    if none_valid:
        store_word(source, WIDTH, 0)
        if skip == 1:
            store_word(target, WIDTH, 0)
    return 2


@subroutine("int64(int64, int64, int64, int64)")
def pack_boxes(operands, side, width, boxes):  # type: ignore[no-untyped-def]
    extent, depth = load_word(operands, 3), load_word(operands, 4)
    if extent <= 0 or depth <= 0:
        return 0
    row, rows_end = larger(load_word(operands, 7), 0), smaller(load_word(operands, 8), extent)
    column, columns_end = larger(load_word(operands, 9), 0), smaller(load_word(operands, 10), depth)
    count = 0
    if row < rows_end and column < columns_end:
        extent_stride, depth_stride = load_word(operands, 5), load_word(operands, 6)
        base = load_word(operands, 1) + row * extent_stride + column * depth_stride
        box = add_box(boxes, 0, load_word(operands, 0), base, width, READS, PLAIN)
        add_dim(box, rows_end - row, extent_stride)
        add_dim(box, columns_end - column, depth_stride)
        count = 1
    size = panel_bytes(extent, depth, mxu.PANEL_COLS if side == 1 else mxu.PANEL_ROWS)
    add_box(boxes, count, SPACE_SRAM, load_word(operands, 2), size, WRITES, PANEL)
    return count + 1


@subroutine("int64(int64, int64, int64, int64)")
def decode_boxes(operands, flags, floats, boxes):  # type: ignore[no-untyped-def]
    extent, depth, code_format = load_word(operands, 3), load_word(operands, 4), flags >> 3 & 15
    if extent <= 0 or depth <= 0:
        return 0
    size = panel_bytes(extent, depth, mxu.PANEL_COLS if flags & 1 else mxu.PANEL_ROWS)
    add_box(boxes, 0, SPACE_SRAM, load_word(operands, 2), size, WRITES, PANEL)
    row, rows_end = larger(load_word(operands, 7), 0), smaller(load_word(operands, 8), extent)
    column, columns_end = larger(load_word(operands, 9), 0), smaller(load_word(operands, 10), depth)
    if row >= rows_end or column >= columns_end:
        return 1
    rows, first, last = rows_end - row, load_word(operands, 6) + column, load_word(operands, 6) + columns_end - 1
    codes, unit = _UNIT_CODES[code_format], _UNIT_BYTES[code_format]
    begin, end = first * unit // codes, last * unit // codes + 1
    row_stride = load_word(operands, 5)
    base = load_word(operands, 1) + row * row_stride + begin
    box = add_box(boxes, 1, load_word(operands, 0), base, end - begin, READS, PLAIN)
    add_dim(box, rows, row_stride)
    if floats == 0:
        return 2
    group = load_word(operands, 18)
    first_group = first // group if group > 0 else 0
    groups = (last // group if group > 0 else 0) - first_group + 1
    count = 2
    if code_format < FIRST_INTEGER_FORMAT:
        by_row, by_group = load_word(operands, 13), load_word(operands, 14)
        base = load_word(operands, 12) + row * by_row + first_group * by_group
        box = add_box(boxes, count, load_word(operands, 11), base, 2 * _ENTRIES[code_format], READS, PLAIN)
        add_dim(box, rows, by_row)
        add_dim(box, groups, by_group)
        count += 1
    if flags & 2:
        by_row = load_word(operands, 17)
        base = load_word(operands, 16) + row * by_row + 2 * first_group
        box = add_box(boxes, count, load_word(operands, 15), base, 2 * groups, READS, PLAIN)
        add_dim(box, rows, by_row)
        count += 1
    return count


@subroutine("void(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def add_tile(boxes, count, operands, ndim, first, members, offset, stride, width, mode, space, kept):  # type: ignore[no-untyped-def]
    """The box of a tile: operand numbers of its offset, of the first dimension and of the stride in it; with
    kept >= 0 the innermost dimension has at most so many elements.
    """
    box = add_box(boxes, count, space, load_word(operands, offset), width, mode, PLAIN)
    for dim in range(ndim):
        size = load_word(operands, first + members * dim)
        if kept >= 0 and dim == ndim - 1:
            size = smaller(size, kept)
        add_dim(box, size, load_word(operands, first + members * dim + stride))


@subroutine("int64(int64, int64, int64, int64)")
def indexed_boxes(operands, flags, opcode, boxes):  # type: ignore[no-untyped-def]
    """The memory's box comes first; the others are tiles in SRAM."""
    ndim, width, wide, masked = flags & 7, 1 << (flags >> 3 & 3), flags >> 5 & 1, flags >> 6 & 1
    space_at, memory_at, tile_at, scale_at, first, members = 1, 2, 0, 6, 8, 5
    memory_mode, tile_mode = READS | WRITES | ATOMIC, READS
    if opcode == OP_GATHER:
        space_at, memory_at, tile_at, scale_at, first = 0, 1, 2, 5, 7
        memory_mode, tile_mode = READS, WRITES
    elif opcode == OP_SCATTER:
        scale_at, first = 5, 6
        memory_mode = WRITES
    elif opcode == OP_SCATTER_REDUCE:
        members = 6
    else:
        members = 7
    if any_empty(operands, first, members, ndim) == 1:
        return 0
    space = load_word(operands, space_at)
    add_tile(boxes, 0, operands, ndim, first, members, memory_at, 1, width, memory_mode, space, NONE)
    store_word(boxes, INDEX, load_word(operands, 3))
    store_word(boxes, INDEX_LOG2, 2 + wide)
    store_word(boxes, SCALE, load_word(operands, scale_at))
    store_word(boxes, MASK, load_word(operands, 4) if masked == 1 else NONE)
    for dim in range(ndim):
        store_word(boxes, INDEX_STRIDES + dim, load_word(operands, first + members * dim + 3))
        store_word(boxes, MASK_STRIDES + dim, load_word(operands, first + members * dim + 4))
    # Masked elements of a gather that skips them stay as they are: what the tile held there counts as written.
    add_tile(boxes, 1, operands, ndim, first, members, tile_at, 2, width, tile_mode, SPACE_SRAM, NONE)
    add_tile(boxes, 2, operands, ndim, first, members, 3, 3, 4 << wide, READS, SPACE_SRAM, NONE)
    count = 3
    if masked == 1:
        add_tile(boxes, count, operands, ndim, first, members, 4, 4, 1, READS, SPACE_SRAM, NONE)
        count += 1
    if members > 5 and flags >> 7 & 1:
        add_tile(boxes, count, operands, ndim, first, members, 5, 5, width, WRITES, SPACE_SRAM, NONE)
        count += 1
    if members > 6:
        add_tile(boxes, count, operands, ndim, first, members, 7, 6, width, READS, SPACE_SRAM, NONE)
        count += 1
    return count


@subroutine("int64(int64, int64, int64)")
def product_boxes(operands, opcode, boxes):  # type: ignore[no-untyped-def]
    """Products, and what fills or loads an accumulator."""
    accumulator = load_word(operands, 0)
    if opcode == OP_ACCFILL:
        m, n = load_word(operands, 1), load_word(operands, 2)
        if m <= 0 or n <= 0:
            return 0
        add_box(boxes, 0, SPACE_SRAM, accumulator, tile_bytes(m, n), WRITES, ACCUMULATOR)
        return 1
    if opcode == OP_ACCLOAD:
        m, n = load_word(operands, 2), load_word(operands, 3)
        if m <= 0 or n <= 0:
            return 0
        add_box(boxes, 0, SPACE_SRAM, accumulator, tile_bytes(m, n), WRITES, ACCUMULATOR)
        box = add_box(boxes, 1, SPACE_SRAM, load_word(operands, 1), 4, READS, PLAIN)
        add_dim(box, m, load_word(operands, 4))
        add_dim(box, n, load_word(operands, 5))
        return 2
    m, n, k = load_word(operands, 3), load_word(operands, 4), load_word(operands, 5)
    if m <= 0 or n <= 0 or k <= 0:
        return 0
    box = add_box(boxes, 0, SPACE_SRAM, accumulator, 4 * n, READS | WRITES, ACCUMULATOR)
    add_dim(box, m, 4 * padded(n, mxu.PANEL_COLS))
    add_box(boxes, 1, SPACE_SRAM, load_word(operands, 1), panel_bytes(m, k, mxu.PANEL_ROWS), READS, PANEL)
    add_box(boxes, 2, SPACE_SRAM, load_word(operands, 2), panel_bytes(n, k, mxu.PANEL_COLS), READS, PANEL)
    return 3


@subroutine("int64(int64, int64, int64, int64, int64)")
def stream_boxes(state, operands, flags, opcode, boxes):  # type: ignore[no-untyped-def]
    """Streams of a PROGRAM or COMBINE."""
    ndim = flags & 7
    if any_empty(operands, 1, 1, ndim) == 1:
        return 0
    descriptor = load_word(load_word(state, PROGRAMS), load_word(operands, 0))
    combines = opcode == OP_COMBINE
    values = load_word(descriptor, d.COMBINED_VALUES) if combines else 0
    left = ndim - (flags >> 3 & 7)
    if combines:
        left = ndim - 1 if flags >> 3 & 3 == 0 else ndim
    count = 0
    for number in range(load_word(descriptor, d.STREAM_COUNT)):
        stream = descriptor + (d.FIRST_STREAM + number * d.STREAM_WORDS) * 8
        kind = load_word(stream, d.STREAM_KIND)
        if kind not in (STREAM_LOAD, STREAM_STORE) or number < values:
            continue
        in_tail = kind == STREAM_STORE if combines else load_word(stream, d.STREAM_TAIL) == 1
        given = operands + (1 + ndim + number * (1 + ndim)) * 8
        layout = ACCUMULATOR if load_word(stream, d.STREAM_ACCUMULATOR) == 1 else PLAIN
        mode = WRITES if kind == STREAM_STORE else READS
        width = 1 << load_word(stream, d.STREAM_LOG2)
        box = add_box(boxes, count, SPACE_SRAM, load_word(given, 0), width, mode, layout)
        for dim in range(left if in_tail else ndim):
            add_dim(box, load_word(operands, 1 + dim), load_word(given, 1 + dim))
        count += 1
    return count


@subroutine("int64(int64, int64, int64, int64)")
def row_boxes(operands, flags, opcode, boxes):  # type: ignore[no-untyped-def]
    """SORT and HISTOGRAM."""
    ndim, width = flags & 7, 1 << (flags >> 3 & 3)
    if opcode == OP_SORT:
        if any_empty(operands, 6, 4, ndim) == 1:
            return 0
        kept = larger(load_word(operands, 4), 0)
        add_tile(boxes, 0, operands, ndim, 6, 4, 0, 1, width, READS, SPACE_SRAM, NONE)
        count = 1
        if flags >> 6 & 1:
            add_tile(boxes, count, operands, ndim, 6, 4, 1, 2, width, WRITES, SPACE_SRAM, kept)
            count += 1
        if flags >> 7 & 1:
            add_tile(boxes, count, operands, ndim, 6, 4, 2, 3, 4, WRITES, SPACE_SRAM, kept)
            count += 1
        return count
    bins = load_word(operands, 3)
    if bins <= 0:
        return 0
    mode = READS | WRITES if flags >> 7 & 1 else WRITES
    add_box(boxes, 0, SPACE_SRAM, load_word(operands, 2), 4 * bins, mode, PLAIN)
    if any_empty(operands, 4, 3, ndim) == 1:
        return 1
    add_tile(boxes, 1, operands, ndim, 4, 3, 0, 1, width, READS, SPACE_SRAM, NONE)
    if flags >> 6 & 1 == 0:
        return 2
    add_tile(boxes, 2, operands, ndim, 4, 3, 1, 2, 1, READS, SPACE_SRAM, NONE)
    return 3


@subroutine("int64(int64, int64)")
def find_moves(operands, boxes):  # type: ignore[no-untyped-def]
    """`find_boxes` for the commands that reach memory outside of SRAM; 0 for the others."""
    header = load_word(operands, -2)
    opcode, flags = header & 255, header >> 24 & 255
    if opcode == OP_LDS:
        add_box(boxes, 0, load_word(operands, 1), load_word(operands, 2), 1 << (flags & 7), READS, PLAIN)
        return 1
    if opcode == OP_STS:
        add_box(boxes, 0, load_word(operands, 0), load_word(operands, 1), 1 << (flags & 7), WRITES, PLAIN)
        return 1
    if opcode == OP_COPY:
        return copy_boxes(operands, flags, boxes)
    if opcode == OP_PACK:
        return pack_boxes(operands, flags & 1, 4, boxes)
    if opcode == OP_PACKF:
        return pack_boxes(operands, flags & 1, 1 if flags >> 4 & 1 else 2, boxes)
    if opcode == OP_PACKI:
        return pack_boxes(operands, flags & 1, 1, boxes)
    if opcode in (OP_DECODEF, OP_DECODEI):
        return decode_boxes(operands, flags, 1 if opcode == OP_DECODEF else 0, boxes)
    if opcode in (OP_GATHER, OP_SCATTER, OP_SCATTER_REDUCE, OP_COMPARE_SWAP):
        return indexed_boxes(operands, flags, opcode, boxes)
    return 0


@subroutine("int64(int64, int64, int64)")
def find_boxes(state, operands, boxes):  # type: ignore[no-untyped-def]
    """Fill the boxes of the command with these operands; returns how many there are."""
    header = load_word(operands, -2)
    opcode, flags = header & 255, header >> 24 & 255
    if opcode in (OP_MATMUL, OP_MATMULF, OP_MATMULI, OP_ACCFILL, OP_ACCLOAD):
        return product_boxes(operands, opcode, boxes)
    if opcode in (OP_PROGRAM, OP_COMBINE):
        return stream_boxes(state, operands, flags, opcode, boxes)
    if opcode in (OP_SORT, OP_HISTOGRAM):
        return row_boxes(operands, flags, opcode, boxes)
    return find_moves(operands, boxes)
