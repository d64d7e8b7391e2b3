"""What a traced run says about a kernel: queues, the roofline, and the source lines where queues work and wait.

All figures are of one core, from the cycle model of `isa.cost`; they belong to the machine whose digest they name.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from loom_core.isa.commands import Queue
from loom_core.isa.encoding import decode_at
from loom_core.isa.machine import MachineConfig

if TYPE_CHECKING:
    from loom_sim import Program
    from loom_sim.trace import Trace

_FLOPS_PER_CELL: Final = 2  # a multiply and an add


@dataclass(frozen=True)
class Limit:
    """A lower bound of the run's cycles: `amount` units of work at `rate` units a cycle."""

    name: str
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
class Profile:
    """The profile of one run. `lines` covers the first `events_seen` of `events_total` queued commands."""

    machine: MachineConfig
    trace: Trace
    limits: tuple[Limit, ...]
    lines: tuple[LineUse, ...]

    @property
    def bound(self) -> Limit:
        """The limit that costs the most cycles."""
        return max(self.limits, key=lambda limit: limit.cycles)

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
            "queues": {name: asdict(use) for name, use in trace.queues.items()},
            "hbm_bytes": trace.hbm_bytes,
            "sram_bytes": trace.sram_bytes,
            "matrix_flops": trace.matrix_flops,
            "stream_operations": trace.stream_operations,
            "roofline": {
                "flops_per_hbm_byte": self.intensity,
                "limits": {limit.name: limit.cycles for limit in self.limits},
                "bound": self.bound.name,
                "reached": self.bound.cycles / trace.cycles if trace.cycles else 0.0,
            },
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
    flops = _FLOPS_PER_CELL * machine.mxu_rows * machine.mxu_cols / machine.mxu_fp32_divisor
    return (
        Limit("HBM bandwidth", trace.hbm_bytes, "bytes", machine.hbm_bytes_per_cycle),
        Limit("matrix engine, fp32", trace.matrix_flops, "flops", flops),
        Limit("stream engine", trace.stream_operations, "operations", machine.sce_lanes),
    )


def _lines(program: Program, trace: Trace) -> list[LineUse]:
    """Uses by source line, queue and command, the busiest first."""
    mnemonics = {at: command.mnemonic for at, command in decode_at(program.object.commands).items()}
    free: dict[int, int] = defaultdict(int)
    sums: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for word, queue, issued, started, freed in trace.events[["word", "queue", "issued", "started", "freed"]].tolist():
        location = program.location_of(word)
        source = f"{location.file}:{location.line}" if location.known else ""
        entry = sums[source, Queue(queue).name, mnemonics[word]]
        entry[0] += 1
        entry[1] += freed - started
        # The queue is in order: what it spends on earlier commands is not this command's waiting.
        entry[2] += started - max(issued, free[queue])
        free[queue] = freed
    uses = [LineUse(*key, *values) for key, values in sums.items()]
    return sorted(uses, key=lambda use: (-use.busy, -use.waiting, use.source, use.queue, use.what))
