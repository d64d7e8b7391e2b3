"""Loops that never end: a program that waits for what nobody will do.

A program is deterministic. So when the backward jump of a `while` is taken twice in the same state, registers, SRAM and
written buffers alike, it is taken for ever.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

from loom_sim import state as words
from loom_sim.elision import TABLE_WORDS
from loom_sim.errors import Deadlock

if TYPE_CHECKING:
    from loom_sim.program import Launch

FIRST_LOOK: Final = 1 << 12
"""Backward jumps of a run before it is looked at; then at each doubling."""
_PERIODS: Final = 4  # jumps in which the state may come back


def follow_watched(launch: Launch) -> int:
    """Run to the end, as `Launch.follow`. Deadlock for a loop that comes back to where it was."""
    state, budget = launch.state, launch.program.object.while_budget
    given = min(budget, FIRST_LOOK)
    state[words.WATCHDOG_BUDGET] = given
    status = launch.follow()
    while status == words.WATCHDOG_EXPIRED and given < budget:
        before = _snapshot(launch)
        for _ in range(_PERIODS):
            state[words.WATCHDOG] = 1
            status = launch.follow(resumes=True)
            if status != words.WATCHDOG_EXPIRED:
                return status
            if _snapshot(launch) == before:
                word = int(state[words.PC])
                raise Deadlock(
                    launch.program.location_of(word), notes=[f"at word {word}"], program=launch.current_program()
                )
        more = min(given, budget - given)
        given += more
        state[words.WATCHDOG] = more
        status = launch.follow(resumes=True)
    return status


def _snapshot(launch: Launch) -> tuple[bytes, ...]:
    """All that decides how a run goes on."""
    state, obj = launch.state, launch.program.object
    registers = state[words.LIVE_REGISTERS : words.DMA_BOXES].tobytes()
    found = [
        state[[words.PC, words.DEPTH]].tobytes(),
        registers,
        state[words.ABSENT : words.ABSENT + TABLE_WORDS].tobytes(),
        ctypes.string_at(int(state[words.SRAM]), obj.machine.sram_bytes),
    ]
    for number in sorted(obj.writable):
        address, low, high = (int(word) for word in state[words.SPACES + number * words.SPACE_WORDS :][:3])
        found.append(ctypes.string_at(address + low, high - low) if low < high else b"")
    return tuple(found)
