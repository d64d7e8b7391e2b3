"""No findings where nothing is wrong: recorded launches of a GPU, and an example that once lacked waits."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import pytest

import loom
from loom_core.base.diagnostics import LoomWarning
from loom_core.tools.replay import find_folders, replay
from tests.importers.ttir.modules import CORPUS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SAMPLE = find_folders([CORPUS / "features", CORPUS / "inductor"])[::5]


@pytest.mark.parametrize("folder", SAMPLE, ids=lambda folder: folder.name)
def test_recorded_launches_are_clean(folder: Path) -> None:
    with warnings.catch_warnings(), loom.check(replay=2):
        warnings.simplefilter("error", LoomWarning)
        result = replay(folder, form="ttir")
    assert result.verdict == "passed", result.text + result.details


def test_assertions_between_copies_hide_no_wait(capsys: pytest.CaptureFixture[str]) -> None:
    """A report is passed over where its assertion holds: what it waits for may still be under way behind it."""
    with loom.check(replay=6):
        runpy.run_path(str(EXAMPLES / "pallas" / "pipeline.py"), run_name="__main__")
    assert capsys.readouterr().out
