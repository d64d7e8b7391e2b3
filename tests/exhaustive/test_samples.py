"""Samples of `./run exhaustive`: all of it takes most of an hour."""

from __future__ import annotations

import platform
import subprocess
import sys
import zlib
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from exhaustive import formats, hashes, hostile, references, scores, targets
from loom_core.isa.sce import SCE_OPS, SceOp
from loom_sim import mxu_kernel


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


def test_scores_are_kept_for_every_function() -> None:
    known = scores.recorded()
    assert sorted(known["references"]) == sorted(op.mnemonic for op in references.measured_ops())
    assert all(score["different"] == 0 and score["operands"] >= 1 << 24 for score in known["references"].values())
    assert sum(sum(endings.values()) for endings in known["hostile"].values()) >= hostile.COMMANDS


def test_a_score_replaces_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "SCORES", tmp_path / "scores.json")
    for check, what, number in (("one", "a", 1), ("two", "b", 2), ("one", "a", 3), ("one", "c", 4)):
        scores.record(check, what, {"number": number})
    assert scores.recorded() == {"one": {"a": {"number": 3}, "c": {"number": 4}}, "two": {"b": {"number": 2}}}


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


# Where targets differ: fused multiply-add, conversions, division, vector widths, and what is made of these.
_ON_TARGETS = [
    "fma.f32", "sqrt.f32", "exp.f32", "log1p.f32", "sin.f32", "erf.f32", "fmod.f32", "pow.f32", "lgamma.f32",
    "fma.f64", "exp.f64", "fma.f16", "add.f16", "mul.bf16", "add.f8e4m3", "tanh.f8e5m2", "cast.f64.bf16",
    "cast.f32.f16", "cast.f16.f32", "cast_sat.f32.f8e4m3", "cast.u64.f32", "cast.f32.i64", "div.i32", "mulhi.i64",
    "reduce_sum.f32", "reduce_prod.f16", "reduce_argmax.f64", "scan_sum.bf16",
]  # fmt: skip
_TILES = {
    "baseline": (mxu_kernel.EMULATED_TILE, mxu_kernel.PAIR_TILES[2]),
    "AVX2 and FMA": (mxu_kernel.FUSED_TILES[1], mxu_kernel.PAIR_TILES[1]),
}


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the targets are x86-64")
@pytest.mark.parametrize("target", targets.TARGETS)
def test_bits_do_not_depend_on_the_target(target: str) -> None:
    if target != "baseline" and not llvm.get_host_cpu_features().get("fma"):
        pytest.skip("the host cannot run this target's code")
    found = targets.digests_of(target, _ON_TARGETS, targets.UNIT_TYPES)
    assert found.pop("tiles") == "{} {}".format(*_TILES[target])
    assert found == targets.digests(_ON_TARGETS, targets.UNIT_TYPES)


def test_digests_tell_results_apart() -> None:
    found = targets.digests(["add.i32", "sub.i32"], ["i8", "u8"])
    assert len(set(found.values())) == 4


def test_the_command() -> None:
    command = [sys.executable, "-m", "exhaustive"]
    done = subprocess.run([*command, "formats", "--only", "brev.u8"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "all is well" in done.stdout
    unknown = subprocess.run([*command, "everything"], capture_output=True, text=True, check=False)
    assert unknown.returncode == 2
    assert "no check called" in unknown.stderr
