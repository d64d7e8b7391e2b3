"""A launch on several cores: each runs its part in a thread, without the interpreter lock.

Threads wait for work between launches and keep the SRAM of their core, whose pages they touched first. A process that
was forked starts its own.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from loom_core.isa.encoding import Reg
from loom_sim import state as words

if TYPE_CHECKING:
    from loom_sim.program import Launch
    from loom_sim.sharing import Division


class _Worker:
    """A thread that runs one job after another."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="loom core", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._jobs.get()()

    def run(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)


_idle: Final[list[_Worker]] = []  # taking one out and putting it back are single operations
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


class _Part:
    """One core's run."""

    def __init__(self, launch: Launch, stopped: threading.Event) -> None:
        self.launch = launch
        self.status = words.PAUSED
        self.error: BaseException | None = None
        self._stopped = stopped
        self._done = threading.Lock()
        self._done.acquire()
        self.is_waited_for = False

    def run(self) -> None:
        """In any thread; what goes wrong is kept."""
        try:
            self.status = self.launch.follow(stopped=self._stopped.is_set)
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self.error = error
        finally:
            self._done.release()

    def wait(self) -> None:
        while not self.is_waited_for:
            self._done.acquire()
            self.is_waited_for = True


def run_divided(launch: Launch, division: Division) -> None:
    """Run a launch, whose bindings and registers are set, on several cores; the fault of the lowest program is raised.

    The thread that calls takes the first part. An interrupt stops all cores before it is raised.
    """
    axis, program = division.axis, launch.program
    assert axis is not None
    # A line of its own: the word that cores hold during atomics.
    lock = np.zeros(24, np.int64)
    stopped = threading.Event()
    parts = [_Part(launch if i == 0 else program.take_part(), stopped) for i in range(division.cores)]
    for part, bounds in zip(parts[1:], division.parts[1:], strict=True):
        part.launch.take(launch, axis, bounds)
    launch.set_part(axis, division.parts[0])
    for part in parts:
        part.launch.state[words.ATOMIC_LOCK] = lock.ctypes.data + 64
    workers = []
    try:
        for part in parts[1:]:
            workers.append(_idle.pop() if _idle else _Worker())
            workers[-1].run(part.run)
        parts[0].run()
        if parts[0].error is not None:
            raise parts[0].error
    except BaseException:
        stopped.set()
        raise
    finally:
        _wait_for_all(parts[1 : 1 + len(workers)], stopped)
        _idle.extend(workers)
        launch.state[words.ATOMIC_LOCK] = 0
        launch.take_all_programs()
        for part in parts[1:]:
            program.give_part(part.launch)
    _raise_first(parts)


def _wait_for_all(parts: list[_Part], stopped: threading.Event) -> None:
    """Their memory must not be given away before: an interrupt stops them, and is raised when they are done."""
    interrupt: BaseException | None = None
    for part in parts:
        while not part.is_waited_for:
            try:
                part.wait()
            except BaseException as error:  # noqa: BLE001 - raised when all are done
                interrupt = error
                stopped.set()
    if interrupt is not None:
        raise interrupt


def _raise_first(parts: list[_Part]) -> None:
    for part in parts:
        if part.error is not None:
            raise part.error
    failed = [part for part in parts if part.status != words.HALTED]
    if failed:
        first = min(failed, key=lambda part: program_position(part.launch))
        raise first.launch.fault(first.status)


def program_position(launch: Launch) -> list[int]:
    """Where a launch that stopped stands in the loops over its programs, outermost first."""
    view, program = launch._view, launch.program
    starts = {Reg(axis.start) for axis in program.object.abi.core_axes}
    position = []
    for record in program.object.loops:
        command = program.commands.get(record.word)
        if command is None or command.mnemonic != "loop" or not (record.grid_axis or command.operands[1] in starts):
            continue
        low = command.operands[1]
        if record.word < view[words.PC] < record.end:
            # Not from the counter's register, which may hold something else by now.
            depth = sum(other.word < record.word < other.end for other in program.object.loops)
            position.append(view[words.LOOP_STACK + words.LOOP_WORDS * depth])
        else:
            position.append(view[words.INITIAL_REGISTERS + low.number] if isinstance(low, Reg) else 0)
    return position
