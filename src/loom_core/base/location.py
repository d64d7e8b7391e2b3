"""Source locations that chain through inlining back to the line the user wrote."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import CodeType, FrameType
from typing import Final

END_OF_LINE: Final = 1 << 20
"""An `end_column` that says the span runs past the end of its first line."""


@dataclass(frozen=True, slots=True)
class Location:
    """A span on one line of a source file.

    `line` counts from 1, 0 when unknown. `column` and `end_column` are half-open UTF-8 byte offsets from 0, exactly as
    `ast` nodes and code objects report them; -1 when unknown. `parent` is where the code holding this line was
    inlined or imported from, so the outermost parent is the user's own line.
    """

    file: str
    line: int = 0
    column: int = -1
    end_column: int = -1
    function: str = ""
    parent: Location | None = None

    @property
    def known(self) -> bool:
        return self.line > 0

    def chain(self) -> Iterator[Location]:
        """This location, then its parents, innermost first."""
        at: Location | None = self
        while at is not None:
            yield at
            at = at.parent

    def root(self) -> Location:
        """The outermost parent."""
        *_, last = self.chain()
        return last

    def inlined_at(self, caller: Location) -> Location:
        """This location with `caller` appended at the outer end of its chain."""
        parent = caller if self.parent is None else self.parent.inlined_at(caller)
        return replace(self, parent=parent)

    def __str__(self) -> str:
        if not self.known:
            return self.file
        if self.column < 0:
            return f"{self.file}:{self.line}"
        return f"{self.file}:{self.line}:{self.column + 1}"


UNKNOWN: Final = Location("<unknown>")


def from_node(
    node: ast.expr | ast.stmt,
    file: str,
    function: str = "",
    *,
    first_line: int = 1,
    indent: int = 0,
    parent: Location | None = None,
) -> Location:
    """The location of an AST node parsed from a dedented snippet.

    `first_line` is the line of the file at which the snippet starts, `indent` the bytes that dedenting removed from
    each of its lines.
    """
    end = END_OF_LINE
    if node.end_lineno == node.lineno and node.end_col_offset is not None:
        end = node.end_col_offset + indent
    return Location(file, node.lineno + first_line - 1, node.col_offset + indent, end, function, parent)


def from_frame(frame: FrameType, parent: Location | None = None) -> Location:
    """The location of the expression that `frame` is evaluating now."""
    code = frame.f_code
    positions = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), (None, None, None, None))
    line, end_line, column, end_column = positions
    if line is None or column is None or end_column is None:
        return Location(code.co_filename, frame.f_lineno, function=code.co_name, parent=parent)
    if end_line != line:
        end_column = END_OF_LINE
    return Location(code.co_filename, line, column, end_column, code.co_name, parent)


def from_code(code: CodeType | None) -> Location:
    """The first line of a function's code; UNKNOWN for None."""
    return UNKNOWN if code is None else Location(code.co_filename, code.co_firstlineno, function=code.co_name)
