"""SCE opcodes against their references: a sample of all here, every one by `./run exhaustive properties`."""

from __future__ import annotations

import platform
import re
import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from exhaustive.engines import run_element
from exhaustive.properties import faults
from loom_core.isa.sce import ALL_SCE_OPS, SCE_OPS, SceOp
from loom_core.reference.opcodes import reference_of
from loom_sim.elements import build_element
from loom_sim.jit import ELEMENT_SIGNATURE, engine_and_assembly


def _samples() -> Iterator[SceOp]:
    """Of each function one type, not always the same one; of casts one from each and one to each type.

    An engine takes 0.1 to 1 s to compile. Those of f32 are in test_elementary.py.
    """
    forms: dict[str, list[SceOp]] = {}
    for op in ALL_SCE_OPS:
        kind = op.function if op.function not in _CASTS else op.mnemonic.rpartition(".")[0]
        forms.setdefault(kind, []).append(op)
        if op.function in _CASTS:
            forms.setdefault(f"{op.function} to {op.result}", []).append(op)
    for kind, ops in forms.items():
        others = [op for op in ops if not op.mnemonic.endswith(".f32")] or ops
        yield others[zlib.crc32(kind.encode()) % len(others)]


_CASTS = frozenset({"cast", "cast_sat", "cast_rtz"})
_SAMPLE = sorted(set(_samples()), key=lambda op: op.opcode)


def test_the_sample_has_every_function_and_every_type() -> None:
    assert {op.function for op in _SAMPLE} == {op.function for op in ALL_SCE_OPS}
    types = {name for op in ALL_SCE_OPS for name in (*op.operands, op.result) if not name.isdigit()}
    assert types <= {name for op in _SAMPLE for name in (*op.operands, op.result)}


@pytest.mark.parametrize("op", _SAMPLE, ids=lambda op: op.mnemonic)
def test_is_its_reference_bit_for_bit(op: SceOp) -> None:
    with np.errstate(all="ignore"):
        assert faults(op, samples=1000) == []


def test_every_opcode_has_a_reference_and_an_engine() -> None:
    for op in ALL_SCE_OPS:
        assert callable(reference_of(op))
        assert callable(build_element(op))


def test_the_check_sees_a_wrong_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exhaustive.properties.reference_of", lambda op: reference_of(SCE_OPS["sub.i32"]))
    assert len(faults(SCE_OPS["add.i32"], samples=10)) > 1


_NANS = {
    "f64": (np.float64, np.uint64, 0x7FF8000000000000),
    "f32": (np.float32, np.uint32, 0x7FC00000),
    "f16": (np.float16, np.uint16, 0x7E00),
}


@pytest.mark.parametrize("dtype", _NANS)
def test_nan_from_any_source_is_canonical(dtype: str) -> None:
    kind, unsigned, canonical = _NANS[dtype]
    infinity, zero, negative = np.full(100, np.inf, kind), np.zeros(100, kind), np.full(100, -4.0, kind)
    payload = np.full(100, canonical | 1 | 1 << (8 * zero.itemsize - 1), unsigned).view(kind)
    cases = {
        "sub": [infinity, infinity],
        "mul": [infinity, zero],
        "div": [zero, zero],
        "fma": [infinity, zero, zero],
        "sqrt": [negative],
        "log": [negative],
        "mov": [payload],
        "neg": [payload],
        "abs": [payload],
        "copysign": [payload, negative],
        "select": [np.ones(100, np.bool_), payload, zero],
    }
    for function, arguments in cases.items():
        result = run_element(SCE_OPS[f"{function}.{dtype}"], arguments)
        assert set(result.view(unsigned).tolist()) == {canonical}, function


def test_plain_moves_keep_every_bit() -> None:
    payload = np.full(100, 0xFFA00001, np.uint32)
    assert run_element(SCE_OPS["mov.32"], [payload]).tobytes() == payload.tobytes()


def test_bytes_of_bools_and_nibbles_are_normalised() -> None:
    byte = np.arange(256, dtype=np.uint8)
    as_bool = run_element(SCE_OPS["cast.bool.u8"], [byte.view(np.bool_)])
    assert as_bool.tolist() == [int(value != 0) for value in byte.tolist()]
    nibbles = SCE_OPS["cast.i4.i32"]
    import ml_dtypes

    signed = run_element(nibbles, [byte.view(ml_dtypes.int4)])
    assert signed.tolist() == [((value & 15) ^ 8) - 8 for value in byte.tolist()]
    stored = run_element(SCE_OPS["cast.i32.i4"], [np.arange(-8, 8, dtype=np.int32)])
    assert stored.view(np.uint8).tolist() == [value & 15 for value in range(-8, 8)]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="looks for x86 vector registers")
@pytest.mark.parametrize(
    "mnemonic",
    ["add.f32", "fma.f32", "exp.f32", "sin.f32", "max.f32", "lt.f32", "select.f32", "div.f32", "add.i32", "mul.i32",
     "div.i32", "shru.i32", "add.i64", "cast.f32.i32", "cast.f32.u8", "cast.i32.f32", "cast.bool.f32", "and.bool",
     "mov.16", "add.i8", "div.u16", "mulhi.u32", "add.f16", "mul.bf16", "fma.bf16", "tanh.f16", "cast.f32.bf16",
     "cast.f16.f32", "cast_sat.f32.f8e4m3", "add.f64", "exp.f64", "sin.f64", "cast.f64.f16"],
)  # fmt: skip
def test_loops_are_vectorised(mnemonic: str) -> None:
    op = SCE_OPS[mnemonic]
    _, text = engine_and_assembly(mnemonic, lambda: build_element(op), ELEMENT_SIGNATURE)
    assert len(re.findall(r"%[xyz]mm", text)) > 4
    stores = re.findall(
        r"\n\s*v?p?(?:movd?q?[ua]?p?s?|extract|mov|movdw|movwb|movusdb)\w*\s+[^\n]*%[xyz]mm\d+, [^%\n]*\(", text
    )
    assert stores, "no vector is stored"
