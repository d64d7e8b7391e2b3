"""Semaphores: counters in SRAM, 0 at first.

Those of copies count what was begun and not waited for. Where the starts and waits of one are balanced in each block
of the program, no command is left of the counting; where they are in different ones (started before a loop and waited
for in it), the command processor counts while the kernel runs, and stops it at the line that is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from loom_core.base import dtype as core
from loom_core.base.location import Location
from loom_core.ir.block import Block
from loom_core.ir.op import Op
from loom_core.ops import debug, memory
from loom_core.ops.shape import Constant
from palladium import operators, reductions, refs
from palladium.control import debug_check
from palladium.errors import NeverStarted, NotWaitedFor, WrongDtype, fail
from palladium.hints import refuse_option
from palladium.specs import Scratch, Semaphore
from palladium.trace import KernelTrace, kernel_trace
from palladium.values import array
from palladium.views import Buffer, Ref, whole_ref


@dataclass
class Event:
    """A start (+1) or wait (-1) of a copy into `target`; `place` is the index of its semaphore, None if not known.

    `operations` count it while the kernel runs.
    """

    change: int
    target: str
    place: tuple[int, ...] | None
    block: Block
    location: Location
    operations: Sequence[Op] = ()


@dataclass
class Ledger:
    """What a kernel does with the semaphores of one buffer; `shown` where it uses their values itself."""

    buffer: Buffer
    events: list[Event] = field(default_factory=list)
    shown: bool = False


def semaphore_buffer(name: str, one: Semaphore | Scratch) -> Buffer:
    """Counters in SRAM, 0 at first."""
    buffer = refs.window(name, one.shape, core.i32)
    refs.store(whole_ref(buffer), ..., 0)
    return buffer


def one_semaphore(given: Any, function: str) -> Ref:
    """The ref of a single semaphore. WrongDtype for anything else."""
    if not isinstance(given, Ref):
        fail(WrongDtype, function=function, given=repr(given), takes="give it a semaphore's ref")
    if given.size != 1:
        fail(WrongDtype, function=function, given=f"{given.size} semaphores", takes="choose one: sem_ref.at[i]")
    return given


# ---- copies ----------------------------------------------------------------------------------------------------------


def count_start(given: Any, target: str) -> None:
    """Count a copy into `target` that begins."""
    _count(given, 1, target, "a copy")


def count_wait(given: Any, target: str) -> None:
    """Count a wait for one."""
    _count(given, -1, target, "wait")


def _count(given: Any, change: int, target: str, function: str) -> None:
    trace, sem = kernel_trace(function), one_semaphore(given, function)
    ledger = trace.ledgers.setdefault(sem.buffer, Ledger(sem.buffer))
    block = trace.builder.block
    before = len(block.operations)
    there = refs.load(sem, ...)
    if change < 0:
        message = f"more copies are waited for than {sem.buffer.name} was told of"
        debug_check(operators.compare("gt", there, 0), message)
    refs.store(sem, ..., operators.add(there, change))
    known = not sem.gathers and all(isinstance(start, int) for start in sem.starts)
    place = tuple(int(start) for start in sem.starts) if known else None  # type: ignore[arg-type]
    ledger.events.append(Event(change, target, place, block, trace.location(), block.operations[before:]))
    trace.undo.append(ledger.events.pop)


def settle(trace: KernelTrace) -> None:
    """At the end of a kernel: NotWaitedFor and NeverStarted where that is known, checks where it is not."""
    for ledger in trace.ledgers.values():
        events = ledger.events
        starts, waits = [one for one in events if one.change > 0], [one for one in events if one.change < 0]
        if ledger.shown or not events:
            continue
        if not waits:
            raise NotWaitedFor(starts[0].location, name=starts[0].target)
        if not starts:
            raise NeverStarted(waits[0].location, name=ledger.buffer.name)
        if _are_balanced(ledger):
            for event in reversed(events):
                _erase(event.operations)
        else:
            with trace.located(starts[0].location):
                zero = operators.compare("eq", refs.load(whole_ref(ledger.buffer), ...), 0)
                held = reductions.all(zero)
                debug_check(held, f"the copy into {starts[0].target} is started and never waited for")


def _are_balanced(ledger: Ledger) -> bool:
    """Whether each block waits for all that it starts; a diagnostic where all is in one block and does not fit."""
    if any(event.place is None for event in ledger.events):
        return False
    for place in {event.place for event in ledger.events}:
        mine = [event for event in ledger.events if event.place == place]
        blocks = list(dict.fromkeys(event.block for event in mine))
        for block in blocks:
            open_: list[Event] = []
            for event in mine:
                if event.block is not block:
                    continue
                if event.change > 0:
                    open_.append(event)
                elif open_:
                    open_.pop(0)
                elif len(blocks) == 1:
                    raise NeverStarted(event.location, name=ledger.buffer.name)
                else:
                    return False
            if open_ and len(blocks) == 1:
                raise NotWaitedFor(open_[0].location, name=open_[0].target)
            if open_:
                return False
    return True


def _erase(operations: Sequence[Op]) -> None:
    for op in reversed(operations):
        unused = not any(result.users for result in op.results) and not isinstance(op, Constant)
        if isinstance(op, debug.Assert | memory.DmaStore) or unused:
            op.erase()


# ---- counting by hand ------------------------------------------------------------------------------------------------


def _shown(given: Any, function: str) -> Ref:
    trace, sem = kernel_trace(function), one_semaphore(given, function)
    trace.ledgers.setdefault(sem.buffer, Ledger(sem.buffer)).shown = True
    return sem


def semaphore_signal(
    sem: Ref, inc: Any = 1, *, device_id: Any = None, device_id_type: Any = None, core_index: Any = None
) -> None:
    """Add to a semaphore; there is one device, and one core, to signal."""
    instead = "signal semaphores of the program itself"
    refuse_option("semaphore_signal", "device_id", device_id, instead=instead)
    refuse_option("semaphore_signal", "core_index", core_index, instead=instead)
    one = _shown(sem, "semaphore_signal")
    refs.store(one, ..., operators.add(refs.load(one, ...), inc))


def semaphore_wait(sem: Ref, value: Any = 1, *, decrement: bool = True) -> None:
    """Take from a semaphore (unless told not to). Nothing beside the program could signal it: there must be enough."""
    one = _shown(sem, "semaphore_wait")
    there = refs.load(one, ...)
    debug_check(operators.compare("ge", there, value), f"{sem.buffer.name} is waited for and would never be signalled")
    if decrement:
        refs.store(one, ..., operators.subtract(there, value))


def semaphore_read(sem: Ref) -> array:
    """The value of a semaphore."""
    return refs.load(_shown(sem, "semaphore_read"), ...)
