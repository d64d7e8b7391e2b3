"""docs/isa.md, written from the tables: machine, stream layout, commands, stream engine, cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from loom_core.isa import cost, sce
from loom_core.isa.commands import (
    ALL_COMMANDS,
    ENGINE_QUEUES,
    HEADER_FIELDS,
    MASKED_OPERANDS,
    MAX_COMMAND_WORDS,
    MAX_WAITS,
    NARROW,
    CommandSpec,
    FlagField,
    OperandGroup,
    OperandSpec,
    Queue,
)
from loom_core.isa.machine import FIELD_DOCS, PRESETS

_GENERATED: Final = "<!-- Written by `./run golden` from the tables in the code; edit those. -->"

_INTRODUCTION: Final = """\
A program for the machine is a stream of commands. A core's command processor (ACP) fetches them in order. It executes
scalar and control commands itself; for all others it reads the operands at issue and puts the command on the queue of
an engine. Queues are in order; nothing orders two queues but tokens. A core is done when its ACP has met `halt` and
all its queues are empty.

Addresses are pairs (space, byte offset): space 0 is the core's SRAM, spaces 1.. are the kernel's buffers in ABI order,
and after them the object's constants. Every access is checked against its space: an access outside is an error, never
a read or write.
"""

_TOKENS: Final = """\
A command that names a signal token (1..; 0 is none) adds one to the token's *issued* count when the ACP issues it and
one to its *completed* count when it is complete. A wait (token, lag) lets a command start only when completed >=
issued - lag, where the issued count is that at the waiting command's own issue. Lag 0 is everything issued so far; lag
1 leaves the last one in flight. Waits look back only, so the order of issue is always a legal sequential order, and no
stream can deadlock on its own tokens.
"""

_PROGRAM_WORDS: Final = """\
A program lies in the programs section as 64-bit words:

- word 0: number of streams (bits 0-15), of instructions (16-31), of registers (32-63);
- a word per stream: kind (bits 0-7), log2 of the element's bytes (8-15), dtype code (16-23), flags (24-31; bit 0: the
  stream may touch accumulators, which needs the drain flag of the command);
- a word per instruction: opcode (bits 0-15), dst (16-23), a (24-31), b (32-39), c (40-47), immediate (48-63, zero in
  this version). Operand codes 0-127 are registers, 128 + n is stream n; fields that the opcode does not use are zero.

