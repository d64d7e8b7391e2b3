"""A kernel's source and its TTIR before any pass: the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from loom_core.base.knobs import knobs
from loom_core.tools.recording import Memory, read_recording
from loom_core.tools.replay import FORMS, find_folders
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import CORPUS
from tests.importers.ttir.upstream import unoptimised_ttir

pytest.importorskip("triton")

REMOVED = ("feat_rowsum_advance__00", "feat_transpose_blockptr__00")
"""Kernels with block pointers, which Triton 3.9 no longer has."""
FOLDERS = [folder for folder in find_folders([CORPUS / "features"]) if folder.name not in REMOVED]


@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_source_and_unoptimised_ttir(folder: Path, tmp_path: Path) -> None:
    recording = read_recording(folder)
    source, taken = FORMS["source"](recording)
    imported = ImportedKernel(unoptimised_ttir(recording, tmp_path))
    first, second = Memory(recording), Memory(recording)
    with knobs.override(interpret=True):
        source[recording.grid](*map(first.argument, taken))
        imported[recording.grid](*map(second.argument, recording.run_time))
    for argument in recording.tensors:
        assert first.bytes_of(argument).tobytes() == second.bytes_of(argument).tobytes(), argument.name
