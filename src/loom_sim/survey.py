"""Surveys: the interpreter follows a command stream without running its engines, and notes which bytes of HBM its
commands would read and write, and about how long they would take.

Scalars that are loaded from memory are taken as 0: whether they decide an address or a branch says `scalars_decide` of
`apart`. What is found lies in the array at SURVEY of the state (`survey_layout`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loom_core.isa.commands import (
    OP_COMBINE,
    OP_LDS,
    OP_MATMUL,
    OP_MATMULF,
    OP_MATMULI,
    OP_PROGRAM,
    OP_SCATTER_REDUCE,
    OP_SORT,
    SPACE_SRAM,
)
from loom_sim import descriptors as d
from loom_sim import footprint as box
from loom_sim.bits import select
from loom_sim.checker import tidy
from loom_sim.footprint import find_moves
from loom_sim.interpreter import build_interpreter, run_engine, scalar_memory
from loom_sim.jit import subroutine
from loom_sim.memory import PRODUCT_LIMIT, bounded_product, larger, load_word, smaller, store_word
from loom_sim.state import LIVE_REGISTERS, OK, PROGRAMS, REGISTERS, SPACE_COUNT, SPACE_WORDS, SPACES, STREAM, SURVEY
from loom_sim.survey_layout import (
    ABSOLUTE,
    ATOMIC,
    AXIS_COUNTER,
    BOXES,
    BOXES_WORDS,
    BY_PLACE,
    CONTESTED,
    FIRST_PLACE,
    HIGH,
    HULL_WORDS,
    HULLS,
    KIND_OF_ATOMIC,
    KINDS,
    LAST_WORD,
    LOW,
    MIXED,
    NANOSECONDS,
    ORDER_FREE,
    PIECE_COUNT,
    PIECE_LIMIT,
    PIECE_WORDS,
    PIECES,
    PLACES,
    READ,
)

# The size of the area is a plain number, so that Python need not import this module.
assert box.MOST_BOXES * box.BOX_WORDS <= BOXES_WORDS

_COMMAND_NS: Final = 100  # of any command
_BYTES_A_NS: Final = 8
_STEPS_A_NS: Final = 4  # elements times instructions
_PRODUCTS_A_NS: Final = 24  # multiply-adds
_SORT_STEPS: Final = 32  # of an element


@subroutine("int64(int64, int64)")
def kind_of_atomic(operands, order_free):  # type: ignore[no-untyped-def]
    """Of a scatter_reduce that cores may run side by side; else 0."""
    header = load_word(operands, -2)
    opcode = load_word(operands, 7)
    if header & 255 != OP_SCATTER_REDUCE or header >> 24 & 128 != 0 or opcode < 0 or opcode >= 0x2000:
        return 0
    return 1 + opcode * 4 + (header >> 27 & 3) if load_word(order_free, opcode) == 1 else 0


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def widen(hulls, kind, low, high, atomic, word):  # type: ignore[no-untyped-def]
    """Take bytes [low, high) into the hull of a kind of access."""
    hull = hulls + kind * (HULL_WORDS * 8)
    store_word(hull, LOW, smaller(load_word(hull, LOW), low))
    store_word(hull, HIGH, larger(load_word(hull, HIGH), high))
    before = load_word(hull, KIND_OF_ATOMIC)
    store_word(hull, KIND_OF_ATOMIC, atomic if before in (0, atomic) else MIXED)
    store_word(hull, LAST_WORD, word)


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def keep_piece(survey, space_and_kind, low, high, word, place):  # type: ignore[no-untyped-def]
    number = load_word(survey, PIECE_COUNT)
    store_word(survey, PIECE_COUNT, number + 1)
    if number < load_word(survey, PIECE_LIMIT):
        piece = load_word(survey, PIECES) + number * (PIECE_WORDS * 8)
        store_word(piece, 0, space_and_kind)
        store_word(piece, 1, low)
        store_word(piece, 2, high)
        store_word(piece, 3, word)
        store_word(piece, 4, place)


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def keep_pieces(survey, at, space_and_kind, first, word, place):  # type: ignore[no-untyped-def]
    """Every run of bytes of a tidy box whose first byte is `first`."""
    rank, width = load_word(at, box.RANK_USED), load_word(at, box.WIDTH)
    total = 1
    for dim in range(rank):
        total = bounded_product(total, load_word(at, box.SIZES + dim))
    if total > load_word(survey, PIECE_LIMIT):
        store_word(survey, PIECE_COUNT, load_word(survey, PIECE_COUNT) + total)
        return
    for point in range(total):
        rest, low = point, first
        for back in range(rank):
            dim = rank - 1 - back
            size = load_word(at, box.SIZES + dim)
            low += rest % size * load_word(at, box.STRIDES + dim)
            rest //= size
        keep_piece(survey, space_and_kind, low, low + width, word, place)


@subroutine("void(int64, int64, int64, int64, int64)")
def note_box(state, survey, at, atomic, word):  # type: ignore[no-untyped-def]
    """Take one box into the survey; `atomic` is the command's `kind_of_atomic`."""
    space = load_word(at, box.SPACE)
    if space <= SPACE_SRAM or space >= load_word(state, SPACE_COUNT) or load_word(at, box.WIDTH) <= 0:
        return
    entry = SPACES + space * SPACE_WORDS
    indexed = load_word(at, box.INDEX) >= 0
    if indexed:
        # The verdict holds for launches with other arrays, unless real addresses are compared.
        known = load_word(survey, ABSOLUTE) == 1
        low = select(known, load_word(state, entry + 1), -PRODUCT_LIMIT)
        high = select(known, load_word(state, entry + 2), PRODUCT_LIMIT)
    else:
        tidy(at)
        low = load_word(at, box.BASE)
        high = low + load_word(at, box.WIDTH)
        for dim in range(load_word(at, box.RANK_USED)):
            high += bounded_product(load_word(at, box.SIZES + dim) - 1, load_word(at, box.STRIDES + dim))
        low, high = larger(low, -PRODUCT_LIMIT), smaller(high, PRODUCT_LIMIT)
    if load_word(survey, ABSOLUTE) == 1:
        low += load_word(state, entry)
        high += load_word(state, entry)
        space = 1
    hulls = load_word(survey, HULLS) + space * (KINDS * HULL_WORDS * 8)
    mode = load_word(at, box.MODE)
    if atomic != 0 and mode & box.ATOMIC != 0:
        widen(hulls, ATOMIC, low, high, atomic, word)
        return
    contested = load_word(survey, CONTESTED) + space * 16
    meets = load_word(survey, PIECES) != 0 and low < load_word(contested, 1) and load_word(contested, 0) < high
    place = load_word(state, load_word(survey, AXIS_COUNTER))
    for kind in range(2):
        if mode & (box.READS if kind == READ else box.WRITES) == 0:
            continue
        widen(hulls, kind, low, high, 0, word)
        if meets and indexed:
            keep_piece(survey, space * 2 + kind, low, high, word, place)
        elif meets:
            keep_pieces(survey, at, space * 2 + kind, low, word, place)


