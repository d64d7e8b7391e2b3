"""The source text and syntax tree of a Python function, with the positions of its file."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from loom_core.base.location import Location
from loom_core.base.syntax_trees import parse
from loom_core.trace.errors import BadSource, NoSource


@dataclass(frozen=True)
class FunctionSource:
    """The definition of one function: its lines as they stand in `file` from `first_line` on."""

    name: str
    file: str
    first_line: int
    text: str

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """The definition, its nodes at the lines and columns of the file; BadSource if it is something else."""
        # An enclosing block keeps the columns of an indented definition as they are in the file.
        indented = self.text[:1].isspace()
        try:
            module = parse("if 1:\n" + self.text if indented else self.text, self.file)
        except SyntaxError as error:
            raise BadSource(self.location, function=self.name, problem=error.msg) from None
        body = module.body
        if indented and len(body) == 1 and isinstance(body[0], ast.If):
            body = body[0].body
        if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
            found = type(body[0]).__name__ if body else "nothing"
            raise BadSource(self.location, function=self.name, problem=f"found {found}")
        ast.increment_lineno(body[0], self.first_line - 1 - indented)
        return body[0]

    @property
    def location(self) -> Location:
        """The line on which the definition (with its decorators) starts."""
        return Location(self.file, self.first_line, function=self.name)

    @property
    def definition(self) -> Location:
        """The name behind `def`."""
        node = self.tree
        column = node.col_offset + len("def ")
        return Location(self.file, node.lineno, column, column + len(node.name.encode()), self.name)

    def locate(self, node: ast.AST) -> Location:
        """The location of a node of `tree`."""
        line: int = getattr(node, "lineno", self.first_line)
        column: int = getattr(node, "col_offset", -1)
        end: int | None = getattr(node, "end_col_offset", None)
        if getattr(node, "end_lineno", line) != line or end is None:
            end = 1 << 20
        return Location(self.file, line, column, end, self.name)


def read_source(function: Callable[..., Any], text: str | None = None) -> FunctionSource:
    """The source of `function`, or `text` taken for it. NoSource where Python does not know it."""
    name = getattr(function, "__qualname__", repr(function)).rsplit(".<locals>.", 1)[-1]
    code = getattr(function, "__code__", None)
    if code is None:
        raise BadSource(function=name, problem=f"it is a {type(function).__name__}")
    if text is not None:
        return given_source(name, text)
    if code.co_name == "<lambda>":
        where = Location(code.co_filename, code.co_firstlineno, function=name)
        raise BadSource(where, function=name, problem="it is a lambda; write it as a def")
    try:
        lines, first_line = inspect.getsourcelines(function)
    except (OSError, TypeError):
        lines, first_line = [], 0
    found = "".join(lines)
    # Code that was made by `exec` may be taken for another of the same file name: from 3.13 on that of `python -c`.
    if not re.search(rf"\bdef\s+{re.escape(code.co_name)}\b", found):
        raise NoSource(Location(code.co_filename, code.co_firstlineno, function=name), function=name)
    return FunctionSource(name, code.co_filename, first_line, found)


def given_source(name: str, text: str) -> FunctionSource:
    """Source given as text; it is registered so that diagnostics can show its lines."""
    text = textwrap.dedent(text).strip("\n") + "\n"
    file = f"<source of {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return FunctionSource(name, file, 1, text)
