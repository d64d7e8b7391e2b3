"""The rewriting of kernels: early exits, free names, positions."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

import ltl
from loom_core.base.diagnostics import LoomError
from loom_core.trace.context import active
from loom_core.trace.names import Watch, outside_namespace
from loom_core.trace.rewrite import assigned_names, rewrite
from loom_core.trace.source import given_source, read_source
from loom_core.trace.syntax import exits_at_tails


def normalised(body: str) -> str:
    """The body of a function after its early exits were moved to tails."""
    text = "def f(a, b, n):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    return "\n".join(ast.unparse(statement) for statement in exits_at_tails(given_source("f", text)).body)


def test_what_follows_a_return_moves_into_the_other_branch() -> None:
    assert normalised("if a:\n    return 1\nb = 2\nreturn b") == ("if a:\n    return 1\nelse:\n    b = 2\n    return b")


def test_what_follows_is_copied_where_both_branches_may_go_on() -> None:
    assert normalised("if a:\n    if b:\n        return 1\nn = 2\nreturn n") == (
        "if a:\n    if b:\n        return 1\n    else:\n        n = 2\n        return n\nelse:\n    n = 2\n    return n"
    )


def test_branches_that_all_return_leave_nothing_behind() -> None:
    assert normalised("if a:\n    return 1\nelse:\n    return 2\nb = 3") == "if a:\n    return 1\nelse:\n    return 2"


def test_continue_and_break_move_like_returns_within_their_loop() -> None:
    assert normalised("for i in n:\n    if a:\n        continue\n    b = i\na = 1") == (
        "for i in n:\n    if a:\n        continue\n    else:\n        b = i\na = 1"
    )


def test_branches_without_exits_stay() -> None:
    text = "if a:\n    b = 1\nelse:\n    b = 2\nreturn b"
    assert normalised(text) == text


def test_assigned_names() -> None:
    tree = ast.parse("a, (b, c) = x\nfor d in e:\n    f += [g for g in h]\nif (i := j):\n    k: int = (lambda m: m)(1)")
    assert assigned_names(tree.body) == ["a", "b", "c", "d", "f", "i", "k"]


def test_free_names() -> None:
    text = "def f(a):\n    b = a + G\n    return [c + H for c in range(b)], (lambda d: d + I)(a), {e: 1 for e in a}"
    assert rewrite(given_source("f", text)).free_names == ("G", "H", "I", "range")


def all_positions(code: CodeType) -> set[int]:
    lines = {line for line, *_ in code.co_positions() if line is not None}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            lines |= all_positions(constant)
    return lines


def indented_sample() -> Any:
    def sample(x, n):
        total = 0
        for i in range(n):
            if x > i and x is not None:
                total += 1 if x else 2
        while total:
            total -= 1
        return total

    return sample


def test_every_position_is_one_of_the_users_lines() -> None:
    sample = indented_sample()
    source = read_source(sample)
    first = sample.__code__.co_firstlineno
    assert all_positions(rewrite(source).code) <= set(range(first, first + 8))
    file = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert file[source.definition.line - 1][source.definition.column :].startswith("sample(x, n)")


def test_static_code_runs_as_plain_python() -> None:
    @ltl.jit
    def static(out, N: ltl.constexpr):
        seen = []
        for i in ltl.static_range(N):
            if i % 2:
                continue
            seen = [*seen, i]
            if len(seen) == 3:
                break
        ltl.static_assert(seen == [0, 2, 4])
        ltl.store(out, len(seen))

    names = [op.name for op in static.lower("*i32", N=9).walk()]
    assert names == ["constant", "store", "return"]


def test_a_failed_trace_leaves_nothing_behind() -> None:
    @ltl.jit
    def broken(out, n):
        if n > 0:
            ltl.store(out, 1 // 0)

    with pytest.raises(LoomError, match="LOOM-F015"):
        broken.lower("*i32", "i32")
    assert active() is None


def test_outside_namespace_reads_globals_closures_and_builtins() -> None:
    factor = 3
    text = "def f(x):\n    return x * factor + limit + min(x)\n"

    def f(x: Any) -> Any:
        return x * factor

    scope: dict[str, Any] = {"limit": 5, "__builtins__": {}}
    function = FunctionType(f.__code__, scope, "f", None, f.__closure__)
    names = ("factor", "limit", "min", "nothing")
    namespace, watches = outside_namespace(function, given_source("f", text), names, {"min": max}, lambda value: value)
    assert namespace == {"factor": 3, "limit": 5, "min": max}
    assert all(watch.unchanged() for watch in watches)
    assert [watch.name for watch in watches] == ["factor", "limit", "min"]
    factor = 4
    scope["min"] = 1
    assert [watch.unchanged() for watch in watches] == [False, True, False]


def test_watches_take_equal_numbers_for_the_same() -> None:
    scope: dict[str, Any] = {"n": 10**9}
    watch = Watch(scope, "n", scope["n"])
    scope["n"] = int("1000000000")
    assert watch.unchanged()
    assert watch.value is scope["n"]
    scope["n"] = 1e9
    assert not watch.unchanged()
    del scope["n"]
    assert not watch.unchanged()
