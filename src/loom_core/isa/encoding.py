"""Commands as values, and their binary form: `encode`, `decode`.

A stream is little-endian 64-bit words, held as a NumPy uint64 array. The layout of a command is in
`commands.HEADER_FIELDS` and docs/isa.md. `decode` trusts nothing: whatever the words, it returns commands or raises a
LoomError.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loom_core.base.location import UNKNOWN
from loom_core.isa.commands import (
    BY_OPCODE,
    COMMANDS,
    ENGINE_QUEUES,
    HEADER_WORDS,
    MASKED_OPERANDS,
    MAX_COMMAND_WORDS,
    MAX_WAITS,
    CommandSpec,
    OperandGroup,
    OperandSpec,
    Queue,
)
from loom_core.isa.errors import InvalidCommand, InvalidStream, UnknownCommand, UnresolvedLabel
from loom_core.isa.sce import DTYPE_NAMES, SCE_BY_OPCODE

Words: TypeAlias = npt.NDArray[np.uint64]

_WORD_MASK = (1 << 64) - 1
_SIGN = 1 << 63


@dataclass(frozen=True, slots=True)
class Reg:
    """An ACP register, as an operand read at issue."""

    number: int

    def __repr__(self) -> str:
        return f"r{self.number}"


@dataclass(frozen=True, eq=False, slots=True)
class Label:
    """A place in a stream: stands between commands, and as an operand of loops and jumps. Compared by identity."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until all signals on `token` issued so far, but the last `lag`, are complete."""

    token: int
    lag: int = 0


Operand: TypeAlias = "int | Reg | Label"


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `flags` is the header's byte (`command` takes them by name); `queue` -1 is its engine's first.

    Raises UnknownCommand for a mnemonic that is not in the table. Everything else is checked when it is encoded.
    """

    mnemonic: str
    operands: tuple[Operand, ...] = ()
    flags: int = 0
    queue: int = -1
    waits: tuple[Wait, ...] = ()
    signal: int = 0

    def __post_init__(self) -> None:
        spec = spec_of(self.mnemonic)
        if self.queue < 0:
            object.__setattr__(self, "queue", int(legal_queues(spec, self.flags)[0]))

    @property
    def spec(self) -> CommandSpec:
        return COMMANDS[self.mnemonic]

    def flag(self, name: str) -> int:
        """Value of a flag field; KeyError if the command has none of that name."""
        return self.spec.flag(name).get(self.flags)


def command(
    mnemonic: str,
    *operands: Operand,
    flags: Mapping[str, int] | int = 0,
    queue: int = -1,
    waits: Sequence[Wait] = (),
    signal: int = 0,
) -> Command:
    """`Command` with its operands in line and its flags by field name: `command("copy", ..., flags={"ndim": 2})`.

    Raises UnknownCommand, or InvalidCommand for a flag field that the command does not have or a value outside its
    range.
    """
    packed = flags if isinstance(flags, int) else pack_flags(spec_of(mnemonic), flags)
    return Command(mnemonic, operands, packed, queue, tuple(waits), signal)


def spec_of(mnemonic: str) -> CommandSpec:
    """The table's row for a mnemonic. Raises UnknownCommand."""
    spec = COMMANDS.get(mnemonic)
    if spec is None:
        raise UnknownCommand(UNKNOWN, command=repr(mnemonic))
    return spec


def pack_flags(spec: CommandSpec, values: Mapping[str, int]) -> int:
    """Flags byte of {field: value}; absent fields are their minimum. Raises InvalidCommand."""
    fields = {field.name: field for field in spec.flags}
    for name in values:
        if name not in fields:
            raise _invalid(spec, 0, f"has no flag {name!r}; its flags: {', '.join(fields) or 'none'}")
    flags = 0
    for name, field in fields.items():
        value = int(values.get(name, field.minimum))
        if not field.minimum <= value <= field.limit:
            raise _invalid(spec, 0, f"flag {name} = {value} is outside {field.minimum}..{field.limit}")
        flags |= value << field.lo
    return flags


def legal_queues(spec: CommandSpec, flags: int) -> tuple[Queue, ...]:
    """Queues that a command with these flags may be issued on, the default first."""
    if spec.engine == "sce":
        drains = spec.mnemonic == "program" and spec.flag("drain").get(flags)
        return (Queue.MXU,) if drains else (Queue.SCE,)
    return ENGINE_QUEUES[spec.engine]


# ---- operand layout ----


def operand_layout(spec: CommandSpec, flags: int, count: int) -> tuple[OperandSpec, ...] | None:
    """One OperandSpec per operand word, groups unrolled and numbered; None if `count` operands cannot be right."""
    shape = tuple(field.get(flags) for field in spec.flags if any(field.name == group.count for group in spec.groups))
    return _layout(spec.mnemonic, shape, count)


