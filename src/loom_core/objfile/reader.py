"""Bytes to objects, and validation. Whatever the bytes, the outcome is an object or a LoomError."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blake3 import blake3

from loom_core.base.diagnostics import Diagnostic, LoomError
from loom_core.base.location import UNKNOWN
from loom_core.isa.verify import verify_stream
from loom_core.objfile.errors import DamagedObject, InvalidSection, NotAnObject, UnknownSection, UnsupportedVersion
from loom_core.objfile.format import (
    ENTRY,
    HEADER,
    KNOWN,
    MAX_SECTIONS,
    OBJECT_MAGIC,
    REQUIRED,
    TRAILER,
    VERSION,
    aligned,
    bit_locator,
    sniff,
)
from loom_core.objfile.model import LoomObject, abi_faults
from loom_core.objfile.sections import object_of

_KINDS = {
    "empty": "an empty file",
    "bytecode": "Tile IR bytecode",
    "text": "text",
    "binary": "binary data of another kind",
}


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    required: bool
    offset: int
    length: int
    digest: bytes


def read_object(data: bytes | memoryview) -> LoomObject:
    """The object in `data`, with every hash checked.

    Raises NotAnObject, UnsupportedVersion, DamagedObject, UnknownSection or InvalidSection. The command stream is not
    looked at: loaders call `isa.verify.verify_stream`.
    """
    view = memoryview(data).cast("B")
    _check_file(view)
    digest, entries = _read_table(view)
    obj = object_of(_read_sections(view, entries), digest)
    for fault in abi_faults(obj.abi, obj.machine):
        raise InvalidSection(UNKNOWN, section="abi", reason=fault)
    return obj


def validate(data: bytes | memoryview, strict: bool = True) -> list[Diagnostic]:
    """What is wrong with a file, as diagnostics; an empty list if nothing is.

    Checks all that `read_object` does. `strict` also verifies the command stream and its programs, and that source
    map, loops and symbols point at what is there. Damage of one bit is reported with its section, offset and bit.
    """
    try:
        obj = read_object(data)
        faults = list(_strict_faults(obj)) if strict else []
    except LoomError as error:
        return list(error.diagnostics)
    return faults


# ---- header and table ----


def _damaged(where: str, offset: int, reason: str) -> DamagedObject:
    return DamagedObject(UNKNOWN, where=where, offset=offset, reason=reason)


def _read_table(data: memoryview) -> tuple[str, list[_Entry]]:
    """Machine digest and section table, every number in it checked against the file."""
    magic, version, count, digest, length = HEADER.unpack_from(data)
    if magic != OBJECT_MAGIC:
        raise NotAnObject(UNKNOWN, what=_KINDS["binary"])
    if version != VERSION:
        raise UnsupportedVersion(UNKNOWN, version=version, known=VERSION)
    if length != len(data):
        raise _damaged("header", 32, f"the file has {len(data)} bytes, its header says {length}")
    if count > MAX_SECTIONS or HEADER.size + count * ENTRY.size + TRAILER.size > length:
        raise _damaged("header", 12, f"{count} sections do not fit the file")
    entries = [_read_entry(data, i) for i in range(count)]
    _check_layout(data, entries)
    return digest.hex(), entries


def _read_entry(data: memoryview, index: int) -> _Entry:
    at = HEADER.size + index * ENTRY.size
    raw_name, flags, zero, offset, length, digest = ENTRY.unpack_from(data, at)
    name = raw_name.rstrip(b"\0")
    if not name or not name.isalnum() or not name.isascii():
        raise _damaged("section table", at, f"{raw_name!r} is not a section name")
    if flags & ~REQUIRED or zero:
        raise _damaged("section table", at + 16, f"flags {flags:#x} of section {name.decode()} are not known")
    return _Entry(name.decode(), bool(flags & REQUIRED), offset, length, digest)


def _check_layout(data: memoryview, entries: list[_Entry]) -> None:
    """Sections follow each other at aligned offsets, with zeros between, and fill the file."""
    at = HEADER.size + len(entries) * ENTRY.size
    for index, entry in enumerate(entries):
        place = HEADER.size + index * ENTRY.size
        if entry.offset != aligned(at):
            raise _damaged(
                "section table", place + 24, f"section {entry.name} begins at {entry.offset}, not {aligned(at)}"
            )
        if entry.length > len(data) - TRAILER.size - entry.offset:
            raise _damaged(
                "section table", place + 32, f"section {entry.name} of {entry.length} bytes runs past the file"
            )
        if any(data[at : entry.offset]):
            raise _damaged(f"padding before section {entry.name}", at, "is not zero")
        at = entry.offset + entry.length
    if at != len(data) - TRAILER.size:
        raise _damaged("end of file", at, f"{len(data) - TRAILER.size - at} bytes belong to no section")
    names = [entry.name for entry in entries]
    if len(set(names)) != len(names):
        raise _damaged("section table", HEADER.size, "two sections have one name")


def _read_sections(data: memoryview, entries: list[_Entry]) -> dict[str, bytes]:
    """Contents of the known sections, hashes checked."""
    sections: dict[str, bytes] = {}
    for entry in entries:
        contents = bytes(data[entry.offset : entry.offset + entry.length])
        if blake3(contents).digest() != entry.digest:
            raise _damaged(
                f"section {entry.name}", entry.offset, f"its {entry.length} bytes do not have the recorded hash"
            )
        if entry.name in KNOWN:
            sections[entry.name] = contents
        elif entry.required:
            raise UnknownSection(UNKNOWN, section=repr(entry.name))
    for name, spec in KNOWN.items():
        if spec.required and name not in sections:
            raise InvalidSection(UNKNOWN, section=name, reason="is required and absent")
    return sections


# ---- damage ----


def _check_file(data: memoryview) -> None:
    """Raise NotAnObject, or DamagedObject as precise as can be, unless the bytes have the file's hash."""
    kind = sniff(data)
    if kind != "object" and not _is_nearly_magic(data):
        raise NotAnObject(UNKNOWN, what=_KINDS[kind])
    if len(data) < HEADER.size + TRAILER.size:
        raise _damaged("header", 0, f"the file has {len(data)} bytes and ends in its header")
    end = len(data) - TRAILER.size
    stored_locator, stored_hash = TRAILER.unpack_from(data, end)
    computed = blake3(data[: end + 8]).digest()
    if computed == stored_hash:
        return
    bit = _flipped_bit(data, stored_locator, stored_hash, computed)
    if bit is not None:
        raise _damaged(_place(data, bit), bit // 8, f"bit {bit % 8} of this byte is flipped")
    _, entries = _read_table(data)
    for entry in entries:
        if blake3(data[entry.offset : entry.offset + entry.length]).digest() != entry.digest:
            raise _damaged(*_wrong_hash(entry))
    raise _damaged("header, section table or trailer", 0, "the file does not have the recorded hash")


def _wrong_hash(entry: _Entry) -> tuple[str, int, str]:
    return f"section {entry.name}", entry.offset, f"its {entry.length} bytes do not have the recorded hash"


def _is_nearly_magic(data: memoryview) -> bool:
    """Whether one flipped bit keeps the file from beginning like an object."""
    start = int.from_bytes(data[: len(OBJECT_MAGIC)], "little")
    return (start ^ int.from_bytes(OBJECT_MAGIC, "little")).bit_count() <= 1


def _flipped_bit(data: memoryview, stored_locator: int, stored_hash: bytes, computed: bytes) -> int | None:
    """Index of the one bit whose flip explains a wrong hash; None if no single bit does."""
    end = len(data) - TRAILER.size
    difference = int.from_bytes(computed, "little") ^ int.from_bytes(stored_hash, "little")
    if difference.bit_count() == 1:
        return (end + 8) * 8 + difference.bit_length() - 1
    syndrome = bit_locator(data[:end]) ^ stored_locator
    candidates = [syndrome >> 1] if syndrome & 1 and syndrome >> 1 < end * 8 else []
    if syndrome.bit_count() == 1:  # the locator itself
        candidates.append(end * 8 + syndrome.bit_length() - 1)
    for bit in candidates:
        if blake3(_with_flipped(data, bit)[: end + 8]).digest() == stored_hash:
            return bit
    return None


def _with_flipped(data: memoryview, bit: int) -> memoryview:
    repaired = bytearray(data)
    repaired[bit // 8] ^= 1 << bit % 8
    return memoryview(repaired)


def _place(data: memoryview, bit: int) -> str:
    """What a bit belongs to, in words; `data` is right but for that bit."""
    offset = bit // 8
    if offset < HEADER.size:
        return "header"
    if offset >= len(data) - TRAILER.size:
        return "trailer"
    _, entries = _read_table(_with_flipped(data, bit))
    if offset < HEADER.size + len(entries) * ENTRY.size:
        return f"section table, entry {entries[(offset - HEADER.size) // ENTRY.size].name}"
    for entry in entries:
        if entry.offset <= offset < entry.offset + entry.length:
            return f"section {entry.name}, byte {offset - entry.offset}"
    return "padding"


# ---- strict checks ----


def _strict_faults(obj: LoomObject) -> Iterator[Diagnostic]:
    stream = verify_stream(obj.commands, obj.programs, obj.machine, spaces=obj.spaces, writable=obj.writable)
    if stream.uses_while and obj.while_budget < 1:
        yield InvalidSection.diagnostic(section="manifest", reason="gives no while_budget, the commands need one")
    for entry in obj.sourcemap:
        if entry.word not in stream.commands:
            yield InvalidSection.diagnostic(section="sourcemap", reason=f"word {entry.word} begins no command")
    for loop in obj.loops:
        at = stream.commands.get(loop.word)
        if at is None or at.mnemonic != "loop" or at.operands[-1] != loop.end:
            reason = f"words {loop.word} to {loop.end} are not a loop of the commands"
            yield InvalidSection.diagnostic(section="loops", reason=reason)
    sizes = {"commands": len(obj.commands), "programs": len(obj.programs), "constants": len(obj.constants)}
    for symbol in obj.symbols:
        size = sizes.get(symbol.section, -1)
        if symbol.offset < 0 or symbol.length < 0 or symbol.offset + symbol.length > size:
            reason = f"{symbol.name!r} names a range that section {symbol.section!r} does not have"
            yield InvalidSection.diagnostic(section="symbols", reason=reason)
