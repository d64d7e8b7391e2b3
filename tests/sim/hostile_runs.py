"""A process that runs random, hostile but well-formed commands on memory between inaccessible pages.

Started by test_hostile.py as `python -m tests.sim.hostile_runs SEED COMMANDS`: an access outside what is declared kills
it. Prints how the commands ended. Every command is legal by the table; operands are drawn to be nearly right, just past
an edge, or absurd. After a fault the run goes on with the next command, which no program can do: so one object tries
many.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections import Counter
from typing import Any

import numpy as np

import loom_sim
from loom_core.isa.commands import COMMANDS, CommandSpec, OperandSpec
from loom_core.isa.encoding import Command, Label, Operand, Reg, command
from loom_core.isa.errors import InvalidCommand, InvalidProgram
from loom_core.isa.machine import L1_MINI, MachineConfig
from loom_core.isa.program import R, S, SceInstr, SceOperand, SceProgram, StreamSpec
from loom_core.isa.sce import ALL_SCE_OPS, DTYPE_LOG2_BYTES, DTYPE_NAMES, SCE_OPS, SceOp
from loom_sim import program as loading
from loom_sim.errors import SimulatorError
from tests.sim.harness import build

_PAGE = mmap.PAGESIZE
_SRAM = 16 * _PAGE
MACHINE = MachineConfig.from_dict({**L1_MINI.as_dict(), "name": "hostile", "sram_bytes": _SRAM})
_BUFFERS = (3 * 1024, _PAGE, 100)  # bytes
_READ_ONLY = 32  # the register that holds the number of a buffer that is not for writing
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
        self._fences = Fenced(_SRAM), Fenced(loading.scratch_bytes(MACHINE))
        self.sram, self.scratch = (fence.address for fence in self._fences)
        self.bytes = self._fences[0].bytes


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

    def space(self, written: bool = False) -> Operand:
        """Mostly SRAM and the buffers. The loader refuses commands that say that they write to buffer 3: those ask a
        register.
        """
        space = self.pick((0, 0, 1, 1, 2, 3))
        return Reg(_READ_ONLY) if written and space == 3 else self.operand(space)

    def operand(self, value: int) -> Operand:
        """The number itself, or a register that was set to one like it."""
        return Reg(int(self.rng.integers(8, 32))) if self.chance(0.15) else value


def copy_operands(draw: Draw, rank: int, itemsize: int) -> list[Operand]:
    operands: list[Operand] = []
    for written in (False, True):
        operands += [draw.space(written), draw.operand(draw.pick((0, 0, 8, draw.number())))]
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
    stored: list[int] = []

    def source(wanted: str) -> SceOperand:
        known: list[SceOperand] = [R(number) for number, dtype in enumerate(registers) if dtype == wanted]
        known += [S(number) for number in stored if streams[number].dtype == wanted]
        if known and draw.chance(0.6):
            return draw.pick(known)
        dtype = {"8": "i8", "16": "i16", "32": "i32", "64": "i64"}.get(wanted, wanted)
        kind = draw.pick(("load", "load", "scalar", "iota" if dtype in ("i32", "i64") else "load"))
        streams.append(StreamSpec(kind, dtype))
        return S(len(streams) - 1)

    def target(op: SceOp) -> SceOperand:
        dtype = {"8": "i8", "16": "i16", "32": "i32", "64": "i64"}.get(op.result, op.result)
        if draw.chance(0.4):
            streams.append(StreamSpec("store", dtype))
            stored.append(len(streams) - 1)
            return S(len(streams) - 1)
        registers.append(op.result)
        return R(len(registers) - 1)

    chosen = [op for op in ALL_SCE_OPS if op.mnemonic in _PROGRAM_OPS]
    instructions: list[SceInstr] = []
    for _ in range(int(draw.rng.integers(1, 4))):
        op = draw.pick(chosen)
        sources = [source(wanted) for wanted in op.operands]
        instructions.append(SceInstr(op.mnemonic, target(op), *sources))
    if draw.chance(0.2):
        op = SCE_OPS[draw.pick(("scan_sum.f32", "scan_max.i32", "scan_sum.i64"))]
        operand = source(op.operands[0])
        instructions.append(SceInstr(op.mnemonic, target(op), operand))
    if draw.chance(0.5):
        op = SCE_OPS[draw.pick(("reduce_sum.f32", "reduce_max.i32", "reduce_sum.i64", "reduce_argmin.f32"))]
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


def random_combination(draw: Draw) -> SceProgram:
    """A program for `combine`: one to three values, each by an instruction of its own, perhaps with a scalar."""
    mnemonics = [draw.pick(("add.f32", "add.i32", "mul.i64", "min.u8")) for _ in range(int(draw.rng.integers(1, 4)))]
    dtypes, count = [name.split(".")[1] for name in mnemonics], len(mnemonics)
    streams = [StreamSpec(kind, dtype) for kind in ("load", "load", "store") for dtype in dtypes]
    instructions = [
        SceInstr(mnemonic, S(2 * count + value), S(value), S(count + value)) for value, mnemonic in enumerate(mnemonics)
    ]
    if draw.chance(0.3):
        streams.append(StreamSpec("scalar", dtypes[0]))
        instructions[0] = SceInstr(mnemonics[0], S(2 * count), S(3 * count), S(count))
    return SceProgram(tuple(streams), tuple(instructions), 0)


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


def tiled_operands(draw: Draw, spec: CommandSpec, flags: dict[str, int]) -> list[Operand]:
    """Operands of a command over a box of tiles, by their names."""
    rank, itemsize = flags["ndim"], 1 << flags["log2_bytes"]
    combines = [0, *(op.opcode for op in _COMBINES if DTYPE_LOG2_BYTES[op.result] == flags["log2_bytes"])]
    dtypes = [code for code, name in DTYPE_NAMES.items() if DTYPE_LOG2_BYTES[name] == flags["log2_bytes"]]
    operands: list[Operand] = []
    for slot in spec.operands:
        if slot.role == "instruction":
            operands.append(draw.pick(combines))
        elif slot.role == "dtype":
            operands.append(draw.pick(dtypes))
        elif slot.role == "space":
            operands.append(draw.space(slot.written))
        elif slot.role == "offset":
            near = draw.pick((0, 64, 4096, 8192, _SRAM - 512))
            operands.append(draw.operand(near if draw.chance(0.9) else draw.number()))
        elif slot.name == "scale":
            operands.append(draw.operand(draw.pick((itemsize, itemsize, 1, -4, draw.number()))))
        else:
            operands.append(draw.operand(draw.size() if draw.chance(0.9) else draw.number()))
    (group,) = spec.groups
    step = 1
    for _ in range(rank):
        size = draw.size()
        for member in group.members:
            assert isinstance(member, OperandSpec)
            width = {"index_stride": 4 << flags.get("index", 0), "mask_stride": 1, "order_stride": 4}
            stride = width.get(member.name, itemsize) * step if draw.chance(0.8) else draw.pick((0, draw.number()))
            if member.name == "stride" and draw.chance(0.8):
                stride = 0
            operands.append(draw.operand(size if member.name == "size" else stride))
        step *= max(size, 1) if size < 1000 else 1
    return operands


def plain_operands(draw: Draw, spec: CommandSpec) -> list[Operand]:
    """Operands of a command with a fixed number of them."""
    operands: list[Operand] = []
    for slot in spec.operands:
        if slot.role == "register":
            operands.append(int(draw.rng.integers(8, 32)))
        elif slot.role == "space":
            operands.append(draw.space(slot.written))
        elif slot.role == "offset":
            operands.append(draw.operand(draw.pick((0, 256, draw.number()))))
        else:
            is_size = slot.name in ("m", "n", "k", "extent", "depth")
            operands.append(draw.operand(draw.size() if is_size else draw.number()))
    return operands


def random_flags(draw: Draw, spec: CommandSpec) -> dict[str, int]:
    return {field.name: int(draw.rng.integers(field.minimum, field.limit + 1)) for field in spec.flags}


def random_command(draw: Draw, programs: list[SceProgram]) -> Command:
    spec = COMMANDS[draw.pick(DRAWN)]
    flags = random_flags(draw, spec)
    if spec.mnemonic == "copy":
        operands = copy_operands(draw, flags["ndim"], 1 << flags["log2_bytes"])
    elif spec.mnemonic in ("program", "combine"):
        program = random_program(draw) if spec.mnemonic == "program" else random_combination(draw)
        offset = sum(1 + len(p.streams) + len(p.instructions) for p in programs)
        programs.append(program)
        operands = [offset, *program_operands(draw, program, flags["ndim"])]
        if spec.mnemonic == "program":
            scans = any("scan" in instr.mnemonic for instr in program.instructions)
            folds = scans or any("reduce" in instr.mnemonic for instr in program.instructions)
            fold = int(draw.rng.integers(1, flags["ndim"] + 1)) if folds else 0
            flags.update(fold=fold, reverse=flags["reverse"] if scans else 0, drain=0)
    elif spec.groups:
        operands = tiled_operands(draw, spec, flags)
    else:
        operands = plain_operands(draw, spec)
    return command(spec.mnemonic, *operands, flags=flags)


_COMBINES = tuple(
    op for op in ALL_SCE_OPS if op.mnemonic in ("add.f32", "add.i32", "mul.i64", "min.u8", "max.f32", "xor.u16")
)
# Commands by how often they are drawn; `mul` changes the registers that the others read.
DRAWN = (
    *["copy"] * 4, *["program"] * 8, *["gather", "scatter", "scatter_reduce", "compare_swap"] * 3, *["combine"] * 4,
    *["sort"] * 3, *["histogram"] * 2, *["pack", "packf", "packi", "matmul", "matmulf", "matmuli"] * 1,
    *["accfill", "accload", "decodef", "decodei", "lds", "sts", "mul"] * 1,
)  # fmt: skip


class Endings(Counter[str]):
    """How commands ended: "done", "refused" by the loader with all of their object, or the code of their fault."""


def try_all(launch: Any, endings: Endings) -> None:
    """Run every command of a loaded object, whatever faults."""
    view, words = launch._view, launch.program.object.commands
    view[loading.words.RUNNING] = 0
    before = 0
    while True:
        status = launch._call(launch._address)
        if status == loading.words.PAUSED:
            continue
        endings["done"] += view[loading.words.EXECUTED] - before
        before = view[loading.words.EXECUTED]
        if status == loading.words.HALTED:
            return
        fault = launch.fault(status)
        if not isinstance(fault, SimulatorError):
            raise fault
        endings[fault.code] += 1
        view[loading.words.PC] += int(words[view[loading.words.PC]]) >> 8 & 0xFF


def run_object(seed: int, count: int, arena: FencedArena, buffers: list[Fenced], endings: Endings) -> None:
    """`count` random commands as one object."""
    draw, programs = Draw(seed), list[SceProgram]()
    commands: list[Command | Label] = [command("mov", 8 + i, draw.number()) for i in range(24)]
    commands.append(command("mov", _READ_ONLY, 3))
    commands += [random_command(draw, programs) for _ in range(count)]
    for buffer in buffers:
        buffer.bytes[...] = draw.rng.integers(0, 256, buffer.bytes.size)
    # Small integers, so that many of the indices that lie there are legal.
    arena.bytes.view(np.int64)[...] = draw.rng.integers(-1, 50, _SRAM // 8)
    kept = buffers[2].bytes.copy()
    try:
        obj = build(commands, programs, len(buffers), read_only=[2], machine=MACHINE)
        program = loom_sim.load(obj)
    except (InvalidCommand, InvalidProgram):
        endings["refused"] += count
        return
    words = obj.commands.tobytes()
    launch = program.prepare()
    launch.fill([(buffer.address, 0, buffer.bytes.size) for buffer in buffers], {})
    launch._use(arena)
    launch.state[loading.words.ELIDED_FROM] = 4 * (seed % 3)
    try_all(launch, endings)
    endings["done"] -= 25  # the moves
    if not (buffers[2].bytes == kept).all() or obj.commands.tobytes() != words:
        raise AssertionError(f"seed {seed}: read-only memory was written")


_COMMANDS_AN_OBJECT = 50


def main(seed: int, count: int) -> None:
    arena, endings = FencedArena(), Endings()
    buffers = [Fenced(size, at_start=number == 0) for number, size in enumerate(_BUFFERS)]
    for first in range(0, count, _COMMANDS_AN_OBJECT):
        run_object(seed + first, min(_COMMANDS_AN_OBJECT, count - first), arena, buffers, endings)
    print(" ".join(f"{ending}:{number}" for ending, number in sorted(endings.items())))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
