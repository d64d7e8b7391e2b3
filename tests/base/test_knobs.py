"""Knobs: environment, overrides, bad values."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from loom_core.base.knobs import BadKnobValue, UnknownKnob, all_knobs, knobs


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for knob in all_knobs():
        monkeypatch.delenv(knob.variable, raising=False)
    assert knobs.debug == 0
    assert knobs.verify == "end"
    assert knobs.dump_dir is None
    assert knobs.interpret is False
    assert knobs.cache_dir.is_absolute()


def test_environment_is_read_at_each_access(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOM_DEBUG", "3")
    monkeypatch.setenv("LOOM_CACHE_DIR", "~/somewhere")
    monkeypatch.setenv("LOOM_INTERPRET", "on")
    assert knobs.debug == 3
    assert knobs.cache_dir == Path.home() / "somewhere"
    assert knobs.interpret is True
    monkeypatch.setenv("LOOM_DEBUG", "4")
    assert knobs.debug == 4


@pytest.mark.parametrize(
    ("name", "variable", "text", "expected"),
    [
        ("debug", "LOOM_DEBUG", "loud", "a whole number from 0"),
        ("debug", "LOOM_DEBUG", "-1", "a whole number from 0"),
        ("interpret", "LOOM_INTERPRET", "maybe", "a flag"),
        ("verify", "LOOM_VERIFY", "never", "one of each, end, off"),
        ("cache_dir", "LOOM_CACHE_DIR", "", "a folder"),
    ],
)
def test_bad_value(monkeypatch: pytest.MonkeyPatch, name: str, variable: str, text: str, expected: str) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(BadKnobValue, match=f"{variable} is {text!r}, which is not {expected}"):
        getattr(knobs, name)


def test_overrides_nest_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOM_DEBUG", "1")
    with knobs.override(debug=2, verify="each"):
        with knobs.override(debug="5"):
            assert (knobs.debug, knobs.verify) == (5, "each")
        assert knobs.debug == 2
    assert (knobs.debug, knobs.verify) == (1, "end")


def test_override_is_of_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOOM_DEBUG", raising=False)
    seen: list[int] = []
    with knobs.override(debug=7):
        thread = threading.Thread(target=lambda: seen.append(knobs.debug))
        thread.start()
        thread.join()
    assert seen == [0]


def test_unknown_knob() -> None:
    with pytest.raises(UnknownKnob, match="no knob called 'debu'"), knobs.override(debu=1):
        pass


def test_every_knob_is_documented() -> None:
    assert len({knob.variable for knob in all_knobs()}) == len(all_knobs())
    for knob in all_knobs():
        assert knob.variable.startswith("LOOM_")
        assert knob.doc.endswith(".")
