"""Source files: their text, and positions in it as locations."""

from __future__ import annotations

import linecache
from bisect import bisect_right
from pathlib import Path
from typing import Final, NamedTuple

from loom_core.base.location import END_OF_LINE, Location
from tensorloom.diagnostics import NoSuchFile, NotUtf8, OtherSuffix

SUFFIXES: Final = (".tl", ".nml")


class Span(NamedTuple):
    """Half-open range of characters of a source text."""

    start: int
    end: int


class Source:
    """The text of one file with `\\n` line ends, and what diagnostics call the file."""

    def __init__(self, text: str, file: str, path: Path | None = None) -> None:
        self.text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        self.file = file
        self.path = path
        self._starts: list[int] | None = None

    def line(self, offset: int) -> int:
        """The number, from 1, of the line that holds a character."""
        if self._starts is None:
            starts = [0]
            at = self.text.find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = self.text.find("\n", at + 1)
            self._starts = starts
        return bisect_right(self._starts, offset)

    def column(self, offset: int) -> int:
        """The number, from 1, of a character in its line."""
        return offset - (self.text.rfind("\n", 0, offset) + 1) + 1

    def location(self, span: Span, function: str = "") -> Location:
        """The span as a location; makes the text known to whoever shows source lines."""
        linecache.cache[self.file] = (len(self.text), None, self.text.splitlines(keepends=True), self.file)
        start, end = span
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", start)
        last = len(self.text) if last < 0 else last
        column = len(self.text[first:start].encode())
        end_column = column + len(self.text[start:end].encode()) if end <= last else END_OF_LINE
        return Location(self.file, self.line(start), column, max(end_column, column + 1), function)


def read_source(path: Path, file: str | None = None) -> Source:
    """The file as a source. Errors: OtherSuffix, NoSuchFile, NotUtf8."""
    shown = str(path) if file is None else file
    if path.suffix not in SUFFIXES:
        raise OtherSuffix(Location(shown), suffix=path.suffix or "no suffix")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NoSuchFile(Location(shown), reason=error.strerror or str(error)) from None
    except ValueError:  # a NUL in the path
        raise NoSuchFile(Location(shown), reason="this is no path") from None
    try:
        return Source(data.decode("utf-8-sig"), shown, path)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NotUtf8(Location(shown, line), byte=f"0x{data[error.start]:02x}") from None
