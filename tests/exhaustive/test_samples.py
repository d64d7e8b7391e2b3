"""Samples of `./run exhaustive`: all of it takes most of an hour."""

from __future__ import annotations

import platform
import subprocess
import sys
import zlib

import llvmlite.binding as llvm
import numpy as np
import pytest

from exhaustive import formats, hashes, references, targets
from loom_core.isa.sce import SCE_OPS, SceOp

_X86 = platform.machine() in ("x86_64", "AMD64")


def _one_in(count: int, ops: list[SceOp]) -> list[SceOp]:
    return [op for op in ops if zlib.crc32(f"sample {op.mnemonic}".encode()) % count == 0]


def test_conversions_are_those_of_ml_dtypes() -> None:
    assert list(formats.conversion_faults()) == []


@pytest.mark.parametrize("op", _one_in(20, formats.covered_ops()), ids=lambda op: op.mnemonic)
def test_every_value_of_a_narrow_type(op: SceOp) -> None:
    assert formats.faults(op) == []


def test_hashes_are_published_for_every_function() -> None:
    known = hashes.published()
    assert sorted(known) == sorted(op.mnemonic for op in hashes.hashed_ops())
    for entry in known.values():
        assert len(entry["parts"]) == hashes.PARTS * hashes.PART_DIGITS
        assert len(entry["all"]) == 64


@pytest.mark.parametrize("op", _one_in(5, hashes.hashed_ops()), ids=lambda op: op.mnemonic)
def test_a_part_of_all_operands_has_its_published_hash(op: SceOp) -> None:
    part = zlib.crc32(op.mnemonic.encode()) % hashes.PARTS
    assert hashes.part_digest(op, part).startswith(hashes.published_part(op.mnemonic, part))


def test_a_hash_tells_operands_and_functions_apart() -> None:
    floor, trunc = SCE_OPS["floor.f32"], SCE_OPS["trunc.f32"]
    from_two, from_minus_two = 16, 48
    found = {
        hashes.part_digest(*case, 1 << 12)
        for case in ((floor, from_two), (floor, from_minus_two), (trunc, from_minus_two))
    }
    assert len(found) == 3
    assert hashes.part_digest(floor, from_two, 1 << 12) == hashes.part_digest(trunc, from_two, 1 << 12)


def test_measured_errors() -> None:
    found = references.measure(SCE_OPS["sigmoid.f32"], 1 << 14)
    assert list(found.faults(SCE_OPS["sigmoid.f32"])) == []
    assert found.ulp is not None and 0.5 < found.ulp < 1.6
    exact = np.array([1.0, 2.0**-140])
    got = np.array([1.0 + 2.0**-22, 2.0**-140 + 2.0**-149], np.float32)
    assert references.error_in_ulp(got, exact) == (2.0, 1.0)


@pytest.mark.skipif(not _X86 or not llvm.get_host_cpu_features().get("fma"), reason="the targets are x86-64 with FMA")
def test_bits_do_not_depend_on_the_target() -> None:
    assert list(targets.faults(targets.sample(30))) == []


def test_the_command() -> None:
    command = [sys.executable, "-m", "exhaustive"]
    done = subprocess.run([*command, "formats", "--only", "brev.u8"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "all is well" in done.stdout
    unknown = subprocess.run([*command, "everything"], capture_output=True, text=True, check=False)
    assert unknown.returncode == 2
    assert "no check called" in unknown.stderr
