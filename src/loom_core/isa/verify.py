"""Structural checks of a command stream: what a loader relies on before it runs one.

After `verify_stream` the stream decodes; every register, token, queue and program exists on the machine; loops nest
and know their ends; jumps stay in their loop body, and only `while` goes back; the stream ends in `halt`. Addresses
and sizes are run-time values, which engines check on every access.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from loom_core.base.location import UNKNOWN
from loom_core.isa.commands import LOOP_DEPTH, SPACE_SRAM, OperandSpec
from loom_core.isa.encoding import Command, Operand, Reg, Words, decode_at, operand_layout
from loom_core.isa.errors import InvalidCommand, InvalidStream
from loom_core.isa.machine import MachineConfig
from loom_core.isa.program import ProgramInfo, SceProgram, combined_values, verified_program
from loom_core.isa.sce import DTYPE_LOG2_BYTES, DTYPE_NAMES, SCE_BY_OPCODE

_NO_LOOP = -1


@dataclass(frozen=True, slots=True)
class VerifiedStream:
    """What was found: word index -> command, and program offset -> program with the result of its checks."""

    commands: Mapping[int, Command]
    programs: Mapping[int, tuple[SceProgram, ProgramInfo]]

    @property
    def uses_while(self) -> bool:
        """Whether a watchdog budget is needed."""
        return any(command.mnemonic == "while" for command in self.commands.values())


def verify_stream(
    words: Words,
    programs: Words,
    machine: MachineConfig,
    *,
    spaces: int | None = None,
    writable: Collection[int] | None = None,
) -> VerifiedStream:
    """Check a stream and the programs that it names.

    `spaces`: number of HBM spaces, where known; `writable`: those that commands may write to. Both concern immediate
    operands: a space in a register is for the engines to check. Raises InvalidStream, InvalidCommand or InvalidProgram.
    """
    commands = decode_at(words)
    if not commands or next(reversed(commands.values())).mnemonic != "halt":
        raise InvalidStream(UNKNOWN, word=len(words), reason="does not end in halt")
    _check_control(commands, machine)
    found: dict[int, tuple[SceProgram, ProgramInfo]] = {}
    for at, command in commands.items():
        _check_resources(at, command, machine)
        _check_spaces(at, command, spaces, writable)
        if command.mnemonic in _WITH_CHECKS:
            _WITH_CHECKS[command.mnemonic](at, command, programs, machine, found)
    return VerifiedStream(commands, found)


def _invalid(at: int, command: Command, reason: str) -> InvalidCommand:
    return InvalidCommand(UNKNOWN, mnemonic=command.mnemonic, word=at, reason=reason)


# ---- control flow ----


def _check_control(commands: Mapping[int, Command], machine: MachineConfig) -> None:
    enclosing = _enclosing_loops(commands, min(machine.loop_depth, LOOP_DEPTH))
    for at, command in commands.items():
        if command.mnemonic == "loop" or not command.spec.operands or command.spec.operands[-1].role != "target":
            continue
        target = command.operands[-1]
        if not isinstance(target, int) or target not in commands:
            raise _invalid(at, command, f"target {target} is not the start of a command")
        backward = command.mnemonic == "while"
        if (target > at) if backward else (target <= at):
            raise _invalid(at, command, f"target {target} is not {'backward' if backward else 'forward'}")
        if enclosing[target] != enclosing[at]:
            raise _invalid(at, command, f"target {target} is in another loop body")


def _enclosing_loops(commands: Mapping[int, Command], depth: int) -> dict[int, int]:
    """Word index of the innermost loop around each command; an endloop is inside its loop, a loop command is not."""
    enclosing: dict[int, int] = {}
    stack: list[int] = []
    offsets = list(commands)
    # The stream ends in halt, so every endloop has a command after it.
    following = dict(itertools.pairwise(offsets))
    for at, command in commands.items():
        enclosing[at] = stack[-1] if stack else _NO_LOOP
        if command.mnemonic == "loop":
            stack.append(at)
            if len(stack) > depth:
                raise _invalid(at, command, f"loops nest deeper than {depth}")
        elif command.mnemonic == "endloop":
            if not stack:
                raise _invalid(at, command, "closes no loop")
            opened = stack.pop()
            if commands[opened].operands[-1] != following[at]:
                end = commands[opened].operands[-1]
                raise _invalid(
                    opened, commands[opened], f"end {end} is not the word after its endloop, {following[at]}"
                )
    if stack:
        raise _invalid(stack[-1], commands[stack[-1]], "has no endloop")
    return enclosing


# ---- what the machine has ----


def _check_resources(at: int, command: Command, machine: MachineConfig) -> None:
    if command.spec.engine == "dma" and command.queue > machine.dma_queues:
        raise _invalid(at, command, f"queue {command.queue}, the machine has {machine.dma_queues} DMA queues")
    if command.signal >= machine.tokens:
        raise _invalid(at, command, f"signals token {command.signal}, the machine has {machine.tokens}")
    for wait in command.waits:
        if wait.token >= machine.tokens:
            raise _invalid(at, command, f"waits on token {wait.token}, the machine has {machine.tokens}")
    for slot, operand in _slots(command):
        if isinstance(operand, Reg):
            number = operand.number
        elif isinstance(operand, int) and slot.role == "register":
            number = operand
        else:
            continue
        if number >= machine.acp_registers:
            raise _invalid(at, command, f"{slot.name}: register {number}, the machine has {machine.acp_registers}")


def _check_spaces(at: int, command: Command, spaces: int | None, writable: Collection[int] | None) -> None:
    for slot, operand in _slots(command):
        if slot.role != "space" or not isinstance(operand, int) or operand == SPACE_SRAM:
            continue
        if spaces is not None and operand > spaces:
            raise _invalid(at, command, f"{slot.name}: space {operand}, the object has {spaces}")
        if slot.written and writable is not None and operand not in writable:
            raise _invalid(at, command, f"{slot.name}: space {operand} is not for writing")


def _slots(command: Command) -> Iterator[tuple[OperandSpec, Operand]]:
    layout = operand_layout(command.spec, command.flags, len(command.operands)) or ()
    return zip(layout, command.operands, strict=True)


_Found: TypeAlias = "dict[int, tuple[SceProgram, ProgramInfo]]"


def _program_of(
    at: int, command: Command, programs: Words, machine: MachineConfig, found: _Found
) -> tuple[SceProgram, ProgramInfo]:
    """The program that a command names, with as many streams as the command has operands for."""
    offset = command.operands[0]
    if not isinstance(offset, int):
        raise _invalid(at, command, "program offset must be an immediate")
    if offset not in found:
        found[offset] = verified_program(programs, offset, machine)
    program, info = found[offset]
    ndim = command.flag("ndim")
    streams = (len(command.operands) - 1 - ndim) // (1 + ndim)
    if streams != len(program.streams):
        raise _invalid(at, command, f"{streams} streams, its program has {len(program.streams)}")
    return program, info


def _check_program(at: int, command: Command, programs: Words, machine: MachineConfig, found: _Found) -> None:
    program, info = _program_of(at, command, programs, machine, found)
    ndim, fold = command.flag("ndim"), command.flag("fold")
    if fold > ndim:
        raise _invalid(at, command, f"folds {fold} of {ndim} dimensions")
    if info.folds != (fold > 0):
        raise _invalid(
            at, command, f"folds {fold} dimensions, its program has {'a' if info.folds else 'no'} reduction or scan"
        )
    if command.flag("reverse") and not info.scans:
        raise _invalid(at, command, "goes in reverse, its program has no scan")
    if any(stream.acc for stream in program.streams) and not command.flag("drain"):
        raise _invalid(at, command, "its program touches accumulators without the drain flag")


def _check_combine(at: int, command: Command, programs: Words, machine: MachineConfig, found: _Found) -> None:
    program, info = _program_of(at, command, programs, machine, found)
    if info.folds:
        raise _invalid(at, command, "its program has a reduction or scan of its own")
    if not combined_values(program):
        raise _invalid(at, command, "the streams of its program are not loads, loads and stores of the same types")


def _check_scatter_reduce(at: int, command: Command, programs: Words, machine: MachineConfig, found: _Found) -> None:
    opcode = next(operand for slot, operand in _slots(command) if slot.role == "instruction")
    if opcode == 0:
        return
    op = SCE_BY_OPCODE[int(opcode)]  # type: ignore[arg-type]
    if op.operands != (op.result, op.result):
        raise _invalid(at, command, f"cannot combine by {op.mnemonic}: not two operands of the result's type")
    if DTYPE_LOG2_BYTES[op.result] != command.flag("log2_bytes"):
        raise _invalid(at, command, f"combines elements of another size by {op.mnemonic}")


def _check_sort(at: int, command: Command, programs: Words, machine: MachineConfig, found: _Found) -> None:
    code = next(operand for slot, operand in _slots(command) if slot.role == "dtype")
    name = DTYPE_NAMES[int(code)]  # type: ignore[arg-type]
    if DTYPE_LOG2_BYTES[name] != command.flag("log2_bytes"):
        raise _invalid(at, command, f"sorts {name} as elements of another size")


_WITH_CHECKS: dict[str, Callable[[int, Command, Words, MachineConfig, _Found], None]] = {
    "program": _check_program,
    "combine": _check_combine,
    "scatter_reduce": _check_scatter_reduce,
    "sort": _check_sort,
}
