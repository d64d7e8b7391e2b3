"""Python text line by line, each with the place in the program that it comes from; long lines are broken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

WIDTH: Final = 100
_INDENT: Final = "    "
_OPENERS: Final = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Origin:
    """A line of a source file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(slots=True)
class PythonText:
    """Lines and, for each, its origin. `comments`: whether lines name their origin at their end."""

    comments: bool = True
    lines: list[str] = field(default_factory=list)
    origins: list[Origin | None] = field(default_factory=list)
    depth: int = 0

    def add(self, text: str, origin: Origin | None = None) -> None:
        """One statement, in as many lines as it needs."""
        margin = _INDENT * self.depth
        lines = [margin + line for line in broken(text, WIDTH - len(margin))]
        if origin is not None and self.comments:
            note = f"  # {origin}"
            # A longer comment would make formatters break the line.
            if len(lines) == 1 and len(lines[0]) + len(note) <= WIDTH:
                lines[0] += note
        self.lines += lines
        self.origins += [origin] * len(lines)

    def blank(self, count: int = 1) -> None:
        """Leave `count` empty lines, unless they are there or a block has just been opened."""
        if not self.lines:
            return
        there = 0
        while there < len(self.lines) and not self.lines[-1 - there]:
            there += 1
        missing = count - there
        if missing > 0:
            self.lines += [""] * missing
            self.origins += [None] * missing

    @contextmanager
    def block(self, head: str, origin: Origin | None = None) -> Iterator[None]:
        self.add(head, origin)
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def verbatim(self, text: str) -> None:
        """Finished lines."""
        for line in text.strip("\n").split("\n"):
            self.lines.append(_INDENT * self.depth + line if line else "")
            self.origins.append(None)

    def text(self) -> str:
        return "\n".join(self.lines).rstrip("\n") + "\n"


def broken(text: str, width: int) -> list[str]:
    """A statement of at most `width` columns a line, as far as brackets allow: what is in the last brackets moves to a
    line of its own, or each argument to one."""
    if len(text) <= width:
        return [text]
    place = _last_brackets(text)
    if place is None:
        return [text]
    start, end = place
    head, inside, tail = text[: start + 1], text[start + 1 : end], text[end:]
    parts = split_arguments(inside)
    if not inside or len(head) > width:
        return [text]
    room = width - len(_INDENT)
    if len(inside) <= room and not inside.startswith("*"):
        return [head, _INDENT + inside, tail]
    lines = [head]
    comma = "," if len(parts) > 1 or not _is_comprehension(inside) else ""
    for part in parts:
        pieces = broken(part + comma, room)
        lines += [_INDENT + piece for piece in pieces]
    return [*lines, tail]


def _is_comprehension(text: str) -> bool:
    return " for " in text


def _scan(text: str) -> Iterator[tuple[int, str, int]]:
    """Position, character and bracket depth of what is outside strings; an opener has the depth outside it."""
    depth, i = 0, 0
    quote = ""
    while i < len(text):
        letter = text[i]
        if quote:
            if letter == "\\":
                i += 1
            elif letter == quote:
                quote = ""
        elif letter in "\"'":
            quote = letter
        elif letter in _OPENERS:
            yield i, letter, depth
            depth += 1
        elif letter in ")]}":
            depth -= 1
            yield i, letter, depth
        else:
            yield i, letter, depth
        i += 1


def _last_brackets(text: str) -> tuple[int, int] | None:
    """Where the last outermost brackets with something in them open and close."""
    found, start = None, -1
    for i, letter, depth in _scan(text):
        if depth == 0 and letter in _OPENERS:
            start = i
        elif depth == 0 and letter in ")]}" and start >= 0 and i > start + 1:
            found = start, i
    return found


def split_arguments(text: str) -> list[str]:
    """The parts between the outermost commas."""
    cuts = [i for i, letter, depth in _scan(text) if letter == "," and depth == 0]
    edges = [-1, *cuts, len(text)]
    parts = (text[a + 1 : b].strip() for a, b in pairwise(edges))
    return [part for part in parts if part]
