"""Programs whose tiles are not in SRAM: they read where an elided copy would have read, and store where the next copy
would have stored (`elision`).
"""

from __future__ import annotations

from loom_core.isa.sce import STREAM_IOTA, STREAM_LOAD, STREAM_SCALAR, STREAM_STORE
from loom_sim import stream_views as v
from loom_sim.bits import select
from loom_sim.elision import ABSENT_FROM, ABSENT_IN, make_absent, make_present, meeting, overwrite, place_of
from loom_sim.jit import subroutine
from loom_sim.memory import bounded_product, load_word, store_word
from loom_sim.spaces import check_write, space_base
from loom_sim.state import ELIDED_FROM, LIVE_REGISTERS, OK, REGISTERS, SRAM, STREAM_VIEWS


@subroutine("void(int64, int64)")
def meet_absences(state, streams):  # type: ignore[no-untyped-def]
    """Let loads read absent tiles where they are, and prepare for the stores."""
    views, reads = state + STREAM_VIEWS * 8, 0
    for number in range(streams):
        record = views + number * (v.RECORD_WORDS * 8)
        if load_word(record, v.KIND) == STREAM_LOAD:
            low, high = load_word(record, v.LOW), load_word(record, v.HIGH)
            absent = meeting(state, ABSENT_IN, low, high)
            if absent == 0:
                continue
            moved = place_of(state, absent, low, high) - load_word(state, SRAM) - low
            if moved == 0:
                return_home(views, streams, absent)
            else:
                store_word(record, v.ADDRESS, load_word(record, v.HOME) + moved)
                store_word(record, v.ABSENT_BITS, absent)
                reads |= absent
    for number in range(streams):
        record = views + number * (v.RECORD_WORDS * 8)
        if load_word(record, v.KIND) == STREAM_STORE:
            low, high = load_word(record, v.LOW), load_word(record, v.HIGH)
            absent = meeting(state, ABSENT_IN, low, high)
            if absent & reads != 0:
                make_present(state, absent)
                return_home(views, streams, absent)
            elif absent != 0 and v.is_dense(views, record):
                overwrite(state, low, high)
            else:
                make_present(state, absent)


@subroutine("void(int64, int64, int64)")
def return_home(views, streams, present):  # type: ignore[no-untyped-def]
    """Loads of what has been made present read SRAM."""
    for number in range(streams):
        record = views + number * (v.RECORD_WORDS * 8)
        if load_word(record, v.KIND) == STREAM_LOAD and load_word(record, v.ABSENT_BITS) & present != 0:
            store_word(record, v.ADDRESS, load_word(record, v.HOME))
            store_word(record, v.ABSENT_BITS, 0)


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
        record = views + number * (v.RECORD_WORDS * 8)
        kind = load_word(record, v.KIND)
        if kind in (STREAM_IOTA, STREAM_SCALAR):
            continue
        if kind == STREAM_STORE and load_word(record, v.LOW) == low and load_word(record, v.HIGH) == low + count:
            if chosen != 0 or not v.is_dense(views, record):
                return False
            chosen = record
        elif load_word(record, v.LOW) < low + count and load_word(record, v.HIGH) > low:
            return False
        elif load_word(record, v.ABSENT_BITS) != 0:
            start = load_word(record, v.ADDRESS) - load_word(record, v.HOME) + load_word(state, SRAM)
            if start + load_word(record, v.LOW) < place + count and start + load_word(record, v.HIGH) > place:
                return False
    if chosen == 0:
        return False
    make_present(state, meeting(state, ABSENT_FROM, place, place + count))
    store_word(chosen, v.ADDRESS, place)
    make_absent(state, low, low + count, place)
    return True
