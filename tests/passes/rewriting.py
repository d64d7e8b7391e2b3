"""Passes applied to Tile IR text."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent, indent

from loom_core.ir.block import Function
from loom_core.ir.parser import parse_function
from loom_core.ir.printer import print_function
from loom_core.ir.verifier import verify_function

HEADER = "func @kernel(%x: ptr<f32>, %y: ptr<f32>, %i: ptr<i32>, %n: i32, %m: i32, %u: u32, %s: f32, %b: bool) {\n"
"""Parameters that every text may use: pointers x, y, i, integers n, m, u, a float s, a bool b."""


def parsed(body: str) -> Function:
    """The verified function of the operations in `body`."""
    function = parse_function(HEADER + indent(dedent(body).strip("\n"), "  ") + "\n  return\n}\n")
    verify_function(function)
    return function


def body_of(function: Function) -> str:
    """The operations but the last return, as text."""
    lines = print_function(function).splitlines()
    assert lines[-2:] == ["  return", "}"]
    return dedent("\n".join(lines[1:-2])) + "\n"


def rewritten(step: Callable[[Function], Function], body: str) -> str:
    """The operations after a pass, which leaves a sound function."""
    function = step(parsed(body))
    verify_function(function)
    return body_of(function)


def text(body: str) -> str:
    """A body as `rewritten` gives it."""
    return dedent(body).strip("\n") + "\n"
