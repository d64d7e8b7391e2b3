"""Recorded launches of a GPU, run again from their TTIR."""

from __future__ import annotations

from pathlib import Path

import pytest

from loom_core.tools.replay import find_folders, replay
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import CORPUS, TEXTS

FOLDERS = find_folders([CORPUS / "features", CORPUS / "inductor"])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_recorded_launch_by_the_interpreter(folder: Path) -> None:
    result = replay(folder, form="ttir", interpret=True)
    assert result.verdict == "passed", result.text + result.details


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_recorded_launch_compiled(folder: Path) -> None:
    result = replay(folder, form="ttir")
    assert result.verdict == "passed", result.text + result.details


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.parent.name)
def test_operations_point_to_the_source(path: Path) -> None:
    """Every operation knows the line of the user's Python, or the one in the text where Triton gave none."""
    function = ImportedKernel(path.read_text(encoding="utf-8"), str(path)).function
    assert function.location.file.endswith(".py")
    places = [op.location for op in function.walk()]
    assert all(place.known for place in places)
    assert sum(place.root().file.endswith(".py") for place in places) > len(places) / 2


def test_without_locations_they_point_to_the_text() -> None:
    import re

    text = re.sub(r"(?m) loc\(.*\)$|^#loc.*\n| loc\([^()]*(\([^()]*\))?\)", "", TEXTS[0].read_text(encoding="utf-8"))
    assert "loc" not in text
    function = ImportedKernel(text, "kernel.ttir").function
    assert {op.location.file for op in function.walk()} == {"kernel.ttir"}
