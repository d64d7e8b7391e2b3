"""The command and opcode tables agree with themselves, and their numbers do not move."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from loom_core.base import dtype
from loom_core.isa import commands, sce
from loom_core.isa.commands import ALL_COMMANDS, HEADER_FIELDS, CommandSpec
from loom_core.isa.machine import PRESETS


def test_numbers_are_stable(golden: Callable[[str, str], None]) -> None:
    lines = [f"machine {name} {config.digest()}" for name, config in PRESETS.items()]
    lines += [f"command {spec.opcode:#04x} {spec.mnemonic}" for spec in ALL_COMMANDS]
    lines += [f"dtype {code} {name}" for name, code in sce.DTYPE_CODES.items()]
    lines += [f"sce {op.opcode:#06x} {op.mnemonic}" for op in sce.ALL_SCE_OPS]
    golden("isa_numbers.txt", "".join(f"{line}\n" for line in lines))


def test_command_numbers() -> None:
    opcodes = [spec.opcode for spec in ALL_COMMANDS]
    assert opcodes == sorted(set(opcodes))
    assert 0 not in opcodes
    constants = {name: value for name, value in vars(commands).items() if name.startswith("OP_")}
    assert constants == {f"OP_{spec.mnemonic.upper()}": spec.opcode for spec in ALL_COMMANDS}


def test_header_fields_tile_the_word() -> None:
    covered = [bit for lo, bits in HEADER_FIELDS.values() for bit in range(lo, lo + bits)]
    assert sorted(covered) == list(range(64))


@pytest.mark.parametrize("spec", ALL_COMMANDS, ids=lambda spec: spec.mnemonic)
def test_command_rows(spec: CommandSpec) -> None:
    flag_bits = [bit for field in spec.flags for bit in range(field.lo, field.lo + field.bits)]
    assert len(flag_bits) == len(set(flag_bits))
    assert all(bit < 8 for bit in flag_bits)
    for field in spec.flags:
        assert field.minimum <= field.limit < 1 << field.bits
        assert not field.values or len(field.values) == field.limit + 1
    names = [slot.name for slot in spec.operands]
    assert len(names) == len(set(names))
    assert all(slot.role != "target" for slot in spec.operands[:-1])
    assert all(slot.role != "register" for slot in spec.operands[1:])
    assert spec.doc.endswith(".")
    assert spec.synchronises == (spec.engine != "acp" or spec.mnemonic in ("lds", "sts", "report"))


def test_sce_numbers() -> None:
    assert len(sce.SCE_BY_OPCODE) == len(sce.SCE_OPS) == len(sce.ALL_SCE_OPS)
    assert all(0 < op.opcode < 0x2000 for op in sce.ALL_SCE_OPS)
    assert set(sce.DTYPE_CODES) == {entry.name for entry in dtype.ALL}
    assert len(sce.DTYPE_NAMES) == len(sce.DTYPE_CODES)


@pytest.mark.parametrize("name", list(sce.DTYPE_CODES))
def test_dtype_widths(name: str) -> None:
    assert 1 << sce.DTYPE_LOG2_BYTES[name] == dtype.by_name(name).itemsize


@pytest.mark.parametrize(
    ("mnemonic", "operands", "result"),
    [
        ("add.f32", ("f32", "f32"), "f32"),
        ("fma.f32", ("f32", "f32", "f32"), "f32"),
        ("lt.i64", ("i64", "i64"), "bool"),
        ("isnan.f32", ("f32",), "bool"),
        ("select.i32", ("bool", "i32", "i32"), "i32"),
        ("select.bool", ("bool", "bool", "bool"), "bool"),
        ("cast.i32.f32", ("i32",), "f32"),
        ("mov.32", ("32",), "32"),
        ("reduce_sum.f32", ("f32",), "f32"),
        ("reduce_argmax.f64", ("f64",), "i32"),
        ("scan_sum.u8", ("u8",), "u8"),
    ],
)
def test_sce_rows(mnemonic: str, operands: tuple[str, ...], result: str) -> None:
    op = sce.SCE_OPS[mnemonic]
    assert (op.operands, op.result) == (operands, result)
    assert sce.sce_opcode(mnemonic) == op.opcode
