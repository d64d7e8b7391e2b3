"""What the checking interpreter remembers of memory: for each granule of it who touched it last.

A granule is as many bytes as the narrowest element that a space is accessed by, so that two accesses meet in one only
if they touch the same bytes. Of each space there are areas, each a number for every granule:

    LAYOUT    how it was written last (footprint.PLAIN, ...)
    WRITER    the program of the grid that wrote it last
    READER    the one that has read it, or several
    WRITTEN   for each queue in use: its last command that wrote it
    READ      for each queue in use: its last command that read it

An area has two levels: a number for each page of 64 granules, which is MIXED where they differ and stand apart. Most
accesses cover whole pages, and cost a number a page.

Numbers of a run are at least its BASE and grow, so that smaller ones are those of earlier runs and mean nothing:
memory is taken from one run to the next as it is. Which commands are complete when an access starts stands at KNOWN
(`checker`).

State: the array at the address in `CHECK`, words as below. Findings are records of FINDING_WORDS words.
"""

from __future__ import annotations

from typing import Final

from loom_core.isa.commands import QUEUE_COUNT
from loom_sim.footprint import PLAIN, READS, WRITES
from loom_sim.jit import subroutine
from loom_sim.memory import get32, larger, load8, load16, load32, load64, load_word, set32, smaller, store_word

# ---- layout of the check array ----

BOXES: Final = 0  # address of the boxes of the current command
SPACE_TABLE: Final = 1  # address; SPACE_WORDS a space
TOKENS: Final = 2  # address of the token area
LOG: Final = 3  # address of the words of each queue's last LOG_LENGTH commands, 4 bytes each
FINDINGS: Final = 4  # address
FINDING_LIMIT: Final = 5
FINDING_COUNT: Final = 6
GRID: Final = 7  # 1 if the outer three loops run over programs that have no order
PROGRAM: Final = 8  # number of the program that runs, from BASE + 1
SYNCHRONISED: Final = 9  # 1 once the program has taken part in an atomic operation
SUSPECTS: Final = 10  # address
SUSPECT_COUNT: Final = 11
WORD: Final = 12  # of the current command
QUEUE: Final = 13
BASE: Final = 14  # numbers of this run are larger; as a reader it means several programs
QUEUES: Final = 15  # how many queues are in use
KNOWN: Final = 16  # how many commands of each queue are complete when the current one starts
COUNTS: Final = KNOWN + QUEUE_COUNT  # commands of each queue so far, from BASE
CLOCKS: Final = COUNTS + QUEUE_COUNT  # for each queue, what was complete when its last command was, with that
SLOTS: Final = CLOCKS + QUEUE_COUNT * QUEUE_COUNT  # the place of each queue among those in use
USED: Final = SLOTS + QUEUE_COUNT  # the queues in use
WINDOWS: Final = USED + QUEUE_COUNT  # address of the windows of SRAM, WINDOW_WORDS each
WINDOW_COUNT: Final = WINDOWS + 1
EARLY: Final = WINDOW_COUNT + 1  # address of the copy that has been looked at with the program before it, or 0
NEXT_OPERANDS: Final = EARLY + 1  # address; where that copy's operands are resolved
CHECK_WORDS: Final = NEXT_OPERANDS + 1

# a space
PAGES, GRANULES, LOW, COUNT, LOG2, HOST, HAS_LAYOUTS, HAS_PROGRAMS, NEWEST = range(9)
"""PAGES, GRANULES: addresses of the two levels of its areas, the first 0 where nothing is remembered. COUNT granules of
1 << LOG2 bytes from byte LOW, which is at address HOST + LOW. From NEWEST on, the largest number of each area.
"""
PAGE_LOG2: Final = 6
PAGE: Final = 1 << PAGE_LOG2
MIXED: Final = 0xFFFFFFFF
LAYOUT, WRITER, READER, FIRST_QUEUE = range(4)
SPACE_WORDS: Final = NEWEST + FIRST_QUEUE + 2 * QUEUE_COUNT
NUMBER_LIMIT: Final = 1 << 31  # of the numbers that the runs before have used

