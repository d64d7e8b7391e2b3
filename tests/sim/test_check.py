"""The checking interpreter against a model of order written for itself (tests/codegen/ordering.py), on objects that
lost waits; and hand-written objects that read what they must not.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import loom_sim
from loom_core.base.diagnostics import Diagnostic
from loom_core.isa.commands import ALL_COMMANDS
from loom_core.isa.encoding import Command, Wait, command
from loom_core.isa.machine import L1
from loom_core.isa.program import S, SceInstr, SceProgram, StreamSpec
from loom_core.objfile import LoomObject
from loom_sim import footprint
from tests.codegen.example_launches import EXAMPLES
from tests.codegen.execution import Launch, bindings_of, compiled, registers_of
from tests.codegen.ordering import expand, races, waits_of, without_wait
from tests.codegen.random_kernels import KernelMaker, random_launch
from tests.sim.harness import Buffer, build, copy, sce

RANDOM = range(3000, 3006)
Pairs = set[tuple[int, int]]


def found_pairs(obj: LoomObject, launch: Launch) -> tuple[Pairs, list[Diagnostic]]:
    """(earlier word, later word) of what misses a wait, and all other findings but those about programs of the grid."""
    memories = launch.fresh()
    findings = loom_sim.load(obj).check(bindings_of(launch, memories), registers_of(obj, launch))
    pairs = {(_word(d.notes[1]), _word(d.notes[0])) for d in findings if d.code == "LOOM-S201"}
    return pairs, [d for d in findings if d.code in ("LOOM-S202", "LOOM-S203")]


def _word(note: str) -> int:
    return int(note.partition(" word ")[2].partition(",")[0])


def model_pairs(obj: LoomObject, launch: Launch) -> Pairs:
    """The same by the model, which takes the span of an access for all of it."""
    memories = launch.fresh()
    issued = expand(obj, bindings_of(launch, memories), registers_of(obj, launch))
    return {(earlier.word, later.word) for earlier, later in races(issued)}


def mutants(obj: LoomObject) -> Iterator[LoomObject]:
    yield obj
    for wait in waits_of(obj):
        yield without_wait(obj, *wait)


@pytest.mark.parametrize("name", ["softmax", "linear_gelu", "pool"])
def test_missing_waits_of_examples(name: str) -> None:
    example = EXAMPLES[name]()
    obj = compiled(example.function(), L1, slots=2)  # so that short runs come to use every slot
    seen = 0
    for mutant in mutants(obj):
        pairs, others = found_pairs(mutant, example.launch())
        expected = model_pairs(mutant, example.launch())
        assert bool(pairs) == bool(expected) and pairs <= expected and not others
        seen += bool(pairs)
    assert seen >= len(waits_of(obj)) / 2


@pytest.mark.parametrize("seed", RANDOM)
def test_missing_waits_of_random_kernels(seed: int) -> None:
    launch, obj = random_launch(seed), compiled(KernelMaker(seed, statements=6, depth=1).run())
    clean, others = found_pairs(obj, launch)
    assert not clean and not others
    for mutant in mutants(obj):
        assert found_pairs(mutant, launch)[0] <= model_pairs(mutant, launch)


# ---- hand-written objects ----


def check(commands: list[Command], *arrays: np.ndarray, programs: list[SceProgram] | None = None,
          fresh: tuple[int, ...] = ()) -> list[Diagnostic]:  # fmt: skip
    obj, buffers = build(commands, programs or [], len(arrays)), [Buffer(array) for array in arrays]
    return loom_sim.load(obj).check([buffer.binding for buffer in buffers], {}, fresh)


def after(item: Command) -> Command:
    """The command, waiting for token 1."""
    return dataclasses.replace(item, waits=(Wait(1),))


NEGATE = SceProgram((StreamSpec("load", "f32"), StreamSpec("store", "f32")), (SceInstr("neg.f32", S(1), S(0)),), 0)
X = np.ones(16, np.float32)


def test_sram_that_nothing_wrote() -> None:
    (found,) = check([sce(0, (8,), [(64, 4), (0, 4)])], programs=[NEGATE])
    assert (found.code, found.message) == (
        "LOOM-S202",
        "program reads byte 64 of SRAM, which nothing has written",
    )


def test_a_part_that_nothing_wrote() -> None:
    load = copy((1, 0), (0, 0), [(8, 4, 4)], signal=1)
    (found,) = check([load, after(sce(0, (9,), [(0, 4), (64, 4)]))], X, programs=[NEGATE])
    assert found.code == "LOOM-S202" and "byte 32 of SRAM" in found.message


def test_a_fresh_buffer() -> None:
    load = copy((1, 0), (0, 0), [(8, 4, 4)])
    assert check([load], X) == []
    (found,) = check([load], X, fresh=(1,))
    assert (found.code, found.message) == ("LOOM-S202", "copy reads b0[0], which nothing has written")


def test_a_panel_read_as_a_tile() -> None:
    pack = command("pack", 1, 0, 0, 4, 4, 16, 4, 0, 4, 0, 4, 0, flags={"side": 0, "log2_bytes": 2}, signal=1)
    (found,) = check([pack, after(sce(0, (4,), [(0, 4), (4096, 4)]))], X, programs=[NEGATE])
    assert (found.code, found.message) == (
        "LOOM-S203",
        "program reads byte 0 of SRAM as a plain tile; it was written as a panel",
    )


def test_neighbouring_bytes_are_no_race() -> None:
    """Two queues write the even and the odd elements."""
    even = copy((1, 0), (0, 0), [(4, 4, 8)], queue=1)
    odd = copy((1, 0), (0, 4), [(4, 4, 8)], queue=2)
    same = copy((1, 0), (0, 8), [(1, 4, 8)], queue=2)
    assert check([even, odd], X) == []
    (found,) = check([even, odd, same], X)
    assert found.code == "LOOM-S201"
    assert found.message == "copy writes byte 8 of SRAM while copy may still be writing it"


def test_a_scalar_load_before_its_data_has_come() -> None:
    load = copy((1, 0), (0, 0), [(4, 4, 4)], signal=1)
    lds = command("lds", 9, 0, 4, flags={"log2_bytes": 2, "signed": 1})
    waiting = command("lds", 9, 0, 4, flags={"log2_bytes": 2, "signed": 1}, waits=(Wait(1),))
    assert check([load, waiting], X) == []
    (found,) = check([load, lds], X)
    assert found.message == "lds reads byte 4 of SRAM while copy may still be writing it"


def test_what_an_index_says() -> None:
    """Scatters to separate elements of a buffer are no race; to one element they are."""
    index = np.array([0, 2, 4, 6, 1, 3, 5, 6], np.int32)
    load = copy((2, 0), (0, 0), [(8, 4, 4)], signal=1)
    zeros = copy((2, 0), (0, 64), [(8, 4, 4)], signal=1)

    def scatter(first: int, queue: int) -> Command:
        tile, places = 64 + 4 * first, 4 * first
        flags = {"ndim": 1, "log2_bytes": 2, "index": 0, "masked": 0}
        return command("scatter", tile, 1, 0, places, 0, 4, 3, 0, 4, 4, 0, flags=flags, queue=queue, waits=(Wait(1),))

    assert check([load, zeros, scatter(0, 2), scatter(4, 3)], X, index) == []
    index[5] = 2
    (found,) = check([load, zeros, scatter(0, 2), scatter(4, 3)], X, index)
    assert found.message == "scatter writes b0[2] while scatter may still be writing it"


# The host reads the tile of a report, whose size stands in the manifest.
NO_FOOTPRINT = {"report"}


def test_every_command_that_names_memory_has_a_footprint() -> None:
    """Found by what the compiled function compares opcodes with."""
    text = inspect.getsource(footprint)
    dispatched = {name for name in vars(footprint) if name.startswith("OP_")}
    assert all(text.count(name) >= 2 for name in dispatched), "imported, and looked at"
    known = {getattr(footprint, name) for name in dispatched}
    named = {spec for spec in ALL_COMMANDS if any(slot.role in ("offset", "program") for slot in spec.operands)}
    assert {spec.mnemonic for spec in named if spec.opcode not in known} == NO_FOOTPRINT
