"""The command line, end to end on object files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from loom_core.objfile import write_object
from loom_core.tools.loomc import main
from tests.codegen.ordering import waits_of, without_wait
from tests.tools.tiny_objects import BLOCK, scale_object


@pytest.fixture
def object_file(tmp_path: Path) -> Path:
    path = tmp_path / "scale.loom"
    path.write_bytes(write_object(scale_object()))
    return path


def loomc(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def flipped(path: Path, bit: int) -> Path:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    damaged = path.with_name("damaged.loom")
    damaged.write_bytes(data)
    return damaged


READERS = ["disasm", "manifest", "validate", "explain", "run", "profile"]


@pytest.mark.parametrize("command", READERS)
def test_what_is_no_object_is_named(command: str) -> None:
    result = loomc(command, __file__)
    assert result.exit_code == 2
    assert "error[LOOM-O101]: this is not a .loom object but Python source" in result.stderr
    assert result.stderr.startswith(__file__)


@pytest.mark.parametrize("command", READERS)
def test_absent_file(command: str, tmp_path: Path) -> None:
    result = loomc(command, tmp_path / "none.loom")
    assert result.exit_code == 2
    assert "error[LOOM-K101]: the file cannot be read: No such file" in result.stderr


@pytest.mark.parametrize("command", READERS)
def test_damage_is_a_finding(command: str, object_file: Path) -> None:
    bit = (object_file.stat().st_size - 400) * 8 + 3
    result = loomc(command, flipped(object_file, bit))
    assert result.exit_code == 1
    assert "damaged.loom: error[LOOM-O103]: damaged object" in result.stderr


@pytest.mark.parametrize("command", READERS)
def test_exactly_one_object(command: str, object_file: Path) -> None:
    for arguments in ([command], [command, object_file, "--object-file", object_file]):
        result = loomc(*arguments)
        assert result.exit_code == 2
        assert "name one object" in result.stderr


def test_disasm(object_file: Path) -> None:
    result = loomc("disasm", object_file)
    assert result.exit_code == 0
    assert [word for word in ("loop", "copy", "mul.f32", "endloop", "halt") if word not in result.stdout] == []


def test_manifest(object_file: Path) -> None:
    result = loomc("manifest", object_file)
    assert result.exit_code == 0
    assert "for machine l1-mini" in result.stdout
    assert "kernel: scale" in result.stdout
    values = json.loads(loomc("manifest", object_file, "--json").stdout)
    assert values["file_bytes"] == object_file.stat().st_size
    assert [argument["name"] for argument in values["arguments"]] == ["x", "y", "n", "factor"]
    assert values["manifest"] == {"kernel": "scale"}
    assert values["machine"]["digest"] == scale_object().machine.digest()


def test_validate(object_file: Path) -> None:
    for extra in ([], ["--strict"]):
        result = loomc("validate", object_file, *extra)
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.endswith("scale.loom: sound\n")


def test_explain(object_file: Path) -> None:
    for arguments in ([object_file], ["--object-file", object_file]):
        result = loomc("explain", *arguments)
        assert result.exit_code == 0
        assert "scale, for machine l1-mini" in result.stdout
        assert "SRAM used: 8 KiB of 256 KiB a core" in result.stdout
        assert "for i in 0 .. grid.x:\n  dma0: copy x to SRAM" in result.stdout
    assert json.loads(loomc("explain", object_file, "--json").stdout)["body"][0]["loop"] == "i"


def test_run(object_file: Path, tmp_path: Path) -> None:
    n = 2 * BLOCK + 5
    x = np.arange(n, dtype=np.float32)
    np.savez(tmp_path / "in.npz", x=x, y=np.full(n + 3, -1, np.float32), n=np.int32(n), factor=np.float32(0.5))
    result = loomc(
        "run", object_file, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz", "--grid", "3"
    )
    assert (result.exit_code, result.stderr) == (0, "")
    with np.load(tmp_path / "out.npz") as outputs:
        assert outputs.files == ["y"]
        assert np.array_equal(outputs["y"], np.concatenate([x * np.float32(0.5), np.full(3, -1, np.float32)]))


def test_run_prints_without_outputs(object_file: Path) -> None:
    result = loomc("run", object_file, "--arg", "x=f32[4]", "--arg", "y=f32[4]", "--arg", "n=4", "--arg", "factor=2")
    assert (result.exit_code, result.stderr) == (0, "note: without --grid, 1 program runs\n")
    assert result.stdout == "y float32[4]\n[0. 0. 0. 0.]\n"


@pytest.mark.parametrize("command", ["disasm", "explain", "validate", "manifest"])
def test_standard_input(command: str, object_file: Path) -> None:
    from_file = loomc(command, object_file)
    piped = CliRunner().invoke(main, [command, "-"], input=object_file.read_bytes())
    assert (piped.exit_code, piped.stderr) == (0, "")
    assert piped.stdout == from_file.stdout.replace(str(object_file), "<stdin>")
    other = CliRunner().invoke(main, [command, "-"], input=b"text")
    assert other.exit_code == 2
    assert other.stderr.startswith("<stdin>: error[LOOM-O101]")


def test_run_from_standard_input(object_file: Path) -> None:
    arguments = ["run", "-", "--arg", "x=f32[4]", "--arg", "y=f32[4]", "--arg", "n=4", "--arg", "factor=2"]
    result = CliRunner().invoke(main, arguments, input=object_file.read_bytes())
    assert result.stdout == "y float32[4]\n[0. 0. 0. 0.]\n"


def test_faults_of_a_compiled_kernel_have_whole_carets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ltl

    source = "def copy(x, y):\n    at = ltl.arange(0, 8)\n    ltl.store(y + at, ltl.load(x + at))\n"
    (tmp_path / "copies.py").write_text(source)
    scope: dict[str, Any] = {"ltl": ltl}
    exec(compile(source, str(tmp_path / "copies.py"), "exec"), scope)
    compiled = ltl.jit(scope["copy"], source=source).compile("*fp32", "*fp32")
    (tmp_path / "copy.loom").write_bytes(write_object(compiled))
    monkeypatch.chdir(tmp_path)
    result = loomc("run", "copy.loom", "--arg", "x=f32[7]", "--arg", "y=f32[8]", "--grid", "1")
    assert result.exit_code == 1
    _, line, carets, *_ = result.stderr.splitlines()
    span = line[carets.index("^") :][: carets.count("^")]
    assert span == "ltl.load(x + at)"


def test_run_out_of_bounds_is_a_finding(object_file: Path) -> None:
    result = loomc("run", object_file, "--arg", "x=f32[4]", "--arg", "y=f32[4]", "--arg", "n=5", "--arg", "factor=2")
    assert result.exit_code == 1
    assert "scale.py:7" in result.stderr
    assert "error[LOOM-S101]" in result.stderr


def test_checked_runs(tmp_path: Path) -> None:
    sound, unsound = tmp_path / "sound.loom", tmp_path / "unsound.loom"
    obj = scale_object()
    sound.write_bytes(write_object(obj))
    unsound.write_bytes(write_object(without_wait(obj, *waits_of(obj)[-1])))
    arguments = ("--arg", "x=f32[4096]", "--arg", "y=f32[4096]", "--arg", "n=4096", "--arg", "factor=2", "--grid", "4")
    result = loomc("run", sound, *arguments, "--check")
    assert (result.exit_code, result.stderr) == (0, "")
    result = loomc("run", unsound, *arguments, "--check")
    assert result.exit_code == 1 and result.stdout.startswith("y float32[4096]")
    assert "scale.py:9" in result.stderr
    assert "error[LOOM-S201]: copy reads byte 4096 of SRAM while program may still be writing it" in result.stderr
    assert loomc("run", unsound, *arguments).exit_code == 0
    result = loomc("run", sound, *arguments, "--check", "--replay", "6")
    assert (result.exit_code, result.stderr) == (0, "")
    result = loomc("run", unsound, *arguments, "--check", "--replay", "6")
    assert result.exit_code == 1 and "error[LOOM-S206]: y[0] depends on engine speeds" in result.stderr


def test_run_without_arguments(object_file: Path) -> None:
    result = loomc("run", object_file)
    assert result.exit_code == 2
    assert "error[LOOM-K103]: no value for argument x (buffer of f32)" in result.stderr


ARGUMENTS = (
    "--arg",
    f"x=f32[{4 * BLOCK}]",
    "--arg",
    f"y=f32[{4 * BLOCK}]",
    "--arg",
    f"n={4 * BLOCK}",
    "--arg",
    "factor=2",
)


def test_profile(object_file: Path) -> None:
    result = loomc("profile", object_file, *ARGUMENTS, "--grid", "4")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "on one core of l1-mini" in result.stdout
    assert "bound by latency: no queue works more than" in result.stdout
    assert "the nearest limit, HBM bandwidth, is reached to" in result.stdout
    assert "move more bytes in a transfer: one carries 4 KiB on average" in result.stdout
    assert "bound by HBM bandwidth" not in result.stdout
    assert "scale.py:7" in result.stdout


def test_profile_json(object_file: Path) -> None:
    result = loomc("profile", "--object-file", object_file, *ARGUMENTS, "--grid", "4", "--json")
    values = json.loads(result.stdout)
    assert values["hbm_bytes"] == 2 * 4 * BLOCK * 4
    assert values["stream_operations"] == 4 * BLOCK
    assert values["queues"]["DMA0"]["commands"] == 8
    assert values["roofline"]["bound"] == "HBM bandwidth"
    assert 0 < values["roofline"]["reached"] <= 1
    assert values["verdict"]["kind"] == "latency"
    assert values["verdict"]["advice"]
    for queue, use in values["queues"].items():
        assert use["busy"] + use["waiting"] + use["empty"] == values["cycles"]
        lines = [line for line in values["lines"] if line["queue"] == queue]
        if lines:
            assert sum(line["busy"] for line in lines) == use["busy"]
            assert sum(line["waiting"] for line in lines) == use["waiting"]
    assert values["events_seen"] == values["events_total"] == 12


def test_profile_says_what_its_lines_cover(object_file: Path) -> None:
    result = loomc("profile", object_file, *ARGUMENTS, "--grid", "4", "--events", "5")
    assert "where the queues are (first 5 of 12):" in result.stdout


def test_version_and_help() -> None:
    assert loomc("--version").stdout.startswith("loomc, version ")
    assert loomc("--help").exit_code == 0
    assert loomc("nonsense").exit_code == 2