# a window: its bytes [START, END) of SRAM, in use from the command at word FIRST to the one at word LAST
START, END, FIRST, LAST = range(4)
WINDOW_WORDS: Final = 4

LOG_LENGTH: Final = 1 << 16
UNKNOWN_WORD: Final = -1

# a finding
RACE: Final = 1
UNINITIALISED: Final = 2
WRONG_LAYOUT: Final = 3
READ_OF_ANOTHER: Final = 4  # a program reads what another has written
WRITE_OVER_ANOTHER: Final = 5  # a program changes what another has written or read
OUTSIDE_OF_WINDOWS: Final = 6  # no window that is in use holds all bytes of an access
KIND, HERE, THERE, FOUND_SPACE, FOUND_BYTE, FOUND_MODE, FOUND_PROGRAM, OTHER_PROGRAM = range(8)
FINDING_WORDS: Final = 8

# a write that is wrong if it changes a value
SUSPECT_HOST, SUSPECT_LOG2, SUSPECT_VALUE, SUSPECT_SPACE, SUSPECT_BYTE, SUSPECT_OTHER = range(6)
SUSPECT_WORDS: Final = 6
SUSPECT_LIMIT: Final = 256


def area_words(granules: int, queues: int) -> tuple[int, int]:
    """Numbers that the two levels of a space of so many granules take."""
    areas, pages = FIRST_QUEUE + 2 * queues, (granules + PAGE - 1) >> PAGE_LOG2
    return areas * pages, areas * pages * PAGE


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
    """Where command `number` of a queue stands in the stream, if that is still known."""
    if number <= load_word(check, COUNTS + queue) - LOG_LENGTH:
        return UNKNOWN_WORD
    return load32(load_word(check, LOG) + (queue * LOG_LENGTH + number % LOG_LENGTH) * 4)


@subroutine("int64(int64, int64)")
def byte_of(entry, granule):  # type: ignore[no-untyped-def]
    return load_word(entry, LOW) + (granule << load_word(entry, LOG2))


# ---- areas ----


@subroutine("UniTuple(int64, 2)(int64, int64)", inline=True)
def levels(entry, area):  # type: ignore[no-untyped-def]
    """Addresses of an area's pages and of its granules."""
    pages = (load_word(entry, COUNT) + (PAGE - 1)) >> PAGE_LOG2
    return load_word(entry, PAGES) + area * pages * 4, load_word(entry, GRANULES) + area * pages * (PAGE * 4)


@subroutine("int64(int64, int64, int64, int64, int64)")
def find_outside(entry, area, first, last, known):  # type: ignore[no-untyped-def]
    """First granule from `first` to `last` whose number is past `known`; -1 if there is none."""
    if load_word(entry, NEWEST + area) <= known:
        return -1
    pages, granules = levels(entry, area)
    begin, end, some = first >> PAGE_LOG2, last >> PAGE_LOG2, 0
    run = pages + begin * 4
    for i in range(end - begin + 1):
        some |= known - get32(run, i)
    if some >= 0:  # no difference is negative
        return -1
    for page in range(begin, end + 1):
        number = get32(pages, page)
        low = larger(first, page << PAGE_LOG2)
        if number != MIXED:
            if number > known:
                return low
            continue
        for granule in range(low, smaller(last, (page << PAGE_LOG2) + (PAGE - 1)) + 1):
            if get32(granules, granule) > known:
                return granule
    return -1


