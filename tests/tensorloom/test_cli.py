"""The command `tlc`: answers, exit codes, where output goes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tensorloom import cli
from tests.tensorloom.programs import ENVIRONMENT

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="what is compiled runs on PyTorch")

GOOD = """\
model Net:
    layer fc = Linear(4, 2)
    fn forward(self, x):
        return self.fc(x)
let net = Net()
print(net(ones(3, 4)).shape[1])
"""
BAD = GOOD.replace("ones(3, 4)", "ones(3, 5)")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.tl").write_text(GOOD)
    (tmp_path / "bad.tl").write_text(BAD)
    (tmp_path / "broken.tl").write_text("let = 1\nlet a = 2 2\n")
    (tmp_path / "arch.nml").write_text(
        "@model M:\n    @layers:\n        a = Linear(3, 2)\n    @forward(x):\n        return a(x)\n"
    )
    return tmp_path


def tlc(*arguments: str) -> int:
    try:
        return cli.main(arguments)
    except SystemExit as left:
        return int(left.code or 0)


def test_without_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert tlc() == 0
    text = capsys.readouterr().out
    for command in ("run", "compile", "check", "info", "tokens", "ast", "fmt", "lsp"):
        assert f"    {command}" in text


@pytest.mark.parametrize(
    "arguments", [("frobnicate",), ("check",), ("check", "--nothing", "x.tl"), ("info", "x.tl", "--batch", "0")]
)
def test_wrong_use(arguments: tuple[str, ...]) -> None:
    assert tlc(*arguments) == 2


def test_check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tlc("check", "good.tl") == 0
    out, err = capsys.readouterr()
    assert "net\n  fc  [B, 4] -> [B, 2]\nOK good.tl" in out
    assert err == ""
    assert tlc("check", "bad.tl") == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[-1].startswith("FAIL bad.tl")
    assert err == (
        "bad.tl:4:16: error[LOOM-T302]: fc (Linear) needs a last size of 4, and gets [3, 5]\n"
        "    4 |         return self.fc(x)\n      |                ^^^^^^^^^^\n"
        "  inlined from bad.tl:6:7\n    6 | print(net(ones(3, 5)).shape[1])\n      |       ^^^^^^^^^^^^^^^\n"
    )


@pytest.mark.parametrize("command", ["check", "compile", "run", "info", "tokens", "ast", "fmt"])
@pytest.mark.parametrize(
    ("file", "code"), [("broken.tl", "LOOM-T101"), ("missing.tl", "LOOM-T001"), ("good.py", "LOOM-T002")]
)
def test_files_that_cannot_be_read(
    command: str, file: str, code: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "tokens" and file == "broken.tl":
        pytest.skip("its characters are in order")
    assert tlc(command, file) == 1
    out, err = capsys.readouterr()
    assert code in err
    assert "Traceback" not in err
    assert err.count("error[") == (2 if file == "broken.tl" else 1)
    assert not out or command == "check"


@pytest.mark.parametrize("command", ["check", "compile", "run", "info"])
def test_no_output_of_a_wrong_program(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(folder.iterdir())
    assert tlc(command, "bad.tl") == 1
    assert "LOOM-T302" in capsys.readouterr().err
    assert set(folder.iterdir()) == before


@needs_torch
def test_compile(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tlc("compile", "good.tl") == 0
    assert tlc("compile", "arch.nml") == 0
    assert tlc("compile", "good.tl", "-o", "other.py", "--plain") == 0
    assert sorted(path.name for path in folder.glob("*.py")) == ["arch_nml_compiled.py", "good_compiled.py", "other.py"]
    assert "# good.tl:2" in (folder / "good_compiled.py").read_text()
    assert "# good.tl" not in (folder / "other.py").read_text()
    ran = subprocess.run(
        [sys.executable, "good_compiled.py"], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    assert ran.stdout.endswith("\n2\n")
    capsys.readouterr()
    assert tlc("compile", "good.tl", "-o", "-") == 0
    assert capsys.readouterr().out == (folder / "good_compiled.py").read_text()
    assert tlc("compile", "good.tl", "-o", "no/where.py") == 1
    assert "LOOM-T602" in capsys.readouterr().err


def test_the_text_is_ascii_but_for_the_users_own_words(folder: Path) -> None:
    assert tlc("compile", "good.tl") == 0
    assert (folder / "good_compiled.py").read_text().isascii()


@needs_torch
def test_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "here.tl").write_text(GOOD)
    assert tlc("run", "sub/here.tl") == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["2"]
    assert not list(folder.rglob("*.py"))


@needs_torch
def test_errors_of_a_run_point_at_the_program(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'fn f(n):\n    let xs = [1]\n    return xs[n]\nlet a = int("5")\nprint(f(a))\n'
    (folder / "fails.tl").write_text(text)
    assert tlc("run", "fails.tl") == 1
    err = capsys.readouterr().err
    assert 'File "fails.tl", line 5, in <module>\n    print(f(a))' in err
    assert 'File "fails.tl", line 3, in f\n    return xs[n]' in err
    assert err.rstrip().endswith("IndexError: list index out of range")
    assert "execution.py" not in err


@needs_torch
def test_errors_of_kernels_point_at_the_program(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """@kernel def k(x_ptr, n, B: tl.constexpr):
    let i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + i, tl.nothing(i), mask=i < n)