@subroutine("int64(int64, int64)")
def estimate(state, operands):  # type: ignore[no-untyped-def]
    """About how many nanoseconds a command takes that only works in SRAM."""
    header = load_word(operands, -2)
    opcode, ndim = header & 255, header >> 24 & 7
    if opcode in (OP_MATMUL, OP_MATMULF, OP_MATMULI):
        m, n, k = load_word(operands, 3), load_word(operands, 4), load_word(operands, 5)
        return bounded_product(bounded_product(larger(m, 0), larger(n, 0)), larger(k, 0)) // _PRODUCTS_A_NS
    first, steps = 1, _SORT_STEPS
    if opcode in (OP_PROGRAM, OP_COMBINE):
        steps = load_word(load_word(load_word(state, PROGRAMS), load_word(operands, 0)), d.BODY_COUNT)
    elif opcode == OP_SORT:
        first = 6
    else:
        return 0
    for dim in range(ndim):
        # Of a sort every fourth operand is a size.
        steps = bounded_product(steps, larger(load_word(operands, first + dim * (4 if opcode == OP_SORT else 1)), 0))
    return steps // _STEPS_A_NS


@subroutine("int64(int64, int64, int64)")
def survey_command(state, command, operands):  # type: ignore[no-untyped-def]
    survey = load_word(state, SURVEY)
    boxes = load_word(survey, BOXES)
    count = find_moves(operands, boxes)
    nanoseconds = _COMMAND_NS
    if count == 0:
        nanoseconds += estimate(state, operands)
    else:
        moved = load_word(boxes, box.WIDTH)
        for dim in range(load_word(boxes, box.RANK_USED)):
            moved = bounded_product(moved, load_word(boxes, box.SIZES + dim))
        nanoseconds += moved // _BYTES_A_NS
    atomic = kind_of_atomic(operands, load_word(survey, ORDER_FREE))
    word = (command - load_word(state, STREAM)) // 8
    for number in range(count):
        note_box(state, survey, boxes + number * box.BOX_BYTES, atomic, word)
    store_word(survey, NANOSECONDS, load_word(survey, NANOSECONDS) + nanoseconds)
    place = load_word(state, load_word(survey, AXIS_COUNTER)) - load_word(survey, FIRST_PLACE)
    if 0 <= place < load_word(survey, PLACES):
        by_place = load_word(survey, BY_PLACE)
        store_word(by_place, place, load_word(by_place, place) + nanoseconds)
    return OK


@subroutine("int64(int64, int64, int64, int64)", inline=True)
def run_or_survey(state, command, operands, engine):  # type: ignore[no-untyped-def]
    if load_word(state, SURVEY) == 0:
        return run_engine(state, command, operands, engine)
    return survey_command(state, command, operands)


@subroutine("int64(int64, int64, int64)")
def move_or_survey(state, command, operands):  # type: ignore[no-untyped-def]
    if load_word(state, SURVEY) == 0:
        return scalar_memory(state, command, operands)
    if load_word(operands, -2) & 255 == OP_LDS:
        store_word(state, LIVE_REGISTERS + (load_word(operands, 0) & (REGISTERS - 1)), 0)
    return survey_command(state, command, operands)


def build_surveying_interpreter() -> Callable[[int], int]:
    """The command processor, which surveys where there is an array at SURVEY."""
    return build_interpreter(run_command=run_or_survey, move_scalar=move_or_survey)
