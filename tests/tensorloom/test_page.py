"""docs/tensorloom.md: its programs are sound, and it names everything there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tensorloom.cli import main
from tensorloom.functions import DEVICES, FUNCTIONS, PYTHON
from tensorloom.layers import LAYERS
from tensorloom.training import DATASETS, EVENTS, METRICS, OPTIMIZERS, OPTIONS, SCHEDULERS
from tests.tensorloom.programs import checked

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tensorloom.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs_are_sound(program: str) -> None:
    given = "let x = ones(10)\nlet y = ones(10)\n" if "@kernel" in program else ""
    assert checked(given + program).diagnostics == []


def test_everything_is_named() -> None:
    words = set(re.findall(r"\w+", PAGE))
    tables = (LAYERS, FUNCTIONS, PYTHON, DEVICES, OPTIONS, OPTIMIZERS, SCHEDULERS, DATASETS, EVENTS, METRICS.names)
    missing = {name for table in tables for name in table} - words
    assert missing == {"MultiheadAttention"}  # torch's spelling of MultiHeadAttention


def test_every_command_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    commands = re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE)
    assert len(commands) == 8
    assert [command for command in commands if f"`tlc {command}" not in PAGE] == []
