"""Characters and layout."""

from __future__ import annotations

import pytest

from tensorloom.lexer import KEYWORDS, lex
from tensorloom.source import Source
from tests.tensorloom.programs import evaluated, expression, message, problems


def kinds(text: str) -> list[str]:
    lexed = lex(Source(text, "x.tl"))
    assert not lexed.diagnostics
    return [token.kind for token in lexed.tokens]


def test_keywords() -> None:
    assert len(KEYWORDS) == 23
    assert kinds("let letx")[:2] == ["let", "name"]


def test_layout() -> None:
    assert kinds("if a:\n  b\n\n  // note\n  c\nd\n") == [
        *("if", "name", ":", "NEWLINE"),
        *("INDENT", "name", "NEWLINE", "name", "NEWLINE", "DEDENT"),
        *("name", "NEWLINE", "END"),
    ]


def test_tabs_are_four_columns() -> None:
    assert kinds("if a:\n\tb\n    c\n").count("INDENT") == 1


def test_brackets_hide_line_ends() -> None:
    assert kinds("f(a,\n  [b,\nc])\n").count("NEWLINE") == 1


def test_crlf() -> None:
    assert kinds("a\r\nb\r\n") == ["name", "NEWLINE", "name", "NEWLINE", "END"]


@pytest.mark.parametrize("comment", ["/* a\nb */", "    /* indented\n  */", "// c", "/* a */ /* b */"])
def test_comments_are_no_layout(comment: str) -> None:
    assert kinds(f"a\n{comment}\nb\n") == ["name", "NEWLINE", "name", "NEWLINE", "END"]


def test_lines_after_a_block_comment_keep_their_numbers() -> None:
    assert problems("/* one\n two\n three */\nlet a = bad\n") == [("T201", "4:9")]


def test_a_comment_before_code_is_no_indentation() -> None:
    assert kinds("a\n/* x */ b\n") == ["name", "NEWLINE", "name", "NEWLINE", "END"]


def test_a_pipe_continues_the_line() -> None:
    assert kinds("a\n    |> b\n    |> c\nd\n") == [
        "name",
        "|>",
        "name",
        "|>",
        "name",
        "NEWLINE",
        "name",
        "NEWLINE",
        "END",
    ]


def test_positions_are_of_the_first_character() -> None:
    source = Source("let  x = 1\n  \n", "x.tl")
    token = lex(source).tokens[1]
    assert (source.line(token.start), source.column(token.start)) == (1, 6)


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("007", 7), ("1.5", 1.5), (".5", 0.5), ("1e-3", 1e-3), ("2E2", 200.0), ("[1, 2,]", [1, 2])],
)
def test_numbers(text: str, value: object) -> None:
    assert evaluated(f"let x = {text}\n")["x"] == value


@pytest.mark.parametrize("text", ["1e", "0x1f", "1_000", "3abc", "1.5e+", "9" * 400])
def test_bad_numbers(text: str) -> None:
    assert problems(f"let x = {text}\n")[0] == ("T011", "1:9")


def test_strings_keep_their_escapes() -> None:
    assert evaluated(r'let x = "a\n\"b\\"' + "\n")["x"] == 'a\n"b\\'


@pytest.mark.parametrize(
    ("text", "code"),
    [('"open\n"', "T012"), (r'"bad \x"', "T013"), (r'"\q"', "T013"), ('f"open {a"', "T016"), ("1 /* open", "T014")],
)
def test_bad_text(text: str, code: str) -> None:
    assert problems(f"let x = 1\nlet y = {text}\n")[0] == (code, "2:11" if "/*" in text else "2:9")


@pytest.mark.parametrize("text", ["let x = 'a'", "let x = 1 # no", "let x = $", "let a = ²", "let x = 1;"])
def test_characters_without_meaning(text: str) -> None:
    assert problems(text + "\n")


def test_names_in_unicode() -> None:
    assert evaluated("let größe = 3\nlet ﬁ = 4\nlet x = größe + fi\n")["x"] == 7


def test_case_matters() -> None:
    assert problems("let a = 1\nlet b = A\n") == [("T201", "2:9")]


def test_dedent_between_levels() -> None:
    text = "if true:\n        pass\n    pass\n"
    assert problems(text) == [("T015", "3:5"), ("T102", "3:5")]


@pytest.mark.parametrize(("text", "where"), [("f(1", "1:2"), ("f(1]", "1:4"), ("let x = )", "1:9")])
def test_unmatched_brackets(text: str, where: str) -> None:
    assert ("T017", where) in problems(text + "\n")


def test_an_open_bracket_does_not_swallow_the_file() -> None:
    found = problems("let a = f(1,\nlet b = bad\nlet c = 1e\n")
    assert [code for code, _ in found][:1] == ["T017"]
    assert ("T011", "3:9") in found


def test_f_strings_hold_the_language() -> None:
    text = 'let a = true\nlet n = 2.5\nlet x = f"{n |> str} {{b}} {n:.2f} {not a} {str("q")!r}"\n'
    assert evaluated(text)["x"] == "2.5 {b} 2.50 False 'q'"


def test_f_string_values_that_cannot_stand_in_one() -> None:
    assert evaluated('let x = f"{str("\\n")}|{3:>4}"\n')["x"] == "\n|   3"
    assert expression('f"{a}"') == 'f"{a}"'


def test_f_string_errors_point_inside() -> None:
    assert problems('let x = f"a {bad} b"\n') == [("T201", "1:14")]


def test_message_shows_the_line() -> None:
    assert message("let x = 1e\n") == "1e is not a number | numbers are written 12, 1.5, .5 or 1e-3"
