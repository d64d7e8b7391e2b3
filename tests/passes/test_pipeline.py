"""The passes together, and what LOOM_DEBUG shows of them."""

from __future__ import annotations

import pytest

from loom_core.base.knobs import knobs
from loom_core.compile import run_passes
from tests.passes.rewriting import body_of, parsed

BODY = """
%zero = constant {value = 0} : i32
%same = add %n, %zero : i32
%p = addptr %i, %same : ptr<i32>
%v = load %p : i32
store %p, %v
"""


def test_every_rewrite_is_shown_at_level_5(capsys: pytest.CaptureFixture[str]) -> None:
    with knobs.override(debug=5):
        run_passes(parsed(BODY))
    shown = capsys.readouterr().err
    assert "#   identity: %same = add %n, %zero : i32" in shown
    assert "# kernel after" in shown, "a level includes those below it"


def test_rewrites_are_not_shown_at_level_4(capsys: pytest.CaptureFixture[str]) -> None:
    with knobs.override(debug=4):
        run_passes(parsed(BODY))
    shown = capsys.readouterr().err
    assert "identity:" not in shown and "# kernel after" in shown


def test_the_passes_settle() -> None:
    """Running them again changes nothing."""
    once = run_passes(parsed(BODY))
    before = body_of(once)
    assert body_of(run_passes(once)) == before
