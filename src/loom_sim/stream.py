"""The stream compute engine's PROGRAM: SCE programs over strided streams, a chunk at a time.

The iteration space is cut into chunks that fit the first-level cache. For each chunk every stream becomes a pointer to
contiguous elements: into SRAM where they lie so, else to a slot that is filled before (loads, iota) or emptied after
(stores). Then each instruction's element engine runs once over the chunk.

There are two views of the iteration space: the body's, all dimensions, and the tail's, those that reductions leave. In
both, dimensions that follow each other in every stream are merged; sizes and strides are then right-aligned in four
dimensions. With reductions a row is what one result folds, and a chunk is some whole rows, or one row of up to 4096
elements, or one block of 4096 elements of a longer row: block results are collected and folded again by the same rule.

State used: `STREAM_VIEWS` holds a record of RECORD_WORDS a stream and the sizes of the two views; `POINTERS` what each
operand code stands for; the scratch memory a slot a register, then one a stream, then one for the block results of each
of those, then a carry record an instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loom_core.isa.commands import OP_PROGRAM as PROGRAM_OPCODE
from loom_core.isa.sce import OPERAND_STREAM, STREAM_IOTA, STREAM_LOAD, STREAM_SCALAR, STREAM_STORE
from loom_sim import carried
from loom_sim import descriptors as d
from loom_sim.bits import select
from loom_sim.elision import ABSENT_FROM, ABSENT_IN, make_absent, make_present, meeting, overwrite, place_of
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
    check_range,
    check_write,
    is_wild,
    out_of_bounds,
    oversized,
    space_base,
)
from loom_sim.state import (
    ABSENT,
    CARRY_BYTES,
    ELIDED_FROM,
    FAULT_VALUE,
    LIVE_REGISTERS,
    MAX_STREAMS,
    NEXT_COPY,
    NO_ENGINE,
    OK,
    POINTERS,
    PROGRAMS,
    REGISTERS,
    RESULT_BYTES,
    SCRATCH,
    SLOT_PADDING,
    SRAM,
    STREAM_VIEWS,
    WITH_NEXT,
)

CHUNK: Final = 1024  # elements; slots of 4 KiB for the usual types, so that a program's working set stays in 32 KiB
LONGEST_ROW: Final = BLOCK * BLOCK  # results of one row's blocks make one block
RECORD_WORDS: Final = 16
_KIND, _LOG2, _TAIL, _MODE, _ADDRESS, _SLOT, _KEEPS, _POINTER, _STRIDES = range(9)
_LOW, _HIGH, _HOME, _ABSENT = range(12, 16)  # SRAM bytes touched; address there; what is absent of what is read
_RANK: Final = 4
_INNER: Final = _RANK - 1
_SIZES: Final = MAX_STREAMS * RECORD_WORDS  # body sizes, then tail sizes
_LISTS: Final = _SIZES + 2 * _RANK  # a view's list of streams to resolve, and of those to scatter; then the tail's
_LIST_WORDS: Final = 1 + MAX_STREAMS

# How a stream that changes with every chunk becomes a pointer; the others are slots that are filled once.
_DIRECT: Final = 1  # contiguous throughout
_IN_ROWS: Final = 2  # every chunk lies in one contiguous row
_GATHER: Final = 3  # a slot, filled for each chunk; for stores one that is emptied


# ---- moving elements -------------------------------------------------------------------------------------------------


@subroutine("int64(int64, int64, int64)")
def row_offset(record, sizes, row):  # type: ignore[no-untyped-def]
    """Sum of stride * index over the outer dimensions, wrapped (iota strides are free), for the row (run of the
    innermost dimension) number `row`.
    """
    size = load_word(sizes, 2)
    if row < size:
        return wrapping_multiply(row, load_word(record, _STRIDES + 2))
    rest, middle = row // size, load_word(sizes, 1)
    inner = wrapping_multiply(row % size, load_word(record, _STRIDES + 2))
    outer = wrapping_multiply(rest // middle, load_word(record, _STRIDES))
    return wrapping_add(wrapping_add(inner, outer), wrapping_multiply(rest % middle, load_word(record, _STRIDES + 1)))


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def exchange_plane(record, place, row_stride, slot, rows, inner):  # type: ignore[no-untyped-def]
    """Move a plane whose first element is at `place` from a stream to its slot, or the other way for a store."""
    kind, log2, stride = load_word(record, _KIND), load_word(record, _LOG2), load_word(record, _STRIDES + _INNER)
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
    log2, slot = load_word(record, _LOG2), load_word(record, _SLOT)
    inner, plane_rows = load_word(sizes, _INNER), load_word(sizes, _INNER - 1)
    row, column = first // inner, first % inner
    while count > 0:
        place = wrapping_add(load_word(record, _ADDRESS), row_offset(record, sizes, row))
        if column != 0 or count < inner:
            part, rows = smaller(inner - column, count), 1
            place = wrapping_add(place, wrapping_multiply(column, load_word(record, _STRIDES + _INNER)))
        else:
            part, rows = inner, smaller(count // inner, plane_rows - row % plane_rows)
        exchange_plane(record, place, load_word(record, _STRIDES + _INNER - 1), slot, rows, part)
        slot += part * rows << log2
        count -= part * rows
        row += rows
        column = 0


# ---- views -----------------------------------------------------------------------------------------------------------


@subroutine("int64(int64, int64, int64, int64, int64)")
def read_streams(state, operands, descriptor, ndim, kept):  # type: ignore[no-untyped-def]
    """Fill the records and sizes from the command's operands; bounds check every load and store. `kept`: tail
    dimensions.
    """
    views = state + STREAM_VIEWS * 8
    for dim in range(_RANK):
        store_word(views, _SIZES + dim, load_word(operands, dim + 1 - (_RANK - ndim)) if dim >= _RANK - ndim else 1)
        in_tail = dim >= _RANK - kept
        store_word(views, _SIZES + _RANK + dim, load_word(operands, dim + 1 - (_RANK - kept)) if in_tail else 1)
    for number in range(load_word(descriptor, d.STREAM_COUNT)):
        stream = descriptor + (d.FIRST_STREAM + number * d.STREAM_WORDS) * 8
        record = views + number * (RECORD_WORDS * 8)
        kind, log2, tail = (
            load_word(stream, d.STREAM_KIND),
            load_word(stream, d.STREAM_LOG2),
            load_word(stream, d.STREAM_TAIL),
        )
        store_word(record, _KIND, kind)
        store_word(record, _LOG2, log2)
        store_word(record, _TAIL, tail)
        store_word(record, _KEEPS, load_word(stream, d.STREAM_KEEPS))
        given = operands + (1 + ndim + number * (1 + ndim)) * 8
        base = load_word(given, 0)
        dims = kept if tail else ndim
        low, high, wild = 0, 1 << log2, False
        for dim in range(_RANK - dims):
            store_word(record, _STRIDES + dim, 0)
        for dim in range(dims):
            stride = load_word(given, 1 + dim)
            store_word(record, _STRIDES + _RANK - dims + dim, stride)
            span = bounded_product(load_word(operands, 1 + dim) - 1, stride)
            wild |= is_wild(span)
            low += smaller(span, 0)
            high += larger(span, 0)
        if kind in (STREAM_IOTA, STREAM_SCALAR):
            store_word(record, _ADDRESS, base)
            continue
        if wild:
            return out_of_bounds(state, 0, base, low, high)
        status = check_range(state, 0, base, low, high)
        if status != OK:
            return status
        store_word(record, _ADDRESS, load_word(state, SRAM) + base)
        store_word(record, _LOW, base + low)
        store_word(record, _HIGH, base + high)
        store_word(record, _HOME, load_word(state, SRAM) + base)
        store_word(record, _ABSENT, 0)
    return OK


# ---- tiles that are not in SRAM (`elision`) --------------------------------------------------------------------------


@subroutine("void(int64, int64)")
def meet_absences(state, streams):  # type: ignore[no-untyped-def]
    """Let loads read absent tiles where they are, and prepare for the stores."""
    views, reads = state + STREAM_VIEWS * 8, 0
    for number in range(streams):
        record = views + number * (RECORD_WORDS * 8)
        if load_word(record, _KIND) == STREAM_LOAD:
            low, high = load_word(record, _LOW), load_word(record, _HIGH)
            absent = meeting(state, ABSENT_IN, low, high)
            if absent == 0:
                continue
            moved = place_of(state, absent, low, high) - load_word(state, SRAM) - low
            if moved == 0:
                return_home(views, streams, absent)
            else:
                store_word(record, _ADDRESS, load_word(record, _HOME) + moved)
                store_word(record, _ABSENT, absent)
                reads |= absent
    for number in range(streams):
        record = views + number * (RECORD_WORDS * 8)
        if load_word(record, _KIND) == STREAM_STORE:
            low, high = load_word(record, _LOW), load_word(record, _HIGH)
            absent = meeting(state, ABSENT_IN, low, high)
            if absent & reads != 0:
                make_present(state, absent)
                return_home(views, streams, absent)
            elif absent != 0 and is_dense(views, record):
                overwrite(state, low, high)
            else:
                make_present(state, absent)


@subroutine("void(int64, int64, int64)")
def return_home(views, streams, present):  # type: ignore[no-untyped-def]
    """Loads of what has been made present read SRAM."""
    for number in range(streams):
        record = views + number * (RECORD_WORDS * 8)
        if load_word(record, _KIND) == STREAM_LOAD and load_word(record, _ABSENT) & present != 0:
            store_word(record, _ADDRESS, load_word(record, _HOME))
            store_word(record, _ABSENT, 0)


@subroutine("boolean(int64, int64)")
def is_dense(views, record):  # type: ignore[no-untyped-def]
    """Whether a stream touches each element of its range once, in order."""
    sizes = views + (_SIZES + load_word(record, _TAIL) * _RANK) * 8
    return is_contiguous(record, sizes, 1 << load_word(record, _LOG2))


@subroutine("int64(int64, int64, int64)", inline=True)
def operand_at(state, command, index):  # type: ignore[no-untyped-def]
    """Operand of a command in the stream."""
    word = load_word(command, 2 + index)
    register = load_word(state, LIVE_REGISTERS + (word & (REGISTERS - 1)))
    return select((load_word(command, 1) >> index) & 1 != 0, register, word)


@subroutine("int64(int64, int64)")
def bytes_of_run(state, copy):  # type: ignore[no-untyped-def]
    """Bytes that a COPY in the stream moves, if they are one run on both sides; else 0."""
    flags = load_word(copy, 0) >> 24
    step = 1 << (flags >> 3 & 3)
    for dim in range((flags & 7) - 1, -1, -1):
        at = 5 + 5 * dim
        size = operand_at(state, copy, at)
        if size <= 0 or operand_at(state, copy, at + 3) > 0 or operand_at(state, copy, at + 4) < size:
            return 0
        if size != 1 and (operand_at(state, copy, at + 1) != step or operand_at(state, copy, at + 2) != step):
            return 0
        step = bounded_product(step, size)
    return step


@subroutine("boolean(int64, int64, int64)")
def store_through(state, streams, copy):  # type: ignore[no-untyped-def]
    """Have the tile that a COPY moves to HBM after the program written there at once; whether it does.

    Only where no other stream meets the tile, and nothing that is read what is written.
    """
    count = bytes_of_run(state, copy)
    low, space, offset = operand_at(state, copy, 1), operand_at(state, copy, 2), operand_at(state, copy, 3)
    if count < load_word(state, ELIDED_FROM) or operand_at(state, copy, 0) != 0 or space == 0:
        return False
    if check_write(state, space, offset, 0, count) != OK:
        return False  # the COPY will say so
    place, views, chosen = space_base(state, space) + offset, state + STREAM_VIEWS * 8, 0
    for number in range(streams):
        record = views + number * (RECORD_WORDS * 8)
        kind = load_word(record, _KIND)
        if kind in (STREAM_IOTA, STREAM_SCALAR):
            continue
        if kind == STREAM_STORE and load_word(record, _LOW) == low and load_word(record, _HIGH) == low + count:
            if chosen != 0 or not is_dense(views, record):
                return False
            chosen = record
        elif load_word(record, _LOW) < low + count and load_word(record, _HIGH) > low:
            return False
        elif load_word(record, _ABSENT) != 0:
            start = load_word(record, _ADDRESS) - load_word(record, _HOME) + load_word(state, SRAM)
            if start + load_word(record, _LOW) < place + count and start + load_word(record, _HIGH) > place:
                return False
    if chosen == 0:
        return False
    make_present(state, meeting(state, ABSENT_FROM, place, place + count))
    store_word(chosen, _ADDRESS, place)
    make_absent(state, low, low + count, place)
    return True


@subroutine("boolean(int64, int64, int64, int64, int64)")
def dims_follow(views, streams, tail, outer, inner):  # type: ignore[no-untyped-def]
    """Whether, in every stream of a view, a step of dimension `outer` is as far as all of dimension `inner`."""
    size = load_word(views, _SIZES + tail * _RANK + inner)
    for number in range(streams):
        record = views + number * (RECORD_WORDS * 8)
        if load_word(record, _TAIL) != tail or load_word(record, _KIND) == STREAM_SCALAR:
            continue
        if load_word(record, _STRIDES + outer) != wrapping_multiply(load_word(record, _STRIDES + inner), size):
            return False
    return True


@subroutine("void(int64, int64, int64, int64)")
def collapse_view(state, streams, tail, dims):  # type: ignore[no-untyped-def]
    """Merge dimensions of a view that follow each other in all its streams; those that vanish get size 1, outermost."""
    views = state + STREAM_VIEWS * 8
    sizes = views + (_SIZES + tail * _RANK) * 8
    inner = _INNER
    for dim in range(_INNER - 1, _INNER - dims, -1):
        size = load_word(sizes, dim)
        if size == 1:
            continue
        below = load_word(sizes, inner)
        if below != 1 and dims_follow(views, streams, tail, dim, inner):
            store_word(sizes, inner, below * size)
            continue
        if below != 1:
            inner -= 1
        store_word(sizes, inner, size)
        for number in range(streams):
            record = views + number * (RECORD_WORDS * 8)
            if load_word(record, _TAIL) == tail:
                store_word(record, _STRIDES + inner, load_word(record, _STRIDES + dim))
    for dim in range(inner):
        store_word(sizes, dim, 1)


@subroutine("boolean(int64, int64, int64)")
def is_contiguous(record, sizes, element):  # type: ignore[no-untyped-def]
    for dim in range(_INNER, -1, -1):
        size = load_word(sizes, dim)
        if size != 1:
            if load_word(record, _STRIDES + dim) != element:
                return False
            element *= size
    return True


@subroutine("boolean(int64, int64, int64)")
def repeats(record, sizes, grain):  # type: ignore[no-untyped-def]
    """Whether all chunks that begin at multiples of `grain` elements of a view see the same elements of a stream."""
    for dim in range(_INNER):
        if load_word(sizes, dim) != 1 and load_word(record, _STRIDES + dim) != 0:
            return False
    inner = load_word(sizes, _INNER)
    return load_word(record, _STRIDES + _INNER) == 0 or inner == 1 or grain % inner == 0


@subroutine("boolean(int64, int64)")
def is_overwritten(views, record):  # type: ignore[no-untyped-def]
    """Whether a load is one and the same stream as a store that comes before one of its reads."""
    stores, number = load_word(record, _KEEPS), 0
    while stores != 0:
        if stores & 1 != 0 and load_word(views, number * RECORD_WORDS + _ADDRESS) == load_word(record, _ADDRESS):
            return True
        stores >>= 1
        number += 1
    return False


@subroutine("void(int64, int64, int64, int64, int64, boolean)")
def choose_modes(state, streams, tail, chunk, grain, in_rows):  # type: ignore[no-untyped-def]
    """Decide for each stream of a view how its chunks become pointers, and fill the slots of those that never change.

    `chunk`: elements of the longest chunk; `grain`: a divisor of where chunks begin; `in_rows`: no chunk crosses a row.
    The streams with work for each chunk are listed: those to resolve before it, those to scatter after it.
    """
    views = state + STREAM_VIEWS * 8
    sizes = views + (_SIZES + tail * _RANK) * 8
    resolved, scattered = resolve_list(views, tail), scatter_list(views, tail)
    store_word(resolved, 0, 0)
    store_word(scattered, 0, 0)
    for number in range(streams):
        record = views + number * (RECORD_WORDS * 8)
        if load_word(record, _TAIL) != tail:
            continue
        kind, log2 = load_word(record, _KIND), load_word(record, _LOG2)
        if kind == STREAM_SCALAR:
            fill_slot(load_word(record, _SLOT), load_word(record, _ADDRESS), chunk, log2)
            continue
        mode = _GATHER
        if kind != STREAM_IOTA and not is_overwritten(views, record):
            if is_contiguous(record, sizes, 1 << log2):
                mode = _DIRECT
            elif in_rows and (chunk == 1 or load_word(record, _STRIDES + _INNER) == 1 << log2):
                mode = _IN_ROWS
            elif kind == STREAM_STORE:
                append(scattered, record)
                continue
        if mode == _GATHER and repeats(record, sizes, grain):
            exchange(record, sizes, 0, chunk)
            continue
        store_word(record, _MODE, mode)
        append(resolved, record)


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


# ---- chunks ----------------------------------------------------------------------------------------------------------


@subroutine("void(int64, int64, int64, int64)")
def resolve(state, tail, first, count):  # type: ignore[no-untyped-def]
    """Pointers of a view's streams for elements [first, first + count)."""
    views = state + STREAM_VIEWS * 8
    sizes, records = views + (_SIZES + tail * _RANK) * 8, resolve_list(views, tail)
    for i in range(1, load_word(records, 0) + 1):
        record = load_word(records, i)
        mode, address = load_word(record, _MODE), load_word(record, _ADDRESS)
        if mode == _DIRECT:
            store_word(load_word(record, _POINTER), 0, address + (first << load_word(record, _LOG2)))
        elif mode == _IN_ROWS:
            inner = load_word(sizes, _INNER)
            offset = row_offset(record, sizes, first // inner) + first % inner * load_word(record, _STRIDES + _INNER)
            store_word(load_word(record, _POINTER), 0, address + offset)
        else:
            exchange(record, sizes, first, count)


@subroutine("void(int64, int64, int64, int64)")
def scatter(state, tail, first, count):  # type: ignore[no-untyped-def]
    """Empty the slots of a view's stores to elements [first, first + count)."""
    views = state + STREAM_VIEWS * 8
    records = scatter_list(views, tail)
    for i in range(1, load_word(records, 0) + 1):
        exchange(load_word(records, i), views + (_SIZES + tail * _RANK) * 8, first, count)


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


# ---- the three ways through an iteration space -----------------------------------------------------------------------


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
        store_word(views, number * RECORD_WORDS + _SLOT, slot)
        store_word(views, number * RECORD_WORDS + _POINTER, pointers + (OPERAND_STREAM + number) * 8)
        slot += step
    return slot


@subroutine("void(int64, int64, int64)")
def run_elements(state, descriptor, total):  # type: ignore[no-untyped-def]
    """A program without reductions."""
    streams, inner = load_word(descriptor, d.STREAM_COUNT), load_word(state, STREAM_VIEWS + _SIZES + _INNER)
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
    rows, inner = total // row, load_word(state, STREAM_VIEWS + _SIZES + _INNER)
    tail_inner = load_word(state, STREAM_VIEWS + _SIZES + _RANK + _INNER)
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
    streams, inner = load_word(descriptor, d.STREAM_COUNT), load_word(state, STREAM_VIEWS + _SIZES + _INNER)
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
        status = read_streams(state, operands, descriptor, ndim, ndim - fold)
        if status != OK:
            return status
        streams = load_word(descriptor, d.STREAM_COUNT)
        collapse_view(state, streams, 0, ndim)
        if fold != 0:
            collapse_view(state, streams, 1, ndim - fold)
        if load_word(state, ABSENT) != 0:
            meet_absences(state, streams)
        copy = load_word(state, NEXT_COPY)
        if copy != 0 and store_through(state, streams, copy):
            status = WITH_NEXT
        if fold == 0:
            run_elements(state, descriptor, total)
        else:
            direction = 1 - 2 * (flags >> 7 & 1)
            if row <= BLOCK:
                run_rows(state, descriptor, total, row, direction)
            else:
                run_blocks(state, descriptor, total, row, direction)
        return status

    return program_engine
