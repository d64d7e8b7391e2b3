"""The stream engine's COMBINE: rows folded by a program, as a tree of neighbours or element after element.

The program's streams are n loads of left operands, n loads of right ones, n stores, then scalars; value v has those
numbered v, n + v and 2n + v. Each has a slot of the program's engine (`stream.place_slots`). Reducing, a chunk of whole
rows lies in the stores' slots; each step parts it into the left and right slots and writes half as many back. Rows of
more than a block are folded block by block (a power of two, so that the tree is the same), their results once more.
Scanning, a chunk is some steps of some rows, step after step in the right slots, so that one step of all rows is one
run of the program; its results lie likewise in the stores' slots.

Views of the streams: records as in `stream`, their strides outermost first in four dimensions, the row innermost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loom_core.isa.commands import OP_COMBINE as COMBINE_OPCODE
from loom_core.isa.sce import OPERAND_STREAM, STREAM_SCALAR
from loom_sim import descriptors as d
from loom_sim.jit import subroutine
from loom_sim.memory import (
    bounded_product,
    call_element,
    larger,
    load16,
    load32,
    load64,
    load_word,
    move_bytes,
    smaller,
    store8,
    store16,
    store32,
    store64,
    store_word,
)
from loom_sim.memory import load8 as load_byte
from loom_sim.planes import fill_slot, load_plane, store_plane
from loom_sim.reductions import BLOCK
from loom_sim.spaces import check_elements, check_range, is_wild, out_of_bounds, oversized
from loom_sim.state import FAULT_VALUE, NO_ENGINE, OK, POINTERS, PROGRAMS, RESULT_BYTES, SRAM, STREAM_VIEWS
from loom_sim.stream import LONGEST_ROW, place_slots, run_body
from loom_sim.stream_views import RECORD_WORDS

_RANK: Final = 4
_REDUCE, _SCAN, _REVERSE = range(3)
_REDUCED_TOGETHER: Final = 1024  # elements of a chunk of whole rows, where rows are not longer
_SCANNED_TOGETHER: Final = 64  # rows
# Words of a record, the first as `stream` has them.
_LOG2, _SLOT, _ADDRESS, _CANONICAL, _STRIDES = 1, 5, 4, 6, 8


# ---- views -----------------------------------------------------------------------------------------------------------


@subroutine("int64(int64, int64)", inline=True)
def record_of(state, number):  # type: ignore[no-untyped-def]
    return state + (STREAM_VIEWS + number * RECORD_WORDS) * 8


@subroutine("int64(int64, int64, int64, int64, int64, int64)")
def read_stream(state, operands, descriptor, ndim, number, dims):  # type: ignore[no-untyped-def]
    """Fill the record of a right operand or a store, whose element has `dims` dimensions; bounds check it."""
    stream, record = descriptor + (d.FIRST_STREAM + number * d.STREAM_WORDS) * 8, record_of(state, number)
    log2, given = load_word(stream, d.STREAM_LOG2), operands + (1 + ndim + number * (1 + ndim)) * 8
    low, high, wild = 0, 1 << log2, False
    for dim in range(_RANK):
        store_word(record, _STRIDES + dim, 0)
    for dim in range(dims):
        stride = load_word(given, 1 + dim)
        store_word(record, _STRIDES + _RANK - ndim + dim, stride)
        span = bounded_product(load_word(operands, 1 + dim) - 1, stride)
        wild |= is_wild(span)
        low += smaller(span, 0)
        high += larger(span, 0)
    store_word(record, _LOG2, log2)
    store_word(record, _CANONICAL, load_word(stream, d.STREAM_CANONICAL))
    store_word(record, _ADDRESS, load_word(state, SRAM) + load_word(given, 0))
    if wild:
        return out_of_bounds(state, 0, load_word(given, 0), low, high)
    return check_range(state, 0, load_word(given, 0), low, high)


@subroutine("int64(int64, int64, int64, int64)")
def row_place(record, operands, ndim, row):  # type: ignore[no-untyped-def]
    """Address of the first element of row number `row`."""
    place = load_word(record, _ADDRESS)
    for dim in range(ndim - 2, -1, -1):
        size = load_word(operands, 1 + dim)
        place += row % size * load_word(record, _STRIDES + _RANK - ndim + dim)
        row //= size
    return place


@subroutine("void(int64, int64, int64, int64)")
def fill_scalars(state, operands, descriptor, count):  # type: ignore[no-untyped-def]
    """The slots of scalar streams, for `count` elements."""
    ndim = load_word(operands, -2) >> 24 & 7
    for number in range(load_word(descriptor, d.STREAM_COUNT)):
        stream = descriptor + (d.FIRST_STREAM + number * d.STREAM_WORDS) * 8
        if load_word(stream, d.STREAM_KIND) == STREAM_SCALAR:
            bits = load_word(operands, 1 + ndim + number * (1 + ndim))
            fill_slot(load_word(record_of(state, number), _SLOT), bits, count, load_word(stream, d.STREAM_LOG2))


@subroutine("void(int64, int64, int64)")
def make_canonical(record, slot, count):  # type: ignore[no-untyped-def]
    """Elements of a float type as an instruction of that type would have stored them."""
    engine = load_word(record, _CANONICAL)
    if engine != 0:
        call_element(engine, slot, slot, 0, 0, count)


@subroutine("void(int64, int64, int64)", inline=True)
def copy_element(dst, src, log2):  # type: ignore[no-untyped-def]
    if log2 == 2:
        store32(dst, load32(src))
    elif log2 == 3:
        store64(dst, load64(src))
    elif log2 == 0:
        store8(dst, load_byte(src))
    else:
        store16(dst, load16(src))


# ---- reducing --------------------------------------------------------------------------------------------------------


@subroutine("void(int64, int64, int64, int64, int64)")
def part(slot, left, right, pairs, log2):  # type: ignore[no-untyped-def]
    """Elements 0, 2, ... to the left, 1, 3, ... to the right."""
    if log2 == 2:
        for i in range(pairs):
            store32(left + i * 4, load32(slot + i * 8))
            store32(right + i * 4, load32(slot + i * 8 + 4))
    else:
        for i in range(pairs):
            copy_element(left + (i << log2), slot + (2 * i << log2), log2)
            copy_element(right + (i << log2), slot + (2 * i + 1 << log2), log2)


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def fold_rows(state, descriptor, values, rows, row, results):  # type: ignore[no-untyped-def]
    """Fold `rows` rows of `row` elements in the stores' slots to one element a row, at their start.

    `results` is scratch memory of RESULT_BYTES a value, for what waits without a neighbour.
    """
    while row > 1:
        pairs, odd = row // 2, row & 1
        for value in range(values):
            record = record_of(state, 2 * values + value)
            slot, log2 = load_word(record, _SLOT), load_word(record, _LOG2)
            left = load_word(record_of(state, value), _SLOT)
            right = load_word(record_of(state, values + value), _SLOT)
            for r in range(rows):
                start = slot + (r * row << log2)
                part(start, left + (r * pairs << log2), right + (r * pairs << log2), pairs, log2)
                if odd:
                    copy_element(results + value * RESULT_BYTES + (r << log2), start + (row - 1 << log2), log2)
        run_body(state, descriptor, rows * pairs, 0, 0)
        if odd:
            for value in range(values):
                record = record_of(state, 2 * values + value)
                slot, log2 = load_word(record, _SLOT), load_word(record, _LOG2)
                for r in range(rows - 1, -1, -1):
                    start = slot + (r * (pairs + 1) << log2)
                    move_bytes(start, slot + (r * pairs << log2), pairs << log2)
                    copy_element(start + (pairs << log2), results + value * RESULT_BYTES + (r << log2), log2)
        row = pairs + odd


@subroutine("void(int64, int64, int64, int64, int64, int64, int64)")
def load_rows(state, operands, values, first_row, rows, first, count):  # type: ignore[no-untyped-def]
    """Elements [first, first + count) of some rows to the stores' slots, canonical."""
    ndim = load_word(operands, -2) >> 24 & 7
    for value in range(values):
        record, slot = record_of(state, values + value), load_word(record_of(state, 2 * values + value), _SLOT)
        log2, stride = load_word(record, _LOG2), load_word(record, _STRIDES + _RANK - 1)
        for r in range(rows):
            place = row_place(record, operands, ndim, first_row + r) + first * stride
            load_plane(slot + (r * count << log2), place, 1, 0, count, stride, log2)
        make_canonical(record, slot, rows * count)


