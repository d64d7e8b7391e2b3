"""Every operation of Triton's dialects is either imported or refused with a reason."""

from __future__ import annotations

import re

import pytest

from loom_core.importers.ttir.errors import UnsupportedOperation
from loom_core.importers.ttir.importer import TABLE
from loom_core.importers.ttir.refused import PARTS, REASONS
from loom_core.tools.triton_page import DIALECTS, operations, treatment
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import module

NAMES = sorted({name for found in operations().values() for name in found})
REFUSED = [name for name in NAMES if str(treatment(name)).startswith("refused")]


def test_none_is_left_out() -> None:
    assert len(NAMES) > 240
    assert {name.partition(".")[0] for name in NAMES} == set(DIALECTS)
    assert [name for name in NAMES if treatment(name) is None] == []


def test_the_installed_version_was_looked_into() -> None:
    triton = pytest.importorskip("triton")
    assert triton.__version__ in operations()


def test_what_is_said_is_of_something() -> None:
    """No row, and no reason, for an operation that no version has."""
    others = {"func.call", "func.return", "llvm.intr.assume", "llvm.unreachable", "gpu.barrier", "tt.view"}
    known = {*NAMES, *others}
    given = {name for name in (*TABLE, *REASONS, *PARTS) if not name.endswith(".")}
    assert {name for name in given - known if not name.startswith(("tt.experimental_", "rocdl."))} == set()
    assert not set(TABLE) & set(REASONS)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_line_and_reason(name: str) -> None:
    with pytest.raises(UnsupportedOperation) as caught:
        ImportedKernel(module(f'"{name}"() : () -> ()'), "kernel.ttgir")
    (found,) = caught.value.diagnostics
    assert (found.location.file, found.location.line) == ("kernel.ttgir", 3)
    assert found.message == f"{name} cannot be imported: {str(treatment(name)).removeprefix('refused: ')}"
    assert found.hint and re.search("ttgir:3", found.notes[0])