@functools.lru_cache(maxsize=4096)
def _layout(mnemonic: str, shape: tuple[int, ...], count: int) -> tuple[OperandSpec, ...] | None:
    spec = COMMANDS[mnemonic]
    names = [field.name for field in spec.flags if any(field.name == group.count for group in spec.groups)]
    counts = dict(zip(names, shape, strict=True))
    fixed = len(spec.operands) + sum(
        counts[group.count] * _group_size(group, counts) for group in spec.groups if group.count in counts
    )
    streams = [group for group in spec.groups if group.count not in counts]
    if streams:
        size = _group_size(streams[0], counts)
        counts[streams[0].count], rest = divmod(count - fixed, size)
        if count < fixed or rest:
            return None
    elif count != fixed:
        return None
    layout = list(spec.operands)
    for group in spec.groups:
        layout.extend(_unroll(group, counts))
    return tuple(layout)


def _group_size(group: OperandGroup, counts: Mapping[str, int]) -> int:
    return sum(
        1 if isinstance(member, OperandSpec) else counts[member.count] * _group_size(member, counts)
        for member in group.members
    )


def _unroll(group: OperandGroup, counts: Mapping[str, int]) -> list[OperandSpec]:
    result: list[OperandSpec] = []
    for i in range(counts[group.count]):
        for member in group.members:
            if isinstance(member, OperandGroup):
                inner = _unroll(member, counts)
                result.extend(OperandSpec(f"s{i}.{spec.name}", spec.role, spec.doc) for spec in inner)
            else:
                name = f"s{i}.{member.name}" if group.count == "streams" else f"{member.name}{i}"
                result.append(OperandSpec(name, member.role, member.doc))
    return result


# ---- encoding ----


@dataclass(frozen=True, slots=True)
class Assembled:
    """Words of a stream, and the word index of each command in it (labels do not count)."""

    words: Words
    offsets: tuple[int, ...]


def assemble(commands: Sequence[Command | Label]) -> Assembled:
    """Encode a stream and say where each command lies; see `encode`."""
    positions: dict[Label, int] = {}
    offsets: list[int] = []
    at = 0
    for item in commands:
        if isinstance(item, Label):
            if item in positions:
                raise UnresolvedLabel(
                    UNKNOWN, label=repr(item.name), reason=f"stands at word {positions[item]} and {at}"
                )
            positions[item] = at
        else:
            offsets.append(at)
            at += HEADER_WORDS + len(item.operands) + len(item.waits)
    words: list[int] = []
    for item in commands:
        if isinstance(item, Command):
            _encode_command(item, positions, words)
    return Assembled(np.array(words, dtype="<u8"), tuple(offsets))


def encode(commands: Sequence[Command | Label]) -> Words:
    """Words (uint64, 1-D) of a stream; a `Label` between commands marks the next command's place.

    Raises InvalidCommand for anything the table does not allow, UnresolvedLabel for a label that stands nowhere or
    twice.
    """
    return assemble(commands).words


def _encode_command(command: Command, positions: Mapping[Label, int], words: list[int]) -> None:
    spec = command.spec
    at = len(words)
    operands = command.operands
    _check_header(spec, at, command.flags, command.queue, len(command.waits), command.signal)
    layout = operand_layout(spec, command.flags, len(operands))
    if layout is None:
        raise _invalid(spec, at, f"{len(operands)} operands do not fit its flags {command.flags:#04x}")
    length = HEADER_WORDS + len(operands) + len(command.waits)
    if length > MAX_COMMAND_WORDS:
        raise _invalid(spec, at, f"{length} words; at most {MAX_COMMAND_WORDS} fit")
    words.append(
        spec.opcode
        | length << 8
        | int(command.queue) << 16
        | len(command.waits) << 20
        | command.flags << 24
        | command.signal << 32
        | len(operands) << 48
    )
    words.append(0)
    mask = 0
    for i, (operand, slot) in enumerate(zip(operands, layout, strict=True)):
        value: int
        if isinstance(operand, Reg):
            mask |= 1 << i
            value = operand.number
        elif isinstance(operand, Label):
            if slot.role != "target":
                raise _invalid(spec, at, f"operand {slot.name} cannot be a label")
            if operand not in positions:
                raise UnresolvedLabel(UNKNOWN, label=repr(operand.name), reason="stands nowhere in the stream")
            value = positions[operand]
        else:
            value = int(operand)
        if not -_SIGN <= value <= _WORD_MASK:
            raise _invalid(spec, at, f"operand {slot.name} = {value} does not fit 64 bits")
        words.append(value & _WORD_MASK)
    words[at + 1] = mask
    _check_operands(spec, at, layout, mask, words[at + HEADER_WORDS :])
    for wait in command.waits:
        _check_wait(spec, at, wait.token, wait.lag)
        words.append(wait.token | wait.lag << 32)


# ---- decoding ----


def decode(words: Words) -> list[Command]:
    """Commands of a stream. Raises InvalidStream or InvalidCommand for anything that `encode` would not write."""
    return list(decode_at(words).values())


def decode_at(words: Words) -> dict[int, Command]:
    """Word index -> command, in stream order; see `decode`."""
    if words.ndim != 1 or words.dtype != np.uint64:
        raise InvalidStream(
            UNKNOWN, word=0, reason=f"a stream is a 1-D uint64 array, not {words.dtype}{list(words.shape)}"
        )
    values: list[int] = words.tolist()
    result: dict[int, Command] = {}
    at = 0
    while at < len(values):
        result[at], length = _decode_command(values, at)
        at += length
    return result


