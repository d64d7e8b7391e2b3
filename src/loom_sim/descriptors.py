"""SCE programs as the stream engine reads them: one array of words a program, made when an object is loaded.

    0 ..   7     streams; registers; body instructions; tail instructions; log2 of the bytes of a slot's element;
                 address of the first instruction; how many values it combines, where a combine command names it; 1 if
                 it scans
    8 ..         STREAM_WORDS a stream: kind, log2 bytes, 1 if it belongs to the tail, set of stores (bits) whose values
                 it must not show, where a combine command names the program address of the engine that makes NaNs
                 canonical, 0 for types without, 1 if it lies in an accumulator, and 1 if all that read it can do with
                 one element where it repeats one
    then         INSTR_WORDS an instruction: engine address, operand codes dst a b c, what it does with rows, log2 bytes
                 of its result, number of its carry record

Module constants rather than an enum: compiled code freezes plain integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from loom_core.base.dtype import by_name
from loom_core.isa.program import ProgramInfo, R, S, SceInstr, SceProgram, combined_values
from loom_core.isa.sce import DTYPE_LOG2_BYTES, OPERAND_STREAM, SCE_OPS, STREAM_KINDS, SceOp

STREAM_COUNT: Final = 0
REGISTER_COUNT: Final = 1
BODY_COUNT: Final = 2
TAIL_COUNT: Final = 3
SLOT_LOG2: Final = 4
INSTRUCTIONS: Final = 5
COMBINED_VALUES: Final = 6
SCANS: Final = 7
FIRST_STREAM: Final = 8

STREAM_KIND: Final = 0
STREAM_LOG2: Final = 1
STREAM_TAIL: Final = 2
STREAM_KEEPS: Final = 3
STREAM_CANONICAL: Final = 4
STREAM_ACCUMULATOR: Final = 5
STREAM_REPEATS: Final = 6
STREAM_WORDS: Final = 7

INSTR_ENGINE: Final = 0
INSTR_DST: Final = 1
INSTR_A: Final = 2
INSTR_B: Final = 3
INSTR_C: Final = 4
INSTR_ROWS: Final = 5
INSTR_RESULT_LOG2: Final = 6
INSTR_CARRY: Final = 7
INSTR_WORDS: Final = 8

# Opcodes of two operands whose second one may be one element for all: the engine's argument c is then ONE, no address.
# It comes from the operand pointer that follows those of streams by as many as there can be streams.
REPEATING: Final = frozenset(f"{name}.{dtype}" for name in ("add", "sub", "mul", "div") for dtype in ("f32", "f64"))
COMMUTATIVE: Final = ("add", "mul")
ONE: Final = 1
OPERAND_ONE: Final = OPERAND_STREAM + 64

# INSTR_ROWS
ELEMENTWISE: Final = 0
FOLDS: Final = 1  # a row, or its blocks and then their results, to one value
CARRIES: Final = 2  # a state from block to block: scans and places of extremes


def element_log2(name: str) -> int:
    """log2 of the bytes of an operand type of `isa.sce`: a dtype's name, or its number of bits."""
    return {8: 0, 16: 1, 32: 2, 64: 3}[int(name)] if name.isdigit() else DTYPE_LOG2_BYTES[name]


