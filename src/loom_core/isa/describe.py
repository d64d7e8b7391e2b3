"""Commands as text: the disassembler. `isa_markdown`, the text of docs/isa.md, stands beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from loom_core.isa.commands import SPACE_SRAM, OperandSpec, Queue
from loom_core.isa.encoding import Command, Operand, Reg, Words, decode_at
from loom_core.isa.manual import isa_markdown
from loom_core.isa.program import SceInstr, SceProgram, decode_program
from loom_core.isa.sce import DTYPE_NAMES, SCE_BY_OPCODE

__all__ = ["CompiledCode", "SourceLine", "disassemble", "instruction_text", "isa_markdown"]

_INDENT = "  "
_NO_NUMBER = " " * 8


class SourceLine(Protocol):
    """A source map entry; `loom_core.objfile.SourceEntry` is one."""

    @property
    def word(self) -> int: ...
    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def function(self) -> str: ...
    @property
    def note(self) -> str: ...


class CompiledCode(Protocol):
    """What a disassembly needs of an object; `loom_core.objfile.LoomObject` is one."""

    @property
    def commands(self) -> Words: ...
    @property
    def programs(self) -> Words: ...
    @property
    def sourcemap(self) -> Sequence[SourceLine]: ...


def disassemble(
    code: CompiledCode | Words, sourcemap: Iterable[SourceLine] | None = None, programs: Words | None = None
) -> str:
    """Text of an object, or of a stream's words with its programs section (without one, programs are shown as offsets).

    A line per command: word index (`>` before it: a jump leads here), what it does, flags, waits and signal. Loop
    bodies are indented, a program follows the command that uses it first, and a source line stands before the commands
    that come from it. `wait t3-1`: until all signals issued on token 3, but the last one, are complete. Raises
    LoomError for a stream or program that does not decode.
    """
    if isinstance(code, np.ndarray):
        words = code
    else:
        words = code.commands
        programs = code.programs if programs is None else programs
        sourcemap = code.sourcemap if sourcemap is None else sourcemap
    lines = _Disassembly(decode_at(words), programs, sourcemap or ()).lines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def instruction_text(instr: SceInstr) -> str:
    """`r0 = mul.f32 s0, s1`."""
    return f"{instr.dst!r} = {instr.mnemonic} {', '.join(map(repr, instr.operands))}"


class _Disassembly:
    """One stream on its way to text."""

    def __init__(
        self, commands: Mapping[int, Command], programs: Words | None, sourcemap: Iterable[SourceLine]
    ) -> None:
        self.commands = commands
        self.program_words = programs
        self.sources = {entry.word: _source_text(entry) for entry in sourcemap}
        self.programs: dict[Operand, tuple[str, SceProgram]] = {}  # offset -> name and contents

    def lines(self) -> Iterator[str]:
        depth = 0
        place = ""
        targets = {command.operands[-1] for command in self.commands.values() if _is_jump(command)}
        for at, command in self.commands.items():
            if command.mnemonic == "endloop":
                depth = max(depth - 1, 0)
            margin = _INDENT * depth
            source = self.sources.get(at, place)
            if source != place:
                place = source
                yield f"{_NO_NUMBER}{margin}; {source}"
            known = len(self.programs)
            mark = ">" if at in targets else " "
            yield f"{mark}{at:5}  {margin}{self.text(command)}{_synchronisation(command)}"
            if len(self.programs) > known:
                name, program = self.programs[command.operands[0]]
                for instr in program.instructions:
                    yield f"{_NO_NUMBER}{margin}{_INDENT}{name}: {instruction_text(instr)}"
            if command.mnemonic == "loop":
                depth += 1

    def text(self, command: Command) -> str:
        if command.spec.engine == "acp":
            return _acp_text(command)
        if command.spec.operands[0].role == "program":
            return self.program_text(command)
        queue = f"{Queue(command.queue).name.lower()}." if command.spec.engine == "dma" else ""
        return f"{queue}{command.mnemonic} {' '.join(_named(command))}{_flags(command)}"

    def program_text(self, command: Command) -> str:
        """`program p0 size=(4, 64) fold=1 s0=load.f32[0 + (256, 4)] s1=scalar.f32[0x3f800000]`."""
        offset, *rest = command.operands
        ndim = command.flag("ndim")
        name, program = self.program(offset)
        sizes = ", ".join(map(_value, rest[:ndim]))
        parts = [f"{name} size=({sizes})"]
        if command.mnemonic == "combine":
            parts.insert(0, command.spec.flag("mode").values[command.flag("mode")])
        elif command.flag("fold"):
            parts.append(f"fold={command.flag('fold')}" + " reverse" * command.flag("reverse"))
        for number, start in enumerate(range(ndim, len(rest), 1 + ndim)):
            base, *strides = rest[start : start + 1 + ndim]
            stream = program.streams[number] if program and number < len(program.streams) else None
            kind = f"{stream.kind}.{stream.dtype}" if stream else "stream"
            steps = ", ".join(map(_value, strides))
            inside = _hex(base) if stream and stream.kind == "scalar" else f"{_value(base)} + ({steps})"
            parts.append(f"s{number}={kind}[{inside}]")
        queue = "mxu." if command.queue == Queue.MXU else ""
        return f"{queue}{command.mnemonic} {' '.join(parts)}"

    def program(self, offset: Operand) -> tuple[str, SceProgram | None]:
        """Name and contents: `p0`, `p1` in order of first use; the offset alone without a programs section."""
        if self.program_words is None or not isinstance(offset, int):
            return f"@{_value(offset)}", None
        if offset not in self.programs:
            contents, _ = decode_program(self.program_words, offset)
            self.programs[offset] = f"p{len(self.programs)}", contents
        return self.programs[offset]


def _is_jump(command: Command) -> bool:
    return bool(command.spec.operands) and command.spec.operands[-1].role == "target"


def _source_text(entry: SourceLine) -> str:
    place = f"{entry.file}:{entry.line}" if entry.line > 0 else entry.file
    function = f" in {entry.function}" if entry.function else ""
    return place + function + (f": {entry.note}" if entry.note else "")


def _synchronisation(command: Command) -> str:
    waits = "".join(f", wait t{wait.token}" + (f"-{wait.lag}" if wait.lag else "") for wait in command.waits)
    return waits + (f", signal t{command.signal}" if command.signal else "")


def _acp_text(command: Command) -> str:
    """`r7 = add.i32 r3, 16`; `loop r7 = 0, r1, step 1, end 52`; `r4 = lds hbm1[r7] log2_bytes=2`."""
    values = [_value(operand) for operand in command.operands]
    spec = command.spec
    if spec.mnemonic == "loop":
        return f"loop r{values[0]} = {values[1]}, {values[2]}, step {values[3]}, end {values[4]}"
    if spec.mnemonic == "lds":
        return f"r{values[0]} = lds {_address(*command.operands[1:])}{_flags(command)}"
    if spec.mnemonic == "sts":
        return f"sts {_address(*command.operands[:2])} = {values[2]}{_flags(command)}"
    if spec.mnemonic == "report":
        return f"report {values[0]} {_address(SPACE_SRAM, command.operands[1])} of program {values[2]}"
    if spec.operands and spec.operands[0].role == "register":
        narrow = command.flag("narrow")
        suffix = f".{spec.flag('narrow').values[narrow]}" if narrow else ""
        return f"r{values[0]} = {spec.mnemonic}{suffix} {', '.join(values[1:])}"
    return f"{spec.mnemonic} {', '.join(values)}"


def _named(command: Command) -> Iterator[str]:
    """Operands as name=value, a space joined with its offset, one bracket for each dimension."""
    space: Operand = SPACE_SRAM
    fixed = len(command.spec.operands)
    for slot, operand in zip(command.spec.operands, command.operands[:fixed], strict=True):
        if slot.role == "space":
            space = operand
        elif slot.role == "offset":
            yield f"{slot.name.removesuffix('_off')}={_address(space, operand)}"
            space = SPACE_SRAM
        else:
            yield f"{slot.name}={_text(slot, operand)}"
    for group in command.spec.groups:
        names = [member.name for member in group.members if isinstance(member, OperandSpec)]
        for start in range(fixed, len(command.operands), len(names)):
            values = command.operands[start : start + len(names)]
            inside = " ".join(f"{name}={_value(value)}" for name, value in zip(names, values, strict=True))
            yield f"[{inside}]"


def _text(slot: OperandSpec, operand: Operand) -> str:
    if slot.role == "bits":
        return _hex(operand)
    if slot.role == "dtype" and isinstance(operand, int):
        return DTYPE_NAMES[operand]
    if slot.role == "instruction" and isinstance(operand, int):
        return SCE_BY_OPCODE[operand].mnemonic if operand else "exchange"
    return _value(operand)


def _flags(command: Command) -> str:
    """Flag fields that are not shown by the shape of the operands."""
    counts = {group.count for group in command.spec.groups}
    text = ""
    for field in command.spec.flags:
        value = field.get(command.flags)
        if field.values:
            shown = value or field.bits > 1 or field.name == "side"
            text += f" {field.name}={field.values[value]}" if shown else ""
        elif field.name not in counts and (value or field.bits > 1):
            text += f" {field.name}={value}"
    return text


def _address(space: Operand, offset: Operand) -> str:
    """`sram[64]`, `hbm1[r7]`, `space(r5)[0]`."""
    name = f"space({space!r})"
    if isinstance(space, int):
        name = "sram" if space == SPACE_SRAM else f"hbm{space}"
    return f"{name}[{_value(offset)}]"


def _value(operand: Operand) -> str:
    return repr(operand) if isinstance(operand, Reg) else str(operand)


def _hex(operand: Operand) -> str:
    return f"{operand & 0xFFFFFFFFFFFFFFFF:#x}" if isinstance(operand, int) else _value(operand)
