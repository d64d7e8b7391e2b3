"""Python's syntax trees, made and compiled by one thread at a time.

CPython counts the depth of both conversions once for an interpreter, not for a thread (up to 3.12): where threads take
turns inside of them, one fails with "AST constructor recursion depth mismatch".
"""

from __future__ import annotations

import ast
import functools
import os
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.RLock()


def one_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which converts syntax trees, for callers in any thread."""

    @functools.wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with _lock:
            return function(*args, **kwargs)

    return alone


@one_at_a_time
def parse(text: str, file: str = "<unknown>") -> ast.Module:
    """`ast.parse`."""
    return ast.parse(text, file)


@one_at_a_time
def compile_tree(tree: Any, file: str, mode: str = "exec") -> CodeType:
    """`compile` of a tree, which inherits nothing."""
    code: CodeType = compile(tree, file, mode, dont_inherit=True)
    return code


def _after_fork_in_child() -> None:
    # Another thread of the parent may have held the lock.
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
