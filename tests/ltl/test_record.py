"""Launches of Triton, recorded and replayed. Triton's interpreter stands for the GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ltl
from loom_core.tools.replay import find_folders, replay

pytest.importorskip("triton")
pytest.importorskip("torch")

SCRIPT = """
import sys, torch, triton, triton.language as tl, loom.triton

FACTOR = tl.constexpr(3)

@triton.jit
def scaled(x, amount):
    return x * amount * FACTOR

@triton.jit
def kernel(x, out, rows, amount, flag, N: tl.constexpr, NAME: tl.constexpr = "plain"):
    i = tl.program_id(0)
    at = i * N + tl.arange(0, N)
    if i < rows:
        tl.store(out + at, scaled(tl.load(x + at), amount))

@triton.jit
def count(hits):
    tl.atomic_add(hits + tl.program_id(0), 1)

storage = torch.arange(64, dtype=torch.float32)
x, out = storage[8:40], torch.zeros(32)
hits = torch.zeros(4, dtype=torch.int32)
with loom.triton.record(sys.argv[1], limit=2):
    for amount in (0.5, float("inf"), 2.0):
        kernel[(4,)](x, out, 3, amount, None, N=8)
    count[lambda meta: (4,)](hits)
kernel[(4,)](x, out, 3, 1.0, None, N=8)
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    target = tmp_path_factory.mktemp("recorded")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(ltl.__file__).parents[1])}
    script = target / "launches.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(target)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return find_folders([target])


def test_every_launch_is_a_folder_up_to_the_limit(folders: list[Path]) -> None:
    assert [folder.name for folder in folders] == ["count__00", "kernel__00", "kernel__01"]


def test_arguments_are_described(folders: list[Path]) -> None:
    meta = json.loads((folders[2] / "meta.json").read_text())
    arguments = {entry["name"]: entry for entry in meta["args"]}
    assert meta["grid"] == [4, 1, 1]
    assert arguments["x"]["type"] == "*fp32" and arguments["x"]["shape"] == [32]
    assert arguments["x"]["alias_group"] != arguments["out"]["alias_group"]
    assert arguments["amount"] == {"name": "amount", "type": "fp32", "kind": "scalar", "value": "inf"}
    assert arguments["flag"]["type"] == "constexpr" and arguments["flag"]["value"] is None
    assert arguments["NAME"]["value"] == "plain"
    assert meta["signature"]["N"] == "constexpr" and meta["constants"]["(5,)"] == 8


def test_source_holds_helpers_and_constants(folders: list[Path]) -> None:
    source = (folders[1] / "kernel.py").read_text()
    assert source.index("FACTOR = 3") < source.index("def scaled") < source.index("def kernel")
    assert "@" not in source


def test_recorded_launches_replay(folders: list[Path]) -> None:
    for folder in folders:
        result = replay(folder, interpret=True)
        assert result.verdict == "passed", result.text + result.details
