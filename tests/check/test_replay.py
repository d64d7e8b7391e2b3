"""Race replay: no engine speed changes what a compiled object leaves; the loss of a wait does, and both commands are
named.
"""

from __future__ import annotations

import numpy as np
import pytest

import loom
import loom_sim
from loom_core.base.diagnostics import Diagnostic
from loom_core.isa.encoding import Wait, command
from loom_core.isa.machine import L1
from loom_core.objfile import LoomObject
from tests.codegen.example_launches import EXAMPLES
from tests.codegen.execution import Launch, bindings_of, compiled, registers_of
from tests.codegen.ordering import waits_of, without_wait
from tests.ltl.test_check import own_blocks
from tests.sim.harness import Buffer, build, copy

REPLAYS = 6  # each engine in turn is the slow one
MORE = 60  # and chance
HARMLESS = {
    "embed": ("lds", "nothing uses what is loaded here"),
    "attention": ("program", "the other has completed, for what else is waited for"),
}
"""Commands whose wait may go without a change of the bits, and why."""


def findings(obj: LoomObject, launch: Launch, replays: int) -> list[Diagnostic]:
    memories = launch.fresh()
    return loom_sim.load(obj).check(bindings_of(launch, memories), registers_of(obj, launch), replays=replays)


def of_code(found: list[Diagnostic], code: str) -> list[Diagnostic]:
    return [d for d in found if d.code == code]


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_wait_that_is_needed_is_needed_for_the_bits(name: str) -> None:
    example = EXAMPLES[name]()
    obj, launch = compiled(example.function(), L1, slots=2), example.launch()
    commands = loom_sim.load(obj).commands
    assert not findings(obj, launch, REPLAYS + 2)
    unchanged = []
    for wait in waits_of(obj):
        mutant = without_wait(obj, *wait)
        found = findings(mutant, launch, REPLAYS)
        racing, changing = of_code(found, "LOOM-S201"), of_code(found, "LOOM-S206")
        if racing and not changing:
            changing = of_code(findings(mutant, launch, MORE), "LOOM-S206")
        if racing and not changing:
            unchanged.append(commands[wait[0]].mnemonic)
        pairs = {tuple(note.partition(",")[0] for note in d.notes[:2]) for d in racing}
        assert {tuple(note.partition(",")[0] for note in d.notes[:2]) for d in changing} <= pairs
    assert set(unchanged) <= {HARMLESS.get(name, ("", ""))[0]} and len(unchanged) <= 2


X = np.arange(16, dtype=np.float32)


def test_both_commands_and_the_element_are_named() -> None:
    load = copy((1, 0), (0, 64), [(16, 4, 4)], queue=1, signal=1)
    store = copy((0, 64), (2, 0), [(16, 4, 4)], queue=4)

    def found(*waits: Wait) -> list[str]:
        x, out = Buffer(X), Buffer(np.zeros_like(X))
        waiting = command(store.mnemonic, *store.operands, flags=store.flags, queue=store.queue, waits=waits)
        program = loom_sim.load(build([load, waiting], [], 2))
        diagnostics = program.check([x.binding, out.binding], {}, replays=2)
        assert (out.array == X).all()
        return [f"{d.code} {d.message} | {' | '.join(d.notes)}" for d in diagnostics]

    assert found(Wait(1)) == []
    race, replay = found()
    assert race.startswith("LOOM-S201 copy reads byte 64 of SRAM")
    assert replay == (
        "LOOM-S206 b1[0] depends on engine speeds: it changes if copy runs before copy, which was issued first"
        " | at word 12, on queue DMA3 | the other is at word 0, on queue DMA0 | found with seed 0"
    )


def test_launches_are_replayed() -> None:
    plain, checked = np.arange(64, dtype=np.int32), np.arange(64, dtype=np.int32)
    own_blocks[(4,)](plain, BLOCK=8)
    with loom.check(replay=3):
        own_blocks[(4,)](checked, BLOCK=8)
    assert (plain == checked).all() and plain.any()
