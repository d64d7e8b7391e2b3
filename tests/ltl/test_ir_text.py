"""The IR of recorded kernels survives its text, verifies, and every operation stands in the user's source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import loom_core.ops  # noqa: F401
from loom_core.ir.block import Function
from loom_core.ir.parser import parse_function
from loom_core.ir.printer import print_function
from loom_core.ir.verifier import check_function
from loom_core.tools.recording import Memory, read_recording
from loom_core.tools.replay import find_folders
from ltl.source import load_source

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
FOLDERS = find_folders([CORPUS / "features", CORPUS / "inductor"])


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def lowered(request: pytest.FixtureRequest) -> tuple[Path, Function]:
    recording = read_recording(request.param)
    memory = Memory(recording)
    source = recording.source
    kernel: Any = load_source(source.read_text(encoding="utf-8"), str(source), every=True)[recording.name]
    return source, kernel.lower(*(memory.argument(argument) for argument in recording.arguments))


def test_text_reads_back(lowered: tuple[Path, Function]) -> None:
    _, function = lowered
    assert not check_function(function)
    for locations in (False, True):
        text = print_function(function, locations=locations)
        assert print_function(parse_function(text), locations=locations) == text


def test_operations_stand_in_the_source(lowered: tuple[Path, Function]) -> None:
    source, function = lowered
    lines = len(source.read_text(encoding="utf-8").splitlines())
    for op in function.walk():
        root = op.location.root()
        assert Path(root.file).name == "kernel.py" and 1 <= root.line <= lines
