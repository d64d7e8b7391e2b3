"""A checked run: the program runs as always, and everything that is wrong with it is found and named.

`Program.check` gives the findings as diagnostics. What is looked for, and how: `checker` and `shadow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loom_core.base.diagnostics import Diagnostic
from loom_sim import engines, shadow
from loom_sim import state as words
from loom_sim.findings import FindingReader
from loom_sim.memory_shadow import MemoryShadow
from loom_sim.replay import Replay
from loom_sim.spinning import follow_watched

if TYPE_CHECKING:
    from loom_sim.program import Binding, Program, Registers

_free: list[MemoryShadow] = []
"""Those that no run uses; taking one and putting it back are single operations."""


def run_checked(
    program: Program, bindings: Sequence[Binding], registers: Registers, fresh: frozenset[int], replays: int
) -> list[Diagnostic]:
    """See `Program.check`."""
    from loom_sim.program import Launch, engine_call

    launch = Launch(program, engine_call(engines.checking_interpreter_address()))
    launch.fill(bindings, registers)
    replay = Replay(program, bindings, registers) if replays else None
    grid = tuple(int(launch.state[words.INITIAL_REGISTERS + r]) for r in program.object.abi.grid_registers)
    try:
        memory = _free.pop()
    except IndexError:
        memory = MemoryShadow()
    try:
        memory.begin(program, bindings, fresh, grid)
        base = memory.base  # numbers of later runs begin elsewhere
        launch.state[words.CHECK] = memory.check.ctypes.data
        launch.state[words.ELIDED_FROM] = words.ELIDED_BYTES
        status = follow_watched(launch)
        if status != words.HALTED:
            raise launch.fault(status)
        records = memory.findings()
    finally:
        memory.end()
        _free.append(memory)
    found = [*program.facts.faults, *FindingReader(program, bindings, grid, base).diagnostics(records)]
    if replay is not None:
        races = [(here, there) for kind, here, there, *_ in records if kind == shadow.RACE]
        found += replay.findings(replays, int(launch.state[words.EXECUTED]), races)
    return found
