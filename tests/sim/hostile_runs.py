"""A process that runs random, hostile but well-formed objects on memory between inaccessible pages.

Started by test_hostile.py as `python -m tests.sim.hostile_runs SEED COUNT`: an access outside what is declared kills
it. Prints how the runs ended. Every command is legal by the table; operands are drawn to be nearly right, just past an
edge, or absurd.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections import Counter
from typing import Any

import numpy as np

import loom_sim
from loom_core.isa.commands import COMMANDS
from loom_core.isa.encoding import Command, Label, Operand, Reg, command
from loom_core.isa.errors import InvalidCommand, InvalidProgram
from loom_core.isa.machine import L1_MINI, MachineConfig
from loom_core.isa.program import R, S, SceInstr, SceOperand, SceProgram, StreamSpec
from loom_core.isa.sce import ALL_SCE_OPS, SceOp
from loom_sim import program as loading
from loom_sim.errors import SimulatorError
from tests.sim.harness import build

_PAGE = mmap.PAGESIZE
_SRAM = 16 * _PAGE
MACHINE = MachineConfig.from_dict({**L1_MINI.as_dict(), "name": "hostile", "sram_bytes": _SRAM})
_BUFFERS = (3 * 1024, _PAGE, 100)  # bytes
_libc = ctypes.CDLL(None, use_errno=True)


class Fenced:
    """`size` bytes with an inaccessible page right after them (or right before, with `at_start`)."""

    def __init__(self, size: int, at_start: bool = False) -> None:
        inside = -(-size // _PAGE) * _PAGE
        self._map = mmap.mmap(-1, inside + 2 * _PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for page in (start, start + _PAGE + inside):
            if _libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")
        self.address = start + _PAGE + (0 if at_start else inside - size)
        self.bytes = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(self.address))


class FencedArena(loading.Arena):
    """A core's memory between inaccessible pages."""

    def __init__(self) -> None:
        slots = MACHINE.sce_registers + MACHINE.sce_streams
        self._fences = Fenced(_SRAM), Fenced(slots * loading.words.SLOT_BYTES)
        self.sram, self.scratch = (fence.address for fence in self._fences)


