"""`loom-format` end to end on files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from loom.format.bytecode import read_module
from loom.importers import print_loom_module
from loom_core.objfile import write_object
from loom_core.tools.loom_format import main
from loom_core.tools.loomc import main as loomc
from tests.interchange.test_text import COPY_KERNEL
from tests.tools.tiny_objects import scale_object

UNRESOLVED = "func.def @f() {\n  func.call @x() : () -> ()\n  func.return\n}\n"


def run(*arguments: str | Path, input: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=input)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    path = tmp_path / "copy.loom"
    path.write_text(COPY_KERNEL, encoding="utf-8", newline="\n")
    return path


@pytest.fixture
def loose(tmp_path: Path) -> Path:
    path = tmp_path / "loose.loom"
    path.write_text("\n" + COPY_KERNEL.replace("  ", " "), encoding="utf-8", newline="\n")
    return path


def test_checking(copy: Path, loose: Path) -> None:
    result = run("--check", copy)
    assert (result.exit_code, result.output) == (0, "")
    result = run("--check", input=COPY_KERNEL)
    assert (result.exit_code, result.output) == (0, "")
    result = run("--check", loose)
    assert result.exit_code == 1
    assert result.stderr == f"'{loose}' is not canonically formatted; run loom-format --in-place <input>\n"
    assert run("--check", input="\n" + COPY_KERNEL).exit_code == 1
    result = run("--check", copy, loose)
    assert result.exit_code == 1
    assert result.stderr.endswith("loom-format: FAIL (2 checked, 1 failed)\n")
    result = run("--check", copy, copy)
    assert (result.exit_code, result.stdout) == (0, "loom-format: PASS (2 checked, 0 failed)\n")


def test_rewriting(copy: Path, loose: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.loom"
    broken.write_text(UNRESOLVED, encoding="utf-8")
    result = run("--in-place", copy, loose, broken)
    assert result.exit_code == 1
    assert result.stdout == f"loom-format: formatted {loose}\nloom-format: 1 formatted, 1 unchanged, 1 failed\n"
    assert "error [SYMBOL/002]: symbol '@x' is referenced but not defined" in result.stderr
    assert loose.read_text(encoding="utf-8") == COPY_KERNEL
    assert broken.read_text(encoding="utf-8") == UNRESOLVED
    assert run("--in-place", copy, loose).exit_code == 0


def test_converting(copy: Path, loose: Path, tmp_path: Path) -> None:
    assert run(copy).stdout == COPY_KERNEL
    assert run(loose).stdout == COPY_KERNEL
    bytecode = tmp_path / "copy.loombc"
    assert run("--to=bc", f"--output={bytecode}", loose).exit_code == 0
    data = bytecode.read_bytes()
    assert data[:5] == b"LOOM\x1c"
    assert b"loom-format\0" in data
    assert print_loom_module(read_module(data, verify=True)) == COPY_KERNEL
    assert run(bytecode).stdout == COPY_KERNEL
    assert run("--from=bytecode", "--to=text", bytecode).stdout == COPY_KERNEL
    assert run("--from=text", bytecode).exit_code == 1
    assert run("--to=bytecode", loose).stdout_bytes == data


def test_what_fails_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(f"--output={out}", input=UNRESOLVED)
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "<stdin>:2:3: error [SYMBOL/002]: symbol '@x' is referenced but not defined\n"
        "    2 |   func.call @x() : () -> ()\n      |   ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
    )
    assert not out.exists()


def test_places_of_refusals() -> None:
    result = run(input="func.def @f(%x: f32) {\n\t%y = scalar.negf %q : f32\n  func.return\n}\n")
    assert result.stderr == (
        "<stdin>:2:19: error [PARSE/001]: %q is not defined here\n"
        "    2 | \t%y = scalar.negf %q : f32\n      | \t                 ^\n"
        "  hint: values are defined before use\n"
    )


def test_hooks_are_on_unless_refused() -> None:
    text = "func.def @f() {\n  %x = index.constant -1 : offset\n  func.return\n}\n"
    assert "error [STRUCTURE/014]: an offset is not negative" in run(input=text).stderr
    assert run("--no-hooks", input=text).stdout == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--check", "--in-place", "x"], "exclude one another"),
        (["--check", "--output=y", "x"], "--output has no meaning with --check"),
        (["--in-place", "--to=bc", "x"], "--in-place is for text"),
        (["--check", "--from=bc", "x"], "--check is for text"),
        (["--in-place"], "needs a file"),
        (["--in-place", "-"], "standard input cannot be rewritten"),
        (["--check", "-", "x"], "standard input is checked alone"),
        (["a", "b"], "one input is converted at a time"),
        (["--to=object"], "object"),
        (["--what"], "--what"),
        (["/nowhere/x.loom"], "cannot be read"),
    ],
)
def test_misuse(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr


def test_first_bytes_tell_what_a_file_is(tmp_path: Path, copy: Path) -> None:
    path = tmp_path / "object.loom"
    path.write_bytes(write_object(scale_object()))
    for arguments in ([path], ["--check", path], ["--in-place", path]):
        result = run(*arguments)
        assert result.exit_code == 1
        assert f"{path}: error [BYTECODE/001]: this is a Loom object, not a module" in result.stderr
        assert "hint: loomc reads objects" in result.stderr
    bytecode = tmp_path / "copy.loombc"
    run("--to=bc", f"--output={bytecode}", copy)
    result = run("--check", bytecode)
    assert result.exit_code == 1
    assert "is bytecode, which has no layout" in result.stderr
    for module, words in ((copy, "a Loom module in text"), (bytecode, "a Loom module in bytecode")):
        result = CliRunner().invoke(loomc, ["disasm", str(module)])
        assert result.exit_code == 2
        assert f"this is not a .loom object but {words}" in result.stderr
        assert "loom-format reads, checks and converts modules; loomc run runs them" in result.stderr
    other = tmp_path / "other"
    other.write_bytes(b"\x93NUMPY\x01\x00")
    assert "error [PARSE/019]: this is no UTF-8 text but a NumPy array" in run(other).stderr


def test_the_guide_and_the_command() -> None:
    assert run("--agents_md").stdout.startswith("# loom-format\n")
    command = [sys.executable, "-m", "loom_core.tools.loom_format", "--check"]
    done = subprocess.run(command, input=COPY_KERNEL.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
