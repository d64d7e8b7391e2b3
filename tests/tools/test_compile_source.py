"""`loomc compile-palladium`: objects of Palladium and LTL kernels in a source file."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import loom
from loom_core.tools.loomc import main

SOURCE = """
from loom.experimental import palladium as lpl
import loom.triton.language as ltl

block = lpl.BlockSpec((64, 64), lambda i, j: (i, j))

@lpl.kernel(out_shape=lpl.ShapeDtypeStruct((128, 128), lpl.float32), grid=(2, 2), in_specs=[block], out_specs=block)
def scale(x, o, *, factor=2.0):
    o[...] = x[...] * factor

@ltl.jit
def copy(x, y, n, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(y + at, ltl.load(x + at, mask=at < n), mask=at < n)
"""


def invoke(folder: Path, *arguments: str, text: str = SOURCE) -> Result:
    path = folder / "kernels.py"
    path.write_text(text, encoding="utf-8")
    return CliRunner().invoke(main, ["compile-palladium", str(path), *arguments])


def test_a_palladium_kernel(tmp_path: Path) -> None:
    out = tmp_path / "scale.loom"
    result = invoke(
        tmp_path, "--kernel", "scale", "--arg", "x=f32[128,128]", "--const", "factor=3.0", "--out", str(out)
    )
    assert result.exit_code == 0, result.output
    obj = loom.read_object(out.read_bytes())
    assert [arg.name for arg in obj.abi.args] == ["x", "o"]
    ran = CliRunner().invoke(main, ["run", str(out), "--arg", "x=f32[128,128]", "--arg", "o=f32[128,128]"])
    assert ran.exit_code == 0, ran.output


def test_an_ltl_kernel(tmp_path: Path) -> None:
    out = tmp_path / "copy.loom"
    arguments = ["--arg", "x=f32[8]", "--arg", "y=f32[8]", "--arg", "n=8", "--const", "BLOCK=8"]
    result = invoke(tmp_path, "--kernel", "copy", *arguments, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert loom.read_object(out.read_bytes()).manifest["kernel"] == "copy"


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        ([], SOURCE, "--kernel must say which one: scale, copy"),
        (["--kernel", "none"], SOURCE, "there is no kernel none; there are: scale, copy"),
        (["--kernel", "scale"], SOURCE, "scale: no --arg for x"),
        ([], "x = 1 / 0", "the source file cannot be run: ZeroDivisionError"),
        ([], "x = 1", "there is no kernel in the file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, arguments: list[str], text: str, message: str) -> None:
    result = invoke(tmp_path, *arguments, text=text)
    assert result.exit_code == 2 and message in result.output


def test_a_kernel_that_does_not_fit_shows_its_line(tmp_path: Path) -> None:
    result = invoke(tmp_path, "--kernel", "scale", "--arg", "x=f32[64,64]", "--out", str(tmp_path / "no.loom"))
    assert result.exit_code == 1
    assert "block (1, 0) of x at grid point (1, 0) is outside" in result.output and "kernels.py:5" in result.output
