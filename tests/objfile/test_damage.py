"""Damaged and hostile files: always a LoomError, never another exception, never a wrong object."""

from __future__ import annotations

import random
import re
import struct

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from loom_core.base.diagnostics import LoomError
from loom_core.objfile import read_object, validate, write_object
from loom_core.objfile.errors import DamagedObject, UnsupportedVersion
from loom_core.objfile.format import ENTRY, HEADER, TRAILER, VERSION, Section, bit_locator, pack_sections
from loom_core.objfile.sections import object_sections
from tests.isa.strategies import unhurried
from tests.objfile.samples import same, sample

DATA = write_object(sample())
DIGEST = sample().machine.digest()


def refused(data: bytes) -> str:
    """The message of the error that reading gives; `validate` reports the same."""
    with pytest.raises(LoomError) as caught:
        read_object(data)
    assert [found.message for found in validate(data)] == [found.message for found in caught.value.diagnostics]
    return caught.value.diagnostics[0].message


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def sealed(content: bytes) -> bytes:
    """A file whose locator and hash fit whatever its content is."""
    locator = struct.pack("<Q", bit_locator(content))
    return content + locator + blake3(content + locator).digest()


def test_every_byte_is_guarded_and_located() -> None:
    """One flipped bit in each byte: named by its offset and bit, and by what it belongs to."""
    choose = random.Random(3)
    places = set()
    for offset in range(len(DATA)):
        bit = choose.randrange(8)
        message = refused(flipped(DATA, offset * 8 + bit))
        assert f"file offset {offset}: bit {bit} of this byte is flipped" in message
        places.add(re.sub(r", (byte|entry).*", "", message.split(": ")[1].split(", file")[0]))
    sections = {f"section {section.name}" for section in object_sections(sample())}
    assert places == sections | {"header", "section table", "padding", "trailer"}


def test_section_offsets_are_the_sections_own() -> None:
    at = DATA.index(sample().constants)
    assert "section constants, byte 17, " in refused(flipped(DATA, (at + 17) * 8))


def test_every_truncation() -> None:
    for length in range(len(DATA)):
        refused(DATA[:length])
    refused(DATA + b"\0")


@unhurried
@given(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_overwritten_bytes(changes: list[tuple[int, int]]) -> None:
    changed = bytearray(DATA)
    for at, value in changes:
        changed[at] = value
    if bytes(changed) != DATA:
        refused(bytes(changed))


@unhurried
@given(st.integers(0, len(DATA)), st.integers(0, len(DATA)), st.binary(max_size=64))
def test_splices(start: int, end: int, middle: bytes) -> None:
    changed = DATA[:start] + middle + DATA[end:]
    if changed != DATA:
        refused(changed)


def test_damage_of_many_bits_names_the_section() -> None:
    at = DATA.index(sample().constants)
    changed = DATA[:at] + b"\xaa\xbb\xcc" + DATA[at + 3 :]
    assert f"section constants, file offset {at}" in refused(changed)


# ---- files that somebody wrote with right hashes ----


@unhurried
@given(st.integers(0, HEADER.size + 9 * ENTRY.size - 1), st.binary(min_size=1, max_size=8))
def test_hostile_tables(at: int, value: bytes) -> None:
    """Any bytes in header or table, resealed: an error or the very object (an optional section may be renamed)."""
    content = bytearray(DATA[: -TRAILER.size])
    content[at : at + len(value)] = value
    try:
        obj = read_object(sealed(bytes(content)))
    except LoomError:
        return
    assert (obj.commands == sample().commands).all()
    assert (obj.constants, obj.abi, obj.machine) == (sample().constants, sample().abi, sample().machine)


@pytest.mark.parametrize("value", [0, 1, 64, 1 << 32, (1 << 63) - 1, (1 << 64) - 1, (1 << 64) - 64])
@pytest.mark.parametrize("field", [24, 32])
@pytest.mark.parametrize("entry", [0, 1, 8])
def test_hostile_offsets_and_lengths(entry: int, field: int, value: int) -> None:
    at = HEADER.size + entry * ENTRY.size + field
    content = DATA[:at] + struct.pack("<Q", value) + DATA[at + 8 : -TRAILER.size]
    refused(sealed(content))


@pytest.mark.parametrize("count", [0, 1, 8, 10, 65, (1 << 32) - 1])
def test_hostile_counts(count: int) -> None:
    refused(sealed(DATA[:12] + struct.pack("<I", count) + DATA[16 : -TRAILER.size]))


def test_other_version() -> None:
    with pytest.raises(UnsupportedVersion, match=f"version {VERSION + 1}"):
        read_object(sealed(DATA[:8] + struct.pack("<I", VERSION + 1) + DATA[12 : -TRAILER.size]))


def test_two_sections_of_one_name() -> None:
    sections = object_sections(sample())
    with pytest.raises(DamagedObject, match="one name"):
        read_object(pack_sections([*sections, sections[1]], DIGEST))


def with_section(name: str, data: bytes) -> bytes:
    sections = [Section(s.name, data if s.name == name else s.data, s.required) for s in object_sections(sample())]
    return pack_sections(sections, DIGEST)


@pytest.mark.parametrize("name", ["machine", "abi", "manifest", "symbols", "loops", "sourcemap"])
@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"null", b"3", b"[]x", b"[1,2,3]", b'{"a":1e999}', b'{"a": 1}', b'{"b":1,"a":2}', b'{"a":1,"a":1}']
    + [b'"\\ud800"', b"\xff", b"[" * 100_000, b'{"args":[[]]} ', b'{"name":"x","cores":-1}', b'{"a":"\\u0041"}'],
)
def test_hostile_json(name: str, data: bytes) -> None:
    refused(with_section(name, data))


@unhurried
@given(
    name=st.sampled_from(["machine", "abi", "manifest", "symbols", "loops", "sourcemap"]),
    at=st.integers(0, 400),
    length=st.integers(0, 4),
    value=st.binary(max_size=4),
)
def test_hostile_json_edits(name: str, at: int, length: int, value: bytes) -> None:
    """Edits of a JSON section, resealed: an error, or an object that writes the very same bytes again."""
    (old,) = (section.data for section in object_sections(sample()) if section.name == name)
    data = with_section(name, old[:at] + value + old[at + length :])
    try:
        obj = read_object(data)
    except LoomError:
        return
    assert write_object(obj) == data
    for found in validate(data):
        assert found.code.startswith("LOOM-O")


@pytest.mark.parametrize("name", ["commands", "programs"])
def test_words_are_whole(name: str) -> None:
    assert "whole words" in refused(with_section(name, bytes(13)))


def test_machine_digest_must_fit() -> None:
    assert "digest" in refused(pack_sections(object_sections(sample()), "00" * 16))


def test_source_map_strings() -> None:
    table = b'{"rows":[[0,0,1,1,2,0,9]],"strings":["a"]}'
    assert "outside the table" in refused(with_section("sourcemap", table))


@unhurried
@given(st.binary(max_size=400))
def test_random_files(data: bytes) -> None:
    refused(data)
    refused(DATA[: HEADER.size] + data)


def test_undamaged_after_all() -> None:
    assert same(read_object(DATA), sample())
