"""The stream compute engine's PROGRAM: SCE programs over strided streams, a chunk at a time.

The iteration space is cut into chunks that fit the first-level cache. For each chunk every stream becomes a pointer to
contiguous elements: into SRAM where they lie so, else to a slot that is filled before (loads, iota) or emptied after
(stores). Then each instruction's element engine runs once over the chunk.

There are two views of the iteration space: the body's, all dimensions, and the tail's, those that reductions leave. In
both, dimensions that follow each other in every stream are merged; sizes and strides are then right-aligned in four
dimensions. With reductions a row is what one result folds, and a chunk is some whole rows, or one row of up to 4096
elements, or one block of 4096 elements of a longer row: block results are collected and folded again by the same rule.

State used: `STREAM_VIEWS` holds the streams and the two views (`stream_views`), then lists; `POINTERS` what each
operand code stands for; the scratch memory a slot a register, then one a stream, then one for the block results of each
of those, then a carry record an instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loom_core.isa.commands import OP_PROGRAM as PROGRAM_OPCODE
from loom_core.isa.sce import OPERAND_STREAM, STREAM_IOTA, STREAM_SCALAR, STREAM_STORE
from loom_sim import carried
from loom_sim import descriptors as d
from loom_sim import stream_views as v
from loom_sim.jit import subroutine
from loom_sim.memory import (
    bounded_product,
    call_element,
    larger,
    load_word,
    smaller,
    store_word,
    wrapping_add,
    wrapping_multiply,
)
from loom_sim.planes import count_plane, count_plane_wide, fill_slot, load_plane, store_plane
from loom_sim.reductions import BLOCK
from loom_sim.spaces import (
    check_elements,
    oversized,
)
from loom_sim.state import (
    ABSENT,
    CARRY_BYTES,
    FAULT_VALUE,
    MAX_STREAMS,
    NEXT_COPY,
    NO_ENGINE,
    OK,
    POINTERS,
    PROGRAMS,
    RESULT_BYTES,
    SCRATCH,
    SLOT_PADDING,
    STREAM_VIEWS,
    WITH_NEXT,
)
from loom_sim.stream_elision import meet_absences, store_through

CHUNK: Final = 1024  # elements; slots of 4 KiB for the usual types, so that a program's working set stays in 32 KiB
LONGEST_ROW: Final = BLOCK * BLOCK  # results of one row's blocks make one block
_LISTS: Final = v.VIEW_WORDS  # a view's list of streams to resolve, and of those to scatter; then the tail's
_LIST_WORDS: Final = 1 + MAX_STREAMS

# How a stream that changes with every chunk becomes a pointer; the others are slots that are filled once.
_DIRECT: Final = 1  # contiguous throughout
_IN_ROWS: Final = 2  # every chunk lies in one contiguous row
_GATHER: Final = 3  # a slot, filled for each chunk; for stores one that is emptied


# ---- moving elements -------------------------------------------------------------------------------------------------


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def exchange_plane(record, place, row_stride, slot, rows, inner):  # type: ignore[no-untyped-def]
    """Move a plane whose first element is at `place` from a stream to its slot, or the other way for a store."""
    kind, log2, stride = load_word(record, v.KIND), load_word(record, v.LOG2), load_word(record, v.STRIDES + v.INNER)
    if kind == STREAM_STORE:
        store_plane(slot, place, rows, row_stride, inner, stride, log2)
    elif kind != STREAM_IOTA:
        load_plane(slot, place, rows, row_stride, inner, stride, log2)
    elif log2 == 2:
        count_plane(slot, place, rows, row_stride, stride, inner << 2)
    else:
        count_plane_wide(slot, place, rows, row_stride, stride, inner << 3)


@subroutine("void(int64, int64, int64, int64)")
def exchange(record, sizes, first, count):  # type: ignore[no-untyped-def]
    """Move elements [first, first + count) of a view from a stream to its slot, or the other way for a store."""
    log2, slot = load_word(record, v.LOG2), load_word(record, v.SLOT)
    inner, plane_rows = load_word(sizes, v.INNER), load_word(sizes, v.INNER - 1)
    row, column = first // inner, first % inner
    while count > 0:
        place = wrapping_add(load_word(record, v.ADDRESS), v.row_offset(record, sizes, row))
        if column != 0 or count < inner:
            part, rows = smaller(inner - column, count), 1
            place = wrapping_add(place, wrapping_multiply(column, load_word(record, v.STRIDES + v.INNER)))
        else:
            part, rows = inner, smaller(count // inner, plane_rows - row % plane_rows)
        exchange_plane(record, place, load_word(record, v.STRIDES + v.INNER - 1), slot, rows, part)
        slot += part * rows << log2
        count -= part * rows
        row += rows
        column = 0


# ---- how streams become pointers -------------------------------------------------------------------------------------


@subroutine("int64(int64, int64)", inline=True)
def resolve_list(views, tail):  # type: ignore[no-untyped-def]
    """Address of a list: its length, then records of streams whose pointers or slots change with every chunk."""
    return views + (_LISTS + tail * (2 * _LIST_WORDS)) * 8


@subroutine("int64(int64, int64)", inline=True)
def scatter_list(views, tail):  # type: ignore[no-untyped-def]
    """Address of a list: its length, then records of the stores whose slots are emptied after every chunk."""
    return views + (_LISTS + tail * (2 * _LIST_WORDS) + _LIST_WORDS) * 8


@subroutine("void(int64, int64)", inline=True)
def append(records, record):  # type: ignore[no-untyped-def]
    count = load_word(records, 0) + 1
    store_word(records, count, record)
    store_word(records, 0, count)


@subroutine("boolean(int64, int64, int64, boolean)")
def stands_for_all(views, record, sizes, in_rows):  # type: ignore[no-untyped-def]
    """Whether one element of a stream stands for all of every chunk, which its readers are told; a scalar is put into
    its slot. `in_rows`: no chunk crosses a row.
    """
    if load_word(record, v.MODE) == 0:
        return False
    one = True
    if load_word(record, v.KIND) == STREAM_SCALAR:
        fill_slot(load_word(record, v.SLOT), load_word(record, v.ADDRESS), 1, load_word(record, v.LOG2))
    else:
        one = v.is_one(record, sizes, in_rows) and not v.is_overwritten(views, record)
    store_word(load_word(record, v.POINTER), d.OPERAND_ONE - OPERAND_STREAM, d.ONE if one else 0)
    return one


@subroutine("void(int64, int64, int64, int64, int64, boolean)")
def choose_modes(state, streams, tail, chunk, grain, in_rows):  # type: ignore[no-untyped-def]
    """Decide for each stream of a view how its chunks become pointers, and fill the slots of those that never change.

    `chunk`: elements of the longest chunk; `grain`: a divisor of where chunks begin; `in_rows`: no chunk crosses a row.
    The streams with work for each chunk are listed: those to resolve before it, those to scatter after it.
    """
    views = state + STREAM_VIEWS * 8
    sizes = views + (v.SIZES + tail * v.RANK) * 8
    resolved, scattered = resolve_list(views, tail), scatter_list(views, tail)
    store_word(resolved, 0, 0)
    store_word(scattered, 0, 0)
    for number in range(streams):
        record = views + number * (v.RECORD_WORDS * 8)
        if load_word(record, v.TAIL) != tail:
            continue
        kind, log2 = load_word(record, v.KIND), load_word(record, v.LOG2)
        if stands_for_all(views, record, sizes, in_rows):
            if kind != STREAM_SCALAR:
                store_word(record, v.MODE, _IN_ROWS)
                append(resolved, record)
            continue
        if kind == STREAM_SCALAR:
            fill_slot(load_word(record, v.SLOT), load_word(record, v.ADDRESS), chunk, log2)
            continue
        mode = _GATHER
        if kind != STREAM_IOTA and not v.is_overwritten(views, record):
            if v.is_contiguous(record, sizes, 1 << log2):
                mode = _DIRECT
            elif in_rows and (chunk == 1 or load_word(record, v.STRIDES + v.INNER) == 1 << log2):
                mode = _IN_ROWS
            elif kind == STREAM_STORE:
                append(scattered, record)
                continue
        if mode == _GATHER and v.repeats(record, sizes, grain):
            exchange(record, sizes, 0, chunk)
            continue
        store_word(record, v.MODE, mode)
        append(resolved, record)


# ---- chunks ----------------------------------------------------------------------------------------------------------


@subroutine("void(int64, int64, int64, int64)")
def resolve(state, tail, first, count):  # type: ignore[no-untyped-def]
    """Pointers of a view's streams for elements [first, first + count)."""
    views = state + STREAM_VIEWS * 8
    sizes, records = views + (v.SIZES + tail * v.RANK) * 8, resolve_list(views, tail)
    for i in range(1, load_word(records, 0) + 1):
        record = load_word(records, i)
        mode, address = load_word(record, v.MODE), load_word(record, v.ADDRESS)
        if mode == _DIRECT:
            store_word(load_word(record, v.POINTER), 0, address + (first << load_word(record, v.LOG2)))
        elif mode == _IN_ROWS:
            inner = load_word(sizes, v.INNER)
            along = first % inner * load_word(record, v.STRIDES + v.INNER)
            offset = v.row_offset(record, sizes, first // inner) + along
            store_word(load_word(record, v.POINTER), 0, address + offset)
        else:
            exchange(record, sizes, first, count)


@subroutine("void(int64, int64, int64, int64)")
def scatter(state, tail, first, count):  # type: ignore[no-untyped-def]
    """Empty the slots of a view's stores to elements [first, first + count)."""
    views = state + STREAM_VIEWS * 8
    records = scatter_list(views, tail)
    for i in range(1, load_word(records, 0) + 1):
        exchange(load_word(records, i), views + (v.SIZES + tail * v.RANK) * 8, first, count)


@subroutine("void(int64, int64, int64, int64, int64)")
def run_body(state, descriptor, count, row, rows):  # type: ignore[no-untyped-def]
    """The body's instructions over a chunk of `count` elements: `rows` whole rows of `row` elements, where they matter.

    A negative `row` is one that scans walk from its last element to its first.
    """
    pointers, instruction = state + POINTERS * 8, load_word(descriptor, d.INSTRUCTIONS)
    for _ in range(load_word(descriptor, d.BODY_COUNT)):
        engine, rowwise = load_word(instruction, d.INSTR_ENGINE), load_word(instruction, d.INSTR_ROWS)
        dst = load_word(pointers, load_word(instruction, d.INSTR_DST))
        a = load_word(pointers, load_word(instruction, d.INSTR_A))
        if rowwise == d.ELEMENTWISE:
            b = load_word(pointers, load_word(instruction, d.INSTR_B))
            c = load_word(pointers, load_word(instruction, d.INSTR_C))
            call_element(engine, dst, a, b, c, count)
        else:
            call_element(engine, dst, a, 0, row if rowwise == d.CARRIES else larger(row, -row), rows)
        instruction += d.INSTR_WORDS * 8


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def run_block(state, descriptor, count, row, results, block):  # type: ignore[no-untyped-def]
    """The body's instructions over block number `block` of a row; `row` is `count`, negative in reverse.

    `results`: address of the slots where reductions leave one result a block, and carry records behind them.
    """
    pointers, instruction = state + POINTERS * 8, load_word(descriptor, d.INSTRUCTIONS)
    for _ in range(load_word(descriptor, d.BODY_COUNT)):
        engine, rowwise = load_word(instruction, d.INSTR_ENGINE), load_word(instruction, d.INSTR_ROWS)
        code = load_word(instruction, d.INSTR_DST)
        dst, a = load_word(pointers, code), load_word(pointers, load_word(instruction, d.INSTR_A))
        if rowwise == d.ELEMENTWISE:
            b = load_word(pointers, load_word(instruction, d.INSTR_B))
            c = load_word(pointers, load_word(instruction, d.INSTR_C))
            call_element(engine, dst, a, b, c, count)
        elif rowwise == d.FOLDS:
            dst = results_of(descriptor, results, code) + (block << load_word(instruction, d.INSTR_RESULT_LOG2))
            call_element(engine, dst, a, 0, count, 1)
        else:
            carry = carry_of(descriptor, results, instruction)
            store_word(carry, carried.FIRST, block * BLOCK)
            call_element(engine, dst, a, carry, row, 1)
        instruction += d.INSTR_WORDS * 8


@subroutine("int64(int64, int64, int64)", inline=True)
def carry_of(descriptor, results, instruction):  # type: ignore[no-untyped-def]
    """Address of the carry record of an instruction."""
    slots = load_word(descriptor, d.REGISTER_COUNT) + load_word(descriptor, d.STREAM_COUNT)
    return results + slots * RESULT_BYTES + load_word(instruction, d.INSTR_CARRY) * CARRY_BYTES


@subroutine("void(int64, int64)")
def clear_carries(descriptor, results):  # type: ignore[no-untyped-def]
    """Nothing is carried into a new row."""
    instruction = load_word(descriptor, d.INSTRUCTIONS)
    for _ in range(load_word(descriptor, d.BODY_COUNT)):
        if load_word(instruction, d.INSTR_ROWS) == d.CARRIES:
            store_word(carry_of(descriptor, results, instruction), carried.SEEN, 0)
        instruction += d.INSTR_WORDS * 8


@subroutine("int64(int64, int64, int64)", inline=True)
def results_of(descriptor, results, code):  # type: ignore[no-untyped-def]
    """Address of the block results of the reduction that writes operand `code`."""
    slot = code if code < OPERAND_STREAM else code - OPERAND_STREAM + load_word(descriptor, d.REGISTER_COUNT)
    return results + slot * RESULT_BYTES


@subroutine("void(int64, int64, int64, int64)")
def fold_results(state, descriptor, results, blocks):  # type: ignore[no-untyped-def]
    """Fold the block results of every reduction into its operand."""
    pointers, instruction = state + POINTERS * 8, load_word(descriptor, d.INSTRUCTIONS)
    for _ in range(load_word(descriptor, d.BODY_COUNT)):
        if load_word(instruction, d.INSTR_ROWS) == d.FOLDS:
            code = load_word(instruction, d.INSTR_DST)
            source = results_of(descriptor, results, code)
            call_element(load_word(instruction, d.INSTR_ENGINE), load_word(pointers, code), source, 0, blocks, 1)
        instruction += d.INSTR_WORDS * 8


@subroutine("void(int64, int64, int64)")
def run_tail(state, descriptor, count):  # type: ignore[no-untyped-def]
    """The tail's instructions over `count` rows."""
    pointers, instruction = state + POINTERS * 8, load_word(descriptor, d.INSTRUCTIONS)
    instruction += load_word(descriptor, d.BODY_COUNT) * (d.INSTR_WORDS * 8)
    for _ in range(load_word(descriptor, d.TAIL_COUNT)):
        call_element(
            load_word(instruction, d.INSTR_ENGINE),
            load_word(pointers, load_word(instruction, d.INSTR_DST)),
            load_word(pointers, load_word(instruction, d.INSTR_A)),
            load_word(pointers, load_word(instruction, d.INSTR_B)),
            load_word(pointers, load_word(instruction, d.INSTR_C)),
            count,
        )
        instruction += d.INSTR_WORDS * 8


# ---- the ways through an iteration space -----------------------------------------------------------------------------


@subroutine("int64(int64, int64, int64)")
def place_slots(state, descriptor, capacity):  # type: ignore[no-untyped-def]
    """Give every register and stream a slot of `capacity` elements; returns the address behind them."""
    pointers, views = state + POINTERS * 8, state + STREAM_VIEWS * 8
    step = (((capacity << load_word(descriptor, d.SLOT_LOG2)) + 63) & -64) + SLOT_PADDING
    slot = load_word(state, SCRATCH)
    for number in range(load_word(descriptor, d.REGISTER_COUNT)):
        store_word(pointers, number, slot)
        slot += step
    for number in range(load_word(descriptor, d.STREAM_COUNT)):
        store_word(pointers, OPERAND_STREAM + number, slot)
        store_word(views, number * v.RECORD_WORDS + v.SLOT, slot)
        store_word(views, number * v.RECORD_WORDS + v.POINTER, pointers + (OPERAND_STREAM + number) * 8)
        slot += step
    return slot


@subroutine("void(int64, int64, int64, int64)")
def point_streams(state, total, rows, streams):  # type: ignore[no-untyped-def]
    """`choose_modes` and `resolve` of both views where all is one chunk: `total` elements, `rows` in the tail."""
    views = state + STREAM_VIEWS * 8
    store_word(scatter_list(views, 0), 0, 0)
    store_word(scatter_list(views, 1), 0, 0)
    for number in range(streams):
        record = views + number * (v.RECORD_WORDS * 8)
        kind, log2, tail = load_word(record, v.KIND), load_word(record, v.LOG2), load_word(record, v.TAIL)
        count, sizes = rows if tail != 0 else total, views + (v.SIZES + tail * v.RANK) * 8
        if stands_for_all(views, record, sizes, False):
            if kind != STREAM_SCALAR:
                store_word(load_word(record, v.POINTER), 0, load_word(record, v.ADDRESS))
            continue
        if kind == STREAM_SCALAR:
            fill_slot(load_word(record, v.SLOT), load_word(record, v.ADDRESS), count, log2)
            continue
        if kind != STREAM_IOTA and v.is_contiguous(record, sizes, 1 << log2) and not v.is_overwritten(views, record):
            store_word(load_word(record, v.POINTER), 0, load_word(record, v.ADDRESS))
        elif kind == STREAM_STORE:
            append(scatter_list(views, tail), record)
        else:
            exchange(record, sizes, 0, count)


@subroutine("void(int64, int64, int64, int64, int64)")
def run_chunk(state, descriptor, total, row, direction):  # type: ignore[no-untyped-def]
    """A program whose elements are one chunk."""
    rows = total // row
    place_slots(state, descriptor, total)
    point_streams(state, total, rows, load_word(descriptor, d.STREAM_COUNT))
    run_body(state, descriptor, total, row * direction, rows)
    scatter(state, 0, 0, total)
    run_tail(state, descriptor, rows)
    scatter(state, 1, 0, rows)


@subroutine("void(int64, int64, int64)")
def run_elements(state, descriptor, total):  # type: ignore[no-untyped-def]
    """A program without reductions."""
    streams, inner = load_word(descriptor, d.STREAM_COUNT), load_word(state, STREAM_VIEWS + v.SIZES + v.INNER)
    in_rows = inner * 2 > CHUNK
    chunk = smaller(CHUNK, inner) if in_rows else smaller(CHUNK // inner * inner, total)
    grain = chunk if not in_rows or inner % chunk == 0 else 1
    place_slots(state, descriptor, chunk)
    choose_modes(state, streams, 0, chunk, grain, in_rows)
    first = 0
    while first < total:
        count = smaller(chunk, (inner - first % inner) if in_rows else (total - first))
        resolve(state, 0, first, count)
        run_body(state, descriptor, count, 0, 0)
        scatter(state, 0, first, count)
        first += count


@subroutine("void(int64, int64, int64, int64, int64)")
def run_rows(state, descriptor, total, row, direction):  # type: ignore[no-untyped-def]
    """A program whose reductions and scans fold rows of at most one block; scans go up or down (`direction` 1, -1)."""
    streams = load_word(descriptor, d.STREAM_COUNT)
    rows, inner = total // row, load_word(state, STREAM_VIEWS + v.SIZES + v.INNER)
    tail_inner = load_word(state, STREAM_VIEWS + v.SIZES + v.RANK + v.INNER)
    # Scans go along several rows side by side: for them it is worth to leave the first-level cache.
    chunk = BLOCK if load_word(descriptor, d.SCANS) else CHUNK
    chunk_rows = smaller(larger(chunk // row, 1), rows)
    chunk = chunk_rows * row
    place_slots(state, descriptor, chunk)
    choose_modes(state, streams, 0, chunk, chunk, inner % chunk == 0 or inner == total)
    choose_modes(state, streams, 1, chunk_rows, chunk_rows, tail_inner % chunk_rows == 0 or tail_inner == rows)
    for first_row in range(0, rows, chunk_rows):
        count_rows = smaller(chunk_rows, rows - first_row)
        first, count = first_row * row, count_rows * row
        resolve(state, 0, first, count)
        resolve(state, 1, first_row, count_rows)
        run_body(state, descriptor, count, row * direction, count_rows)
        scatter(state, 0, first, count)
        run_tail(state, descriptor, count_rows)
        scatter(state, 1, first_row, count_rows)


@subroutine("void(int64, int64, int64, int64, int64)")
def run_blocks(state, descriptor, total, row, direction):  # type: ignore[no-untyped-def]
    """A program whose reductions and scans fold rows longer than a block."""
    streams, inner = load_word(descriptor, d.STREAM_COUNT), load_word(state, STREAM_VIEWS + v.SIZES + v.INNER)
    results = place_slots(state, descriptor, BLOCK)
    blocks = (row + BLOCK - 1) // BLOCK
    choose_modes(state, streams, 0, BLOCK, 1, inner % row == 0)
    choose_modes(state, streams, 1, 1, 1, True)
    for number in range(total // row):
        clear_carries(descriptor, results)
        resolve(state, 1, number, 1)
        for step in range(blocks):
            block = step if direction > 0 else blocks - 1 - step
            first, count = number * row + block * BLOCK, smaller(BLOCK, row - block * BLOCK)
            resolve(state, 0, first, count)
            run_block(state, descriptor, count, count * direction, results, block)
            scatter(state, 0, first, count)
        fold_results(state, descriptor, results, blocks)
        run_tail(state, descriptor, 1)
        scatter(state, 1, number, 1)


def build_program() -> Callable[[int, int], int]:
    """The PROGRAM engine."""

    def program_engine(operands, state):  # type: ignore[no-untyped-def]
        flags = load_word(operands, -2) >> 24
        ndim, fold = flags & 7, flags >> 3 & 7
        total, row = 1, 1
        for dim in range(ndim):
            size = load_word(operands, 1 + dim)
            if size <= 0:
                return OK
            total = bounded_product(total, size)
            if dim >= ndim - fold:
                row = bounded_product(row, size)
        descriptor = load_word(load_word(state, PROGRAMS), load_word(operands, 0))
        if descriptor == 0:
            store_word(state, FAULT_VALUE, PROGRAM_OPCODE)
            return NO_ENGINE
        status = check_elements(state, total)
        if status != OK:
            return status
        if row > LONGEST_ROW:
            return oversized(state, row, LONGEST_ROW)
        streams = load_word(descriptor, d.STREAM_COUNT)
        if ndim == 1:
            status = v.read_line(state, operands, descriptor, fold)
        else:
            status = v.read_streams(state, operands, descriptor, ndim, ndim - fold)
        if status != OK:
            return status
        if ndim > 1:
            v.collapse_view(state, streams, 0, ndim)
            if fold != 0:
                v.collapse_view(state, streams, 1, ndim - fold)
        if load_word(state, ABSENT) != 0:
            meet_absences(state, streams)
        copy = load_word(state, NEXT_COPY)
        if copy != 0 and store_through(state, streams, copy):
            status = WITH_NEXT
        direction = 1 - 2 * (flags >> 7 & 1)
        if total <= CHUNK or (total == row and row <= BLOCK):
            run_chunk(state, descriptor, total, row, direction)
        elif fold == 0:
            run_elements(state, descriptor, total)
        elif row <= BLOCK:
            run_rows(state, descriptor, total, row, direction)
        else:
            run_blocks(state, descriptor, total, row, direction)
        return status

    return program_engine