class Draw:
    """Random operands with a taste for edges."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def number(self) -> int:
        """Mostly small; sometimes at an edge of a memory, a power of two, or of int64."""
        kind = self.rng.random()
        if kind < 0.6:
            return int(self.rng.integers(-3, 40))
        if kind < 0.8:
            return self.pick((*_BUFFERS, _SRAM, 0)) - int(self.rng.integers(-8, 70))
        if kind < 0.9:
            return int(self.rng.integers(-2000, _SRAM))
        power = 1 << int(self.rng.integers(20, 64))
        return max(min(self.pick((1, -1)) * (power - int(self.rng.integers(0, 3))), (1 << 63) - 1), -(1 << 63))

    def size(self) -> int:
        return int(self.rng.integers(1, 40)) if self.chance(0.93) else self.number()

    def operand(self, value: int) -> Operand:
        """The number itself, or a register that was set to one like it."""
        return Reg(int(self.rng.integers(8, 32))) if self.chance(0.15) else value


def copy_operands(draw: Draw, rank: int, itemsize: int) -> list[Operand]:
    operands: list[Operand] = []
    for _ in range(2):
        operands += [draw.operand(draw.pick((0, 0, 1, 2, 3))), draw.operand(draw.pick((0, 0, 8, draw.number())))]
    operands.append(draw.number())
    step = itemsize
    for _ in range(rank):
        size = draw.size()
        strides = [step if draw.chance(0.8) else draw.number() for _ in range(2)]
        lo, hi = (0, size) if draw.chance(0.7) else (draw.number(), draw.number())
        operands += [draw.operand(size), *map(draw.operand, strides), draw.operand(lo), draw.operand(hi)]
        step *= max(size, 1) if size < 1000 else 1
    return operands


def random_program(draw: Draw) -> SceProgram:
    """A well-formed program of a few instructions, with or without a reduction and a tail."""
    streams: list[StreamSpec] = []
    registers: list[str] = []

    def source(wanted: str) -> SceOperand:
        known = [number for number, dtype in enumerate(registers) if dtype == wanted]
        if known and draw.chance(0.6):
            return R(draw.pick(known))
        dtype = {"8": "i8", "16": "i16", "32": "i32", "64": "i64"}.get(wanted, wanted)
        kind = draw.pick(("load", "load", "scalar", "iota" if dtype in ("i32", "i64") else "load"))
        streams.append(StreamSpec(kind, dtype))
        return S(len(streams) - 1)

    def target(op: SceOp) -> SceOperand:
        dtype = {"8": "i8", "16": "i16", "32": "i32", "64": "i64"}.get(op.result, op.result)
        if draw.chance(0.4):
            streams.append(StreamSpec("store", dtype))
            return S(len(streams) - 1)
        registers.append(op.result)
        return R(len(registers) - 1)

    chosen = [op for op in ALL_SCE_OPS if op.mnemonic in _PROGRAM_OPS]
    instructions: list[SceInstr] = []
    for _ in range(int(draw.rng.integers(1, 4))):
        op = draw.pick(chosen)
        sources = [source(wanted) for wanted in op.operands]
        instructions.append(SceInstr(op.mnemonic, target(op), *sources))
    if draw.chance(0.5):
        op = draw.pick(
            [op for op in ALL_SCE_OPS if op.mnemonic in ("reduce_sum.f32", "reduce_max.i32", "reduce_sum.i64")]
        )
        operand = source(op.operands[0])
        registers.append(op.result)
        result = R(len(registers) - 1)
        instructions.append(SceInstr(op.mnemonic, result, operand))
        streams.append(StreamSpec("store", op.result))
        instructions.append(SceInstr(f"mov.{op.result}", S(len(streams) - 1), result))
    return SceProgram(tuple(streams), tuple(instructions), len(registers))


_PROGRAM_OPS = frozenset(
    [
        "add.f32",
        "exp.f32",
        "select.f32",
        "lt.f32",
        "cast.f32.i64",
        "cast.bool.i32",
        "add.i32",
        "mul.i64",
        "div.i32",
        "mov.8",
        "mov.64",
        "not.bool",
        "cast.i32.f32",
    ]
)


def program_operands(draw: Draw, program: SceProgram, rank: int) -> list[Operand]:
    sizes = [draw.size() for _ in range(rank)]
    operands: list[Operand] = [draw.operand(size) for size in sizes]
    for stream in program.streams:
        width = {"f32": 4, "i32": 4, "i64": 8, "i16": 2}.get(stream.dtype, 1)
        operands.append(draw.operand(draw.pick((0, 64, int(draw.rng.integers(0, _SRAM)), draw.number()))))
        steps: list[int] = []
        step = width
        for size in reversed(sizes):
            steps.append(step if draw.chance(0.8) else draw.pick((0, draw.number())))
            step *= max(1, min(size, 1000))
        operands += [draw.operand(step) for step in reversed(steps)]
    return operands


def random_command(draw: Draw, programs: list[SceProgram]) -> Command:
    mnemonic = draw.pick(
        ("copy", "copy", "program", "program", "program", "pack", "matmul", "accfill", "accload", "lds", "sts", "mul")
    )
    if mnemonic == "copy":
        rank, log2 = int(draw.rng.integers(1, 6)), int(draw.rng.integers(0, 4))
        flags = {"ndim": rank, "log2_bytes": log2, "skip": int(draw.chance(0.3))}
        return command("copy", *copy_operands(draw, rank, 1 << log2), flags=flags)
    if mnemonic == "program":
        program, rank = random_program(draw), int(draw.rng.integers(1, 5))
        offset = sum(1 + len(p.streams) + len(p.instructions) for p in programs)
        programs.append(program)
        fold = int(draw.rng.integers(1, rank + 1)) if any("reduce" in i.mnemonic for i in program.instructions) else 0
        return command("program", offset, *program_operands(draw, program, rank), flags={"ndim": rank, "fold": fold})
    spec = COMMANDS[mnemonic]
    operands: list[Operand] = []
    for slot in spec.operands:
        if slot.role == "register":
            operands.append(int(draw.rng.integers(8, 32)))
        elif slot.role == "space":
            operands.append(draw.operand(int(draw.rng.integers(0, 4))))
        elif slot.role == "offset":
            operands.append(draw.operand(draw.pick((0, 256, draw.number()))))
        else:
            operands.append(
                draw.operand(draw.size() if slot.name in ("m", "n", "k", "extent", "depth") else draw.number())
            )
    more = {
        "pack": {"side": int(draw.chance(0.5)), "log2_bytes": 2},
        "lds": {"log2_bytes": int(draw.rng.integers(0, 4))},
    }
    return command(mnemonic, *operands, flags=more.get(mnemonic, 0))


def run_one(seed: int, arena: FencedArena, buffers: list[Fenced]) -> str:
    """How a random object ends: "done", "refused" by the loader, or the code of its fault."""
    draw, programs = Draw(seed), list[SceProgram]()
    commands: list[Command | Label] = [command("mov", 8 + i, draw.number()) for i in range(24)]
    commands += [random_command(draw, programs) for _ in range(int(draw.rng.integers(1, 4)))]
    loading._thread_arenas.free[MACHINE.digest()] = [arena]
    for buffer in buffers:
        buffer.bytes[...] = draw.rng.integers(0, 256, buffer.bytes.size)
    kept = buffers[2].bytes.copy()
    try:
        obj = build(commands, programs, len(buffers), read_only=[2], machine=MACHINE)
        program = loom_sim.load(obj)
    except (InvalidCommand, InvalidProgram):
        return "refused"
    words = obj.commands.tobytes()
    try:
        program.run([(buffer.address, 0, buffer.bytes.size) for buffer in buffers])
        ending = "done"
    except SimulatorError as error:
        ending = error.code
    if not (buffers[2].bytes == kept).all() or obj.commands.tobytes() != words:
        raise AssertionError(f"seed {seed}: read-only memory was written")
    return ending


def main(first: int, count: int) -> None:
    arena = FencedArena()
    buffers = [Fenced(size, at_start=number == 0) for number, size in enumerate(_BUFFERS)]
    endings = Counter(run_one(seed, arena, buffers) for seed in range(first, first + count))
    print(" ".join(f"{ending}:{number}" for ending, number in sorted(endings.items())))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
