"""Objects survive being written and read; equal objects have equal bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from blake3 import blake3

from loom_core.isa.encoding import command, encode
from loom_core.isa.machine import L1
from loom_core.objfile import (
    Abi,
    AbiArg,
    LoomObject,
    LoopRecord,
    SourceEntry,
    read_object,
    sniff,
    validate,
    write_object,
)
from loom_core.objfile.errors import InvalidSection, NotAnObject, UnknownSection
from loom_core.objfile.format import ALIGNMENT, OBJECT_MAGIC, Section, bit_locator, pack_sections
from loom_core.objfile.sections import object_sections
from tests.objfile.samples import same, sample

DIGEST = sample().machine.digest()


def test_round_trip() -> None:
    data = write_object(sample())
    assert validate(data) == []
    assert same(read_object(data), sample())
    assert write_object(read_object(data)) == data
    assert same(read_object(memoryview(data)), sample())


def test_smallest_object() -> None:
    obj = LoomObject(encode([command("halt")]), machine=L1)
    data = write_object(obj)
    assert validate(data) == []
    assert same(read_object(data), obj)
    assert (obj.spaces, obj.while_budget) == (0, 0)


def test_words_read_are_constant() -> None:
    assert not read_object(write_object(sample())).commands.flags.writeable


def test_key_order_does_not_matter() -> None:
    manifest = sample().manifest
    backwards = {key: manifest[key] for key in reversed(manifest)}
    assert write_object(sample(manifest=backwards)) == write_object(sample())


def store_to(space: int) -> np.ndarray:
    return encode([command("sts", 2, 0, 5), command("sts", 0, 0, 5), command("sts", space, 0, 5), command("halt")])


def test_layout() -> None:
    obj = sample()
    data = write_object(obj)
    assert data.startswith(OBJECT_MAGIC)
    assert data[16:32].hex() == obj.machine.digest()
    assert blake3(data[:-32]).digest() == data[-32:]
    for section in object_sections(obj):
        if section.data:
            assert any(data[at:].startswith(section.data) for at in range(0, len(data), ALIGNMENT))


def test_spaces() -> None:
    assert sample().spaces == 3
    assert sample().abi.constants_space == 3
    assert sample(constants=b"").spaces == 2
    assert [arg.name for arg in sample().abi.scalars] == ["n"]


def test_same_bytes_in_every_process(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]; from tests.objfile.samples import sample; "
        "from loom_core.objfile import write_object; sys.stdout.buffer.write(write_object(sample()))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, str(root), str(root / "src")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=tmp_path,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "77")
    }
    assert outputs == {write_object(sample())}


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "empty"),
        (write_object(sample()), "object"),
        (b"LOOM\x01\x00", "bytecode"),
        ("func @f() {\n  // größer\n}\n".encode()[:11], "text"),
        (b"\x7fELF\x02\x01", "binary"),
        (b"\xff\xfe\x00", "binary"),
    ],
)
def test_sniff(data: bytes, kind: str) -> None:
    assert sniff(data) == kind
    if kind != "object":
        with pytest.raises(NotAnObject):
            read_object(data)
        assert [found.code for found in validate(data)] == ["LOOM-O101"]


def test_unknown_sections() -> None:
    sections = object_sections(sample())
    optional = pack_sections([*sections, Section("future", b"12", False)], DIGEST)
    assert same(read_object(optional), sample())
    with pytest.raises(UnknownSection, match="future"):
        read_object(pack_sections([*sections, Section("future", b"12", True)], DIGEST))


def test_optional_sections_may_be_absent() -> None:
    sections = [section for section in object_sections(sample()) if section.required]
    obj = read_object(pack_sections(sections, DIGEST))
    assert (obj.sourcemap, obj.loops, obj.symbols) == ((), (), ())
    for section in sections:
        rest = [other for other in sections if other is not section]
        with pytest.raises(InvalidSection, match=section.name):
            read_object(pack_sections(rest, DIGEST))


@pytest.mark.parametrize(
    ("abi", "reason"),
    [
        (Abi((AbiArg("x", "buffer", "f32", 1), AbiArg("x", "scalar", "f32", 4))), "two arguments"),
        (Abi((AbiArg("x", "buffer", "f33", 1),)), "unknown type"),
        (Abi((AbiArg("x", "buffer", "f32", 2),)), "its place makes it 1"),
        (Abi((AbiArg("n", "scalar", "f32", 256),)), "register 256"),
        (Abi((AbiArg("n", "scalar", "f32", 2),)), "preloaded twice"),
        (Abi(sram_bytes_used=1 << 30), "of SRAM"),
        (Abi((AbiArg("x", "buffer", "f32", 1),), noalias=((1, 1),)), "noalias"),
        (Abi((AbiArg("x", "buffer", "f32", 1),), noalias=((1, 2),)), "noalias"),
    ],
)
def test_bad_abi(abi: Abi, reason: str) -> None:
    with pytest.raises(InvalidSection, match=reason):
        write_object(sample(abi=abi))


def test_manifest_must_be_json() -> None:
    with pytest.raises(InvalidSection, match="manifest"):
        write_object(sample(manifest={"f": object()}))


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"commands": encode([command("mov", 3, 4)])}, "LOOM-O006", "halt"),
        ({"commands": np.zeros(3, np.uint64)}, "LOOM-O006", "opcode"),
        ({"programs": np.zeros(0, np.uint64)}, "LOOM-O005", "programs section"),
        ({"manifest": {}}, "LOOM-O105", "while_budget"),
        ({"sourcemap": (SourceEntry(1, "k.py", 1),)}, "LOOM-O105", "begins no command"),
        ({"loops": (LoopRecord(0, 3),)}, "LOOM-O105", "not a loop"),
        ({"constants": b"short"}, "LOOM-O105", "'table'"),
        ({"abi": Abi(), "constants": b"", "symbols": ()}, "LOOM-O003", "space 1, the object has 0"),
        ({"commands": store_to(1)}, "LOOM-O003", "space 1 is not for writing"),
        ({"commands": store_to(3)}, "LOOM-O003", "space 3 is not for writing"),
        ({"commands": store_to(4)}, "LOOM-O003", "space 4, the object has 3"),
    ],
)
def test_strict_validation(changes: dict[str, object], code: str, reason: str) -> None:
    plain = {"sourcemap": (), "loops": ()} if "commands" in changes else {}
    data = write_object(sample(**{**plain, **changes}))
    found = validate(data, strict=True)
    assert [one.code for one in found] == [code]
    assert reason in found[0].message
    assert validate(data, strict=False) == []


def test_locator() -> None:
    data = bytes(np.random.default_rng(0).integers(0, 256, 5000, np.uint8))
    ones = [8 * at + bit for at, byte in enumerate(data) for bit in range(8) if byte >> bit & 1]
    assert bit_locator(data) == int(np.bitwise_xor.reduce(ones)) << 1 | len(ones) & 1
    assert bit_locator(b"") == 0
    long = bytes(1 << 19) + b"\x10"
    assert bit_locator(long) == ((1 << 19) * 8 + 4) << 1 | 1
