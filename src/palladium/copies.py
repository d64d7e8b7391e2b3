"""Explicit copies between refs, with tokens, and semaphores.

A copy runs on a DMA queue beside the other engines. What reads the target waits for it in any case; `wait` says where
the program relies on it, and a copy that is never waited for is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loom_core.base import dtype as core
from loom_core.base.location import Location
from loom_core.ops import memory
from palladium import operators, refs, scalars
from palladium.errors import NeverStarted, NotWaitedFor, ShapesDiffer, WrongDtype, fail
from palladium.hints import refuse_option
from palladium.specs import Scratch, Semaphore
from palladium.trace import KernelTrace, kernel_trace
from palladium.views import Buffer, Ref, whole_ref


@dataclass
class Token:
    """A copy under way; `wait` returns when it is complete."""

    name: str
    location: Location
    done: bool = False

    def wait(self) -> None:
        """Wait until the copy is complete."""
        trace = kernel_trace("wait")
        self.done = True
        if self in trace.unwaited:
            trace.unwaited.remove(self)

    def forget(self) -> None:
        """The copy was part of a trial that is given up."""
        trace = kernel_trace("copy")
        if self in trace.unwaited:
            trace.unwaited.remove(self)

    def __hash__(self) -> int:
        return id(self)


def copy(src: Ref, dst: Ref) -> Token:
    """Begin to copy `src` to `dst`, refs of one shape and dtype; gives the token to wait for."""
    trace = kernel_trace("copy")
    begin(src, dst)
    token = Token(dst.buffer.name, trace.location())
    trace.unwaited.append(token)
    trace.undo.append(token.forget)
    return token


def begin(src: Ref, dst: Ref) -> None:
    """Emit a copy."""
    for given in (src, dst):
        if not isinstance(given, Ref):
            fail(WrongDtype, function="copy", given=repr(given), takes="it takes two refs: x_ref.at[...]")
    if src.shape != dst.shape:
        fail(ShapesDiffer, function="copy", first=src.shape, second=dst.shape)
    if src.core is not dst.core:
        fail(WrongDtype, function="copy", given=f"{src.core.name} to {dst.core.name}", takes="copies do not convert")
    refs.require_writable(dst)
    src.buffer.is_read = dst.buffer.is_read = True  # what is copied into stays where it is
    source, target = refs.address(src, src.buffer.storage), refs.address(dst, dst.buffer.storage)
    if refs.is_bounded(source) or refs.is_bounded(target) or not src.shape:
        refs.write(dst, refs.read(src), None, dst.buffer.storage)
        return
    itemsize = src.core.itemsize
    numbers: list[Any] = []
    for (size, step, _, _), (_, other, _, _) in zip(source.dims, target.dims, strict=True):
        numbers += [step * itemsize, other * itemsize, 0, size]
    kernel_trace("copy").builder.create(
        memory.DmaCopy,
        source.pointer,
        scalars.value_of(scalars.multiply(source.offset, itemsize)),
        target.pointer,
        scalars.value_of(scalars.multiply(target.offset, itemsize)),
        [scalars.value_of(number) for number in numbers],
        shape=src.shape,
    )


def check_waits(trace: KernelTrace) -> None:
    """NotWaitedFor for the first copy whose token, or semaphore, nobody waited for; NeverStarted for the reverse."""
    for token in trace.unwaited:
        raise NotWaitedFor(token.location, name=token.name)
    for events in trace.copies.values():
        names = {event.name for event in events}
        if "start" in names and "wait" not in names:
            raise NotWaitedFor(events[0].location, name=events[0].target)
        if "wait" in names and "start" not in names:
            raise NeverStarted(events[0].location, name=events[0].semaphore)


@dataclass(frozen=True)
class CopyEvent:
    """A "start" or "wait" of copies into `target` of which `semaphore` tells."""

    name: str
    target: str
    semaphore: str
    location: Location


class AsyncCopy:
    """A copy in upstream's form: `start` begins it, `wait` waits; both may be called on descriptors of their own.

    A kernel that does one of both for a semaphore does the other, too.
    """

    def __init__(self, src: Ref, dst: Ref, semaphore: Ref) -> None:
        if not isinstance(semaphore, Ref):
            fail(WrongDtype, function="make_async_copy", given=repr(semaphore), takes="the third is a semaphore's ref")
        self.src = src
        self.dst = dst
        self.semaphore = semaphore

    def start(self, priority: int = 0) -> None:
        """Begin the copy."""
        begin(self.src, self.dst)
        self._note("start")

    def wait(self) -> None:
        """Wait until it is complete."""
        self._note("wait")

    def _note(self, name: str) -> None:
        trace = kernel_trace(name)
        buffer = self.semaphore.buffer
        events = trace.copies.setdefault(buffer, [])
        events.append(CopyEvent(name, self.dst.buffer.name, buffer.name, trace.location()))
        trace.undo.append(events.pop)


def make_async_copy(src_ref: Ref, dst_ref: Ref, sem: Any) -> AsyncCopy:
    """A descriptor of a copy, which has not begun."""
    return AsyncCopy(src_ref, dst_ref, sem)


def async_copy(src_ref: Ref, dst_ref: Ref, sem: Any) -> AsyncCopy:
    """A copy that has begun."""
    made = AsyncCopy(src_ref, dst_ref, sem)
    made.start()
    return made


def sync_copy(src_ref: Ref, dst_ref: Ref) -> None:
    """A copy that is complete when this returns."""
    begin(src_ref, dst_ref)


# ---- semaphores ------------------------------------------------------------------------------------------------------


def semaphore_buffer(name: str, one: Semaphore | Scratch) -> Buffer:
    """Counters in SRAM, 0 at first."""
    buffer = refs.window(name, one.shape, core.i32)
    refs.store(whole_ref(buffer), ..., 0)
    return buffer


def semaphore_signal(
    sem: Ref, inc: Any = 1, *, device_id: Any = None, device_id_type: Any = None, core_index: Any = None
) -> None:
    """Add to a semaphore; there is one device, and one core, to signal."""
    instead = "signal semaphores of the program itself"
    refuse_option("semaphore_signal", "device_id", device_id, instead=instead)
    refuse_option("semaphore_signal", "core_index", core_index, instead=instead)
    refs.store(sem, ..., operators.add(refs.load(sem, ...), inc))


def semaphore_wait(sem: Ref, value: Any = 1, *, decrement: bool = True) -> None:
    """Take from a semaphore (unless told not to). Nothing beside the program could signal it: there must be enough."""
    from palladium.control import debug_check

    there = refs.load(sem, ...)
    debug_check(operators.compare("ge", there, value), f"{sem.buffer.name} is waited for and would never be signalled")
    if decrement:
        refs.store(sem, ..., operators.subtract(there, value))


def semaphore_read(sem: Ref) -> Any:
    """The value of a semaphore."""
    return refs.load(sem, ...)
