"""Explicit copies between refs, with tokens.

A copy runs on a DMA queue beside the other engines. What reads the target waits for it in any case; `wait` says where
the program relies on it. Each copy is waited for once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loom_core.base.location import Location
from loom_core.ir.block import Block
from loom_core.ops import memory
from palladium import refs, scalars
from palladium.errors import NotWaitedFor, ShapesDiffer, WaitedElsewhere, WaitedTwice, WrongDtype, fail
from palladium.hints import refuse_option
from palladium.semaphores import count_start, count_wait, one_semaphore
from palladium.specs import known_size
from palladium.trace import KernelTrace, kernel_trace
from palladium.views import Ref


@dataclass(eq=False)
class Token:
    """A copy under way; `wait` returns when it is complete."""

    name: str
    location: Location
    block: Block
    done: bool = False

    def wait(self) -> None:
        """Wait until the copy is complete: once, and in the block of the program that began it."""
        trace = kernel_trace("wait")
        if self.done:
            fail(WaitedTwice, name=self.name)
        if trace.builder.block is not self.block:
            fail(WaitedElsewhere, name=self.name)
        self.done = True
        trace.unwaited.remove(self)
        trace.undo.append(self._wait_again)

    def _wait_again(self) -> None:
        """The wait was part of a trial that is given up."""
        self.done = False
        kernel_trace("wait").unwaited.append(self)

    def forget(self) -> None:
        """The copy was part of a trial that is given up."""
        kernel_trace("copy").unwaited.remove(self)


def copy(src: Ref, dst: Ref, *, queue: int | None = None) -> Token:
    """Begin to copy `src` to `dst`, refs of one shape and dtype; gives the token to wait for.

    Copies on one DMA queue run in order, those on others beside them: `queue` numbers them from 0, None leaves the
    choice to the compiler.
    """
    trace = kernel_trace("copy")
    begin(src, dst, queue)
    token = Token(dst.buffer.name, trace.location(), trace.builder.block)
    trace.unwaited.append(token)
    trace.undo.append(token.forget)
    return token


def begin(src: Ref, dst: Ref, queue: int | None = None) -> None:
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
    number = None if queue is None else known_size(queue, "the queue of a copy", least=0)
    source, target = refs.address(src, src.buffer.storage), refs.address(dst, dst.buffer.storage)
    through_a_tile = (
        refs.is_bounded(source)  # what lies outside is poison
        or target.guard is not None
        or not src.shape
        or src.gathers
        or dst.gathers
        or src.buffer is dst.buffer  # they may overlap
    )
    if through_a_tile:
        if number is not None:
            takes = "give whole parts of two buffers, or leave the queue open"
            fail(WrongDtype, function="copy on a queue", given="what needs more than one descriptor", takes=takes)
        refs.write(dst, refs.load(src) if src.gathers else refs.read(src), None, dst.buffer.storage)
        return
    itemsize = src.core.itemsize
    numbers: list[Any] = []
    for (size, step, _, _), (_, other, low, limit) in zip(source.dims, target.dims, strict=True):
        numbers += [step * itemsize, other * itemsize, 0 if low is None else low, size if limit is None else limit]
    kernel_trace("copy").builder.create(
        memory.DmaCopy,
        source.pointer,
        scalars.value_of(scalars.multiply(source.offset, itemsize)),
        target.pointer,
        scalars.value_of(scalars.multiply(target.offset, itemsize)),
        [scalars.value_of(number) for number in numbers],
        shape=src.shape,
        queue=number,
    )


def check_tokens(trace: KernelTrace) -> None:
    """NotWaitedFor for the first copy whose token nobody waited for."""
    for token in trace.unwaited:
        raise NotWaitedFor(token.location, name=token.name)


class AsyncCopy:
    """A copy in upstream's form: `start` begins it, `wait` waits; both may be called on descriptors of their own.

    A semaphore counts what was started: each wait takes one from it.
    """

    def __init__(self, src: Ref, dst: Ref, semaphore: Ref) -> None:
        self.src = src
        self.dst = dst
        self.semaphore = one_semaphore(semaphore, "make_async_copy")

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Begin the copy; a `priority` that is not 0 is the number of the DMA queue that it has."""
        refuse_option("start", "add", add, False, "copy to scratch and add")
        begin(self.src, self.dst, priority or None)
        count_start(self.semaphore, self.dst.buffer.name)

    def wait(self) -> None:
        """Wait until it is complete."""
        count_wait(self.semaphore, self.dst.buffer.name)


def make_async_copy(src_ref: Ref, dst_ref: Ref, sem: Any) -> AsyncCopy:
    """A descriptor of a copy, which has not begun."""
    return AsyncCopy(src_ref, dst_ref, sem)


def async_copy(src_ref: Ref, dst_ref: Ref, sem: Any, *, priority: int = 0, add: bool = False) -> AsyncCopy:
    """A copy that has begun."""
    made = AsyncCopy(src_ref, dst_ref, sem)
    made.start(priority, add=add)
    return made


def sync_copy(src_ref: Ref, dst_ref: Ref) -> None:
    """A copy that is complete when this returns."""
    begin(src_ref, dst_ref)
