"""A traced run: what a program's commands would cost on the machine, while they execute.

`Program.trace` gives a `Trace`. Cycle figures come from `isa.cost` and the timeline of `timeline`; they belong to the
machine that the object was compiled for, and do not depend on the host.

A launch that is divided among cores (`sharing`) is traced core by core: each has its own engines, and an equal part of
the bandwidth of HBM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base.knobs import knobs
from loom_core.isa.commands import Queue
from loom_core.isa.cost import C_HBM_BYTES_PER_CYCLE, cost_constants
from loom_sim import engines
from loom_sim import state as words
from loom_sim import timeline as layout

if TYPE_CHECKING:
    from loom_sim.profile import Profile
    from loom_sim.program import Binding, Program, Registers

EVENT_FIELDS: Final = ("word", "queue", "issued", "started", "freed", "done", "hbm_bytes", "sram_bytes", "core")
EVENT_DTYPE: Final = np.dtype([(name, np.int64) for name in EVENT_FIELDS])


@dataclass(frozen=True)
class QueueUse:
    """One queue's time, in cycles: at work; with a command that waits for tokens; without a command."""

    commands: int
    busy: int
    waiting: int
    empty: int


@dataclass(frozen=True, eq=False)
class Trace:
    """What a run costs in the cycle model.

    `cycles`: from the first command to the last result, of the core that is done last. `queues`: by name ("ACP",
    "DMA0", ..., "MXU", "SCE"), the sums of all cores. `hbm_bytes`, `sram_bytes`: traffic. `matrix_flops`: 2 a
    multiply-add; `stream_operations`: elements times SCE instructions. `events`: one record (`EVENT_DTYPE`) for each
    queued command, in issue order, core by core, with times in cycles; those past the limit of the call, for each
    core, are only counted, in `events_total`. `commands`: all, those of the ACP too. `program`: what ran. `division`:
    how the programs were divided, or why they were not; `parts`: where they were, the trace of each core.
    """

    machine: str
    machine_digest: str
    cycles: int
    commands: int
    queues: dict[str, QueueUse]
    hbm_bytes: int
    sram_bytes: int
    matrix_flops: int
    stream_operations: int
    events: npt.NDArray[Any]
    events_total: int
    program: Program
    division: str = ""
    parts: tuple[Trace, ...] = ()

    @property
    def cores(self) -> int:
        """How many cores ran programs."""
        return max(1, len(self.parts))

    def __repr__(self) -> str:
        busy = "".join(f", {name} {self.busy_fraction(name):.0%}" for name, use in self.queues.items() if use.commands)
        cores = f" of {self.cores} cores" if self.parts else ""
        return f"<Trace on {self.machine}: {self.cycles:,} cycles{cores}{busy}>"

    def _repr_html_(self) -> str:
        return self.profile._repr_html_()

    @property
    def kernel(self) -> str:
        """The name of the kernel that ran, "" where its object does not say."""
        return self.program.object.name

    @property
    def profile(self) -> Profile:
        """What the figures say: what the run is bound by, and where its lines work and wait."""
        from loom_sim.profile import profile_of

        return profile_of(self.program, self)

    def busy_fraction(self, queue: str) -> float:
        """Part of all cycles of the cores that ran programs in which a queue works, 0 to 1.

        ValueError for a name, in either case, that is no queue's.
        """
        use = self.queues.get(queue.upper())
        if use is None:
            raise ValueError(f"there is no queue {queue!r}; the queues are {', '.join(self.queues)}")
        return use.busy / (self.cycles * self.cores) if self.cycles else 0.0

    def table(self) -> str:
        """The figures as text, a line a queue."""
        lines = [f"{self.cycles} cycles on {self.machine} ({self.machine_digest[:8]}), {self.commands} commands"]
        lines.append(self.division)
        lines.append(f"{'queue':<6}{'commands':>10}{'busy':>12}{'waiting':>12}{'empty':>12}")
        for name, use in self.queues.items():
            lines.append(f"{name:<6}{use.commands:>10}{use.busy:>12}{use.waiting:>12}{use.empty:>12}")
        lines.append(f"HBM {self.hbm_bytes} bytes, SRAM {self.sram_bytes} bytes")
        lines.append(f"{self.matrix_flops} matrix flops, {self.stream_operations} stream operations")
        return "\n".join(lines)


