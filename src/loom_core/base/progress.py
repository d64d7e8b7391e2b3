"""One line on a terminal that says what takes so long, and leaves no trace when it is done."""

from __future__ import annotations

import shutil
import sys
from types import TracebackType
from typing import TextIO


class Progress:
    """`with Progress() as line: line.show("3 of 10")`: nothing at all where the error stream is no terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._shown = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._write("")

    def show(self, text: str) -> None:
        """Put `text` in place of what the line says."""
        self._write(text[: shutil.get_terminal_size().columns - 1])

    def _write(self, text: str) -> None:
        if not (self._stream.isatty() and (text or self._shown)):
            return
        self._stream.write(f"\r{text.ljust(self._shown)}")
        if not text:
            self._stream.write("\r")
        self._stream.flush()
        self._shown = len(text)
