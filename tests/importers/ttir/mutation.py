"""Damage to Triton IR text: words and lines lost, doubled, swapped; numbers too large, deep brackets, other types."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

WORD = re.compile(r"[%#@^!]?[\w.$]+|[^\s\w]")
NUMBER = re.compile(r"(?<![\w%#])-?\d+(?:\.\d+e[+-]\d+)?")
TYPE = re.compile(r"\b(?:i1|i8|i16|i32|i64|f16|bf16|f32|f64|f8E5M2|f8E4M3FN|index)\b")
VALUE = re.compile(r"(?<= = )(?!loc)[^,>}%\n]+(?=[,>}])")
VALUES = (
    "true", '"text"', "7 : i32", "-1 : i32", "1.5 : f32", '[1, "a"]', "[[1], [2]]", "{a = 1}", "#alias", "@symbol",
    "dense<[1, 2]> : tensor<2xi32>", "array<i32: 0, 0>", "array<i32>", "i32", "unit",
)  # fmt: skip
NUMBERS = ("0", "-1", "1", "2147483647", "-2147483649", "4294967296", "9" * 19, "1" * 400, "0x7FC00001", "1e999", "nan")
TYPES = ("i1", "i8", "i16", "i32", "i64", "i128", "f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN", "index", "none")
BRACKETS = ("(", "{", "[", "<", "tensor<", "!tt.ptr<", "loc(", "loc(callsite(", "dense<[", "({", "%x = scf.if %c {")


def _word(text: str, rng: random.Random) -> tuple[int, int]:
    return rng.choice([match.span() for match in WORD.finditer(text)])


def lose(text: str, rng: random.Random, words: Sequence[str]) -> str:
    start, end = _word(text, rng)
    return text[:start] + text[end:]


def replace(text: str, rng: random.Random, words: Sequence[str]) -> str:
    start, end = _word(text, rng)
    return text[:start] + rng.choice(words) + text[end:]


def double(text: str, rng: random.Random, words: Sequence[str]) -> str:
    start, end = _word(text, rng)
    return text[:end] + " " + text[start:end] + text[end:]


def swap(text: str, rng: random.Random, words: Sequence[str]) -> str:
    """Two words of one line."""
    start, _ = _word(text, rng)
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", start)
    spans = [match.span() for match in WORD.finditer(text, first, len(text) if last < 0 else last)]
    (a, b), (c, d) = sorted((rng.choice(spans), rng.choice(spans)))
    return text if a == c else text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def cut(text: str, rng: random.Random, words: Sequence[str]) -> str:
    return text[: rng.randrange(len(text))]


def other_number(text: str, rng: random.Random, words: Sequence[str]) -> str:
    found = [match.span() for match in NUMBER.finditer(text)]
    start, end = rng.choice(found) if found else (0, 0)
    return text[:start] + rng.choice(NUMBERS) + text[end:]


def other_type(text: str, rng: random.Random, words: Sequence[str]) -> str:
    found = [match.span() for match in TYPE.finditer(text)]
    start, end = rng.choice(found) if found else (0, 0)
    return text[:start] + rng.choice(TYPES) + text[end:]


def other_value(text: str, rng: random.Random, words: Sequence[str]) -> str:
    """Of an attribute."""
    found = [match.span() for match in VALUE.finditer(text)]
    start, end = rng.choice(found) if found else (0, 0)
    return text[:start] + rng.choice(VALUES) + text[end:]


def nest(text: str, rng: random.Random, words: Sequence[str]) -> str:
    start, _ = _word(text, rng)
    return text[:start] + rng.choice(BRACKETS) * rng.choice((1, 40, 3000)) + text[start:]


def _lines(change: Callable[[list[str], random.Random], None]) -> Callable[..., str]:
    def changed(text: str, rng: random.Random, words: Sequence[str]) -> str:
        lines = text.split("\n")
        change(lines, rng)
        return "\n".join(lines)

    return changed


def _lose_line(lines: list[str], rng: random.Random) -> None:
    del lines[rng.randrange(len(lines))]


def _swap_lines(lines: list[str], rng: random.Random) -> None:
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]


def _copy_line(lines: list[str], rng: random.Random) -> None:
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))


CHANGES: tuple[Callable[..., str], ...] = (
    lose, replace, double, swap, cut, other_number, other_type, other_value, nest,
    _lines(_lose_line), _lines(_swap_lines), _lines(_copy_line),
)  # fmt: skip


def words_of(texts: Sequence[str]) -> list[str]:
    """All words of some texts."""
    return sorted({word for text in texts for word in WORD.findall(text)})


def mutated(text: str, rng: random.Random, words: Sequence[str]) -> str:
    """The text with one or two changes."""
    for _ in range(rng.choice((1, 1, 1, 2))):
        text = rng.choice(CHANGES)(text or "\n", rng, words)
    return text