def run_traced(
    program: Program, bindings: Sequence[Binding], registers: Registers, max_events: int, cores: int
) -> Trace:
    """See `Program.trace`."""
    from loom_sim.program import Launch, engine_call

    launch = Launch(program, engine_call(engines.tracing_interpreter_address()))
    launch.fill(bindings, registers)
    division = program.division(bindings, registers, cores or knobs.cores or program.object.machine.cores)
    traces = []
    for number in range(division.cores):
        if division.axis is not None:
            launch.set_part(division.axis, division.parts[number])
        model = _Model(program, max_events, division.cores, number)
        launch.state[words.TRACE] = model.trace.ctypes.data
        launch.go()
        traces.append(model.result(program, int(launch.state[words.EXECUTED]), str(division)))
    return traces[0] if len(traces) == 1 else _all_cores(traces)


def _all_cores(parts: Sequence[Trace]) -> Trace:
    """One trace of what several cores did at the same time."""
    cycles = max(part.cycles for part in parts)
    queues = {}
    for name in parts[0].queues:
        uses = [part.queues[name] for part in parts]
        busy, waiting = sum(use.busy for use in uses), sum(use.waiting for use in uses)
        commands = sum(use.commands for use in uses)
        queues[name] = QueueUse(commands, busy, waiting, cycles * len(parts) - busy - waiting)
    return replace(
        parts[0],
        cycles=cycles,
        queues=queues,
        **{name: sum(getattr(part, name) for part in parts) for name in _SUMS},
        events=np.concatenate([part.events for part in parts]),
        parts=tuple(parts),
    )


_SUMS: Final = ("commands", "hbm_bytes", "sram_bytes", "matrix_flops", "stream_operations", "events_total")


class _Model:
    """The arrays of one core's traced run; HBM serves `cores` of them alike."""

    def __init__(self, program: Program, max_events: int, cores: int, number: int) -> None:
        obj = program.object
        self.constants = cost_constants(obj.machine)
        self.constants[C_HBM_BYTES_PER_CYCLE] = max(1, self.constants[C_HBM_BYTES_PER_CYCLE] // cores)
        self.programs = np.ascontiguousarray(obj.programs).view(np.int64)
        self.tokens = np.zeros(obj.machine.tokens * layout.TOKEN_WORDS, np.int64)
        self.hbm = np.zeros(layout.BUCKETS * 2, np.int64)
        self.events = np.zeros(max(max_events, 0), EVENT_DTYPE)
        self.events["core"] = number
        self.trace = np.zeros(layout.TRACE_WORDS, np.int64)
        for field, array in (
            (layout.CONSTANTS, self.constants),
            (layout.PROGRAM_WORDS, self.programs),
            (layout.TOKENS, self.tokens),
            (layout.HBM, self.hbm),
            (layout.EVENTS, self.events),
        ):
            self.trace[field] = array.ctypes.data
        self.trace[layout.EVENT_LIMIT] = len(self.events)

    def result(self, program: Program, executed: int, division: str) -> Trace:
        trace: list[int] = self.trace.tolist()
        cycles = max(trace[layout.ACP_TIME], trace[layout.LAST_DONE])
        machine = program.object.machine
        queues: dict[str, QueueUse] = {}
        for queue in Queue:
            at = layout.QUEUES + layout.QUEUE_WORDS * queue
            busy, waiting, commands = (trace[at + field] for field in (layout.BUSY, layout.WAITING, layout.COMMANDS))
            # What is neither work nor waiting is time without a command, before, between and after them.
            queues[queue.name] = QueueUse(commands, busy, waiting, cycles - busy - waiting)
        kept = min(trace[layout.EVENT_COUNT], len(self.events))
        return Trace(
            machine=machine.name,
            machine_digest=machine.digest(),
            cycles=cycles,
            commands=executed,
            queues=queues,
            hbm_bytes=trace[layout.HBM_BYTES],
            sram_bytes=trace[layout.SRAM_BYTES],
            matrix_flops=trace[layout.MATRIX_FLOPS],
            stream_operations=trace[layout.STREAM_OPERATIONS],
            events=self.events[:kept].copy(),
            events_total=trace[layout.EVENT_COUNT],
            program=program,
            division=division,
        )
