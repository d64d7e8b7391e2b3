"""What a traced run says about a kernel: queues, the roofline, and the source lines where queues work and wait.

All figures come from the cycle model of `isa.cost`, of the cores that shared the programs taken together; they belong
to the machine whose digest they name.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from loom_core.base.cells import shown_file
from loom_core.base.units import byte_count
from loom_core.isa.commands import Queue
from loom_core.isa.encoding import decode_at
from loom_core.isa.machine import MachineConfig

if TYPE_CHECKING:
    from loom_sim import Program
    from loom_sim.trace import Trace

_FLOPS_PER_CELL: Final = 2  # a multiply and an add
_MOSTLY: Final = 0.5
"""A limit that is reached to this part, or a queue that works this part of the time, is what a run is bound by."""
_WELL_FILLED: Final = 0.8
_SLOW_FUNCTIONS: Final = 0.2  # of its lanes the stream engine uses where it computes functions like exp


@dataclass(frozen=True)
class Limit:
    """A lower bound of the run's cycles: `amount` units of work at `rate` units a cycle, by queues called `queue`."""

    name: str
    queue: str
    amount: int
    unit: str
    rate: float

    @property
    def cycles(self) -> float:
        return self.amount / self.rate


@dataclass(frozen=True)
class LineUse:
    """Cycles of one queue's commands from one source line: at work, and ready but for a token that had not come."""

    source: str
    queue: str
    what: str
    commands: int
    busy: int
    waiting: int


@dataclass(frozen=True)
class Verdict:
    """Why the run takes its cycles: `kind` is "limit", "queue", "latency" or "nothing"; what could make it faster."""

    kind: str
    text: str
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Profile:
    """The profile of one run. `lines` covers the first `events_seen` of `events_total` queued commands."""

    machine: MachineConfig
    trace: Trace
    limits: tuple[Limit, ...]
    lines: tuple[LineUse, ...]

    def __repr__(self) -> str:
        trace = self.trace
        return f"<Profile of {trace.kernel} on {trace.machine}: {trace.cycles:,} cycles; {self.verdict.text}>"

    def _repr_html_(self) -> str:
        from loom_sim.profile_view import profile_html

        return profile_html(self)

    @property
    def bound(self) -> Limit:
        """The limit that costs the most cycles."""
        return max(self.limits, key=lambda limit: limit.cycles)

    @property
    def reached(self) -> float:
        """The part of that limit that the run is at, 0 to 1."""
        return self.bound.cycles / self.trace.cycles if self.trace.cycles else 0.0

    @property
    def verdict(self) -> Verdict:
        """What decides the run's cycles."""
        return verdict_of(self)

    @property
    def microseconds(self) -> float:
        return self.trace.cycles / self.machine.clock_hz * 1e6

    @property
    def intensity(self) -> float | None:
        """Matrix flops a byte of HBM traffic; None without traffic."""
        return self.trace.matrix_flops / self.trace.hbm_bytes if self.trace.hbm_bytes else None

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        trace = self.trace
        return {
            "machine": {"name": trace.machine, "digest": trace.machine_digest},
            "cycles": trace.cycles,
            "microseconds": self.microseconds,
            "commands": trace.commands,
            "cores": trace.cores,
            "division": trace.division,
            "parts": [
                {"cycles": part.cycles, "queues": {name: asdict(use) for name, use in part.queues.items()}}
                for part in trace.parts
            ],
            "queues": {name: asdict(use) for name, use in trace.queues.items()},
            "hbm_bytes": trace.hbm_bytes,
            "sram_bytes": trace.sram_bytes,
            "matrix_flops": trace.matrix_flops,
            "stream_operations": trace.stream_operations,
            "roofline": {
                "flops_per_hbm_byte": self.intensity,
                "limits": {limit.name: limit.cycles for limit in self.limits},
                "bound": self.bound.name,
                "reached": self.reached,
            },
            "verdict": asdict(self.verdict),
            "lines": [asdict(line) for line in self.lines],
            "events_seen": len(trace.events),
            "events_total": trace.events_total,
        }


def profile_of(program: Program, trace: Trace) -> Profile:
    """The profile of a traced run of `program`."""
    machine = program.object.machine
    return Profile(machine, trace, limits_of(machine, trace), tuple(_lines(program, trace)))


def limits_of(machine: MachineConfig, trace: Trace) -> tuple[Limit, ...]:
    """What each resource of the machine would take alone: the roofs of the roofline, in cycles."""
    flops = trace.cores * _FLOPS_PER_CELL * machine.mxu_rows * machine.mxu_cols / machine.mxu_fp32_divisor
    return (
        Limit("HBM bandwidth", "DMA", trace.hbm_bytes, "bytes", machine.hbm_bytes_per_cycle),
        Limit("matrix engine, fp32", "MXU", trace.matrix_flops, "flops", flops),
        Limit("stream engine", "SCE", trace.stream_operations, "operations", trace.cores * machine.sce_lanes),
    )


# ---- the verdict ----


