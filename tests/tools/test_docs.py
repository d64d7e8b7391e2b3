"""The generated documents: committed as the tables say, complete, and written only on request."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from click.testing import CliRunner

import ltl
from loom_core.base.diagnostics import INTERNAL_PACKAGES, catalogue
from loom_core.base.knobs import all_knobs
from loom_core.isa.sce import ALL_SCE_OPS, DTYPE_CODES, SCE_OPS
from loom_core.reference.accuracy import largest_error
from loom_core.tools import docs, language, ops_page, performance

COMMITTED = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", docs.DOCUMENTS)
def test_committed_document_is_up_to_date(name: str) -> None:
    text = (COMMITTED / name).read_text(encoding="utf-8")
    assert docs.is_current(name, text), f"docs/{name} is out of date; write it with ./run golden"


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


def test_figures_of_another_host_are_no_reason_to_write_again() -> None:
    page = (COMMITTED / "performance.md").read_text(encoding="utf-8")
    assert docs.is_current("performance.md", page)
    other = performance.page_with("| claim | 17 x |")
    assert performance.figures_in(other) == "| claim | 17 x |"
    assert docs.is_current("performance.md", other)
    assert not docs.is_current("performance.md", other.replace("Choosing blocks", "Blocks"))


def test_figures_of_results() -> None:
    claim = {"claim": "a", "figure": 0.5, "bar": 0.75, "sense": ">=", "unit": "x", "met": False}
    reported = {"claim": "b", "figure": 2.0, "bar": None, "sense": ">=", "unit": "s", "met": True}
    environment = {"date": "2026-01-02", "processor": "CPU", "python": "3.11.7", "numpy": "2.4.6"}
    rows = list(performance.figure_rows({"claims": {"one": [claim, reported]}, "environment": environment}))
    assert rows[0] == "2026-01-02, CPU, Python 3.11.7, numpy 2.4.6."
    assert rows[-2:] == ["| a | 0.5 x | ≥ 0.75 | no |", "| b | 2 s |  |  |"]


def test_every_public_function_is_in_the_language_reference() -> None:
    page = (COMMITTED / "language.md").read_text(encoding="utf-8")
    plain = {"extra", "math", "target_info", "slice", "tuple", "TRITON_MAX_TENSOR_NUMEL"}
    missing = [
        name
        for name in ltl.__all__
        if name not in plain and not any(mark in page for mark in (f"`{name}(", f"`{name}`", f"`ltl.{name}`"))
    ]
    assert missing == []


def test_every_documented_name_has_a_docstring() -> None:
    entries = [entry for group in language.documented().values() for entry in group]
    assert [name for name, value in entries if not inspect.getdoc(value)] == []


def test_no_heading_is_the_other_one() -> None:
    assert language._OTHER not in language.documented()


def test_signatures_as_text() -> None:
    def function(a: int, *rest: int, b: object = None, **more: int) -> None: ...

    def keyword_only(a: int, *, b: int = 2) -> None: ...

    assert language.signature_text(function) == "(a, *rest, b=None, **more)"
    assert language.signature_text(keyword_only) == "(a, *, b=2)"
    assert "propagate_nan=PropagateNan.NONE" in language.signature_text(ltl.maximum)


def test_what_compiles_is_found_by_compiling() -> None:
    assert language.attempt("fp32", "value = a + b") == "yes"
    assert language.attempt("i32", "value = ltl.exp(a)") == "no"


def test_every_opcode_is_in_the_table_of_operations() -> None:
    page = (COMMITTED / "ops.md").read_text(encoding="utf-8")
    missing = [op.mnemonic for op in ALL_SCE_OPS if f"`{op.function}`" not in page]
    assert missing == []
    assert {dtype for types in ops_page.COLUMNS.values() for dtype in types} == set(DTYPE_CODES) - {"i4", "u4"}


def test_errors_in_the_table_of_operations_are_bounds_of_those_claimed() -> None:
    rows = [line.split(" | ") for line in ops_page.ops_markdown().splitlines() if line.startswith("| `exp` ")]
    assert [cell.strip(" |") for cell in rows[0][2:]] == ["1.1", "1.05", "0.501", "", "", ""]
    assert largest_error(SCE_OPS["tan.f8e5m2"]) < 0.501
    assert {largest_error(SCE_OPS[name]) for name in ("add.i32", "floor.f16", "lt.f32", "mov.8", "cast.f32.i8")} == {0}
    assert largest_error(SCE_OPS["cast_rtz.f32.f16"]) == 1
