"""One line on a terminal that says what takes so long, and leaves no trace when it is done."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TextIO


class Progress:
    """`with Progress() as line: line.show("3 of 10")`: nothing at all where the error stream is no terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr  # which is None in programs without a console
        self._shown = 0
        self.watched = self._stream is not None and self._stream.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._write("")

    def show(self, text: str) -> None:
        """Put `text` in place of what the line says."""
        self._write(text[: shutil.get_terminal_size().columns - 1])

    def _write(self, text: str) -> None:
        if not (self.watched and (text or self._shown)):
            return
        self._stream.write(f"\r{text.ljust(self._shown)}")
        if not text:
            self._stream.write("\r")
        self._stream.flush()
        self._shown = len(text)


@contextlib.contextmanager
def elapsed(what: str, stream: TextIO | None = None, every: float = 1.0) -> Iterator[None]:
    """Show `what` and the seconds since the block was entered, every so many of them."""
    stop = threading.Event()
    start = time.monotonic()
    with Progress(stream) as line:

        def tick() -> None:
            while not stop.wait(every):
                line.show(f"{what}: {time.monotonic() - start:.0f} s")

        thread = threading.Thread(target=tick, daemon=True)
        if line.watched:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            if line.watched:
                thread.join()
