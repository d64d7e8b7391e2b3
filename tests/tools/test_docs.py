"""The generated documents: committed as the tables say, complete, and written only on request."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from loom_core.base.diagnostics import INTERNAL_PACKAGES, catalogue
from loom_core.base.knobs import all_knobs
from loom_core.tools import docs

COMMITTED = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", docs.DOCUMENTS)
def test_committed_document_is_up_to_date(name: str) -> None:
    text = (COMMITTED / name).read_text(encoding="utf-8")
    assert text == docs.DOCUMENTS[name](), f"docs/{name} is out of date; write it with ./run golden"


def test_every_knob_and_code_is_in_its_document() -> None:
    knobs, codes = docs.knobs_markdown(), docs.diagnostics_markdown()
    assert all(f"`{knob.variable}`" in knobs for knob in all_knobs())
    ours = [entry for entry in catalogue() if entry.__module__.partition(".")[0] in INTERNAL_PACKAGES]
    assert ours
    assert [entry.code for entry in ours if f"| {entry.code}" not in codes] == []


def test_table_cells_cannot_break_the_table() -> None:
    for line in docs.diagnostics_markdown().splitlines():
        if line.startswith("| LOOM-"):
            assert line.replace("\\|", "").count("|") == 5


def test_write_and_check(tmp_path: Path) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(docs.main, ["--out", str(tmp_path), *arguments])
        return result.exit_code, result.stdout

    assert run("--check")[0] == 1
    assert not list(tmp_path.iterdir())
    assert run()[0] == 0
    assert run("--check") == (0, "")
    (tmp_path / "knobs.md").write_text("old")
    assert run("--check") == (1, f"out of date: {tmp_path / 'knobs.md'}\n")