Streams: `load` and `store` address SRAM, base + the sum of stride * index, in bytes; `scalar` is its base's low bits,
whatever the index; `iota` is base + the sum of stride * index as an i32 or i64 value. Strides of 0 broadcast. Each
store stream is written by exactly one instruction. After it, instructions of the body may read the stored element
back, unless it is a reduced value. Two streams of a program overlap only if they are identical: element i is read
before it is written, and a stream that is read back meets no other. A store of a reduced value, and a load that the
tail reads, use the strides of the leading dimensions alone.
"""


def isa_markdown() -> str:
    """The whole of docs/isa.md."""
    sections: tuple[tuple[str, Iterable[str]], ...] = (
        ("", ["# The command set", "", _GENERATED, "", _INTRODUCTION]),
        ("## Machine", _machine()),
        ("## Stream", _stream()),
        ("## Tokens and waits", [_TOKENS]),
        ("## Commands", _commands()),
        ("## Stream engine programs", _programs()),
        ("## Cost", [_paragraphs(cost.__doc__, skip=1)]),
    )
    lines: list[str] = []
    for title, body in sections:
        lines += [title, "", *body, ""] if title else [*body, ""]
    return "\n".join(line.rstrip() for line in "\n".join(lines).split("\n")).replace("\n\n\n", "\n\n").rstrip() + "\n"


def _paragraphs(text: str | None, skip: int) -> str:
    """A docstring without its first paragraphs."""
    return "\n\n".join((text or "").strip().split("\n\n")[skip:])


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return [*lines, ""]


def _machine() -> list[str]:
    presets = list(PRESETS.values())
    lines = ["Every number of the machine is a field of `MachineConfig`; a TOML file gives one of your own.", ""]
    rows = [(f"`{name}`", *(getattr(p, name) for p in presets), doc) for name, doc in FIELD_DOCS.items()]
    lines += _table(("field", *(p.name for p in presets), "meaning"), rows)
    lines += [f"Digest of `{p.name}`: `{p.digest()}`." for p in presets]
    return lines


def _stream() -> list[str]:
    lines = [
        "Little-endian 64-bit words. A command is a header word, a register mask, its operands, its waits. Bit i of "
        "the mask says "
        f"that operand i is the number of an ACP register, read at issue; operands from {MASKED_OPERANDS} on are "
        f"immediates. A wait "
        "word is token | lag << 32. At most "
        f"{MAX_COMMAND_WORDS} words and {MAX_WAITS} waits a command. Header:",
        "",
    ]
    lines += _table(("bits", "field"), [(f"{lo}-{lo + bits - 1}", name) for name, (lo, bits) in HEADER_FIELDS.items()])
    lines += ["Queues:", ""]
    lines += _table(("queue", "name"), [(int(queue), queue.name) for queue in Queue])
    return lines


_ENGINE_TITLES: Final = {
    "acp": "Command processor",
    "dma": "DMA",
    "mxu": "Matrix engine",
    "sce": "Stream engine",
}


def _commands() -> list[str]:
    lines = [
        "A destination register is an immediate. The flag `narrow` wraps a result to a type, then widens it to 64 "
        "bits: "
        + ", ".join(f"{value} {name}" for value, name in enumerate(NARROW.values))
        + ". Only commands with `waits` may wait and signal.",
        "",
    ]
    for engine, title in _ENGINE_TITLES.items():
        queues = ", ".join(queue.name for queue in ENGINE_QUEUES[engine])
        specs = [spec for spec in ALL_COMMANDS if spec.engine == engine]
        lines += [f"### {title} (queues: {queues})", ""]
        lines += _table(("opcode", "command", "operands", "flags", "what it does"), map(_command_row, specs))
    return lines


def _command_row(spec: CommandSpec) -> tuple[str, ...]:
    slots: tuple[OperandSpec | OperandGroup, ...] = (*spec.operands, *spec.groups)
    operands = map(_operand, slots)
    name = f"`{spec.mnemonic}`" + (" (waits)" if spec.synchronises else "")
    flags = "; ".join(_flag(field) for field in spec.flags)
    return f"{spec.opcode:#04x}", name, ", ".join(operands), flags, spec.doc


def _operand(slot: OperandSpec | OperandGroup) -> str:
    if isinstance(slot, OperandGroup):
        return f"per {slot.count.removeprefix('n').rstrip('s')}: ({', '.join(map(_operand, slot.members))})"
    return slot.name + (f" ({slot.doc})" if slot.doc else "")


def _flag(field: FlagField) -> str:
    bits = str(field.lo) if field.bits == 1 else f"{field.lo}-{field.lo + field.bits - 1}"
    if field is NARROW:
        return f"{bits} narrow"
    values = f": {', '.join(f'{i} {name}' for i, name in enumerate(field.values))}" if field.values else ""
    return f"{bits} {field.name}{values or f' ({field.doc})'}"


def _programs() -> list[str]:
    lines = [_PROGRAM_WORDS, _paragraphs(sce.__doc__, skip=2), ""]
    lines += _table(("stream kind", "code"), [(name, code) for name, code in sce.STREAM_KINDS.items()])
    lines += _table(("dtype", "code"), [(name, code) for name, code in sce.DTYPE_CODES.items()])
    rows = [
        (f"{op.opcode:#06x}", f"`{op.mnemonic}`", ", ".join(op.operands), op.result, sce.SLOT_NAMES[op.slot_class])
        for op in sce.ALL_SCE_OPS
    ]
    lines += ["Operand types 8, 16, 32, 64 are any type of that many bits.", ""]
    lines += _table(("opcode", "instruction", "operands", "result", "slots"), rows)
    return lines
