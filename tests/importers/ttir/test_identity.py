"""A kernel's source and Triton's IR of it: the same bits before any pass, and after them where the operations are."""

from __future__ import annotations

from pathlib import Path

import pytest

from loom_core.tools.replay import find_folders
from tests.importers.ttir.agreement import agreement
from tests.importers.ttir.modules import CORPUS

pytest.importorskip("triton")

REMOVED = ("feat_rowsum_advance__00", "feat_transpose_blockptr__00")
"""Kernels with block pointers, which Triton 3.9 no longer has."""
FOLDERS = find_folders([CORPUS / "features"])


@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_source_and_triton_ir(folder: Path, tmp_path: Path) -> None:
    """All kernels of the corpus are compared by tests/suites/triton_ir.py, where no other way of agreeing occurs."""
    found = agreement(folder, tmp_path)
    wanted = {"TTIR", "TTGIR"} if folder.name in REMOVED else {"unoptimised TTIR", "TTIR", "TTGIR"}
    assert set(found) == wanted
    for form, result in found.items():
        assert result.right and result.kind.startswith("identical"), (form, result)
