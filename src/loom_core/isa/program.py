"""SCE programs as values, their binary form, and the rules that make one well formed.

Word 0: streams | instructions << 16 | registers << 32. Then a word per stream: kind | log2 bytes << 8 | dtype code <<
16 | flags << 24. Then a word per instruction: opcode | dst << 16 | a << 24 | b << 32 | c << 40 | imm << 48. Operand
codes below 128 are registers, from 128 on streams; an operand that the opcode does not have is 0, and so is imm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from loom_core.base.location import UNKNOWN
from loom_core.isa.encoding import Words
from loom_core.isa.errors import InvalidProgram
from loom_core.isa.machine import MachineConfig
from loom_core.isa.sce import (
    DTYPE_CODES,
    DTYPE_LOG2_BYTES,
    DTYPE_NAMES,
    OPERAND_STREAM,
    SCE_BY_OPCODE,
    SCE_OPS,
    STREAM_FLAG_ACC,
    STREAM_KINDS,
    SceOp,
)

_MAX_STREAMS = 24  # what a command can give bases and strides for
_KIND_NAMES = {code: name for name, code in STREAM_KINDS.items()}


@dataclass(frozen=True, slots=True)
class R:
    """A register of an SCE program, as an instruction's operand."""

    number: int

    def __repr__(self) -> str:
        return f"r{self.number}"


@dataclass(frozen=True, slots=True)
class S:
    """A stream of an SCE program, as an instruction's operand."""

    number: int

    def __repr__(self) -> str:
        return f"s{self.number}"


