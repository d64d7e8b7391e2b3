"""The checking interpreter: before each command, whether its accesses are ordered behind those that they meet, and what
they find.

The simulator runs every command where it is issued, so a missing wait never changes a result here; on the machine it
would. What a command knows to be complete when it starts:

    queue    everything issued before it on its own queue
    ACP      scalar loads and stores, with what those knew, before anything later is issued
    wait     `token, lag` at issue: all signals on the token so far but the last `lag`, with what their commands knew

Programs of a grid have no order among each other, until one takes part in an atomic operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loom_core.isa.commands import OP_COPY, OP_PROGRAM, QUEUE_COUNT, SPACE_SRAM, Queue
from loom_sim import footprint as box
from loom_sim import shadow
from loom_sim.elision import make_present
from loom_sim.footprint import find_boxes
from loom_sim.interpreter import COUNTER, HIGH, ignore_scalar, resolve_to
from loom_sim.jit import subroutine
from loom_sim.memory import larger, load8, load32, load64, load_word, set32, smaller, store_word
from loom_sim.shadow import is_watched, judge_suspects, touch
from loom_sim.state import ABSENT, ALONE, CHECK, LOOP_STACK, LOOP_WORDS, SPACE_COUNT, SRAM, STREAM

RING: Final = 64
"""Signals of a token that are kept. A wait that lags behind more of them counts as none."""
TOKEN_WORDS: Final = 1 + RING * QUEUE_COUNT  # signals so far, then what each guarantees
_ACP: Final = int(Queue.ACP)


# ---- order ----


@subroutine("void(int64, int64)")
def join(into, other):  # type: ignore[no-untyped-def]
    """Add what the clock at address `other` knows to the one at `into`."""
    for queue in range(QUEUE_COUNT):
        store_word(into, queue, larger(load_word(into, queue), load_word(other, queue)))


@subroutine("void(int64, int64, int64)")
def find_known(check, command, queue):  # type: ignore[no-untyped-def]
    """Leave at KNOWN what is complete when a command starts; the command itself counts, for it does not meet itself."""
    known, clocks = check + shadow.KNOWN * 8, check + shadow.CLOCKS * 8
    for other in range(QUEUE_COUNT):
        store_word(known, other, load_word(clocks, _ACP * QUEUE_COUNT + other))
    join(known, clocks + queue * (QUEUE_COUNT * 8))
    header = load_word(command, 0)
    waits = command + (2 + (header >> 48 & 0xFFFF)) * 8
    for i in range(header >> 20 & 15):
        word = load_word(waits, i)
        token = load_word(check, shadow.TOKENS) + (word & 0xFFFFFFFF) * (TOKEN_WORDS * 8)
        issued = load_word(token, 0)
        needed = issued - (word >> 32 & 0xFFFFFFFF)
        if needed > 0 and needed > issued - RING:
            join(known, token + (1 + (needed - 1) % RING * QUEUE_COUNT) * 8)
    store_word(known, queue, load_word(check, shadow.COUNTS + queue) + 1)


@subroutine("void(int64, int64, int64, int64)")
def advance(check, command, queue, word):  # type: ignore[no-untyped-def]
    """The command is issued: clocks, its signal, and where it stands."""
    number = load_word(check, shadow.COUNTS + queue) + 1
    store_word(check, shadow.COUNTS + queue, number)
    log = load_word(check, shadow.LOG)
    set32(log, queue * shadow.LOG_LENGTH + number % shadow.LOG_LENGTH, word)
    clock, known = check + (shadow.CLOCKS + queue * QUEUE_COUNT) * 8, check + shadow.KNOWN * 8
    for other in range(QUEUE_COUNT):
        store_word(clock, other, load_word(known, other))
    store_word(clock, queue, number)
    signal = load_word(command, 0) >> 32 & 0xFFFF
    if signal == 0:
        return
    token = load_word(check, shadow.TOKENS) + signal * (TOKEN_WORDS * 8)
    issued = load_word(token, 0)
    place = token + (1 + issued % RING * QUEUE_COUNT) * 8
    # A wait counts completions, so it guarantees the signals before this one as well.
    before = token + (1 + (issued - 1) % RING * QUEUE_COUNT) * 8
    for other in range(QUEUE_COUNT):
        earlier = load_word(before, other) if issued > 0 else 0
        store_word(place, other, larger(earlier, load_word(clock, other)))
    store_word(token, 0, issued + 1)


# ---- accesses ----


@subroutine("int64(int64, int64, int64, int64)")
def dot(place, strides, sizes, rank):  # type: ignore[no-untyped-def]
    """Sum of stride * i for point number `place` of a grid, row-major."""
    total = 0
    for back in range(rank - 1):
        dim = rank - 1 - back
        size = load_word(sizes, dim)
        total += place % size * load_word(strides, dim)
        place //= size
    if rank > 0:
        total += place * load_word(strides, 0)
    return total


@subroutine("void(int64, int64, int64, int64)")
def touch_indexed(check, at, sram, mode):  # type: ignore[no-untyped-def]
    """Every element of a box with an index tile."""
    rank, sizes = load_word(at, box.RANK_USED), at + box.SIZES * 8
    total = 1
    for dim in range(rank):
        total *= load_word(sizes, dim)
    index, mask, wide = load_word(at, box.INDEX), load_word(at, box.MASK), load_word(at, box.INDEX_LOG2) == 3
    for place in range(total):
        if mask >= 0 and load8(sram + mask + dot(place, at + box.MASK_STRIDES * 8, sizes, rank)) == 0:
            continue
        address = sram + index + dot(place, at + box.INDEX_STRIDES * 8, sizes, rank)
        # A narrow index is signed.
        number = load64(address) if wide else (load32(address) ^ 0x80000000) - 0x80000000
        offset = load_word(at, box.BASE) + dot(place, at + box.STRIDES * 8, sizes, rank)
        offset += number * load_word(at, box.SCALE)
        touch(check, load_word(at, box.SPACE), offset, load_word(at, box.WIDTH), mode, load_word(at, box.LAYOUT))


@subroutine("void(int64)")
def tidy(at):  # type: ignore[no-untyped-def]
    """Make a box's runs of bytes long: drop the dimensions that say nothing new, put the shortest stride innermost,
    and join to the run what continues it.
    """
    sizes, strides, rank = at + box.SIZES * 8, at + box.STRIDES * 8, 0
    for dim in range(load_word(at, box.RANK_USED)):
        size, stride = load_word(sizes, dim), load_word(strides, dim)
        if size == 1 or stride == 0:
            continue
        if stride < 0:
            store_word(at, box.BASE, load_word(at, box.BASE) + (size - 1) * stride)
            stride = -stride
        place = rank
        while place > 0 and load_word(strides, place - 1) < stride:
            store_word(sizes, place, load_word(sizes, place - 1))
            store_word(strides, place, load_word(strides, place - 1))
            place -= 1
        store_word(sizes, place, size)
        store_word(strides, place, stride)
        rank += 1
    width = load_word(at, box.WIDTH)
    while rank > 0 and load_word(strides, rank - 1) == width:
        width *= load_word(sizes, rank - 1)
        rank -= 1
    store_word(at, box.WIDTH, width)
    store_word(at, box.RANK_USED, rank)


@subroutine("void(int64, int64, int64)")
def touch_box(check, at, mode):  # type: ignore[no-untyped-def]
    """Every run of bytes of a tidy box without index."""
    rank, width, base = load_word(at, box.RANK_USED), load_word(at, box.WIDTH), load_word(at, box.BASE)
    sizes, strides = at + box.SIZES * 8, at + box.STRIDES * 8
    if width <= 0:
        return
    total = 1
    for dim in range(rank):
        total *= load_word(sizes, dim)
    for place in range(total):
        offset = base + dot(place, strides, sizes, rank)
        touch(check, load_word(at, box.SPACE), offset, width, mode, load_word(at, box.LAYOUT))


@subroutine("void(int64, int64, int64, int64)")
def touch_all(state, check, count, mode):  # type: ignore[no-untyped-def]
    """The boxes that are read, or those that are written."""
    for number in range(count):
        at = load_word(check, shadow.BOXES) + number * box.BOX_BYTES
        if load_word(at, box.MODE) & mode == 0 or not is_watched(check, load_word(at, box.SPACE)):
            continue
        if load_word(at, box.INDEX) >= 0:
            make_present(state, load_word(state, ABSENT))  # the tiles of indices and of the mask
            touch_indexed(check, at, load_word(state, SRAM), mode)
        else:
            touch_box(check, at, mode)


@subroutine("void(int64, int64)")
def find_program(check, state):  # type: ignore[no-untyped-def]
    """The program of the grid that the outer three loops have come to."""
    number = 0
    for loop in range(3):
        entry = state + (LOOP_STACK + loop * LOOP_WORDS) * 8
        number = number * load_word(entry, HIGH) + load_word(entry, COUNTER)
    number += load_word(check, shadow.BASE) + 1
    if number != load_word(check, shadow.PROGRAM):
        store_word(check, shadow.PROGRAM, number)
        store_word(check, shadow.SYNCHRONISED, 0)


@subroutine("void(int64, int64)")
def check_windows(check, at):  # type: ignore[no-untyped-def]
    """Report a tidy box of SRAM that is not within one window that is in use."""
    low, high = load_word(at, box.BASE), load_word(at, box.BASE) + load_word(at, box.WIDTH)
    for dim in range(load_word(at, box.RANK_USED)):
        high += (load_word(at, box.SIZES + dim) - 1) * load_word(at, box.STRIDES + dim)
    windows, word = load_word(check, shadow.WINDOWS), load_word(check, shadow.WORD)
    for number in range(load_word(check, shadow.WINDOW_COUNT)):
        window = windows + number * (shadow.WINDOW_WORDS * 8)
        within = load_word(window, shadow.START) <= low and high <= load_word(window, shadow.END)
        if within and load_word(window, shadow.FIRST) <= word and word <= load_word(window, shadow.LAST):
            return
    mode = load_word(at, box.MODE)
    shadow.report(check, shadow.OUTSIDE_OF_WINDOWS, shadow.UNKNOWN_WORD, SPACE_SRAM, low, mode, high - low)


@subroutine("void(int64, int64, int64)")
def prepare_boxes(check, count, spaces):  # type: ignore[no-untyped-def]
    windows = load_word(check, shadow.WINDOW_COUNT)
    for number in range(count):
        at = load_word(check, shadow.BOXES) + number * box.BOX_BYTES
        space = load_word(at, box.SPACE)
        if space < 0 or space >= spaces:
            store_word(at, box.SPACE, SPACE_SRAM)
            store_word(at, box.MODE, 0)  # the engine refuses it
        if load_word(at, box.MODE) & box.ATOMIC:
            store_word(check, shadow.SYNCHRONISED, 1)
        if load_word(at, box.INDEX) < 0:
            tidy(at)
            touches = load_word(at, box.MODE) != 0 and load_word(at, box.WIDTH) > 0
            if windows > 0 and touches and load_word(at, box.SPACE) == SPACE_SRAM:
                check_windows(check, at)


@subroutine("void(int64, int64, int64, int64)")
def check_command(state, check, command, operands):  # type: ignore[no-untyped-def]
    """Check a command's accesses, those that read first, and remember them."""
    queue, word = load_word(command, 0) >> 16 & 15, (command - load_word(state, STREAM)) // 8
    store_word(check, shadow.WORD, word)
    store_word(check, shadow.QUEUE, queue)
    find_known(check, command, queue)
    count = find_boxes(state, operands, load_word(check, shadow.BOXES))
    count = smaller(count, box.MOST_BOXES)
    prepare_boxes(check, count, load_word(state, SPACE_COUNT))
    touch_all(state, check, count, box.READS)
    touch_all(state, check, count, box.WRITES)
    advance(check, command, queue, word)


