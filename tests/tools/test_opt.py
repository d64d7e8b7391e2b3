"""`loomc opt` on the texts that LOOM_DUMP_DIR writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import loom.triton.language as ltl
from loom_core.base.knobs import knobs
from loom_core.ir.printer import print_function
from loom_core.objfile import read_object, validate, write_object
from loom_core.passes.pipeline import PIPELINE
from loom_core.tools.loomc import main


@ltl.jit
def halves(x: Any, out: Any, n: Any, BLOCK: ltl.constexpr) -> None:
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(out + at, ltl.load(x + at, mask=at < n) * 0.5, mask=at < n)


SIGNATURE = ("*fp32", "*fp32", "i32", 256)


@pytest.fixture
def traced(tmp_path: Path) -> Path:
    path = tmp_path / "halves.ir"
    path.write_text(print_function(halves.lower(*SIGNATURE), locations=True), encoding="utf-8")
    return path


def loomc(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_whole_pipeline_gives_the_object_that_a_launch_would(traced: Path, tmp_path: Path) -> None:
    target = tmp_path / "halves.loom"
    result = loomc("opt", traced, "--emit", "object", "-o", target)
    assert result.exit_code == 0, result.output
    assert target.read_bytes() == write_object(halves.compile(*SIGNATURE))
    assert validate(target.read_bytes(), strict=True) == []


def test_dumps_follow_from_each_other(tmp_path: Path) -> None:
    with knobs.override(dump_dir=tmp_path, debug=0):
        halves.compile(*SIGNATURE)
    dumps = sorted(tmp_path.glob("halves.[0-9]*.ir"))
    assert len(dumps) >= 3
    for number, step in enumerate(step.__name__ for step in PIPELINE):
        dump = tmp_path / f"halves.{number:02}_{step}.ir"
        before = [path for path in dumps if path.name < dump.name]
        source = before[-1] if before else tmp_path / "halves.tracing.ir"
        expected = dump if dump.exists() else source
        assert loomc("opt", source, "--pass", step).stdout == expected.read_text(encoding="utf-8")


def test_until_stops_at_the_last_run_of_the_pass_and_changes_are_shown(traced: Path) -> None:
    assert "addptr" in loomc("opt", traced, "--until", "split_pointers").stdout
    assert "dma_load" in loomc("opt", traced, "--until", "lower_addresses").stdout
    assert loomc("opt", traced).stdout == loomc("opt", traced, "--until", PIPELINE[-1].__name__).stdout
    shown = loomc("opt", traced, "--changes").stdout
    assert "// after lower_addresses\nfunc @halves(" in shown
    assert "// after reduce_assertions" not in shown


def test_commands_are_those_of_the_object(traced: Path, tmp_path: Path) -> None:
    from loom_core.isa.describe import disassemble

    assert loomc("opt", traced, "--emit", "asm").stdout == disassemble(halves.compile(*SIGNATURE))
    target = tmp_path / "mini.loom"
    assert loomc("opt", traced, "--emit", "object", "--machine", "l1-mini", "-o", target).exit_code == 0
    assert read_object(target.read_bytes()).machine.name == "l1-mini"


def test_a_mistake_in_the_text_is_shown_where_it_is(traced: Path) -> None:
    text = traced.read_text(encoding="utf-8")
    traced.write_text(text.replace(" mul ", " mull ", 1), encoding="utf-8")
    result = loomc("opt", traced)
    line = next(number for number, line in enumerate(text.splitlines(), 1) if " mul " in line)
    assert result.exit_code == 1 and f"{traced}:{line}:" in result.stderr and "LOOM-I002" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--emit", "object"], "needs --out"),
        (["--emit", "asm", "--pass", "simplify"], "needs the whole pipeline"),
        (["--pass", "simplify", "--until", "simplify"], "not both"),
        (["--pass", "simplyfy"], "'simplyfy' is not one of"),
    ],
)
def test_wrong_usage(traced: Path, arguments: list[str], said: str) -> None:
    result = loomc("opt", traced, *arguments)
    assert result.exit_code == 2 and said in result.stderr


def test_other_files_are_named() -> None:
    result = loomc("opt", __file__)
    assert result.exit_code == 2
    assert "error[LOOM-K141]: this is not the text of Tile IR but Python source" in result.stderr


def test_two_functions_are_no_object(traced: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.ir"
    text = traced.read_text(encoding="utf-8")
    both.write_text(text + text.replace("@halves", "@other"), encoding="utf-8")
    assert "LOOM-K142" in loomc("opt", both, "--emit", "asm").stderr
    shown = loomc("opt", both).stdout
    assert "func @halves(" in shown and "func @other(" in shown
