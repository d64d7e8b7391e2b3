"""Diagnostics: declaration, rendering, pickling and filtered tracebacks."""

from __future__ import annotations

import importlib
import linecache
import pickle
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from loom_core.base import diagnostics
from loom_core.base.diagnostics import (
    Diagnostic,
    InternalError,
    LoomError,
    LoomWarning,
    UserError,
    catalogue,
    render,
    warn,
    without_internal_frames,
)
from loom_core.base.knobs import UnknownKnob, knobs
from loom_core.base.location import END_OF_LINE, Location


class TooBig(UserError):
    code = "LOOM-K998"
    template = "{size} bytes do not fit"
    hint = "at most {limit} bytes"


@pytest.fixture
def source() -> Iterator[str]:
    """A file that only linecache knows, as a notebook's cells are."""
    name = "<cell 1>"
    lines = ["def kernel(x):\n", "\ty = f(x, 'żółw 表') + g(x)\n", "    z = h(y,\n", "          1)\n"]
    linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
    yield name
    del linecache.cache[name]


def test_message_and_hint_come_from_the_class() -> None:
    error = TooBig(Location("nowhere.py", 3, 4), size=10, limit=5, notes=["a note"])
    assert error.diagnostics == (
        Diagnostic(
            "LOOM-K998", "10 bytes do not fit", Location("nowhere.py", 3, 4), "error", ("a note",), "at most 5 bytes"
        ),
    )
    assert str(error).splitlines() == [
        "nowhere.py:3:5: error[LOOM-K998]: 10 bytes do not fit",
        "  note: a note",
        "  hint: at most 5 bytes",
    ]
    assert TooBig(size=1, hint="take {less}").diagnostics[0].hint == "take {less}"


@pytest.mark.parametrize("fields", [{}, {"size": 1}, {"size": 1, "limit": 2, "colour": 3}])
def test_fields_must_be_those_of_the_template(fields: dict[str, int]) -> None:
    with pytest.raises(TypeError, match=r"TooBig takes the fields \['limit', 'size'\]"):
        TooBig(**fields)


def test_caret_stands_under_the_span(source: str) -> None:
    line = linecache.getline(source, 2)
    begin, end = (len(line[: line.index(text)].encode()) for text in ("g(x)", "\n"))
    text = render(TooBig.diagnostic(Location(source, 2, begin, end), size=1, limit=0))
    position, shown, carets, *_ = text.splitlines()
    assert position.startswith("<cell 1>:2:23: error[LOOM-K998]")
    assert shown == "    2 | " + line.rstrip()
    # the tab stays one, the wide character counts twice
    assert carets == "      | \t" + " " * len("y = f(x, 'żółw ##') + ") + "^^^^"


def test_span_past_the_line_ends_with_it(source: str) -> None:
    text = render(TooBig.diagnostic(Location(source, 3, 8, END_OF_LINE), size=1, limit=0))
    assert text.splitlines()[2] == "      |         ^^^^"


def test_call_chain(source: str) -> None:
    caller = Location(source, 3, 4, 9, "outer")
    text = render(TooBig.diagnostic(Location(source, 1, 0, 3, "kernel", caller), size=1, limit=0))
    assert text.splitlines()[:6] == [
        "<cell 1>:1:1: error[LOOM-K998]: 1 bytes do not fit",
        "    1 | def kernel(x):",
        "      | ^^^",
        "  inlined from <cell 1>:3:5, in outer",
        "    3 |     z = h(y,",
        "      |     ^^^^^",
    ]


def test_colour_adds_only_escapes(source: str) -> None:
    diagnostic = TooBig.diagnostic(Location(source, 1, 0, 3), size=1, limit=0)
    coloured = render(diagnostic, color=True)
    assert "\033[1;31merror[LOOM-K998]\033[0m" in coloured
    for escape in ("\033[1;31m", "\033[1;32m", "\033[1;36m", "\033[0m"):
        coloured = coloured.replace(escape, "")
    assert coloured == render(diagnostic)


def test_several_diagnostics_in_one_error() -> None:
    parts = [TooBig.diagnostic(size=n, limit=0) for n in (1, 2)]
    error = UserError.of(parts)
    assert isinstance(error, UserError)
    assert str(error).count("error[LOOM-K998]") == 2
    with pytest.raises(ValueError, match="at least one"):
        LoomError.of([])


def test_pickles() -> None:
    error = TooBig(Location("a.py", 1), size=1, limit=2)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is TooBig
    assert again.diagnostics == error.diagnostics


def test_second_claim_of_a_code_is_refused() -> None:
    with pytest.raises(TypeError, match=r"LOOM-K998 already belongs to .*TooBig"):
        type("Other", (UserError,), {"code": "LOOM-K998", "template": "x"})


@pytest.mark.parametrize("code", ["LOOM-Q001", "LOOM-K01", "K001"])
def test_malformed_codes_are_refused(code: str) -> None:
    with pytest.raises(TypeError, match="is not a code"):
        type("Bad", (UserError,), {"code": code, "template": "x"})


def test_code_without_template_is_refused() -> None:
    with pytest.raises(TypeError, match="needs a template"):
        type("Bad", (UserError,), {"code": "LOOM-K997"})


def test_catalogue_is_sorted_and_reload_keeps_it() -> None:
    from loom_core.base import knobs as knobs_module

    codes = [entry.code for entry in catalogue()]
    assert codes == sorted(set(codes))
    assert {"LOOM-X001", "LOOM-K001", "LOOM-K998"} <= set(codes)
    specification = importlib.util.find_spec(knobs_module.__name__)
    assert specification is not None and specification.loader is not None
    specification.loader.exec_module(importlib.util.module_from_spec(specification))
    try:
        assert [entry.code for entry in catalogue()] == codes
    finally:
        diagnostics._CATALOGUE[UnknownKnob.code] = UnknownKnob
        diagnostics._CATALOGUE[knobs_module.BadKnobValue.code] = knobs_module.BadKnobValue


def test_abstract_errors_have_no_code() -> None:
    with pytest.raises(TypeError, match="UserError has no code of its own"):
        UserError()


def files_of(error: BaseException) -> list[str]:
    return [Path(frame.filename).name for frame in traceback.extract_tb(error.__traceback__)]


def test_internal_frames_leave_the_traceback() -> None:
    with pytest.raises(UnknownKnob) as caught, knobs.override(nothing=1):
        pass
    assert "knobs.py" in files_of(caught.value)
    filtered = without_internal_frames(caught.value)
    assert filtered is caught.value
    assert "test_diagnostics.py" in files_of(filtered)
    assert "knobs.py" not in files_of(filtered)


def test_full_traceback_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOM_FULL_TRACEBACK", "1")
    with pytest.raises(UnknownKnob) as caught, knobs.override(nothing=1):
        pass
    assert "knobs.py" in files_of(without_internal_frames(caught.value))


def test_internal_errors_keep_their_traceback() -> None:
    with pytest.raises(InternalError) as caught:
        raise InternalError(what="broken")
    before = caught.value.__traceback__
    assert without_internal_frames(caught.value).__traceback__ is before
    assert "internal error: broken" in str(caught.value)


def test_warning_points_at_the_caller() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warn(TooBig.diagnostic(size=1, limit=0))
    assert [(w.category, Path(w.filename).name) for w in seen] == [(LoomWarning, "test_diagnostics.py")]
    assert "LOOM-K998" in str(seen[0].message)