k_launcher(zeros(4), B=4)
"""
    (folder / "kernel.tl").write_text(text)
    assert tlc("run", "kernel.tl") == 1
    assert "kernel.tl:3" in capsys.readouterr().err


@needs_torch
def test_a_programs_own_exit_code(folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tensorloom", "run", "good.tl"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout.splitlines()[1]) == (0, "2")


def test_target_loom_is_not_there_yet(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("compile", "run"):
        assert tlc(command, "good.tl", "--target", "loom") == 2
        assert "LOOM-T601" in capsys.readouterr().err


def test_info(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tlc("info", "good.tl", "--batch", "8") == 0
    out = capsys.readouterr().out
    assert "parameters: 10" in out
    assert "outputs of layers for [8, 4]: 0.000 MB" in out
    assert "weights, gradients and Adam" in out


def test_tokens_and_ast(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tlc("tokens", "good.tl") == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["1:1", "model", "model"]
    assert tlc("ast", "arch.nml") == 0
    assert "Model 1:1 name='M' architecture=True" in capsys.readouterr().out


def test_fmt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ugly = folder / "ugly.tl"
    ugly.write_text("let   a=1\n")
    assert tlc("fmt", "--check", "ugly.tl", "good.tl") == 1
    assert capsys.readouterr().out == "would change: ugly.tl\n"
    assert tlc("fmt", "--stdout", "ugly.tl") == 0
    assert capsys.readouterr().out == "let a = 1\n"
    assert tlc("fmt", "ugly.tl") == 0
    assert ugly.read_text() == "let a = 1\n"
    assert tlc("fmt", "--check", "ugly.tl") == 0


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def answer(*arguments: str) -> Any:
        tlc(*arguments, "--json")
        return json.loads(capsys.readouterr().out)

    assert answer("check", "good.tl")["flow"]["net"] == [{"layer": "fc", "input": "[B, 4]", "output": "[B, 2]"}]
    bad = answer("check", "bad.tl")
    assert not bad["ok"]
    (found,) = bad["diagnostics"]
    assert (found["code"], found["line"], found["column"], found["end_column"]) == ("LOOM-T302", 4, 16, 26)
    assert found["via"][0]["line"] == 6
    assert answer("compile", "good.tl")["output"] == "good_compiled.py"
    assert answer("compile", "broken.tl")["diagnostics"][0]["code"] == "LOOM-T101"
    assert answer("info", "good.tl")["models"][0]["parameters"] == 10
    assert answer("tokens", "good.tl")[0] == {"kind": "model", "text": "model", "line": 1, "column": 1}
    assert answer("ast", "good.tl")["node"] == "Program"
    assert answer("fmt", "good.tl") == {"ok": True, "changed": []}


def test_a_check_is_fast_and_imports_no_framework(folder: Path) -> None:
    code = (
        "import sys\nfrom tensorloom.cli import main\nassert main(['check', 'good.tl']) == 0\n"
        "heavy = {'torch', 'numpy', 'numba', 'click', 'rich', 'pygls', 'triton'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    command = [sys.executable, "-c", code]
    subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)
    before = os.times()
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)
    after = os.times()
    # The bar is 120 ms on a quiet machine; an interpreter that may not write its caches compiles everything anew.
    assert after.children_user - before.children_user < 1.0
    assert time.perf_counter() - started < 10


@needs_torch
def test_letters_that_the_terminal_lacks(folder: Path) -> None:
    (folder / "letters.tl").write_text('let größe = 1\nprint("größe", größe)\n')
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "tensorloom", "run", "letters.tl"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.splitlines()[1]) == (0, "gr\\xf6\\xdfe 1")
