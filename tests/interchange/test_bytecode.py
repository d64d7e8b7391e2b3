"""Bytecode: round trips, and what malformed bytes are refused for."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from loom.format.bytecode import BytecodeError, read_module, write_module
from loom.importers import print_loom_module
from loom.ir import FileLocation, Module, Operation
from loom_core.interchange import bytecode as b
from loom_core.interchange.bytecode.encoding import ByteReader, ByteWriter
from loom_core.interchange.diagnostics import LoomDiagnosticError
from tests.interchange.copy_kernel import build_copy_kernel
from tests.interchange.generated import modules
from tests.interchange.test_text import COPY_KERNEL, FUNCTION, parse


def test_the_copy_kernel() -> None:
    data = write_module(build_copy_kernel())
    assert data == write_module(build_copy_kernel())
    assert data[:20] == b"LOOM" + bytes((28, 0)) + struct.pack("<HII", 1, 1, 0) + b"loom"
    assert data[16:24] == b"loom-py\0"
    assert print_loom_module(read_module(data, verify=True)) == COPY_KERNEL


@pytest.mark.parametrize("seed", range(2, 4))
def test_every_operation_survives_bytecode(seed: int) -> None:
    for module in modules(seed):
        text = print_loom_module(module)
        data = write_module(module)
        again = read_module(data, verify=True)
        assert print_loom_module(again) == text
        assert write_module(again) == data
        located = print_loom_module(module, print_locations=True)
        bodies = [line for line in located.splitlines() if line.startswith("  ")]
        kept = [line for line in print_loom_module(again, print_locations=True).splitlines() if line.startswith("  ")]
        assert kept == bodies
        parsed = parse(text)
        assert print_loom_module(read_module(write_module(parsed))) == text


def test_text_with_comments_and_blank_lines() -> None:
    assert print_loom_module(read_module(write_module(parse(FUNCTION)), verify=True)) == FUNCTION


def test_locations_may_be_dropped() -> None:
    module = parse(COPY_KERNEL, "x.loom")
    kept = read_module(write_module(module))
    assert any(isinstance(location, FileLocation) for location in kept.locations)
    dropped = write_module(module, location_mode=1)
    assert len(dropped) < len(write_module(module))
    assert len(read_module(dropped).locations) == 1
    with pytest.raises(BytecodeError, match="unsupported location mode 2"):
        write_module(module, location_mode=2)


def test_unnamed_values_keep_their_text() -> None:
    text = "func.def @f() {\n  %7 = index.constant 1 : index\n  %2 = index.constant 1 : index\n  func.return\n}\n"
    assert print_loom_module(read_module(write_module(parse(text)))) == text


def test_an_empty_module() -> None:
    assert print_loom_module(read_module(write_module(Module("name")))) == ""
    assert read_module(write_module(Module("name"))).name == "name"


def test_verification_on_reading() -> None:
    data = write_module(parse("func.def @f() {\n  func.call @g() : () -> ()\n  func.return\n}\n"))
    read_module(data)
    with pytest.raises(LoomDiagnosticError, match="unresolved symbol reference"):
        read_module(data, verify=True)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**32, 2**63, 2**64 - 1])
def test_varints(number: int) -> None:
    out = ByteWriter()
    out.varint(number)
    assert ByteReader(bytes(out)).varint() == number
    if number < 2**63:
        for signed in (number, -number):
            out = ByteWriter()
            out.signed(signed)
            assert ByteReader(bytes(out)).signed() == signed


@pytest.mark.parametrize("data", [b"\x80\x00", b"\xff\x80\x00", b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01"])
def test_non_canonical_varints(data: bytes) -> None:
    with pytest.raises(BytecodeError, match="non-canonical varint"):
        ByteReader(data).varint()


def test_what_cannot_be_written() -> None:
    module = build_copy_kernel()
    module.add_top_level_operation(Operation(name="index.constant"))
    with pytest.raises(BytecodeError, match="defines no symbol"):
        write_module(module)
    module = build_copy_kernel()
    next(op for op in module.walk() if op.name == "buffer.store.i8").operands[0] = 99
    with pytest.raises(BytecodeError, match="outside the function that defines it"):
        write_module(module)


# ---- malformed files ----


def sections_of(data: bytes) -> tuple[int, int, dict[int, tuple[int, int, int]]]:
    """Offset of the module, of its directory, and kind -> (entry, offset, length), offsets within the file."""
    start = struct.unpack_from("<Q", data, 24 + 8)[0]
    r = ByteReader(data, start)
    count = r.varint()
    for _ in range(4):
        r.varint()
    directory = r.at
    found = {}
    for _ in range(count):
        entry = r.at
        kind, _, _, offset, length, _ = r.fixed("HHIQQQ")
        found[kind] = (entry, start + offset, length)
    return start, directory, found


def put(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def second_entry_repeats_the_first(data: bytes) -> bytes:
    _, directory, _ = sections_of(data)
    return put(data, directory + 32, data[directory : directory + 2])


def header_has_a_blank_line(data: bytes) -> bytes:
    return put(data, sections_of(data)[2][b.SOURCE_TRIVIA][1], b"\x01")


def section_is_too_long(data: bytes) -> bytes:
    entry, _, length = sections_of(data)[2][b.OPS]
    return put(data, entry + 16, struct.pack("<Q", length + 1))


def sections_are_unsorted(data: bytes) -> bytes:
    _, directory, _ = sections_of(data)
    first, second = data[directory : directory + 32], data[directory + 32 : directory + 64]
    return put(data, directory, second + first)


def string_is_no_utf8(data: bytes) -> bytes:
    at = data.index(b"copy_64_bytes", sections_of(data)[2][b.STRINGS][1])
    return put(data, at, b"\xff")


def op_name_is_unknown(data: bytes) -> bytes:
    at = data.index(b"index.cast", sections_of(data)[2][b.STRINGS][1])
    return put(data, at, b"index.lost")


def a_string_is_a_symbol(data: bytes) -> bytes:
    strings = ByteReader(data, sections_of(data)[2][b.STRINGS][1])
    names = [strings.blob() for _ in range(strings.varint())]
    key = bytes((names.index(b"export_symbol"), b.ATTR_STRING))
    at = data.index(key, sections_of(data)[2][b.SYMBOLS][1])
    return put(data, at + 1, bytes((b.ATTR_SYMBOL,)))


def a_type_is_unknown(data: bytes) -> bytes:
    return put(data, sections_of(data)[2][b.TYPES][1] + 1, b"\x04")


def more_values_are_announced(data: bytes) -> bytes:
    start = sections_of(data)[0]
    return put(data, start + 1, bytes((data[start + 1] + 1,)))


MALFORMED: list[tuple[str, str, Callable[[bytes], bytes]]] = [
    ("invalid magic", "BYTECODE/001", lambda data: b"LOAM" + data[4:]),
    ("invalid magic", "BYTECODE/001", lambda data: b"LOOMOBJ\0" + data[8:]),
    ("unsupported format version 27", "BYTECODE/002", lambda data: put(data, 4, b"\x1b")),
    ("unsupported location mode 2", "BYTECODE/011", lambda data: put(data, 5, b"\x02")),
    ("unexpected end of data", "BYTECODE/003", lambda data: data[:10]),
    ("outside the file", "BYTECODE/007", lambda data: data[:-1]),
    ("duplicate section IR", "BYTECODE/006", second_entry_repeats_the_first),
    ("overlaps, is unsorted or too long", "BYTECODE/007", sections_are_unsorted),
    ("overlaps, is unsorted or too long", "BYTECODE/007", section_is_too_long),
    ("the header of a file has no blank line", "BYTECODE/006", header_has_a_blank_line),
    ("strings hold what is no UTF-8", "BYTECODE/010", string_is_no_utf8),
    ("unknown operation 'index.lost'", "BYTECODE/016", op_name_is_unknown),
    ("an attribute of kind 6 where a string is declared", "BYTECODE/015", a_string_is_a_symbol),
    ("unknown type kind 4", "BYTECODE/004", a_type_is_unknown),
    ("count summary mismatch", "BYTECODE/006", more_values_are_announced),
]


@pytest.mark.parametrize(("message", "code", "damage"), MALFORMED)
def test_malformed_files(message: str, code: str, damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(BytecodeError, match=message) as caught:
        read_module(damage(write_module(build_copy_kernel())))
    assert caught.value.code == code


def test_every_prefix_is_refused() -> None:
    data = write_module(build_copy_kernel())
    for end in range(len(data)):
        with pytest.raises(BytecodeError):
            read_module(data[:end])


def test_unknown_sections_are_skipped() -> None:
    data = write_module(build_copy_kernel())
    start, directory, found = sections_of(data)
    _, offset, length = found[b.SOURCE_TRIVIA]
    count = data[start]
    grown = bytearray(data)
    grown[start] = count + 1
    shift = 32
    for kind, (at, place, size) in found.items():
        struct.pack_into("<HHIQQQ", grown, at, kind, 0, 0, place - start + shift, size, 0)
    end = directory + 32 * count
    extra = struct.pack("<HHIQQQ", 99, 0, 0, offset + length - start + shift, 3, 0)
    grown[end:end] = extra
    grown += b"xyz"
    struct.pack_into("<Q", grown, 24 + 16, len(data) - start + shift + 3)
    assert print_loom_module(read_module(bytes(grown))) == COPY_KERNEL
