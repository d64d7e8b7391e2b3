"""What the checking interpreter remembers of memory: for each granule of it who touched it last.

A granule is as many bytes as the narrowest element that a space holds, so that two accesses meet in one only if they
touch the same bytes. For every queue and granule stand the numbers of the last command that wrote it and of the last
that read it; a page of granules has the newest of each, so that an access that is ordered behind everything is found so
without looking at granules. Which commands are complete when an access starts stands at KNOWN (`checker`).

State: the array at the address in `CHECK`, words as below. Findings are records of FINDING_WORDS words.
"""

from __future__ import annotations

from typing import Final

from loom_core.isa.commands import QUEUE_COUNT
from loom_sim.footprint import PLAIN, READS, WRITES
from loom_sim.jit import subroutine
from loom_sim.memory import (
    get8,
    get32,
    larger,
    load8,
    load16,
    load32,
    load64,
    load_word,
    set8,
    set32,
    smaller,
    store_word,
)

# ---- layout of the check array ----

BOXES: Final = 0  # address of the boxes of the current command
SPACE_TABLE: Final = 1  # address; SPACE_WORDS a space
TOKENS: Final = 2  # address of the token area
LOG: Final = 3  # address of the words of each queue's last LOG_LENGTH commands, 4 bytes each
FINDINGS: Final = 4  # address
FINDING_LIMIT: Final = 5
FINDING_COUNT: Final = 6
GRID: Final = 7  # 1 if the outer three loops run over programs that have no order
PROGRAM: Final = 8  # number of the program that runs, from 1
SYNCHRONISED: Final = 9  # 1 once the program has taken part in an atomic operation
SUSPECTS: Final = 10  # address
SUSPECT_COUNT: Final = 11
WORD: Final = 12  # of the current command
QUEUE: Final = 13
KNOWN: Final = 16  # how many commands of each queue are complete when the current one starts
COUNTS: Final = KNOWN + QUEUE_COUNT  # commands of each queue so far
CLOCKS: Final = COUNTS + QUEUE_COUNT  # for each queue, what was complete when its last command was, with that
CHECK_WORDS: Final = CLOCKS + QUEUE_COUNT * QUEUE_COUNT

# a space; addresses
WRITTEN, READ, LAYOUTS, PAGES, WRITERS, READERS, LOW, GRANULES, LOG2, HOST = range(10)
SPACE_WORDS: Final = 10
PAGE_LOG2: Final = 10

LOG_LENGTH: Final = 1 << 16
UNKNOWN_WORD: Final = -1

# a finding
RACE: Final = 1
UNINITIALISED: Final = 2
WRONG_LAYOUT: Final = 3
READ_OF_ANOTHER: Final = 4  # a program reads what another has written
WRITE_OVER_ANOTHER: Final = 5  # a program changes what another has written or read
KIND, HERE, THERE, FOUND_SPACE, FOUND_BYTE, FOUND_MODE, FOUND_PROGRAM, OTHER_PROGRAM = range(8)
FINDING_WORDS: Final = 8

# a write that is wrong if it changes a value
SUSPECT_HOST, SUSPECT_LOG2, SUSPECT_VALUE, SUSPECT_SPACE, SUSPECT_BYTE, SUSPECT_OTHER = range(6)
SUSPECT_WORDS: Final = 6
SUSPECT_LIMIT: Final = 256

MANY: Final = 0xFFFFFFFF  # readers: several programs


# ---- findings ----


@subroutine("void(int64, int64, int64, int64, int64, int64, int64)")
def report(check, kind, there, space, byte, mode, other):  # type: ignore[no-untyped-def]
    """Note a finding at the current command, once for each command `there` and kind."""
    count, here = load_word(check, FINDING_COUNT), load_word(check, WORD)
    for number in range(count):
        known = load_word(check, FINDINGS) + number * (FINDING_WORDS * 8)
        if load_word(known, KIND) == kind and load_word(known, HERE) == here and load_word(known, THERE) == there:
            return
    if count >= load_word(check, FINDING_LIMIT):
        return
    finding = load_word(check, FINDINGS) + count * (FINDING_WORDS * 8)
    store_word(finding, KIND, kind)
    store_word(finding, HERE, here)
    store_word(finding, THERE, there)
    store_word(finding, FOUND_SPACE, space)
    store_word(finding, FOUND_BYTE, byte)
    store_word(finding, FOUND_MODE, mode)
    store_word(finding, FOUND_PROGRAM, load_word(check, PROGRAM))
    store_word(finding, OTHER_PROGRAM, other)
    store_word(check, FINDING_COUNT, count + 1)


