"""Symbolic commands to the sections of an object."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from loom_core.codegen.allocate import Lifetimes
from loom_core.codegen.emitter import Address, Emitted, Emitter, Operand, Register, Window
from loom_core.codegen.errors import CodegenFault
from loom_core.codegen.tokens import Synchronisation, assign_tokens
from loom_core.isa.commands import MAX_WAITS, SPACE_SRAM, Queue
from loom_core.isa.encoding import Command, Label, Reg, Wait, Words, assemble, pack_flags, spec_of
from loom_core.isa.machine import MachineConfig
from loom_core.isa.program import SceProgram, encode_program
from loom_core.objfile import LoopRecord, SourceEntry


class _Programs:
    """The programs section: equal programs are stored once."""

    def __init__(self) -> None:
        self.words: list[Words] = []
        self._offsets: dict[SceProgram, int] = {}
        self._size = 0

    def offset(self, program: SceProgram) -> int:
        if program not in self._offsets:
            words = encode_program(program)
            self._offsets[program] = self._size
            self._size += len(words)
            self.words.append(words)
        return self._offsets[program]

    def section(self) -> Words:
        return np.concatenate(self.words) if self.words else np.zeros(0, np.uint64)


class Assembly:
    """Encoded commands and programs, with the source map and loop table of the same stream.

    `words`: where the command of an item of the emitter stands.
    """

    def __init__(self, emitter: Emitter, may_alias_bindings: bool, machine: MachineConfig) -> None:
        self._programs = _Programs()
        # The last token is kept for gates.
        self._synchronisation = assign_tokens(emitter, may_alias_bindings, machine.tokens - 1)
        self._gate_token = machine.tokens - 1
        stream: list[Command | Label] = []
        origin: list[Emitted] = []
        first_command: dict[int, int] = {}
        for index, item in enumerate(emitter.items):
            if isinstance(item, Label):
                stream.append(item)
                continue
            first_command[index] = len(origin)
            for command in self._commands(index, item):
                stream.append(command)
                origin.append(item)
        assembled = assemble([*stream, Command("halt")])
        self.words = {index: assembled.offsets[number] for index, number in first_command.items()}
        self.commands = assembled.words
        self.programs = self._programs.section()
        self.sourcemap = _sourcemap(origin, assembled.offsets)
        self.loops = tuple(
            LoopRecord(
                assembled.offsets[first_command[span.start]],
                assembled.offsets[first_command[span.end] + 1],
                *_loop_text(emitter.items[span.start]),
            )
            for span in emitter.loops
            if span.start in first_command
        )

    def _commands(self, index: int, item: Emitted) -> list[Command]:
        """The command, preceded by gates that take the waits which do not fit on it."""
        needs = self._synchronisation.get(index, Synchronisation())
        operands = [self._operand(operand) for operand in item.operands]
        if item.program is not None:
            operands[0] = self._programs.offset(item.program)
        flags = pack_flags(spec_of(item.mnemonic), item.flags)
        operands = _destination_first(item.mnemonic, operands)
        waits, gates = needs.waits, []
        while len(waits) > MAX_WAITS:
            gates.append(_gate(waits[:MAX_WAITS], self._gate_token))
            waits = (*waits[MAX_WAITS:], *([] if len(gates) > 1 else [Wait(self._gate_token)]))
        return [*gates, Command(item.mnemonic, tuple(operands), flags, int(item.queue), waits, needs.signal)]

    def _operand(self, operand: Operand) -> int | Reg | Label:
        if isinstance(operand, Register):
            if operand.number < 0:
                raise CodegenFault(reason=f"register {operand.name} has no number")
            return Reg(operand.number)
        if isinstance(operand, Address):
            return operand.resolve()
        return operand


def _gate(waits: tuple[Wait, ...], token: int) -> Command:
    """A copy of nothing that signals `token` once its waits are met."""
    nothing = (0, 0, 0, 0, 0)
    flags = pack_flags(spec_of("copy"), {"ndim": 1})
    return Command("copy", (SPACE_SRAM, 0, SPACE_SRAM, 0, 0, *nothing), flags, int(Queue.DMA0), waits, token)


def _destination_first(mnemonic: str, operands: list[int | Reg | Label]) -> list[int | Reg | Label]:
    """The destination register of a scalar command is a plain number."""
    specs = spec_of(mnemonic).operands
    if specs and specs[0].role == "register" and isinstance(operands[0], Reg):
        return [operands[0].number, *operands[1:]]
    return operands


def _sourcemap(origin: list[Emitted], offsets: tuple[int, ...]) -> tuple[SourceEntry, ...]:
    """One entry where the source line changes; files by their name alone, so that objects are equal on every host."""
    entries: list[SourceEntry] = []
    previous: tuple[object, ...] = ()
    for item, word in zip(origin, offsets, strict=False):
        at = item.location.root()
        current = (at.file, at.line, at.column, at.end_column, at.function, item.note)
        if current != previous:
            name = os.path.basename(at.file)
            entries.append(SourceEntry(word, name, at.line, at.column, at.function, item.note, at.end_column))
            previous = current
    return tuple(entries)


def _loop_text(item: Emitted | Label) -> tuple[str, str, str, str]:
    assert isinstance(item, Emitted)
    register, lo, hi, step = item.operands[:4]
    assert isinstance(register, Register)

    def show(operand: Operand) -> str:
        if isinstance(operand, Register):
            return f"r{operand.number}"
        return str(operand.resolve() if isinstance(operand, Address) else operand)

    return f"{item.note} r{register.number}", show(lo), show(hi), show(step)


def window_table(lifetimes: Lifetimes, words: Mapping[int, int]) -> list[dict[str, object]]:
    """The SRAM map of the manifest. `first` and `last` are words of the commands between which a window is in use."""
    spans = [(window, span) for window, span in lifetimes.spans.items() if isinstance(window, Window)]
    return [
        {
            "name": window.name,
            "offset": window.offset,
            "bytes": window.size,
            "slots": window.slots,
            "first": words[first],
            "last": words[last],
        }
        for window, (first, last) in sorted(spans, key=lambda item: (item[0].offset, item[0].name, item[1]))
    ]