def _decode_command(words: list[int], at: int) -> tuple[Command, int]:
    header = words[at]
    opcode, length = header & 0xFF, header >> 8 & 0xFF
    spec = BY_OPCODE.get(opcode)
    if spec is None:
        raise InvalidStream(UNKNOWN, word=at, reason=f"opcode {opcode:#04x} is not a command")
    if length < HEADER_WORDS or at + length > len(words):
        raise _invalid(spec, at, f"length of {length} words, {len(words) - at} are left")
    queue, wait_count, flags = header >> 16 & 0xF, header >> 20 & 0xF, header >> 24 & 0xFF
    signal, count = header >> 32 & 0xFFFF, header >> 48
    if length != HEADER_WORDS + count + wait_count:
        raise _invalid(spec, at, f"length of {length} words with {count} operands and {wait_count} waits")
    _check_header(spec, at, flags, queue, wait_count, signal)
    layout = operand_layout(spec, flags, count)
    if layout is None:
        raise _invalid(spec, at, f"{count} operands do not fit its flags {flags:#04x}")
    first = at + HEADER_WORDS
    raw = words[first : first + count]
    mask = words[at + 1]
    _check_operands(spec, at, layout, mask, raw)
    operands = tuple(
        Reg(value) if mask >> i & 1 else value - (1 << 64) if value & _SIGN else value for i, value in enumerate(raw)
    )
    waits = tuple(Wait(word & 0xFFFFFFFF, word >> 32) for word in words[first + count : at + length])
    for wait in waits:
        _check_wait(spec, at, wait.token, wait.lag)
    return Command(spec.mnemonic, operands, flags, queue, waits, signal), length


# ---- rules that encoder and decoder share ----


def _invalid(spec: CommandSpec, at: int, reason: str) -> InvalidCommand:
    return InvalidCommand(UNKNOWN, mnemonic=spec.mnemonic, word=at, reason=reason)


@functools.lru_cache(maxsize=8192)
def _flags_fault(mnemonic: str, flags: int) -> str:
    """Why these flags are illegal for the command, or ""."""
    spec = COMMANDS[mnemonic]
    defined = 0
    for field in spec.flags:
        defined |= ((1 << field.bits) - 1) << field.lo
        if not field.minimum <= field.get(flags) <= field.limit:
            return f"flag {field.name} = {field.get(flags)} is outside {field.minimum}..{field.limit}"
    if flags & ~defined:
        return f"flags {flags:#04x} set bits outside {defined:#04x}"
    return ""


def _check_header(spec: CommandSpec, at: int, flags: int, queue: int, waits: int, signal: int) -> None:
    fault = _flags_fault(spec.mnemonic, flags) if 0 <= flags <= 0xFF else f"flags {flags} do not fit a byte"
    if fault:
        raise _invalid(spec, at, fault)
    if queue not in legal_queues(spec, flags):
        raise _invalid(spec, at, f"queue {queue} does not run it")
    if (waits or signal) and not spec.synchronises:
        raise _invalid(spec, at, "may neither wait nor signal")
    if waits > MAX_WAITS:
        raise _invalid(spec, at, f"{waits} waits; at most {MAX_WAITS} fit")
    if not 0 <= signal <= 0xFFFF:
        raise _invalid(spec, at, f"signal token {signal} does not fit 16 bits")


def _check_operands(
    spec: CommandSpec, at: int, layout: tuple[OperandSpec, ...], mask: int, values: Sequence[int]
) -> None:
    if mask >> min(len(layout), MASKED_OPERANDS):
        raise _invalid(spec, at, "register mask names an operand that it does not have, or one past the mask's 64")
    for i, slot in enumerate(layout):
        if mask >> i & 1:
            if not slot.may_be_register:
                raise _invalid(spec, at, f"operand {slot.name} must be an immediate")
            if values[i] > 0xFF:
                raise _invalid(spec, at, f"operand {slot.name}: register {values[i]} does not exist")
        elif slot.role == "register" and values[i] > 0xFF:
            raise _invalid(spec, at, f"operand {slot.name}: register {values[i]} does not exist")
        elif slot.role == "space" and values[i] > 0xFFFF:
            raise _invalid(spec, at, f"operand {slot.name}: space {values[i]} does not exist")
        elif slot.role == "dtype" and values[i] not in DTYPE_NAMES:
            raise _invalid(spec, at, f"operand {slot.name}: element type {values[i]} does not exist")
        elif slot.role == "instruction" and values[i] != 0 and values[i] not in SCE_BY_OPCODE:
            raise _invalid(spec, at, f"operand {slot.name}: SCE opcode {values[i]:#06x} does not exist")


def _check_wait(spec: CommandSpec, at: int, token: int, lag: int) -> None:
    if not 1 <= token <= 0xFFFF:
        raise _invalid(spec, at, f"wait on token {token}, outside 1..65535")
    if not 0 <= lag <= 0xFFFFFFFF:
        raise _invalid(spec, at, f"lag {lag} does not fit 32 bits")
