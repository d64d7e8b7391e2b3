"""The line that says what takes so long."""

from __future__ import annotations

import io
import sys
import threading
import time

import pytest

from loom_core.base.progress import Progress, elapsed


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def screen(self) -> str:
        """What a terminal shows of one line."""
        cells: list[str] = []
        at = 0
        for character in self.getvalue():
            if character == "\r":
                at = 0
                continue
            cells[at : at + 1] = [character]
            at += 1
        return "".join(cells)


def test_each_text_takes_the_place_of_the_one_before_and_none_stays() -> None:
    terminal = Terminal()
    with Progress(terminal) as line:
        line.show("compiling a long name")
        line.show("short")
        assert terminal.screen().rstrip() == "short"
    assert terminal.screen().strip() == "" and terminal.getvalue().endswith("\r")


def test_a_line_is_never_longer_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    with Progress(terminal) as line:
        line.show("x" * 100)
        assert terminal.screen() == "x" * 19


def test_nothing_is_written_elsewhere() -> None:
    file = io.StringIO()
    with Progress(file) as line:
        line.show("text")
    assert file.getvalue() == ""


def test_seconds_are_shown_while_something_runs() -> None:
    terminal = Terminal()
    with elapsed("running", terminal, every=0.01):
        deadline = time.monotonic() + 10
        while "running: 0 s" not in terminal.getvalue() and time.monotonic() < deadline:
            time.sleep(0.005)
        assert terminal.screen() == "running: 0 s"
    assert terminal.screen().strip() == ""
    file = io.StringIO()
    before = threading.active_count()
    with elapsed("running", file, every=0.001):
        assert threading.active_count() == before
    assert file.getvalue() == ""


def test_programs_without_an_error_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with Progress() as line:
        line.show("text")
    assert not line.watched
