"""A cursor over text: matching, balanced brackets, positions for diagnostics."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from loom_core.base.location import END_OF_LINE, Location
from loom_core.importers.ttir.errors import MalformedTritonIr

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|//[^\n]*)*")
_QUOTED: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_ESCAPE: Final = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_BRACKETS: Final = {"<": ">", "(": ")", "[": "]", "{": "}"}
_LETTERS: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
DEEPEST: Final = 64
"""How deep brackets, types and regions may nest."""


class Scanner:
    """Reads `text` from `offset` on; `file` names it in diagnostics.

    `at` is the place of a text that is a piece of another one: all positions are that place.
    """

    def __init__(self, text: str, file: str, at: Location | None = None) -> None:
        self.text = text
        self.file = file
        self._at = at
        self.offset = 0
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._depth = 0

    # ---- positions ----

    def position(self, offset: int | None = None) -> Location:
        """The place of `offset`, by default the present one."""
        if self._at is not None:
            return self._at
        at = self.next() if offset is None else offset
        line = bisect_right(self._starts, at)
        column = len(self.text[self._starts[line - 1] : at].encode())
        return Location(self.file, line, column, END_OF_LINE)

    def fail(self, problem: str, offset: int | None = None) -> NoReturn:
        """MalformedTritonIr at `offset`, by default the present one."""
        raise MalformedTritonIr(self.position(offset), problem=problem)

    def here(self) -> str:
        """What stands at the present place, as messages show it."""
        found = re.compile(r"[^\s,(){}\[\]<>]+|\S").match(self.text, self.next())
        return f"`{found.group()[:40]}`" if found else "the end"

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Around what may hold another of its kind: refuses text that nests too deep."""
        self._depth += 1
        if self._depth > DEEPEST:
            self.fail(f"more than {DEEPEST} levels of nesting")
        try:
            yield
        finally:
            self._depth -= 1

    # ---- matching ----

    def next(self) -> int:
        """Where the next thing after blanks and comments begins."""
        found = _BLANK.match(self.text, self.offset)
        assert found is not None
        return found.end()

    def skip(self) -> bool:
        """Skip blanks and comments; whether a line ended among them."""
        start, self.offset = self.offset, self.next()
        return self.text.find("\n", start, self.offset) >= 0

    def at_end(self) -> bool:
        return self.next() >= len(self.text)

    def ahead(self, pattern: re.Pattern[str]) -> bool:
        """Whether `pattern` matches what follows; nothing is consumed."""
        return pattern.match(self.text, self.next()) is not None

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What `pattern` matches after blanks, consumed; None, and nothing consumed, where it does not."""
        found = pattern.match(self.text, self.next())
        if found is not None:
            self.offset = found.end()
        return found

    def looking_at(self, literal: str) -> bool:
        return self.text.startswith(literal, self.next())

    def adjacent(self, literal: str) -> bool:
        """Whether `literal` follows without a blank between."""
        return self.text.startswith(literal, self.offset)

    def accept(self, literal: str) -> bool:
        """Whether `literal` follows; consumed if so."""
        start = self.next()
        if self.text.startswith(literal, start):
            self.offset = start + len(literal)
            return True
        return False

    def expect(self, literal: str) -> None:
        if not self.accept(literal):
            self.fail(f"`{literal}` is missing before {self.here()}")

    def need(self, pattern: re.Pattern[str], what: str) -> str:
        """What `pattern` matches; a diagnostic that names `what` where it does not."""
        found = self.match(pattern)
        if found is None:
            self.fail(f"{what} is missing before {self.here()}")
        return found.group()

    def string(self) -> str:
        """A quoted string, its escapes resolved."""
        raw = self.need(_QUOTED, "a string")[1:-1].encode()

        def plain(found: re.Match[bytes]) -> bytes:
            code = found.group(1)
            return bytes.fromhex(code.decode()) if len(code) == 2 else _LETTERS.get(code, code)

        return _ESCAPE.sub(plain, raw).decode(errors="replace")

    def balanced(self) -> str:
        """The text from the bracket that follows to its partner, both included."""
        start = self.next()
        open_: list[str] = []
        text, at = self.text, start
        while at < len(text):
            character = text[at]
            if character == '"':
                found = _QUOTED.match(text, at)
                if found is None:
                    self.fail("a string does not end", at)
                at = found.end()
                continue
            if text.startswith("->", at):
                at += 2
                continue
            if character in _BRACKETS:
                open_.append(_BRACKETS[character])
            elif open_ and character == open_[-1]:
                open_.pop()
                if not open_:
                    self.offset = at + 1
                    return text[start : at + 1]
            elif character in ">)]}":
                self.fail(f"`{character}` closes nothing", at)
            at += 1
        return self.fail("a bracket does not close", start)
