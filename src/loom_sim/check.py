"""A checked run: the program runs as always, and everything that is wrong with it is found and named.

`Program.check` gives the findings as diagnostics. What is looked for, and how: `checker` and `shadow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loom_core.base.diagnostics import Diagnostic
from loom_sim import engines
from loom_sim import state as words
from loom_sim.findings import FindingReader
from loom_sim.memory_shadow import MemoryShadow

if TYPE_CHECKING:
    from loom_sim.program import Binding, Program, Registers

_free: list[MemoryShadow] = []
"""Those that no run uses; taking one and putting it back are single operations."""


def run_checked(
    program: Program, bindings: Sequence[Binding], registers: Registers, fresh: frozenset[int]
) -> list[Diagnostic]:
    """See `Program.check`."""
    from loom_sim.program import Launch, engine_call

    launch = Launch(program, engine_call(engines.checking_interpreter_address()))
    launch.fill(bindings, registers)
    grid = tuple(int(launch.state[words.INITIAL_REGISTERS + r]) for r in program.object.abi.grid_registers)
    try:
        memory = _free.pop()
    except IndexError:
        memory = MemoryShadow()
    try:
        memory.begin(program, bindings, fresh, grid)
        launch.state[words.CHECK] = memory.check.ctypes.data
        launch.go()
        return list(FindingReader(program, bindings, grid, memory.base).diagnostics(memory.findings()))
    finally:
        memory.end()
        _free.append(memory)