@subroutine("int64(int64, int64, int64)")
def logged_word(check, queue, number):  # type: ignore[no-untyped-def]
    """Where command `number` (from 1) of a queue stands in the stream, if that is still known."""
    if number <= load_word(check, COUNTS + queue) - LOG_LENGTH:
        return UNKNOWN_WORD
    return load32(load_word(check, LOG) + (queue * LOG_LENGTH + number % LOG_LENGTH) * 4)


# ---- order of commands ----


@subroutine("int64(int64, int64, int64, int64)")
def find_later(numbers, first, last, known):  # type: ignore[no-untyped-def]
    """First granule from `first` to `last` whose number is past `known`; -1 if there is none."""
    some, run = 0, numbers + first * 4
    for i in range(last - first + 1):
        some |= known - get32(run, i)
    if some >= 0:  # no difference is negative
        return -1
    for granule in range(first, last + 1):
        if get32(numbers, granule) > known:
            return granule
    return -1


@subroutine("void(int64, int64, int64, int64, int64, int64, int64)")
def check_numbers(check, space, area, queue, first, last, mode):  # type: ignore[no-untyped-def]
    """Report the commands of a queue that one area (WRITTEN or READ) knows of and that are not complete."""
    entry = load_word(check, SPACE_TABLE) + space * (SPACE_WORDS * 8)
    granules, known = load_word(entry, GRANULES), load_word(check, KNOWN + queue)
    pages = (granules >> PAGE_LOG2) + 1
    row = queue if area == WRITTEN else QUEUE_COUNT + queue
    newest, numbers = load_word(entry, PAGES) + row * pages * 8, load_word(entry, area) + queue * granules * 4
    for page in range(first >> PAGE_LOG2, (last >> PAGE_LOG2) + 1):
        if load_word(newest, page) <= known:
            continue
        low, high = larger(first, page << PAGE_LOG2), smaller(last, ((page + 1) << PAGE_LOG2) - 1)
        granule = find_later(numbers, low, high, known)
        if granule >= 0:
            there = logged_word(check, queue, get32(numbers, granule))
            byte = load_word(entry, LOW) + (granule << load_word(entry, LOG2))
            report(check, RACE, there, space, byte, mode, 1 if area == WRITTEN else 0)
            return


@subroutine("void(int64, int64, int64, int64, int64)")
def check_order(check, space, first, last, mode):  # type: ignore[no-untyped-def]
    """Report accesses to these granules that may still be under way: a read meets writes, a write both."""
    for queue in range(QUEUE_COUNT):
        if load_word(check, KNOWN + queue) < load_word(check, COUNTS + queue):
            check_numbers(check, space, WRITTEN, queue, first, last, mode)
            if mode & WRITES:
                check_numbers(check, space, READ, queue, first, last, mode)


@subroutine("void(int64, int64, int64, int64, int64)")
def note_access(check, space, area, first, last):  # type: ignore[no-untyped-def]
    """The current command is the last of its queue to have written, or read, these granules."""
    entry = load_word(check, SPACE_TABLE) + space * (SPACE_WORDS * 8)
    queue, granules = load_word(check, QUEUE), load_word(entry, GRANULES)
    number = load_word(check, COUNTS + queue) + 1
    row = queue if area == WRITTEN else QUEUE_COUNT + queue
    newest = load_word(entry, PAGES) + row * ((granules >> PAGE_LOG2) + 1) * 8
    for page in range(first >> PAGE_LOG2, (last >> PAGE_LOG2) + 1):
        store_word(newest, page, number)
    run = load_word(entry, area) + (queue * granules + first) * 4
    for i in range(last - first + 1):
        set32(run, i, number)


# ---- what memory holds ----


@subroutine("void(int64, int64, int64, int64, int64)")
def check_layout(check, space, first, last, layout):  # type: ignore[no-untyped-def]
    """Report a read of what was never written, or was written in another layout."""
    entry = load_word(check, SPACE_TABLE) + space * (SPACE_WORDS * 8)
    layouts, different = load_word(entry, LAYOUTS), 0
    for i in range(last - first + 1):
        different |= get8(layouts + first, i) ^ layout
    if different == 0:
        return
    for granule in range(first, last + 1):
        found = get8(layouts, granule)
        if found != layout:
            byte = load_word(entry, LOW) + (granule << load_word(entry, LOG2))
            report(check, UNINITIALISED if found == 0 else WRONG_LAYOUT, UNKNOWN_WORD, space, byte, READS, found)
            return


@subroutine("void(int64, int64, int64, int64, int64)")
def note_layout(check, space, first, last, layout):  # type: ignore[no-untyped-def]
    run = load_word(load_word(check, SPACE_TABLE) + space * (SPACE_WORDS * 8), LAYOUTS) + first
    for i in range(last - first + 1):
        set8(run, i, layout)


# ---- programs of the grid ----


