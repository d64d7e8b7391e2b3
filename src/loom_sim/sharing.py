"""How the programs of a launch are divided among cores: on the launch's own numbers, and only where that is proved to
change no bit.

Each core runs a contiguous part of one axis of the programs, in ascending order. `apart` proves that the parts do not
meet in memory; otherwise one core runs all.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loom_core.base.knobs import knobs
from loom_core.isa.machine import MachineConfig
from loom_core.objfile import CoreAxis
from loom_sim import state as words

if TYPE_CHECKING:
    from loom_sim.program import Launch, Program

WORTH_NANOSECONDS: Final = 1_000_000
"""Work below this runs on one core, unless cores are asked for: threads take time to wake."""
MOST_CORES: Final = 64
_DIVISIONS_KEPT: Final = 512
_PATIENCE: Final = 8
_BALANCED: Final = 0.9
"""A division whose cores are busy for this part of the time is taken without a look at other axes."""


@dataclass(frozen=True)
class Division:
    """How a launch runs: each core one part [start, end) of an axis, or, without parts, one core for `reason`.

    `is_open`: nothing was looked at, because launches before had little work; its time says whether to look at the
    next one.
    """

    axis: CoreAxis | None = None
    parts: tuple[tuple[int, int], ...] = ()
    reason: str = ""
    is_open: bool = False

    @property
    def cores(self) -> int:
        return max(1, len(self.parts))

    def __str__(self) -> str:
        if self.axis is None:
            return f"one core: {self.reason}"
        listed = ", ".join(f"{start} to {end - 1}" if end - start > 1 else f"{start}" for start, end in self.parts)
        return f"{self.cores} cores: along axis {self.axis.name} programs {listed}"


_ONE_PROGRAM: Final = Division(reason="there is one program")
_ONE_ASKED: Final = Division(reason="one core is asked for")
_LITTLE: Final = Division(reason="it takes this computer less time than to wake another; a profile shares it")
_OPEN: Final = Division(
    reason="launches before took this computer less time than to wake another; a profile shares them", is_open=True
)


def undivided(program: Program) -> Division:
    """The division of a program without axes that cores may share."""
    serial = program.object.abi.serial_axes
    listed = "; ".join(f"along axis {axis.name} {axis.reason}" for axis in serial)
    return Division(reason=listed or "its programs have no axis that cores could share")


def available_cores(machine: MachineConfig) -> int:
    """Cores for a launch where no number is asked for: as many as the machine and this process' CPUs allow."""
    return min(machine.cores, usable_cpus())


def usable_cpus() -> int:
    """CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Sharing:
    """The divisions of one program's launches; those that were found are kept."""

    def __init__(self, program: Program) -> None:
        self._program = program
        abi = program.object.abi
        self._axes = abi.core_axes
        self._ends = tuple(words.INITIAL_REGISTERS + axis.end for axis in abi.core_axes)
        preloaded = [*abi.grid_registers, *(arg.slot for arg in abi.scalars)]
        self._scalars = slice(words.INITIAL_REGISTERS, words.INITIAL_REGISTERS + max(preloaded) + 1)
        self._absolute = not _apart(program)
        self._kept: dict[Any, Division] = {}
        self._obstacle: str | None = None
        self._little = 0  # launches in a row for whose little work a survey was in vain

    def timed(self, run: Callable[[], int]) -> int:
        """Run a launch that was not looked at; if it takes long, the next ones are."""
        start = time.perf_counter_ns()
        status = run()
        if time.perf_counter_ns() - start >= WORTH_NANOSECONDS:
            self._little = 0
        return status

    def division(self, launch: Launch, cores: int = 0) -> Division:
        """How the launch, whose bindings and registers are set, is to run.

        cores: how many there are for any amount of work; 0 for those of `available_cores`, where the work is worth it.
        """
        view = launch._view
        for end in self._ends:
            if view[end] > 1:
                break
        else:
            return _ONE_PROGRAM
        asked = min(cores or knobs.cores, MOST_CORES)
        if asked == 1:
            return _ONE_ASKED
        numbers = view[self._scalars].tobytes()
        key = (asked, numbers, launch.state[words.SPACES :].tobytes()) if self._absolute else (asked, numbers)
        found = self._kept.get(key)
        if found is None:
            if self._little >= _PATIENCE and not asked:
                return _OPEN
            found = self._decide(launch, asked or available_cores(launch.program.object.machine), bool(asked))
            if len(self._kept) >= _DIVISIONS_KEPT:
                self._kept.clear()
            self._kept[key] = found
            self._little = self._little + 1 if found is _LITTLE else 0
        return found

    def _decide(self, launch: Launch, cores: int, asked: bool) -> Division:
        if cores == 1:
            return Division(reason="this process has one CPU")
        from loom_sim.apart import Attempt, obstacle

        if self._obstacle is None:
            self._obstacle = obstacle(self._program)
        if self._obstacle:
            return Division(reason=self._obstacle)
        extents = [(axis, launch._view[words.INITIAL_REGISTERS + axis.end]) for axis in self._axes]
        candidates = [(axis, extent) for axis, extent in extents if extent > 1]
        # Stable: of axes with a program for each core the outermost comes first.
        candidates.sort(key=lambda one: one[1] < cores)
        best, best_use, reasons = None, 0.0, []
        for axis, extent in candidates:
            attempt = Attempt(self._program, launch, axis, _parts(extent, cores), self._absolute)
            if not asked and attempt.nanoseconds < WORTH_NANOSECONDS:
                return _LITTLE
            if attempt.use < _BALANCED and extent > cores:
                other = Attempt(self._program, launch, axis, attempt.balanced_parts(), self._absolute)
                attempt = max(attempt, other, key=lambda one: one.use)
            reason = attempt.obstacle()
            if reason:
                reasons.append(reason)
                continue
            use = attempt.use * len(attempt.parts) / cores
            if use > best_use:
                best, best_use = Division(axis, attempt.parts), use
            if use >= _BALANCED:
                break
        return best or Division(reason="; ".join(dict.fromkeys(reasons)))


def _parts(extent: int, cores: int) -> tuple[tuple[int, int], ...]:
    count = min(extent, cores)
    bounds = [extent * i // count for i in range(count + 1)]
    return tuple(itertools.pairwise(bounds))


def _apart(program: Program) -> bool:
    """Whether the ABI says that no buffer which is written overlaps another one that is used."""
    abi = program.object.abi
    pairs = {frozenset(pair) for pair in abi.noalias}
    used = [arg for arg in abi.buffers if arg.read or arg.written]
    return all(
        frozenset((a.slot, b.slot)) in pairs
        for i, a in enumerate(used)
        for b in used[i + 1 :]
        if a.written or b.written
    )
