"""No false alarms: recorded launches of a GPU, checked and replayed with other engine speeds."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import loom
from loom_core.base.diagnostics import LoomWarning
from loom_core.tools.replay import find_folders, replay
from tests.importers.ttir.modules import CORPUS

SAMPLE = find_folders([CORPUS / "features", CORPUS / "inductor"])[::5]


@pytest.mark.parametrize("folder", SAMPLE, ids=lambda folder: folder.name)
def test_recorded_launches_are_clean(folder: Path) -> None:
    with warnings.catch_warnings(), loom.check(replay=2):
        warnings.simplefilter("error", LoomWarning)
        result = replay(folder, form="ttir")
    assert result.verdict == "passed", result.text + result.details