def describe(
    program: SceProgram, info: ProgramInfo, engine: Callable[[SceOp], int], *, combines: bool = False
) -> npt.NDArray[np.int64]:
    """Descriptor of a verified program; `engine` gives the address of an opcode's engine. `combines`: it is one that a
    combine command names.

    The array holds its own address: it must stay where it is for as long as it is used.
    """
    streams, instructions = program.streams, program.instructions
    first_instruction = FIRST_STREAM + STREAM_WORDS * len(streams)
    words = np.zeros(first_instruction + INSTR_WORDS * len(instructions), np.int64)
    words[STREAM_COUNT] = len(streams)
    words[REGISTER_COUNT] = program.registers
    words[BODY_COUNT] = info.tail_start
    words[TAIL_COUNT] = len(instructions) - info.tail_start
    words[INSTRUCTIONS] = words.ctypes.data + 8 * first_instruction
    words[COMBINED_VALUES] = combined_values(program) or 0 if combines else 0
    words[SCANS] = info.scans
    tail_reads = _loads_of(instructions[info.tail_start :], program)
    keeps = _stores_before_reads(program)
    log2s = [DTYPE_LOG2_BYTES[stream.dtype] for stream in streams]
    for number, stream in enumerate(streams):
        at = FIRST_STREAM + STREAM_WORDS * number
        words[at + STREAM_KIND] = STREAM_KINDS[stream.kind]
        words[at + STREAM_LOG2] = DTYPE_LOG2_BYTES[stream.dtype]
        words[at + STREAM_TAIL] = number in tail_reads or info.reduced_stores[number]
        words[at + STREAM_KEEPS] = keeps.get(number, 0)
        words[at + STREAM_ACCUMULATOR] = stream.acc
        if combines and by_name(stream.dtype).is_float:
            words[at + STREAM_CANONICAL] = engine(SCE_OPS[f"mov.{stream.dtype}"])
    for index, instr in enumerate(instructions):
        op = SCE_OPS[instr.mnemonic]
        at = first_instruction + INSTR_WORDS * index
        words[at + INSTR_ENGINE] = engine(op)
        for field, operand in zip((INSTR_DST, INSTR_A, INSTR_B, INSTR_C), (instr.dst, *instr.operands), strict=False):
            words[at + field] = _code(operand)
        words[at + INSTR_ROWS] = _what_with_rows(op)
        words[at + INSTR_RESULT_LOG2] = element_log2(op.result)
        words[at + INSTR_CARRY] = index
        log2s.extend(element_log2(name) for name in (*op.operands, op.result))
    words[SLOT_LOG2] = max(log2s)
    if not combines:
        _let_repeat(words, program, info)
    return words


def _let_repeat(words: npt.NDArray[np.int64], program: SceProgram, info: ProgramInfo) -> None:
    """Mark the streams of which one element may stand for all, and let the instructions that read them know."""
    body = program.instructions[: info.tail_start]
    chosen = [_repeating_stream(instr, program) for instr in body]
    reads = [operand for instr in program.instructions for operand in instr.operands]
    first = FIRST_STREAM + STREAM_WORDS * len(program.streams)
    for index, (instr, stream) in enumerate(zip(body, chosen, strict=True)):
        if stream is None or chosen.count(stream) != reads.count(stream):
            continue
        words[FIRST_STREAM + STREAM_WORDS * stream.number + STREAM_REPEATS] = 1
        at = first + INSTR_WORDS * index
        if instr.b != stream:
            words[at + INSTR_A], words[at + INSTR_B] = words[at + INSTR_B], words[at + INSTR_A]
        words[at + INSTR_C] = OPERAND_ONE + stream.number


def _repeating_stream(instr: SceInstr, program: SceProgram) -> S | None:
    """The operand of which one element may do for an instruction. The sides of sums and products may change, since a
    NaN that they give is canonical.
    """
    if instr.mnemonic not in REPEATING:
        return None
    sides = (instr.b, instr.a) if instr.mnemonic.split(".")[0] in COMMUTATIVE else (instr.b,)
    for kind in ("scalar", "load"):
        for side in sides:
            if isinstance(side, S) and program.streams[side.number].kind == kind:
                return side
    return None


def _what_with_rows(op: SceOp) -> int:
    if op.is_scan or op.is_argument:
        return CARRIES
    return FOLDS if op.is_reduction else ELEMENTWISE


def _code(operand: R | S) -> int:
    return operand.number + OPERAND_STREAM if isinstance(operand, S) else operand.number


def _loads_of(instructions: tuple[SceInstr, ...], program: SceProgram) -> set[int]:
    numbers = {operand.number for instr in instructions for operand in instr.operands if isinstance(operand, S)}
    return {number for number in numbers if program.streams[number].kind == "load"}


def _stores_before_reads(program: SceProgram) -> dict[int, int]:
    """Load stream -> the store streams (bits) that are written before one of its reads.

    Where the two streams are one and the same, an update in place, every read is of the old values; a chunk of such a
    load is therefore copied before the instructions run.
    """
    found: dict[int, int] = {}
    stored = 0
    for instr in program.instructions:
        for number in _loads_of((instr,), program):
            found[number] = found.get(number, 0) | stored
        if isinstance(instr.dst, S):
            stored |= 1 << instr.dst.number
    return found
