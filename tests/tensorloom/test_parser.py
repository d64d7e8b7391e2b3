"""Syntax: what is accepted, what it means, and what is said about the rest."""

from __future__ import annotations

import pytest

from tensorloom.parser import parse
from tensorloom.source import Source
from tests.tensorloom.programs import checked, evaluated, expression, problems


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("(a + b) * c", "(a + b) * c"),
        ("a + (b * c)", "a + b * c"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("-a ** b", "-a**b"),
        ("(-a) ** b", "(-a) ** b"),
        ("a ** b ** c", "a ** b**c"),
        ("a ** -b", "a ** -b"),
        ("not (a == b)", "not a == b"),
        ("(not a) == b", "(not a) == b"),
        ("not a and b or c", "not a and b or c"),
        ("a and (b or c)", "a and (b or c)"),
        ("(a @ b)[0]", "(a @ b)[0]"),
        ("a * (b @ c)", "a * (b @ c)"),
        ("(a @ b) ** c", "(a @ b) ** c"),
        ("a < b <= c", "a < b <= c"),
        ("(a < b) < c", "(a < b) < c"),
        ("xs[1:]", "xs[1:]"),
        ("xs[::c]", "xs[::c]"),
        ("xs[:-1]", "xs[:-1]"),
        ("[a, b,]", "[a, b]"),
        ("(a, b)", "a, b"),
        ("a |> str |> len", "len(str(a))"),
        ("a + b |> str", "str(a + b)"),
        ("max(a, b)", "max(a, b)"),
        ("true", "True"),
        ("none", "None"),
    ],
)
def test_precedence(text: str, result: str) -> None:
    assert expression(text) == result


def test_python_meaning_of_comparisons_and_powers() -> None:
    assert evaluated("let x = 1 < 3 < 2\nlet y = -2 ** 2\nlet z = (1 < 3) < 2\n")["x"] is False
    assert evaluated("let y = -2 ** 2\n")["y"] == -4


def test_statements() -> None:
    values = evaluated("""
        fn count(limit: int, step: int = 1) -> int:
            let n = 0
            while true:
                n = n + step
                if n > 100:
                    break
                elif n > limit:
                    return n
                else:
                    continue
            return 0
        let total = 0
        for i in range(4):
            total = total + i
        for i, x in enumerate([5, 6]):
            total = total + i * x
        let a, b = (1, 2)
        a, b = b, a
        let xs = [1, 2]
        xs[0] = 9
    """)
    assert values["count"](10) == 11
    assert (values["total"], values["a"], values["b"], values["xs"]) == (12, 2, 1, [9, 2])


def test_both_kinds_of_file_hold_everything(tmp_path: object) -> None:
    text = "@model M:\n    @layers:\n        a = Linear(2, 3)\n    @forward(x):\n        return a(x)\nlet n = M()\n"
    assert checked(text, "x.nml").ok
    assert checked(text, "x.tl").ok


def test_sections_come_in_any_order_but_once() -> None:
    text = """@model M:
    @forward(x):
        return a(x)
    @layers:
        a = Linear(k, 3)
    @config:
        k = 2
"""
    assert checked(text).ok
    assert problems(text + "    @config:\n        j = 2\n") == [("T108", "8:6")]


def test_keywords_as_members_arguments_and_paths() -> None:
    parsed = parse(Source("net.train()\nf(in=1, on=2)\nimport model.on.nml as M\n", "x.tl"))
    assert not parsed.diagnostics


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("let = 3", ("T101", "1:5")),
        ("let train = 3", ("T105", "1:5")),
        ("let x 3", ("T101", "1:7")),
        ("print(1) print(2)", ("T104", "1:10")),
        ("let x = ", ("T101", "1:8")),
        ("pass\n  let x = 1", ("T102", "2:3")),
        ("if true:\nlet x = 1", ("T103", "1:8")),
        ("1 + 2 = 3", ("T106", "1:1")),
        ("print(a=1, 2)", ("T109", "1:12")),
        ("return 1", ("T110", "1:1")),
        ("break", ("T110", "1:1")),
        ("fn f(a, a):\n    pass", ("T108", "1:9")),
        ("fn f(a=1, b):\n    pass", ("T101", "1:11")),
        ("@modle M:\n    pass", ("T101", "1:2")),
        ("model M:\n    let x = 1", ("T101", "2:5")),
        ("kernel f():\n    pass", ("T104", "1:8")),
        ("let x = [1, 2", ("T017", "1:9")),
        ("let x = {1}", ("T101", "1:9")),
        ("x |> 3", ("T101", "1:6")),
        ("if true:\n    model M:\n        pass", ("T110", "2:5")),
        ("fn f():\n    fn g():\n        pass", ("T110", "2:5")),
        ("let x = " + "(" * 60 + "1" + ")" * 60, ("T107", "1:50")),
        ("let x = 1" + " + 1" * 90, ("T107", "1:251")),
        ("import .a", ("T101", "1:8")),
        ('let x = f"{1 2}"', ("T016", "1:12")),
    ],
)
def test_errors(text: str, found: tuple[str, str]) -> None:
    assert found in problems(text + "\n")


def test_several_errors_a_run() -> None:
    text = "let = 1\nlet a = 2\nif a\n    let b = (\nlet c = 3 3\nlet d = a +\n"
    assert [where.partition(":")[0] for _, where in problems(text)] == ["1", "3", "4", "5", "6"]


def test_a_bad_block_is_passed_over() -> None:
    assert problems("fn (x):\n    let a = 1e\n    return a\nlet b = 1 1\n") == [
        ("T101", "1:4"),
        ("T011", "2:13"),
        ("T104", "4:11"),
    ]


def test_very_many_errors_are_cut() -> None:
    found = problems("let = 1\n" * 50)
    assert len(found) == 21
    assert found[-1][0] == "T111" or found[0][0] == "T111"


def test_deep_blocks() -> None:
    lines = [" " * (2 * i) + "if true:" for i in range(30)] + [" " * 60 + "pass"]
    assert [code for code, _ in problems("\n".join(lines) + "\n")] == ["T107"]