@subroutine("int64(int64, int64, int64, int64, int64)")
def find_different(entry, area, first, last, wanted):  # type: ignore[no-untyped-def]
    """First granule from `first` to `last` whose number is not `wanted`; -1 if there is none."""
    pages, granules = levels(entry, area)
    begin, end, some = first >> PAGE_LOG2, last >> PAGE_LOG2, 0
    run = pages + begin * 4
    for i in range(end - begin + 1):
        some |= wanted ^ get32(run, i)
    if some == 0:
        return -1
    for page in range(begin, end + 1):
        number = get32(pages, page)
        low = larger(first, page << PAGE_LOG2)
        if number != MIXED:
            if number != wanted:
                return low
            continue
        for granule in range(low, smaller(last, (page << PAGE_LOG2) + (PAGE - 1)) + 1):
            if get32(granules, granule) != wanted:
                return granule
    return -1


@subroutine("int64(int64, int64, int64)", inline=True)
def number_at(entry, area, granule):  # type: ignore[no-untyped-def]
    pages, granules = levels(entry, area)
    number = get32(pages, granule >> PAGE_LOG2)
    return get32(granules, granule) if number == MIXED else number


@subroutine("void(int64, int64, int64, int64, int64)")
def fill_part(entry, area, first, last, number):  # type: ignore[no-untyped-def]
    """`fill` within one page."""
    pages, granules = levels(entry, area)
    page = first >> PAGE_LOG2
    before = get32(pages, page)
    if before == number:
        return
    run = granules + page * (PAGE * 4)
    if before != MIXED:
        for i in range(PAGE):
            set32(run, i, before)
        set32(pages, page, MIXED)
    run = granules + first * 4
    for i in range(last - first + 1):
        set32(run, i, number)


@subroutine("void(int64, int64, int64, int64, int64)")
def fill(entry, area, first, last, number):  # type: ignore[no-untyped-def]
    """Give granules `first` to `last` a number."""
    store_word(entry, NEWEST + area, larger(number, load_word(entry, NEWEST + area)))
    begin, end = (first + (PAGE - 1)) >> PAGE_LOG2, (last + 1) >> PAGE_LOG2  # whole pages
    if last + 1 == load_word(entry, COUNT):
        end = (last + PAGE) >> PAGE_LOG2  # nothing is behind the last granule
    if begin > end:
        fill_part(entry, area, first, last, number)
        return
    if first < begin << PAGE_LOG2:
        fill_part(entry, area, first, smaller(last, (begin << PAGE_LOG2) - 1), number)
    pages, _ = levels(entry, area)
    run = pages + begin * 4
    for i in range(end - begin):
        set32(run, i, number)
    if end << PAGE_LOG2 <= last:
        fill_part(entry, area, end << PAGE_LOG2, last, number)


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
    log2, byte = load_word(entry, LOG2), byte_of(entry, granule)
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
def check_write_of_program(check, space, entry, first, last):  # type: ignore[no-untyped-def]
    """Suspect what another program wrote or read."""
    program, base = load_word(check, PROGRAM), load_word(check, BASE)
    written = find_outside(entry, WRITER, first, last, base) >= 0
    was_read = find_outside(entry, READER, first, last, base - 1) >= 0
    if written:
        written = find_different(entry, WRITER, first, last, program) >= 0
    if was_read:
        was_read = find_different(entry, READER, first, last, program) >= 0
    if not written and not was_read:
        return
    for granule in range(first, last + 1):
        writer, reader = number_at(entry, WRITER, granule), number_at(entry, READER, granule)
        if writer > base and writer != program:
            suspect(check, space, granule, writer)
        elif reader >= base and reader != program:
            suspect(check, space, granule, reader)


@subroutine("void(int64, int64, int64, int64, int64)")
def check_read_of_program(check, space, entry, first, last):  # type: ignore[no-untyped-def]
    """Report what another program wrote; remember the reader."""
    program, base = load_word(check, PROGRAM), load_word(check, BASE)
    written = find_outside(entry, WRITER, first, last, base) >= 0
    if written and find_different(entry, WRITER, first, last, program) >= 0:
        for granule in range(first, last + 1):
            writer = number_at(entry, WRITER, granule)
            if writer > base and writer != program:
                report(check, READ_OF_ANOTHER, UNKNOWN_WORD, space, byte_of(entry, granule), READS, writer)
                break
    if find_different(entry, READER, first, last, program) < 0:
        return
    if find_outside(entry, READER, first, last, base - 1) < 0:
        fill(entry, READER, first, last, program)
        return
    for granule in range(first, last + 1):
        reader = number_at(entry, READER, granule)
        if reader != program:
            fill(entry, READER, granule, granule, program if reader < base else base)


