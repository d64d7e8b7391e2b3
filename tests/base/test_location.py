"""Locations taken from AST nodes and frames, and their chains."""

from __future__ import annotations

import ast
import sys
import textwrap

from loom_core.base.location import END_OF_LINE, UNKNOWN, Location, from_frame, from_node


def test_chain_and_root() -> None:
    caller = Location("a.py", 3, 4, 9, "caller")
    middle = Location("b.py", 7, 0, 5, "middle", caller)
    inner = Location("c.py", 1, 2, 3, "inner", middle)
    assert [at.function for at in inner.chain()] == ["inner", "middle", "caller"]
    assert inner.root() is caller
    outermost = Location("d.py", 1)
    assert [at.file for at in inner.inlined_at(outermost).chain()] == ["c.py", "b.py", "a.py", "d.py"]
    assert inner.root() is caller, "locations never change"


def test_text() -> None:
    assert str(UNKNOWN) == "<unknown>"
    assert not UNKNOWN.known
    assert str(Location("a.py", 3)) == "a.py:3"
    assert str(Location("a.py", 3, 4)) == "a.py:3:5"


def test_from_node_of_a_dedented_snippet() -> None:
    source = "    def f(x):\n        return x + (\n            1)\n"
    tree = ast.parse(textwrap.dedent(source))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    statement = function.body[0]
    assert isinstance(statement, ast.Return)
    whole = from_node(statement, "a.py", "f", first_line=10, indent=4)
    assert (whole.line, whole.column, whole.end_column) == (11, 8, END_OF_LINE)
    assert isinstance(statement.value, ast.BinOp)
    left = from_node(statement.value.left, "a.py", first_line=10, indent=4)
    assert (left.line, left.column, left.end_column) == (11, 15, 16)


def test_from_frame_points_at_the_call() -> None:
    def here() -> Location:
        return from_frame(sys._getframe(1))

    ignored = 1; found = here()  # fmt: skip  # noqa: E702
    assert ignored
    assert (found.file, found.function) == (__file__, "test_from_frame_points_at_the_call")
    with open(__file__, encoding="utf-8") as file:
        line = file.read().splitlines()[found.line - 1]
    assert line[found.column : found.end_column] == "here()"
