"""Machine configurations: digests, bounds, TOML, sizes that programs see."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from loom_core.base.diagnostics import LoomError
from loom_core.isa.errors import InvalidMachine
from loom_core.isa.machine import FIELD_DOCS, L1, L1_MINI, MachineConfig, acc_bytes, acc_shape, panel_bytes, round_up


def test_every_field_is_documented() -> None:
    assert ["name", *FIELD_DOCS] == [field.name for field in dataclasses.fields(MachineConfig)]


@pytest.mark.parametrize("field", list(FIELD_DOCS))
def test_digest_sees_every_field(field: str) -> None:
    # reduce_block has to stay a multiple of reduce_lanes, which may be halved; some fields stand at one of their
    # bounds.
    value = getattr(L1, field)
    other = value * 2 if field == "reduce_block" else value // 2 or 2
    assert dataclasses.replace(L1, **{field: other}).digest() != L1.digest()


def test_digest_ignores_the_name() -> None:
    assert dataclasses.replace(L1, name="mine").digest() == L1.digest()


@pytest.mark.parametrize(
    ("field", "value"),
    [("cores", 0), ("tokens", 1 << 20), ("sce_lanes", -1), ("sram_bytes", 1.5), ("cores", True), ("name", "")]
    + [("reduce_block", 4097), ("dma_queues", 5), ("sce_registers", 65)],
)
def test_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidMachine, match=field):
        dataclasses.replace(L1, **{field: value})


def test_dict_round_trip() -> None:
    assert MachineConfig.from_dict(L1_MINI.as_dict()) == L1_MINI


@pytest.mark.parametrize("fields", [{"name": "x", "speed": 3}, {"cores": 2}, {"name": "x", 3: 4}])
def test_dict_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidMachine):
        MachineConfig.from_dict(fields)


def test_toml(tmp_path: Path) -> None:
    path = tmp_path / "wide.toml"
    path.write_text('base = "l1-mini"\nsce_lanes = 4096\n')
    assert MachineConfig.from_toml(path) == dataclasses.replace(L1_MINI, name="wide", sce_lanes=4096)


@pytest.mark.parametrize("text", ["cores = ", 'base = "l9"\n', "cores = 2.0\n", "base = [1]\n", "\x00"])
def test_toml_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(LoomError):
        MachineConfig.from_toml(path)


def test_sizes() -> None:
    assert [round_up(value, 24) for value in (0, 1, 24, 25)] == [0, 24, 24, 48]
    assert panel_bytes(L1, "a", 25, 10, 4) == 48 * 10 * 4
    assert panel_bytes(L1, "b", 33, 10, 2) == 64 * 10 * 4
    assert acc_shape(L1, 1, 1) == (24, 32)
    assert acc_bytes(L1, 25, 33) == 48 * 64 * 4
    assert L1.hbm_bytes_per_cycle == 512
    assert L1.sram_bytes_per_cycle == 2048
