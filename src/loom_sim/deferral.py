"""The replaying interpreter: commands are held back at issue, start when their tokens allow, and complete later.

A queue runs its commands in order. The next one starts once its waits are met; from then on nobody may look at what it
writes, so its bytes are spoiled until it completes. Which of those that have started completes next is a matter of
ranks, as if the engines had other speeds: one queue is slow, and completes a command only when no other can; or of
chance. Scalar loads, stores and reports wait for what they say, then run at once.

A start before the completion of commands that were issued earlier is a choice. After LIMIT choices everything runs in
the order of issue, so that the first choice that matters can be searched for; the last one can be put off behind the
commands that were issued before BOUND.

State: the array at the address in `REPLAY`, words as below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loom_core.isa.commands import MAX_WAITS, QUEUE_COUNT, Queue
from loom_sim import footprint as box
from loom_sim.checker import dot, tidy
from loom_sim.footprint import find_boxes
from loom_sim.interpreter import ignore_command, ignore_scalar
from loom_sim.jit import subroutine
from loom_sim.memory import call_engine, get8, load_word, move_bytes, set8, smaller, store_word
from loom_sim.spaces import check_range, space_base
from loom_sim.state import HALTED, OK, REPLAY, SPACE_COUNT, STREAM

# ---- layout of the replay array ----

LIMIT: Final = 0  # choices after which commands run in the order of issue
BOUND: Final = 1  # commands issued before this one complete before the last choice
CHOICES: Final = 2  # so far
ISSUED: Final = 3  # commands so far
CHOSEN: Final = 4  # word of the command of the last choice
CHOSEN_NUMBER: Final = 5  # when it was issued
PASSED: Final = 6  # word of the earliest command that was issued before it and had not completed
RINGS: Final = 7  # address of the commands that are held back
TOKENS: Final = 8  # address; issued and completed signals of each token
STATUS: Final = 9  # of the first command that failed
BOXES: Final = 10  # address of boxes, MOST_BOXES for each queue
SAVED: Final = 11  # address of the bytes that are spoiled, SAVED_BYTES for each queue
SAVED_BYTES: Final = 12
RANDOM: Final = 13  # state of the random numbers that decide instead of ranks; 0 where ranks do
STARTED: Final = 14  # of each queue: boxes of its next command that are spoiled, or NOT_STARTED
RANKS: Final = STARTED + QUEUE_COUNT  # of each queue: the highest that can goes next
HEADS: Final = RANKS + QUEUE_COUNT  # commands of each queue that have completed
TAILS: Final = HEADS + QUEUE_COUNT  # and that have been issued
REPLAY_WORDS: Final = TAILS + QUEUE_COUNT

# a command that is held back
NUMBER, ENGINE, WORD, SIGNAL, WAITS, NEEDS = 0, 1, 2, 3, 4, 5
COPY: Final = NEEDS + 2 * MAX_WAITS  # header, mask, operands
ENTRY_WORDS: Final = COPY + 256
DEPTH: Final = 64
"""Commands that a queue holds back."""
NOT_STARTED: Final = -1
SPOIL: Final = 0x41
_NOBODY: Final = -1
_ACP: Final = int(Queue.ACP)


# ---- what is held back ----


@subroutine("int64(int64, int64, int64)")
def entry_of(replay, queue, number):  # type: ignore[no-untyped-def]
    """Where command `number` of a queue is held."""
    return load_word(replay, RINGS) + (queue * DEPTH + number % DEPTH) * (ENTRY_WORDS * 8)


@subroutine("int64(int64, int64)")
def next_of(replay, queue):  # type: ignore[no-untyped-def]
    """Where the next command of a queue is held; 0 if there is none."""
    head = load_word(replay, HEADS + queue)
    return entry_of(replay, queue, head) if head < load_word(replay, TAILS + queue) else 0


@subroutine("boolean(int64, int64)")
def can_start(replay, entry):  # type: ignore[no-untyped-def]
    tokens = load_word(replay, TOKENS)
    for i in range(load_word(entry, WAITS)):
        if load_word(tokens, 2 * load_word(entry, NEEDS + 2 * i) + 1) < load_word(entry, NEEDS + 2 * i + 1):
            return False
    return True


@subroutine("int64(int64)")
def earliest(replay):  # type: ignore[no-untyped-def]
    """The queue whose next command was issued first."""
    found, least = _NOBODY, 0
    for queue in range(QUEUE_COUNT):
        entry = next_of(replay, queue)
        if entry != 0 and (found < 0 or load_word(entry, NUMBER) < least):
            found, least = queue, load_word(entry, NUMBER)
    return found


@subroutine("int64(int64)")
def preferred(replay):  # type: ignore[no-untyped-def]
    """The queue of the highest rank whose next command has started."""
    found, best, random = _NOBODY, 0, load_word(replay, RANDOM)
    for queue in range(QUEUE_COUNT):
        rank = load_word(replay, RANKS + queue)
        if random != 0:
            random ^= random << 13
            random ^= (random >> 7) & ((1 << 57) - 1)
            random ^= random << 17
            rank = random
        if load_word(replay, STARTED + queue) != NOT_STARTED and (found < 0 or rank > best):
            found, best = queue, rank
    store_word(replay, RANDOM, random)
    return found


# ---- what a command that runs writes ----


@subroutine("int64(int64, int64, int64)")
def written_bytes(state, boxes, count):  # type: ignore[no-untyped-def]
    """Bytes that boxes write in memory that exists; those through an index are left out."""
    total = 0
    for number in range(count):
        at = boxes + number * box.BOX_BYTES
        space = load_word(at, box.SPACE)
        writes = load_word(at, box.MODE) & box.WRITES != 0 and load_word(at, box.INDEX) < 0
        if not writes or space < 0 or space >= load_word(state, SPACE_COUNT):
            store_word(at, box.MODE, 0)
            continue
        tidy(at)
        points, reach = 1, 0
        for dim in range(load_word(at, box.RANK_USED)):
            points *= load_word(at, box.SIZES + dim)
            reach += (load_word(at, box.SIZES + dim) - 1) * load_word(at, box.STRIDES + dim)
        width = load_word(at, box.WIDTH)
        if width <= 0 or check_range(state, space, load_word(at, box.BASE), 0, reach + width) != OK:
            store_word(at, box.MODE, 0)
            continue
        total += points * width
    return total


@subroutine("void(int64, int64, int64, int64, boolean)")
def exchange(state, boxes, count, saved, spoils):  # type: ignore[no-untyped-def]
    """Save what boxes write, and spoil it; or bring back what was saved."""
    for number in range(count):
        at = boxes + number * box.BOX_BYTES
        if load_word(at, box.MODE) == 0:
            continue
        rank, width = load_word(at, box.RANK_USED), load_word(at, box.WIDTH)
        sizes, strides = at + box.SIZES * 8, at + box.STRIDES * 8
        base = space_base(state, load_word(at, box.SPACE)) + load_word(at, box.BASE)
        points = 1
        for dim in range(rank):
            points *= load_word(sizes, dim)
        for place in range(points):
            run = base + dot(place, strides, sizes, rank)
            if spoils:
                move_bytes(saved, run, width)
                for i in range(width):
                    byte = get8(run, i)
                    set8(run, i, 0 if byte == 1 else byte ^ SPOIL)  # True becomes False too
            else:
                move_bytes(run, saved, width)
            saved += width


@subroutine("int64(int64, int64)")
def boxes_of(replay, queue):  # type: ignore[no-untyped-def]
    return load_word(replay, BOXES) + queue * (box.MOST_BOXES * box.BOX_BYTES)


@subroutine("void(int64, int64, int64)")
def spoil(state, replay, queue):  # type: ignore[no-untyped-def]
    """The next command of a queue has started."""
    boxes = boxes_of(replay, queue)
    count = smaller(find_boxes(state, next_of(replay, queue) + (COPY + 2) * 8, boxes), box.MOST_BOXES)
    if written_bytes(state, boxes, count) > load_word(replay, SAVED_BYTES):
        count = 0
    exchange(state, boxes, count, load_word(replay, SAVED) + queue * load_word(replay, SAVED_BYTES), True)
    store_word(replay, STARTED + queue, count)


@subroutine("int64(int64, int64, int64)")
def complete(state, replay, queue):  # type: ignore[no-untyped-def]
    """Run the next command of a queue; its status."""
    entry, count = next_of(replay, queue), load_word(replay, STARTED + queue)
    if count > 0:
        saved = load_word(replay, SAVED) + queue * load_word(replay, SAVED_BYTES)
        exchange(state, boxes_of(replay, queue), count, saved, False)
    store_word(replay, STARTED + queue, NOT_STARTED)
    store_word(replay, HEADS + queue, load_word(replay, HEADS + queue) + 1)
    status = call_engine(load_word(entry, ENGINE), entry + (COPY + 2) * 8, state)
    if status != OK and load_word(replay, STATUS) == OK:
        store_word(replay, STATUS, status)
    signal = load_word(entry, SIGNAL)
    if signal != 0:
        at = load_word(replay, TOKENS) + (2 * signal + 1) * 8
        store_word(at, 0, load_word(at, 0) + 1)
    return status


# ---- order ----


@subroutine("int64(int64, int64, int64)")
def complete_before(state, replay, bound):  # type: ignore[no-untyped-def]
    """Run what was issued before command `bound`, in the order of issue."""
    status = OK
    while status == OK:
        queue = earliest(replay)
        if queue < 0 or load_word(next_of(replay, queue), NUMBER) >= bound:
            return OK
        status = complete(state, replay, queue)
    return status


@subroutine("int64(int64, int64, int64, int64)")
def choose(state, replay, word, number):  # type: ignore[no-untyped-def]
    """Command `number` is about to start. If others that were issued earlier have not completed, that is a choice."""
    first = earliest(replay)
    if first < 0 or load_word(next_of(replay, first), NUMBER) >= number:
        return OK
    choices = load_word(replay, CHOICES) + 1
    store_word(replay, CHOICES, choices)
    if choices > load_word(replay, LIMIT):
        return complete_before(state, replay, number)
    if choices < load_word(replay, LIMIT):
        return OK
    status = complete_before(state, replay, load_word(replay, BOUND))
    store_word(replay, CHOSEN, word)
    store_word(replay, CHOSEN_NUMBER, number)
    first = earliest(replay)
    if first >= 0:
        store_word(replay, PASSED, load_word(next_of(replay, first), WORD))
    return status


@subroutine("int64(int64, int64)")
def start_all(state, replay):  # type: ignore[no-untyped-def]
    """Start what can start."""
    status = OK
    for queue in range(QUEUE_COUNT):
        entry = next_of(replay, queue)
        if entry == 0 or load_word(replay, STARTED + queue) != NOT_STARTED or not can_start(replay, entry):
            continue
        number = load_word(entry, NUMBER)
        status = choose(state, replay, load_word(entry, WORD), number)
        if status != OK:
            return status
        entry = next_of(replay, queue)
        if entry != 0 and load_word(entry, NUMBER) == number:
            spoil(state, replay, queue)
    return status


@subroutine("int64(int64, int64)")
def step(state, replay):  # type: ignore[no-untyped-def]
    """Complete one of the commands that are held back."""
    status = start_all(state, replay)
    queue = preferred(replay)
    return complete(state, replay, queue) if status == OK and queue >= 0 else status


@subroutine("void(int64, int64, int64)")
def note_waits(replay, command, entry):  # type: ignore[no-untyped-def]
    """What a command waits for, as counts of completed signals."""
    header, tokens = load_word(command, 0), load_word(replay, TOKENS)
    waits, count = command + (2 + (header >> 48 & 0xFFFF)) * 8, header >> 20 & 15
    store_word(entry, WAITS, count)
    for i in range(count):
        word = load_word(waits, i)
        token = word & 0xFFFFFFFF
        store_word(entry, NEEDS + 2 * i, token)
        store_word(entry, NEEDS + 2 * i + 1, load_word(tokens, 2 * token) - (word >> 32 & 0xFFFFFFFF))


@subroutine("int64(int64, int64, int64, int64)")
def hold_back(state, command, operands, engine):  # type: ignore[no-untyped-def]
    """Issue a command of an engine."""
    replay = load_word(state, REPLAY)
    header = load_word(command, 0)
    queue, status = header >> 16 & 15, OK
    while status == OK and load_word(replay, TAILS + queue) - load_word(replay, HEADS + queue) >= DEPTH:
        status = step(state, replay)
    tail, issued = load_word(replay, TAILS + queue), load_word(replay, ISSUED)
    entry, signal = entry_of(replay, queue, tail), header >> 32 & 0xFFFF
    store_word(entry, NUMBER, issued)
    store_word(entry, ENGINE, engine)
    store_word(entry, WORD, (command - load_word(state, STREAM)) // 8)
    store_word(entry, SIGNAL, signal)
    note_waits(replay, command, entry)
    store_word(entry, COPY, header)
    store_word(entry, COPY + 1, load_word(command, 1))
    for i in range(header >> 48 & 0xFFFF):
        store_word(entry, COPY + 2 + i, load_word(operands, i))
    store_word(replay, TAILS + queue, tail + 1)
    store_word(replay, ISSUED, issued + 1)
    if signal != 0:
        at = load_word(replay, TOKENS) + 2 * signal * 8
        store_word(at, 0, load_word(at, 0) + 1)
    if status == OK:
        status = start_all(state, replay)
    if status == OK and load_word(replay, CHOICES) > load_word(replay, LIMIT):
        status = complete_before(state, replay, issued + 1)
    return status


@subroutine("void(int64, int64, int64)")
def settle(state, command, operands):  # type: ignore[no-untyped-def]
    """Before a command of the ACP: what it waits for completes, and only that."""
    header, replay = load_word(command, 0), load_word(state, REPLAY)
    if header >> 16 & 15 != _ACP:
        return
    entry, issued = entry_of(replay, _ACP, 0), load_word(replay, ISSUED)
    note_waits(replay, command, entry)
    status = start_all(state, replay)
    while status == OK and not can_start(replay, entry):
        status = step(state, replay)
    choose(state, replay, (command - load_word(state, STREAM)) // 8, issued)
    store_word(replay, ISSUED, issued + 1)
    signal = header >> 32 & 0xFFFF
    if signal != 0:
        at = load_word(replay, TOKENS) + 2 * signal * 8
        store_word(at, 0, load_word(at, 0) + 1)
        store_word(at, 1, load_word(at, 1) + 1)


def build_replaying_interpreter() -> Callable[[int], int]:
    """The command processor that holds commands back."""
    from loom_sim.interpreter import build_interpreter

    return build_interpreter(ignore_scalar, ignore_command, settle, run_command=hold_back)


def build_drain() -> Callable[[int], int]:
    """int64(int64 state): run all that is held back, after the command processor has halted; the status, HALTED where
    nothing failed.
    """

    def drain(state):  # type: ignore[no-untyped-def]
        replay, status = load_word(state, REPLAY), OK
        while status == OK and earliest(replay) >= 0:
            status = step(state, replay)
        return HALTED if status == OK else status

    return drain