@subroutine("void(int64, int64, int64, int64)")
def reduce_short(state, operands, descriptor, values):  # type: ignore[no-untyped-def]
    """Rows of at most a block, some at once."""
    ndim = load_word(operands, -2) >> 24 & 7
    row, total = load_word(operands, ndim), 1
    for dim in range(ndim - 1):
        total *= load_word(operands, 1 + dim)
    together = smaller(larger(_REDUCED_TOGETHER // row, 1), total)
    results = place_slots(state, descriptor, together * row)
    fill_scalars(state, operands, descriptor, together * row)
    for first in range(0, total, together):
        rows = smaller(together, total - first)
        load_rows(state, operands, values, first, rows, 0, row)
        fold_rows(state, descriptor, values, rows, row, results)
        for value in range(values):
            record = record_of(state, 2 * values + value)
            slot, log2 = load_word(record, _SLOT), load_word(record, _LOG2)
            for r in range(rows):
                copy_element(row_place(record, operands, ndim, first + r), slot + (r << log2), log2)


@subroutine("void(int64, int64, int64, int64)")
def reduce_long(state, operands, descriptor, values):  # type: ignore[no-untyped-def]
    """Rows of more than a block: one after the other, block by block, then the results of the blocks."""
    ndim = load_word(operands, -2) >> 24 & 7
    row, total = load_word(operands, ndim), 1
    for dim in range(ndim - 1):
        total *= load_word(operands, 1 + dim)
    results = place_slots(state, descriptor, BLOCK)
    fill_scalars(state, operands, descriptor, BLOCK)
    waiting, blocks = results + values * RESULT_BYTES, (row + BLOCK - 1) // BLOCK
    for number in range(total):
        for block in range(blocks):
            count = smaller(BLOCK, row - block * BLOCK)
            load_rows(state, operands, values, number, 1, block * BLOCK, count)
            fold_rows(state, descriptor, values, 1, count, waiting)
            for value in range(values):
                record = record_of(state, 2 * values + value)
                log2 = load_word(record, _LOG2)
                copy_element(results + value * RESULT_BYTES + (block << log2), load_word(record, _SLOT), log2)
        for value in range(values):
            record = record_of(state, 2 * values + value)
            move_bytes(load_word(record, _SLOT), results + value * RESULT_BYTES, blocks << load_word(record, _LOG2))
        fold_rows(state, descriptor, values, 1, blocks, waiting)
        for value in range(values):
            record = record_of(state, 2 * values + value)
            copy_element(row_place(record, operands, ndim, number), load_word(record, _SLOT), load_word(record, _LOG2))


# ---- scanning --------------------------------------------------------------------------------------------------------


@subroutine("void(int64, int64, int64, int64, int64, int64, int64, int64)")
def exchange_steps(state, operands, number, first_row, rows, first, steps, stores):  # type: ignore[no-untyped-def]
    """Move steps [first, first + steps) of some rows between a stream and its slot, where each step is contiguous."""
    ndim, mode = load_word(operands, -2) >> 24 & 7, load_word(operands, -2) >> 27 & 3
    record = record_of(state, number)
    slot, log2, stride = load_word(record, _SLOT), load_word(record, _LOG2), load_word(record, _STRIDES + _RANK - 1)
    for r in range(rows):
        place, step = row_place(record, operands, ndim, first_row + r), stride
        if mode == _REVERSE:
            place, step = place + (load_word(operands, ndim) - 1) * stride, -stride
        place += first * step
        element = slot + (r << log2)
        if rows == 1:
            if stores:
                store_plane(slot, place, 1, 0, steps, step, log2)
            else:
                load_plane(slot, place, 1, 0, steps, step, log2)
        elif stores:
            for i in range(steps):
                copy_element(place + i * step, element + (i * rows << log2), log2)
        else:
            for i in range(steps):
                copy_element(element + (i * rows << log2), place + i * step, log2)


@subroutine("void(int64, int64, int64, int64, int64)")
def run_steps(state, descriptor, values, rows, steps):  # type: ignore[no-untyped-def]
    """Fold the steps in the right slots into what the left slots hold, and leave every result in the stores' slots."""
    pointers = state + (POINTERS + OPERAND_STREAM) * 8
    for step in range(steps):
        for value in range(values):
            record = record_of(state, 2 * values + value)
            slot, log2 = load_word(record, _SLOT), load_word(record, _LOG2)
            right = load_word(record_of(state, values + value), _SLOT)
            carried = slot + ((step - 1) * rows << log2)
            store_word(pointers, value, carried if step > 0 else load_word(record_of(state, value), _SLOT))
            store_word(pointers, values + value, right + (step * rows << log2))
            store_word(pointers, 2 * values + value, slot + (step * rows << log2))
        run_body(state, descriptor, rows, 0, 0)


@subroutine("void(int64, int64, int64, int64)")
def scan_rows(state, operands, descriptor, values):  # type: ignore[no-untyped-def]
    ndim = load_word(operands, -2) >> 24 & 7
    row, total = load_word(operands, ndim), 1
    for dim in range(ndim - 1):
        total *= load_word(operands, 1 + dim)
    together = smaller(total, _SCANNED_TOGETHER)
    block = smaller(BLOCK // together, row)
    place_slots(state, descriptor, together * block)
    fill_scalars(state, operands, descriptor, together * block)
    for first_row in range(0, total, together):
        rows = smaller(together, total - first_row)
        for first in range(0, row, block):
            steps = smaller(block, row - first)
            for value in range(values):
                right = record_of(state, values + value)
                exchange_steps(state, operands, values + value, first_row, rows, first, steps, 0)
                make_canonical(right, load_word(right, _SLOT), rows * steps)
            if first == 0:
                begin(state, values, rows)
                skip_first(state, values, rows, 1)
                run_steps(state, descriptor, values, rows, steps - 1)
                skip_first(state, values, rows, -1)
            else:
                run_steps(state, descriptor, values, rows, steps)
            for value in range(values):
                exchange_steps(state, operands, 2 * values + value, first_row, rows, first, steps, 1)
            keep_last(state, values, rows, steps)


@subroutine("void(int64, int64, int64)")
def begin(state, values, rows):  # type: ignore[no-untyped-def]
    """The first step is its own result, and what the second finds on its left."""
    for value in range(values):
        right, store = record_of(state, values + value), record_of(state, 2 * values + value)
        count = rows << load_word(store, _LOG2)
        move_bytes(load_word(store, _SLOT), load_word(right, _SLOT), count)
        move_bytes(load_word(record_of(state, value), _SLOT), load_word(right, _SLOT), count)


@subroutine("void(int64, int64, int64, int64)")
def skip_first(state, values, rows, direction):  # type: ignore[no-untyped-def]
    """Let the right slots and those of the stores begin one step later, or where they did (`direction` -1)."""
    for number in range(values, 3 * values):
        record = record_of(state, number)
        store_word(record, _SLOT, load_word(record, _SLOT) + (direction * rows << load_word(record, _LOG2)))


@subroutine("void(int64, int64, int64, int64)")
def keep_last(state, values, rows, steps):  # type: ignore[no-untyped-def]
    """The last step's results go to the left slots, for the next chunk of steps."""
    for value in range(values):
        store = record_of(state, 2 * values + value)
        log2 = load_word(store, _LOG2)
        last = load_word(store, _SLOT) + ((steps - 1) * rows << log2)
        move_bytes(load_word(record_of(state, value), _SLOT), last, rows << log2)


# ---- the engine ------------------------------------------------------------------------------------------------------


def build_combine() -> Callable[[int, int], int]:
    """The COMBINE engine."""

    def combine_engine(operands, state):  # type: ignore[no-untyped-def]
        flags = load_word(operands, -2) >> 24
        ndim, mode = flags & 7, flags >> 3 & 3
        total = 1
        for dim in range(ndim):
            if load_word(operands, 1 + dim) <= 0:
                return OK
            total = bounded_product(total, load_word(operands, 1 + dim))
        descriptor = load_word(load_word(state, PROGRAMS), load_word(operands, 0))
        if descriptor == 0:
            store_word(state, FAULT_VALUE, COMBINE_OPCODE)
            return NO_ENGINE
        status = check_elements(state, total)
        if status != OK:
            return status
        if load_word(operands, ndim) > LONGEST_ROW:
            return oversized(state, load_word(operands, ndim), LONGEST_ROW)
        values = load_word(descriptor, d.COMBINED_VALUES)
        for number in range(values, 3 * values):
            dims = ndim - 1 if mode == _REDUCE and number >= 2 * values else ndim
            status = read_stream(state, operands, descriptor, ndim, number, dims)
            if status != OK:
                return status
        if mode != _REDUCE:
            scan_rows(state, operands, descriptor, values)
        elif load_word(operands, ndim) <= BLOCK:
            reduce_short(state, operands, descriptor, values)
        else:
            reduce_long(state, operands, descriptor, values)
        return OK

    return combine_engine
