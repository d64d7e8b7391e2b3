"""`loomc diff` of objects and of Tile IR."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner, Result

import loom.triton.language as ltl
from loom_core.ir.printer import print_function
from loom_core.objfile import write_object
from loom_core.tools.loomc import main


@ltl.jit
def scale(x: Any, out: Any, n: Any, BLOCK: ltl.constexpr, FACTOR: ltl.constexpr) -> None:
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(out + at, ltl.load(x + at, mask=at < n) * FACTOR, mask=at < n)


def built(path: Path, block: int, factor: float = 2.0) -> Path:
    path.write_bytes(write_object(scale.compile("*fp32", "*fp32", "i32", block, factor)))
    return path


def loomc(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_equal_objects(tmp_path: Path) -> None:
    left, right = built(tmp_path / "a.loom", 256), built(tmp_path / "b.loom", 256)
    result = loomc("diff", left, right)
    assert (result.exit_code, result.stdout) == (0, "no difference\n")


def test_other_blocks_differ_in_windows_and_commands(tmp_path: Path) -> None:
    left, right = built(tmp_path / "a.loom", 256), built(tmp_path / "b.loom", 512)
    result = loomc("diff", left, right, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    facts = {row["fact"]: (row["a"], row["b"]) for row in found["facts"]}
    assert "bytes 1024" in facts["windows.dma_load"][0] and "bytes 2048" in facts["windows.dma_load"][1]
    changed = [line for line in found["lines"] if line[0] in "+-"]
    assert changed and all("256" in line or "512" in line or "r" in line for line in changed)
    assert any("mul.i32" in line and "256" in line for line in changed if line[0] == "-")
    assert any("mul.i32" in line and "512" in line for line in changed if line[0] == "+")
    assert "commands.copy" not in facts  # as many of them


def test_one_constant_is_one_changed_line(tmp_path: Path) -> None:
    left, right = built(tmp_path / "a.loom", 256), built(tmp_path / "b.loom", 256, 3.0)
    result = loomc("diff", left, right, "--context", "0")
    assert result.exit_code == 1
    changed = [line for line in result.stdout.splitlines() if line[0] in "+-"]
    assert len(changed) == 2 and all("program p0" in line for line in changed)
    two, three = (f"{np.float32(value).view(np.uint32):#x}" for value in (2, 3))
    assert two in changed[0] and three in changed[1]


def test_machine_arguments_and_manifest_are_compared(tmp_path: Path) -> None:
    obj = scale.compile("*fp32", "*fp32", "i32", 256, 2.0)
    renamed = msgspec.structs.replace(obj.abi.args[0], name="a")
    other = replace(
        obj,
        machine=replace(obj.machine, name="mine", cores=4),
        abi=msgspec.structs.replace(obj.abi, args=(renamed, *obj.abi.args[1:])),
        manifest={**obj.manifest, "kernel": "other"},
    )
    left, right = tmp_path / "a.loom", tmp_path / "b.loom"
    left.write_bytes(write_object(obj))
    right.write_bytes(write_object(other))
    found = json.loads(loomc("diff", left, right, "--json").stdout)
    facts = {row["fact"]: (row["a"], row["b"]) for row in found["facts"]}
    assert facts["machine"] == ("l1", "mine") and facts["machine.cores"] == (2, 4)
    assert facts["kernel"] == ("scale", "other")
    assert facts["argument 0"] == ("x: buffer of f32 r", "a: buffer of f32 r")
    assert found["lines"] == []


def test_texts_are_compared_as_programs(tmp_path: Path) -> None:
    text = print_function(scale.lower("*fp32", "*fp32", "i32", 256, 2.0))
    left, right = tmp_path / "a.ir", tmp_path / "b.ir"
    left.write_text(text, encoding="utf-8")
    right.write_text("// a note\n" + text.replace("  %", "        %"), encoding="utf-8")
    assert loomc("diff", left, right).exit_code == 0
    right.write_text(text.replace("value = 256", "value = 128"), encoding="utf-8")
    result = loomc("diff", left, right)
    assert result.exit_code == 1
    assert "+  %1 = constant {value = 128} : i32" in result.stdout


@pytest.mark.parametrize("second", ["object", "python"])
def test_files_of_two_kinds(tmp_path: Path, second: str) -> None:
    text = tmp_path / "a.ir"
    text.write_text(print_function(scale.lower("*fp32", "*fp32", "i32", 256, 2.0)), encoding="utf-8")
    other = built(tmp_path / "b.loom", 256) if second == "object" else Path(__file__)
    result = loomc("diff", text, other)
    assert result.exit_code == 2
    kind = "a Loom object" if second == "object" else "Python source"
    assert f"LOOM-K143]: {text} is the text of Tile IR, and {other} is {kind}" in result.stderr


def test_a_damaged_object_is_named(tmp_path: Path) -> None:
    left, right = built(tmp_path / "a.loom", 256), built(tmp_path / "b.loom", 256)
    data = bytearray(right.read_bytes())
    data[-200] ^= 1
    right.write_bytes(data)
    result = loomc("diff", left, right)
    assert result.exit_code == 1 and result.stderr.startswith(str(right))
