"""Layout of an object file, version 2. All numbers are little-endian.

    0   magic b"LOOMOBJ\\0" 8   u32 version, u32 number of sections 16  machine digest, 16 bytes 32  u64 length of the
    file 40  section table: per section name, 16 bytes, ASCII, zero padded; u32 flags (bit 0: required); u32 zero; u64
    offset; u64 length; blake3, 32 bytes ..  sections, in table order, each at the next multiple of 64; the bytes
    between are zero ..  u64 locator, blake3 of all bytes before it (32 bytes): the file's last 40 bytes

The locator is parity | index << 1 over all bits before it: the parity of their sum, and the exclusive or of the
indices of those that are set. If one bit flips, stored and computed parity differ, and the exclusive or of both
indices is the bit's own: damage of one bit can be named, and the hash confirms it.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Final

import numpy as np
from blake3 import blake3

OBJECT_MAGIC: Final = b"LOOMOBJ\0"
BYTECODE_MAGIC: Final = b"LOOM"
VERSION: Final = 2
ALIGNMENT: Final = 64
HEADER: Final = struct.Struct("<8sII16sQ")
ENTRY: Final = struct.Struct("<16sIIQQ32s")
TRAILER: Final = struct.Struct("<Q32s")
REQUIRED: Final = 1
MAX_SECTIONS: Final = 64


@dataclasses.dataclass(frozen=True, slots=True)
class SectionSpec:
    """A section that this version knows."""

    name: str
    required: bool
    doc: str


SECTIONS: Final[tuple[SectionSpec, ...]] = (
    SectionSpec("machine", True, "machine configuration, canonical JSON"),
    SectionSpec("commands", True, "command stream, 64-bit words"),
    SectionSpec("programs", True, "SCE programs, 64-bit words"),
    SectionSpec("constants", True, "bytes of the constants space"),
    SectionSpec("abi", True, "arguments, registers and bindings, canonical JSON"),
    SectionSpec("manifest", True, "what made the object and what it needs, canonical JSON"),
    SectionSpec("symbols", False, "names of ranges, canonical JSON"),
    SectionSpec("loops", False, "loops and their witnesses, canonical JSON"),
    SectionSpec("sourcemap", False, "source lines of commands: string table and rows, canonical JSON"),
)
KNOWN: Final[dict[str, SectionSpec]] = {section.name: section for section in SECTIONS}


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """A section's name, contents and required flag, as written."""

    name: str
    data: bytes
    required: bool


def aligned(offset: int) -> int:
    """The next multiple of the section alignment."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def pack_sections(sections: list[Section], machine_digest: str) -> bytes:
    """The file that holds these sections. `machine_digest`: 32 hex digits."""
    at = HEADER.size + ENTRY.size * len(sections)
    table: list[bytes] = []
    body: list[bytes] = []
    for section in sections:
        start = aligned(at)
        body += [bytes(start - at), section.data]
        flags = REQUIRED if section.required else 0
        name, digest = section.name.encode("ascii"), blake3(section.data).digest()
        table.append(ENTRY.pack(name, flags, 0, start, len(section.data), digest))
        at = start + len(section.data)
    header = HEADER.pack(OBJECT_MAGIC, VERSION, len(sections), bytes.fromhex(machine_digest), at + TRAILER.size)
    content = b"".join((header, *table, *body))
    locator = struct.pack("<Q", bit_locator(content))
    return content + locator + blake3(content + locator).digest()


def sniff(data: bytes | memoryview) -> str:
    """What some bytes are by how they begin: "object", "bytecode", "text", "empty" or "binary"."""
    start = bytes(data[:64])
    if not start:
        return "empty"
    if start.startswith(OBJECT_MAGIC):
        return "object"
    if start.startswith(BYTECODE_MAGIC):
        return "bytecode"
    printable = all(byte >= 0x20 or byte in b"\t\r\n\f" for byte in start)
    return "text" if printable else "binary"


# ---- the locator ----


def _byte_tables() -> tuple[np.ndarray, np.ndarray]:
    """Per byte value: all ones if an odd number of bits is set, else 0; exclusive or of the set bits' indices."""
    parity = np.zeros(256, np.uint64)
    indices = np.zeros(256, np.uint64)
    for value in range(256):
        for bit in range(8):
            if value >> bit & 1:
                parity[value] ^= np.uint64(0xFFFFFFFFFFFFFFFF)
                indices[value] ^= np.uint64(bit)
    return parity, indices


_PARITY, _INDICES = _byte_tables()
_CHUNK = 1 << 18  # bytes at a time: bounds the memory of the index arrays


def bit_locator(data: bytes | memoryview) -> int:
    """Parity of all bits, and above it the exclusive or of the set bits' indices, the first byte's lowest being 0."""
    values = np.frombuffer(data, np.uint8)
    result = 0
    ones = 0
    for start in range(0, len(values), _CHUNK):
        chunk = values[start : start + _CHUNK]
        places = np.arange(start * 8, (start + len(chunk)) * 8, 8, dtype=np.uint64)
        terms = (places & _PARITY[chunk]) ^ _INDICES[chunk]
        result ^= int(np.bitwise_xor.reduce(terms))
        ones ^= int(np.bitwise_xor.reduce(_PARITY[chunk])) & 1
    return result << 1 | ones