@subroutine("void(int64, int64, int64)")
def check_before(state, command, operands):  # type: ignore[no-untyped-def]
    """Check a command, and with a program the copy behind it, which the program may take along (`elision`)."""
    check = load_word(state, CHECK)
    early = load_word(check, shadow.EARLY)
    store_word(check, shadow.EARLY, 0)
    if early == command:
        return
    if load_word(check, shadow.GRID) == 1:
        find_program(check, state)
    check_command(state, check, command, operands)
    header = load_word(command, 0)
    following = command + (header >> 8 & 255) * 8
    if header & 255 != OP_PROGRAM or load_word(following, 0) & 255 != OP_COPY:
        return
    check_command(state, check, following, resolve_to(state, following, load_word(check, shadow.NEXT_OPERANDS)))
    store_word(check, shadow.EARLY, following)
    # Whether a suspect changes is seen where its copy runs by itself.
    store_word(state, ALONE, 1 if load_word(check, shadow.SUSPECT_COUNT) > 0 else 0)


@subroutine("void(int64, int64, int64)")
def check_after(state, command, operands):  # type: ignore[no-untyped-def]
    check = load_word(state, CHECK)
    if load_word(check, shadow.SUSPECT_COUNT) > 0 and load_word(check, shadow.EARLY) == 0:
        judge_suspects(check)


def build_checking_interpreter() -> Callable[[int], int]:
    """The command processor with the checks."""
    from loom_sim.interpreter import build_interpreter

    return build_interpreter(ignore_scalar, check_after, check_before)
