"""Locations in Triton IR text: names, files with lines, chains of calls."""

from __future__ import annotations

import re
from typing import Final

from loom_core.base.location import UNKNOWN, Location
from loom_core.importers.ttir.scanner import Scanner

_ALIAS: Final = re.compile(r"#[\w.$]+")
_NUMBER: Final = re.compile(r"\d{1,9}")
_WORD: Final = re.compile(r"[a-z]+")


class Locations:
    """Resolves the texts of `loc(...)`; `table` holds the module's aliases (`#loc3` to its text)."""

    def __init__(self, table: dict[str, tuple[str, Location]]) -> None:
        self._table = table
        self._known: dict[str, Location] = {}
        self._open: set[str] = set()

    def resolve(self, text: str | None, position: Location) -> Location:
        """The user's place that `text` names; `position`, that in the IR text, where it names none."""
        if text is None:
            return position
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._read(Scanner(text, position.file, position), position)
        return found if found.known else position

    def _read(self, scanner: Scanner, position: Location) -> Location:
        with scanner.nested():
            return self._inner(scanner, position)

    def _inner(self, scanner: Scanner, position: Location) -> Location:
        if (alias := scanner.match(_ALIAS)) is not None:
            return self._alias(alias.group(), position)
        if scanner.looking_at('"'):
            return self._quoted(scanner, position)
        word = scanner.match(_WORD)
        if word is None:
            return UNKNOWN
        if word.group() == "callsite":
            scanner.expect("(")
            inner = self._read(scanner, position)
            scanner.expect("at")
            outer = self._read(scanner, position)
            scanner.expect(")")
            return inner.inlined_at(outer) if inner.known and outer.known else (inner if inner.known else outer)
        if word.group() == "fused":
            if scanner.looking_at("<"):
                scanner.balanced()
            scanner.expect("[")
            parts = [self._read(scanner, position)]
            while scanner.accept(","):
                parts.append(self._read(scanner, position))
            scanner.expect("]")
            return next((part for part in parts if part.known), UNKNOWN)
        return UNKNOWN

    def _alias(self, name: str, position: Location) -> Location:
        if name not in self._table or name in self._open:
            return UNKNOWN
        found = self._known.get(name)
        if found is None:
            text, where = self._table[name]
            self._open.add(name)
            try:
                found = self._known[name] = self._read(Scanner(text, where.file, where), where)
            finally:
                self._open.discard(name)
        return found

    def _quoted(self, scanner: Scanner, position: Location) -> Location:
        """`"file.py":3:5`, `"name"(inner)` or `"name"`."""
        name = scanner.string()
        if scanner.accept("("):
            inner = self._read(scanner, position)
            scanner.expect(")")
            return inner
        if not scanner.accept(":"):
            return UNKNOWN
        line = int(scanner.need(_NUMBER, "a line"))
        scanner.expect(":")
        column = int(scanner.need(_NUMBER, "a column"))
        return Location(name, line, column, column + 1)