# ---- accesses ----


@subroutine("boolean(int64, int64)", inline=True)
def is_watched(check, space):  # type: ignore[no-untyped-def]
    """Whether anything is remembered of a space: not of buffers that nobody writes."""
    return load_word(load_word(check, SPACE_TABLE) + space * (SPACE_WORDS * 8), PAGES) != 0


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def check_order(check, space, entry, first, last, mode):  # type: ignore[no-untyped-def]
    """Report accesses to these granules that may still be under way: a read meets writes, a write both."""
    queues = load_word(check, QUEUES)
    for slot in range(queues):
        queue = load_word(check, USED + slot)
        known = load_word(check, KNOWN + queue)
        if known >= load_word(check, COUNTS + queue):
            continue
        area = FIRST_QUEUE + slot
        granule = find_outside(entry, area, first, last, known)
        if granule >= 0:
            there = logged_word(check, queue, number_at(entry, area, granule))
            report(check, RACE, there, space, byte_of(entry, granule), mode, 1)
        if mode & WRITES:
            granule = find_outside(entry, area + queues, first, last, known)
            if granule >= 0:
                there = logged_word(check, queue, number_at(entry, area + queues, granule))
                report(check, RACE, there, space, byte_of(entry, granule), mode, 0)


@subroutine("void(int64, int64, int64, int64, int64)")
def check_layout(check, space, first, last, layout):  # type: ignore[no-untyped-def]
    """Report a read of what was never written, or was written in another layout."""
    entry, base = load_word(check, SPACE_TABLE) + space * (SPACE_WORDS * 8), load_word(check, BASE)
    granule = find_different(entry, LAYOUT, first, last, base + layout)
    if granule >= 0:
        found = larger(number_at(entry, LAYOUT, granule) - base, 0)
        kind = UNINITIALISED if found == 0 else WRONG_LAYOUT
        report(check, kind, UNKNOWN_WORD, space, byte_of(entry, granule), READS, found)


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def touch(check, space, offset, count, mode, layout):  # type: ignore[no-untyped-def]
    """`count` bytes of a space are read or written (one of READS and WRITES): check that, and remember it."""
    entry = load_word(check, SPACE_TABLE) + space * (SPACE_WORDS * 8)
    log2, low = load_word(entry, LOG2), load_word(entry, LOW)
    first, last = (offset - low) >> log2, (offset + count - 1 - low) >> log2
    if first < 0 or last >= load_word(entry, COUNT) or last < first:
        return  # outside, which the engine refuses
    check_order(check, space, entry, first, last, mode)
    queue = load_word(check, QUEUE)
    number, area = load_word(check, COUNTS + queue) + 1, FIRST_QUEUE + load_word(check, SLOTS + queue)
    if mode & READS:
        if load_word(entry, HAS_LAYOUTS) != 0:
            check_layout(check, space, first, last, layout)
        if load_word(entry, HAS_PROGRAMS) != 0 and load_word(check, SYNCHRONISED) == 0:
            check_read_of_program(check, space, entry, first, last)
        fill(entry, area + load_word(check, QUEUES), first, last, number)
        return
    if load_word(entry, HAS_LAYOUTS) != 0:
        fill(entry, LAYOUT, first, last, load_word(check, BASE) + (layout if layout != 0 else PLAIN))
    if load_word(entry, HAS_PROGRAMS) != 0 and load_word(check, SYNCHRONISED) == 0:
        check_write_of_program(check, space, entry, first, last)
        fill(entry, WRITER, first, last, load_word(check, PROGRAM))
    fill(entry, area, first, last, number)