SceOperand: TypeAlias = "R | S"


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One stream: kind "load", "store", "scalar" or "iota"; dtype name; `acc`: may touch accumulators (drain only)."""

    kind: str
    dtype: str
    acc: bool = False


@dataclass(frozen=True, slots=True)
class SceInstr:
    """One instruction: dst = mnemonic(a, b, c); operands that the mnemonic does not have are None."""

    mnemonic: str
    dst: SceOperand
    a: SceOperand | None = None
    b: SceOperand | None = None
    c: SceOperand | None = None
    imm: int = 0

    @property
    def operands(self) -> tuple[SceOperand, ...]:
        return tuple(operand for operand in (self.a, self.b, self.c) if operand is not None)


@dataclass(frozen=True, slots=True)
class SceProgram:
    """Streams, instructions, and the number of registers that they use."""

    streams: tuple[StreamSpec, ...]
    instructions: tuple[SceInstr, ...]
    registers: int


@dataclass(frozen=True, slots=True)
class ProgramInfo:
    """What the checks found out.

    `tail_start`: index of the first instruction that runs once per leading index (= number of instructions if none
    does). `reduced_stores`: per stream, whether it stores a value of the leading dimensions only. `folds`: any
    reduction or scan at all; `scans`: any scan.
    """

    tail_start: int
    reduced_stores: tuple[bool, ...]
    folds: bool
    scans: bool


# ---- encoding ----


def encode_program(program: SceProgram) -> Words:
    """Words of a program. Raises InvalidProgram for what `check_program` refuses or what does not fit the fields."""
    check_program(program)
    words = [len(program.streams) | len(program.instructions) << 16 | program.registers << 32]
    for stream in program.streams:
        words.append(
            STREAM_KINDS[stream.kind]
            | DTYPE_LOG2_BYTES[stream.dtype] << 8
            | DTYPE_CODES[stream.dtype] << 16
            | (STREAM_FLAG_ACC if stream.acc else 0) << 24
        )
    for instr in program.instructions:
        word = SCE_OPS[instr.mnemonic].opcode
        for i, operand in enumerate((instr.dst, instr.a, instr.b, instr.c)):
            word |= _operand_code(operand) << (16 + 8 * i)
        words.append(word)
    return np.array(words, dtype="<u8")


def _operand_code(operand: SceOperand | None) -> int:
    if operand is None:
        return 0
    return operand.number + OPERAND_STREAM if isinstance(operand, S) else operand.number


def _operand(code: int) -> SceOperand:
    return S(code - OPERAND_STREAM) if code >= OPERAND_STREAM else R(code)


# ---- decoding ----


def decode_program(words: Words, offset: int = 0) -> tuple[SceProgram, int]:
    """The program at word `offset` of a programs section, and the offset of the word after it.

    Strict: raises InvalidProgram for anything that `encode_program` would not write.
    """
    program, end = _parse(words, offset, 0xFFFF)
    check_program(program, word=offset)
    return program, end


def verified_program(words: Words, offset: int, machine: MachineConfig) -> tuple[SceProgram, ProgramInfo]:
    """The program at word `offset` and what `check_program` found, checked against a machine. Raises InvalidProgram."""
    program, _ = _parse(words, offset, machine.sce_instructions)
    return program, check_program(program, machine, word=offset)


def _parse(words: Words, offset: int, max_instructions: int) -> tuple[SceProgram, int]:
    if not 0 <= offset < len(words):
        raise _invalid(offset, f"the programs section has {len(words)} words")
    header = int(words[offset])
    n_streams, n_instructions, registers = header & 0xFFFF, header >> 16 & 0xFFFF, header >> 32
    end = offset + 1 + n_streams + n_instructions
    if n_streams > _MAX_STREAMS or n_instructions > max_instructions or end > len(words):
        raise _invalid(
            offset, f"{n_streams} streams and {n_instructions} instructions are too many, or run past the end"
        )
    body: list[int] = words[offset + 1 : end].tolist()
    streams = tuple(_decode_stream(offset + 1 + i, body[i]) for i in range(n_streams))
    instructions = tuple(_decode_instr(offset + 1 + i, body[i]) for i in range(n_streams, len(body)))
    return SceProgram(streams, instructions, registers), end


def _decode_stream(word: int, value: int) -> StreamSpec:
    kind, log2_bytes, code, flags = value & 0xFF, value >> 8 & 0xFF, value >> 16 & 0xFF, value >> 24
    if kind not in _KIND_NAMES:
        raise _invalid(word, f"stream kind {kind} does not exist")
    if code not in DTYPE_NAMES or DTYPE_LOG2_BYTES[DTYPE_NAMES[code]] != log2_bytes:
        raise _invalid(word, f"stream type {code} with log2 bytes {log2_bytes} does not exist")
    if flags & ~STREAM_FLAG_ACC:
        raise _invalid(word, f"stream flags {flags:#x} do not exist")
    return StreamSpec(_KIND_NAMES[kind], DTYPE_NAMES[code], bool(flags & STREAM_FLAG_ACC))


def _decode_instr(word: int, value: int) -> SceInstr:
    op = SCE_BY_OPCODE.get(value & 0xFFFF)
    if op is None:
        raise _invalid(word, f"opcode {value & 0xFFFF:#06x} does not exist")
    codes = [value >> shift & 0xFF for shift in (16, 24, 32, 40)]
    used = 1 + len(op.operands)
    if any(codes[used:]) or value >> 48 != 0:
        raise _invalid(word, f"{op.mnemonic} sets a field that it does not have")
    operands = [_operand(code) for code in codes[:used]]
    sources = [*operands[1:], None, None, None]
    return SceInstr(op.mnemonic, operands[0], sources[0], sources[1], sources[2])


# ---- well-formedness ----


def check_program(program: SceProgram, machine: MachineConfig | None = None, *, word: int = 0) -> ProgramInfo:
    """Check a program against the rules of `sce.py`, and against a machine's limits if one is given.

    Registers are written before they are read, and read as the type they were written with; load, scalar and iota
    streams are only read; each store stream is written exactly once, and may then be read by the body unless its value
    is a reduced one; the body comes before the tail. Raises InvalidProgram with `word`.
    """
    _check_sizes(program, machine, word)
    checker = _Checker(program, word)
    for index, instr in enumerate(program.instructions):
        checker.instruction(index, instr)
    for number, stream in enumerate(program.streams):
        if stream.kind == "store" and number not in checker.stored:
            raise _invalid(word, f"store stream s{number} is never written")
    tail = len(program.instructions) if checker.tail_start is None else checker.tail_start
    reduced = tuple(checker.stored.get(number, False) for number in range(len(program.streams)))
    return ProgramInfo(tail, reduced, checker.folds, checker.scans)


def combined_values(program: SceProgram) -> int | None:
    """How many values a program combines: n if its streams are n loads, n loads, n stores of the same types in order,
    then scalars, as the command `combine` needs it; None otherwise.
    """
    stores = [stream for stream in program.streams if stream.kind == "store"]
    n = len(stores)
    left, right, scalars = program.streams[:n], program.streams[n : 2 * n], program.streams[3 * n :]
    loads = tuple(StreamSpec("load", stream.dtype) for stream in stores)
    whole = loads == left == right and list(program.streams[2 * n : 3 * n]) == stores
    if not whole or any(stream.kind != "scalar" for stream in scalars) or any(stream.acc for stream in stores):
        return None
    return n


def _check_sizes(program: SceProgram, machine: MachineConfig | None, word: int) -> None:
    max_streams = machine.sce_streams if machine else _MAX_STREAMS
    max_registers = machine.sce_registers if machine else 64
    max_instructions = machine.sce_instructions if machine else 0xFFFF
    if not 1 <= len(program.streams) <= max_streams:
        raise _invalid(word, f"{len(program.streams)} streams, outside 1..{max_streams}")
    if not 0 <= program.registers <= max_registers:
        raise _invalid(word, f"{program.registers} registers, outside 0..{max_registers}")
    if not 1 <= len(program.instructions) <= max_instructions:
        raise _invalid(word, f"{len(program.instructions)} instructions, outside 1..{max_instructions}")
    for number, stream in enumerate(program.streams):
        if stream.kind not in STREAM_KINDS or stream.dtype not in DTYPE_CODES:
            raise _invalid(word, f"stream s{number} has unknown kind {stream.kind!r} or type {stream.dtype!r}")
        if stream.kind == "iota" and stream.dtype not in ("i32", "i64"):
            raise _invalid(word, f"iota stream s{number} is {stream.dtype}, not i32 or i64")
        if stream.acc and stream.kind not in ("load", "store"):
            raise _invalid(word, f"stream s{number} is a {stream.kind} and cannot be an accumulator")


class _Checker:
    """State of one walk over a program."""

    def __init__(self, program: SceProgram, word: int) -> None:
        self.program = program
        self.word = word
        self.types: dict[int, str] = {}  # register -> type of its last write
        self.reduced: set[int] = set()  # registers that hold a value of the leading dimensions
        self.stored: dict[int, bool] = {}  # store stream -> whether its value is reduced
        self.body_reads: set[int] = set()
        self.tail_reads: set[int] = set()
        self.tail_start: int | None = None
        self.folds = False
        self.scans = False

    def instruction(self, index: int, instr: SceInstr) -> None:
        op = SCE_OPS.get(instr.mnemonic)
        if op is None:
            raise self.fault(index, f"unknown mnemonic {instr.mnemonic!r}")
        given = (instr.a, instr.b, instr.c)
        count = len(op.operands)
        if any(operand is None for operand in given[:count]) or any(operand is not None for operand in given[count:]):
            raise self.fault(index, f"{op.mnemonic} takes {count} operands")
        if instr.imm:
            raise self.fault(index, f"{op.mnemonic} has no immediate")
        sources = instr.operands
        for operand, wanted in zip(sources, op.operands, strict=True):
            actual = self.read_type(index, operand)
            if not _matches(wanted, actual):
                raise self.fault(index, f"{op.mnemonic} reads {operand!r} as {wanted}, it is {actual}")
        in_tail = self.place(index, op, sources)
        self.write(index, op, instr.dst, reduced=in_tail or op.is_reduction)

    def place(self, index: int, op: SceOp, sources: Sequence[SceOperand]) -> bool:
        """Whether the instruction is in the tail; checks that body and tail keep apart."""
        reads_reduced = any(isinstance(operand, R) and operand.number in self.reduced for operand in sources)
        if reads_reduced and self.tail_start is None:
            self.tail_start = index
        in_tail = self.tail_start is not None
        if in_tail and not op.is_elementwise:
            raise self.fault(index, "a reduction or scan stands in the tail")
        for operand in sources:
            if isinstance(operand, R):
                if in_tail and operand.number not in self.reduced:
                    raise self.fault(index, f"the tail reads {operand!r}, a value of the body")
                continue
            kind = self.program.streams[operand.number].kind
            if kind == "iota" and in_tail:
                raise self.fault(index, f"the tail reads iota stream {operand!r}")
            if kind == "store" and (in_tail or self.stored[operand.number]):
                raise self.fault(index, f"only a value of the body can be read back, by the body: {operand!r}")
            if kind == "load":
                (self.tail_reads if in_tail else self.body_reads).add(operand.number)
                if operand.number in self.tail_reads and operand.number in self.body_reads:
                    raise self.fault(index, f"body and tail both read {operand!r}")
        self.folds |= not op.is_elementwise
        self.scans |= op.is_scan
        return in_tail

    def read_type(self, index: int, operand: SceOperand) -> str:
        if isinstance(operand, R):
            if operand.number not in self.types:
                raise self.fault(index, f"{operand!r} is read before it is written")
            return self.types[operand.number]
        if not 0 <= operand.number < len(self.program.streams):
            raise self.fault(index, f"stream {operand!r} does not exist")
        stream = self.program.streams[operand.number]
        if stream.kind == "store" and operand.number not in self.stored:
            raise self.fault(index, f"store stream {operand!r} is read before it is written")
        return stream.dtype

    def write(self, index: int, op: SceOp, dst: SceOperand, reduced: bool) -> None:
        if isinstance(dst, R):
            if not 0 <= dst.number < self.program.registers:
                raise self.fault(index, f"register {dst!r} is outside the program's {self.program.registers}")
            self.types[dst.number] = op.result
            self.reduced.discard(dst.number)
            if reduced:
                self.reduced.add(dst.number)
            return
        if not 0 <= dst.number < len(self.program.streams) or self.program.streams[dst.number].kind != "store":
            raise self.fault(index, f"{dst!r} is not a store stream")
        if dst.number in self.stored:
            raise self.fault(index, f"store stream {dst!r} is written twice")
        if not _matches(self.program.streams[dst.number].dtype, op.result):
            raise self.fault(
                index, f"{op.mnemonic} writes {op.result} to {self.program.streams[dst.number].dtype} {dst!r}"
            )
        self.stored[dst.number] = reduced

    def fault(self, index: int, reason: str) -> InvalidProgram:
        return _invalid(self.word, f"instruction {index}: {reason}")


def _matches(wanted: str, actual: str) -> bool:
    """Whether a value of type `actual` may be used as `wanted`; "8".."64": any type that wide, but not as bool."""
    if wanted == actual:
        return True
    if wanted == "bool" or not (wanted.isdigit() or actual.isdigit()):
        return False
    return _bits(wanted) == _bits(actual)


def _bits(name: str) -> int:
    return int(name) if name.isdigit() else 8 << DTYPE_LOG2_BYTES[name]


def _invalid(word: int, reason: str) -> InvalidProgram:
    return InvalidProgram(UNKNOWN, word=word, reason=reason)