@subroutine("int64(int64, int64)")
def granule_value(host, log2):  # type: ignore[no-untyped-def]
    if log2 == 0:
        return load8(host)
    if log2 == 1:
        return load16(host)
    return load32(host) if log2 == 2 else load64(host)


@subroutine("void(int64, int64, int64, int64)")
def suspect(check, space, granule, other):  # type: ignore[no-untyped-def]
    """This granule is about to be written; if that changes it, the order of two programs decides what stays."""
    count = load_word(check, SUSPECT_COUNT)
    if count >= SUSPECT_LIMIT:
        return
    entry = load_word(check, SPACE_TABLE) + space * (SPACE_WORDS * 8)
    log2 = load_word(entry, LOG2)
    byte = load_word(entry, LOW) + (granule << log2)
    at = load_word(check, SUSPECTS) + count * (SUSPECT_WORDS * 8)
    store_word(at, SUSPECT_HOST, load_word(entry, HOST) + byte)
    store_word(at, SUSPECT_LOG2, log2)
    store_word(at, SUSPECT_VALUE, granule_value(load_word(entry, HOST) + byte, log2))
    store_word(at, SUSPECT_SPACE, space)
    store_word(at, SUSPECT_BYTE, byte)
    store_word(at, SUSPECT_OTHER, other)
    store_word(check, SUSPECT_COUNT, count + 1)


@subroutine("void(int64)")
def judge_suspects(check):  # type: ignore[no-untyped-def]
    """After the command: report the granules that it changed."""
    for number in range(load_word(check, SUSPECT_COUNT)):
        at = load_word(check, SUSPECTS) + number * (SUSPECT_WORDS * 8)
        value = granule_value(load_word(at, SUSPECT_HOST), load_word(at, SUSPECT_LOG2))
        if value != load_word(at, SUSPECT_VALUE):
            space, byte, other = load_word(at, SUSPECT_SPACE), load_word(at, SUSPECT_BYTE), load_word(at, SUSPECT_OTHER)
            report(check, WRITE_OVER_ANOTHER, UNKNOWN_WORD, space, byte, WRITES, other)
    store_word(check, SUSPECT_COUNT, 0)


@subroutine("void(int64, int64, int64, int64, int64)")
def check_programs(check, space, first, last, mode):  # type: ignore[no-untyped-def]
    """Report a read of what another program wrote; suspect a write over what another wrote or read."""
    entry = load_word(check, SPACE_TABLE) + space * (SPACE_WORDS * 8)
    writers, readers, program = load_word(entry, WRITERS), load_word(entry, READERS), load_word(check, PROGRAM)
    for granule in range(first, last + 1):
        writer = get32(writers, granule)
        if mode & WRITES:
            reader = get32(readers, granule)
            if writer != 0 and writer != program:
                suspect(check, space, granule, writer)
            elif reader != 0 and reader != program:
                suspect(check, space, granule, 0 if reader == MANY else reader)
            set32(writers, granule, program)
        else:
            if writer != 0 and writer != program:
                byte = load_word(entry, LOW) + (granule << load_word(entry, LOG2))
                report(check, READ_OF_ANOTHER, UNKNOWN_WORD, space, byte, mode, writer)
            reader = get32(readers, granule)
            set32(readers, granule, program if reader == 0 or reader == program else MANY)


# ---- accesses ----


@subroutine("boolean(int64, int64)", inline=True)
def is_watched(check, space):  # type: ignore[no-untyped-def]
    """Whether anything is remembered of a space: not of buffers that nobody writes."""
    return load_word(load_word(check, SPACE_TABLE) + space * (SPACE_WORDS * 8), WRITTEN) != 0


@subroutine("void(int64, int64, int64, int64, int64, int64, int64)")
def touch(check, space, offset, count, mode, layout, notes):  # type: ignore[no-untyped-def]
    """`count` bytes of a space: check the access or, with `notes`, remember it. One of READS and WRITES."""
    entry = load_word(check, SPACE_TABLE) + space * (SPACE_WORDS * 8)
    log2, low = load_word(entry, LOG2), load_word(entry, LOW)
    first, last = (offset - low) >> log2, (offset + count - 1 - low) >> log2
    if first < 0 or last >= load_word(entry, GRANULES) or last < first:
        return  # outside, which the engine refuses
    if notes == 0:
        check_order(check, space, first, last, mode)
        if mode & READS:
            check_layout(check, space, first, last, layout)
        if load_word(entry, WRITERS) != 0 and load_word(check, SYNCHRONISED) == 0:
            check_programs(check, space, first, last, mode)
    elif mode & WRITES:
        note_access(check, space, WRITTEN, first, last)
        note_layout(check, space, first, last, layout if layout != 0 else PLAIN)
    else:
        note_access(check, space, READ, first, last)