def verdict_of(profile: Profile) -> Verdict:
    """A limit of the machine, one queue that always works, or else that the queues wait for each other."""
    trace = profile.trace
    if not trace.events_total:
        return Verdict("nothing", "nothing to speed up: no engine was given a command")
    bound, reached = profile.bound, profile.reached
    others = max(trace.busy_fraction(queue) for queue in trace.queues if not queue.startswith(bound.queue))
    if reached >= max(_MOSTLY, others):
        return Verdict("limit", f"bound by {bound.name}: the run is at {reached:.1%} of that limit")
    nearest = f"the nearest limit, {bound.name}, is reached to {reached:.1%}"
    name = max(trace.queues, key=lambda queue: trace.queues[queue].busy)
    busy = trace.busy_fraction(name)
    advice = _advice(profile, name if busy >= _MOSTLY else None)
    if busy >= _MOSTLY:
        return Verdict("queue", f"bound by queue {name}, which works {busy:.0%} of the time; {nearest}", advice)
    text = f"bound by latency: no queue works more than {busy:.0%} of the time, and {nearest};"
    return Verdict("latency", f"{text} commands wait for the results of others", advice)


def _advice(profile: Profile, busy_queue: str | None) -> tuple[str, ...]:
    """What to change; of one queue if that is what the run takes its time with, else of all."""
    if busy_queue == "ACP":
        return ("the command processor cannot issue faster: use larger blocks, so that a command does more",)
    checks = {"DMA": _about_transfers(profile), "MXU": _about_matmuls(profile), "SCE": _about_programs(profile)}
    found = [text for queue, text in checks.items() if text and (busy_queue is None or busy_queue.startswith(queue))]
    if busy_queue is None:
        found.append(
            "give each program more work: larger blocks, or a loop over blocks inside of it, whose loads overlap"
        )
    return tuple(found)


def _about_transfers(profile: Profile) -> str:
    machine, trace = profile.machine, profile.trace
    commands = sum(use.commands for name, use in trace.queues.items() if name.startswith("DMA"))
    if not commands or not trace.hbm_bytes:
        return ""
    # Below this a transfer takes longer to arrive than to move.
    worth = machine.hbm_latency * machine.hbm_bytes_per_cycle
    mean = round(trace.hbm_bytes / commands)
    if mean >= worth:
        return ""
    return (
        f"move more bytes in a transfer: one carries {byte_count(mean)} on average, and HBM delivers "
        f"{byte_count(worth)} in the {machine.hbm_latency} cycles that the first byte takes"
    )


def _about_matmuls(profile: Profile) -> str:
    machine, trace = profile.machine, profile.trace
    busy = trace.queues["MXU"].busy
    if not trace.matrix_flops or not busy:
        return ""
    flops = _FLOPS_PER_CELL * machine.mxu_rows * machine.mxu_cols / machine.mxu_fp32_divisor
    filled = trace.matrix_flops / (busy * flops)
    if filled >= _WELL_FILLED:
        return ""
    return (
        f"fill the matrix array: while it works it is at {filled:.0%} of its rate; a dot of n and k that are multiples "
        f"of {machine.mxu_cols} and {machine.mxu_rows} uses all of its {machine.mxu_rows} x {machine.mxu_cols} cells"
    )


def _about_programs(profile: Profile) -> str:
    machine, use = profile.machine, profile.trace.queues["SCE"]
    if not use.busy:
        return ""
    startup = use.commands * machine.sce_startup_cycles
    if startup >= (1 - _WELL_FILLED) * use.busy:
        return (
            f"work on larger tiles: {startup / use.busy:.0%} of the stream engine's cycles are the "
            f"{machine.sce_startup_cycles} that each of its {use.commands} programs takes to start"
        )
    done = profile.trace.stream_operations / use.busy
    if done >= _SLOW_FUNCTIONS * machine.sce_lanes:
        return ""
    return (
        f"fill the stream engine: while it works it does {done:.0f} of {machine.sce_lanes} operations a cycle; give a "
        "program several rows as one tile, above all where a scan or a reduction goes along them"
    )


def _lines(program: Program, trace: Trace) -> list[LineUse]:
    """Uses by source line, queue and command, the busiest first."""
    mnemonics = {at: command.mnemonic for at, command in decode_at(program.object.commands).items()}
    free: dict[tuple[int, int], int] = defaultdict(int)
    sums: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    fields = ["word", "queue", "issued", "started", "freed", "core"]
    for word, queue, issued, started, freed, core in trace.events[fields].tolist():
        location = program.location_of(word)
        source = f"{shown_file(location.file)}:{location.line}" if location.known else ""
        entry = sums[source, Queue(queue).name, mnemonics[word]]
        entry[0] += 1
        entry[1] += freed - started
        # The queue is in order: what it spends on earlier commands is not this command's waiting.
        entry[2] += started - max(issued, free[core, queue])
        free[core, queue] = freed
    uses = [LineUse(*key, *values) for key, values in sums.items()]
    return sorted(uses, key=lambda use: (-use.busy, -use.waiting, use.source, use.queue, use.what))
