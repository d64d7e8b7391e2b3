"""Copies that runs elide: every byte and every fault as if each copy had taken place."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest

import loom_sim
from loom_core.isa.encoding import Command, Label, Operand, Reg, command
from loom_core.isa.machine import L1_MINI
from loom_core.isa.program import R, S, SceInstr, SceProgram, StreamSpec
from loom_sim import program
from loom_sim import state as words
from loom_sim.errors import SimulatorError
from loom_sim.program import Arena
from tests.sim.harness import build, chain, copy, program_offsets, sce, whole

SLOT = 256  # bytes
SLOTS = 8
F32 = 4
SEEDS = 200
SRAM = 2 * SLOT * SLOTS  # bytes that commands touch

ADD = chain("add.f32", ["f32", "f32"], "f32")
NEGATE = chain("neg.f32", ["f32"], "f32")
FOLD = SceProgram(
    (StreamSpec("load", "f32"), StreamSpec("store", "f32"), StreamSpec("store", "f32")),
    (SceInstr("mul.f32", S(1), S(0), S(0)), SceInstr("reduce_sum.f32", S(2), S(1))),
    0,
)
# The load is read again after the store, which matters where the two are one tile.
TWICE = SceProgram(
    (StreamSpec("load", "f32"), StreamSpec("store", "f32")),
    (SceInstr("neg.f32", R(0), S(0)), SceInstr("add.f32", S(1), R(0), S(0))),
    1,
)
PROGRAMS = (ADD, NEGATE, FOLD, TWICE)
OFFSETS = program_offsets(PROGRAMS)


class Maker:
    """Random commands over few tiles, so that they meet: copies in and out, programs with and without a copy after."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.commands: list[Command | Label] = []
        self._tile, self._memory = 0, (1, cast(Operand, 0))

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def tile(self) -> int:
        """Mostly the start of a slot, at times a place in one or near the last one."""
        if self.chance(0.4):
            return self._tile + self.pick((0, 0, 4, 16))
        self._tile = SLOT * int(self.rng.integers(SLOTS)) + (4 * int(self.rng.integers(16)) if self.chance(0.2) else 0)
        return self._tile

    def memory(self) -> tuple[int, Operand]:
        """A buffer and a place in it that may depend on the loop; the three lie in one memory."""
        if self.chance(0.6):
            place = 64 * int(self.rng.integers(16))
            self._memory = int(self.rng.integers(1, 4)), Reg(40 + place // 64) if self.chance(0.5) else place
        return self._memory

    def count(self) -> int:
        return self.pick((16, 32, 64, 64, 64, int(self.rng.integers(1, 80))))

    def move(self, source: tuple[Any, Any], target: tuple[Any, Any]) -> None:
        count, kind = self.count(), self.rng.random()
        if kind < 0.7:
            self.commands.append(copy(source, target, [(count, F32, F32)]))
        elif kind < 0.8:
            self.commands.append(copy(source, target, [(2, 8 * F32, 8 * F32), (8, F32, F32)]))
        elif kind < 0.9:
            self.commands.append(copy(source, target, [(4, 16 * F32, 8 * F32), (8, F32, F32)]))
        else:
            self.commands.append(copy(source, target, [(count, F32, F32, 3, 40)], skip=self.chance(0.5)))

    def computation(self) -> None:
        number, count, target = int(self.rng.integers(len(PROGRAMS))), self.count(), self.tile()
        streams = [(self.tile(), F32) for _ in range(2 if number == 0 else 1)]
        if self.chance(0.2):
            target = streams[0][0]  # in place
        if self.chance(0.2):
            streams[0] = streams[0][0], 0
        sizes = (count,)
        given: list[tuple[int, ...]] = [*streams, (target, F32 if self.chance(0.9) else 2 * F32)]
        if number == 2:
            sizes, given = (4, count), [(base, count * F32, step) for base, step in given]
            given.append((self.tile(), F32, 0))
        self.commands.append(sce(OFFSETS[number], sizes, given, fold=int(number == 2)))
        if self.chance(0.6):
            stored = count * (4 if number == 2 else 1)
            self.commands.append(whole((0, target), self.memory(), stored * F32))

    def update(self) -> None:
        """A program between memory and memory a little further on."""
        place, shift, number = 64 * int(self.rng.integers(8)), self.pick((-256, -4, 0, 4, 64, 256)), self.pick((1, 3))
        source, target = SLOT * int(self.rng.integers(4)), SLOT * int(self.rng.integers(4, SLOTS))
        count = self.pick((40, 100))
        self.commands += [
            whole((1, place + 256), (0, source), count * F32),
            sce(OFFSETS[number], (count,), [(source, F32), (target, F32)]),
            whole((0, target), (1, place + 256 + shift), count * F32),
        ]

    def statement(self) -> None:
        kind = self.rng.random()
        if kind < 0.35:
            self.move(self.memory(), (0, self.tile()))
        elif kind < 0.45:
            self.move((0, self.tile()), self.memory())
        elif kind < 0.5:
            self.move((0, self.tile()), (0, self.tile()))
        elif kind < 0.55:
            self.move(self.memory(), self.memory())
        elif kind < 0.6:
            self.update()
        elif kind < 0.9:
            self.computation()
        elif kind < 0.94:
            space, at = self.pick(((0, self.tile()), self.memory()))
            self.commands.append(command("sts", space, at, int(self.rng.integers(1 << 30)), flags={"log2_bytes": 2}))
        elif kind < 0.98:
            space, at = self.pick(((0, self.tile()), self.memory()))
            self.commands.append(command("lds", 40 + int(self.rng.integers(4)), space, at, flags={"log2_bytes": 0}))
        else:
            self.commands.append(command("accfill", self.tile(), 1, 1, 7))

    def run(self) -> list[Command | Label]:
        """Two loops over a body of statements; places move by 64 bytes with the counter, then all of SRAM is shown."""
        end = Label("end")
        self.commands.append(copy((0, 0), (0, 0), [(SRAM // F32, F32, F32, 0, 0)], fill=0x3FC00000))
        self.commands.append(command("loop", 8, 0, 3, 1, end))
        for place in range(16):
            self.commands.append(command("mul", 40 + place, Reg(8), 64))
            self.commands.append(command("add", 40 + place, Reg(40 + place), 64 * place))
        for _ in range(int(self.rng.integers(4, 24))):
            self.statement()
        self.commands += [command("endloop"), end, whole((0, 0), (4, 0), SRAM)]
        return self.commands


@dataclass(frozen=True)
class Outcome:
    """What is left of a run: its fault, the memory in which the first three buffers lie, SRAM as the end copies it."""

    fault: str
    memory: bytes
    sram: bytes


def run_object(commands: Sequence[Command | Label], seed: int, elided_from: int, slice_: int = 1 << 20) -> Outcome:
    """Run with copies of so many bytes and more elided, none for 0; `slice_`: see `state.SLICE`."""
    memory = np.random.default_rng(seed).standard_normal(512, np.float32).view(np.uint8)
    shown = np.zeros(SRAM, np.uint8)
    base = memory.ctypes.data
    launch = loom_sim.load(build(commands, PROGRAMS, 4)).prepare()
    # Three buffers over one memory: at its start, in its middle, and a short one.
    ranges = [(base, 0, 2048), (base + 512, -512, 1536), (base + 256, 0, 1700)]
    launch.fill([*ranges, (shown.ctypes.data, 0, shown.nbytes)], {})
    launch.state[words.ELIDED_FROM] = elided_from
    launch.state[words.SLICE] = slice_
    try:
        launch.go()
    except SimulatorError as error:
        return Outcome(str(error), memory.tobytes(), b"")
    return Outcome("", memory.tobytes(), shown.tobytes())


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_nothing_differs(first: int) -> None:
    faults = 0
    for seed in range(first, first + 50):
        commands = Maker(seed).run()
        plain, elided = run_object(commands, seed, 0), run_object(commands, seed, F32, 1 + seed % 700)
        assert elided == plain, f"seed {seed}"
        faults += plain.fault != ""
    assert 0 < faults < 40


@pytest.mark.parametrize("count", [words.ELIDED_BYTES, words.ELIDED_BYTES - 4])
def test_long_copies_are_elided(count: int) -> None:
    streams = [(0, F32), (4 * SLOT, F32)]
    commands = [whole((1, 0), (0, 0), count), sce(OFFSETS[1], (count // F32,), streams)]
    commands.append(whole((0, 4 * SLOT), (2, 0), count))
    launch = loom_sim.load(build(commands, PROGRAMS, 2)).prepare()
    arena = Arena(L1_MINI)
    sram = np.ctypeslib.as_array((ctypes.c_float * (2 * SLOT)).from_address(arena.sram))
    sram[...] = 5
    source, target = np.arange(count // F32, dtype=np.float32), np.zeros(count // F32, np.float32)
    launch.fill([(array.ctypes.data, 0, count) for array in (source, target)], {})
    free = program._thread_arenas.free
    kept, free[L1_MINI.digest()] = free.get(L1_MINI.digest()), [arena]
    try:
        launch.go()
    finally:
        free[L1_MINI.digest()] = kept or []
    assert (target == -source).all()
    assert (sram == 5).all() == (count >= words.ELIDED_BYTES)
