"""Sizes of tensors: numbers, linear forms in symbols such as `B` or `2*T+1`, or None where nothing is known."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Dim:
    """`sum(coefficient * symbol) + constant`, the symbols sorted, at least one of them."""

    terms: tuple[tuple[str, int], ...]
    constant: int = 0

    def __str__(self) -> str:
        text = "+".join(name if factor == 1 else f"{factor}*{name}" for name, factor in self.terms)
        text = text.replace("+-", "-")
        return text if not self.constant else f"{text}{self.constant:+d}"


Size: TypeAlias = int | Dim | None
Shape: TypeAlias = tuple[Size, ...]


def symbol(name: str) -> Dim:
    return Dim(((name, 1),))


def _make(terms: Mapping[str, int], constant: int) -> Size:
    kept = tuple(sorted((name, factor) for name, factor in terms.items() if factor))
    return Dim(kept, constant) if kept else constant


def add(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a is None or b is None:
        return None
    terms: dict[str, int] = {}
    constant = 0
    for part in (a, b):
        if isinstance(part, int):
            constant += part
        else:
            constant += part.constant
            for name, factor in part.terms:
                terms[name] = terms.get(name, 0) + factor
    return _make(terms, constant)


def multiply(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    if a is None or b is None:
        return None
    if isinstance(b, int):
        a, b = b, a
    if isinstance(a, int):
        assert isinstance(b, Dim)
        return _make({name: factor * a for name, factor in b.terms}, b.constant * a)
    assert isinstance(b, Dim)
    return symbol("*".join(sorted((_factor(a), _factor(b)))))


def subtract(a: Size, b: Size) -> Size:
    return add(a, multiply(-1, b))


def floor_divide(a: Size, by: int) -> Size:
    if isinstance(a, int):
        return a // by
    if a is None or by == 0:
        return None
    if all(factor % by == 0 for _, factor in a.terms):
        return _make({name: factor // by for name, factor in a.terms}, a.constant // by)
    return symbol(f"{_factor(a)}//{by}")


def _factor(dim: Dim) -> str:
    text = str(dim)
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def product(sizes: Iterable[Size]) -> Size:
    result: Size = 1
    for size in sizes:
        result = multiply(result, size)
    return result


def may_equal(a: Size, b: Size) -> bool:
    """Whether two sizes can be the same number."""
    if a is None or b is None:
        return True
    difference = subtract(a, b)
    return not isinstance(difference, int) or difference == 0


def merge(a: Size, b: Size) -> Size:
    """What is known of a size that is both `a` and `b`."""
    if isinstance(a, int) or b is None:
        return a
    return b if isinstance(b, int) or a is None else a


def as_size(value: object) -> Size:
    """A value of the language as a size: None if it is no number that is known."""
    if isinstance(value, bool):
        return None
    return value if isinstance(value, int | Dim) else None


def shape_text(shape: Shape | None) -> str:
    """`[B, 64]`; `?` for what is not known."""
    if shape is None:
        return "[?]"
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"


def numel(shape: Shape, **given: int) -> int | None:
    """The number of elements when symbols have the given values; None if other symbols or unknown sizes remain."""
    sizes = [evaluate(size, given) for size in shape]
    return None if any(size is None for size in sizes) else math.prod(size for size in sizes if size is not None)


def evaluate(size: Size, given: Mapping[str, int]) -> int | None:
    """A size when symbols have the given values."""
    if not isinstance(size, Dim):
        return size
    if not all(name in given for name, _ in size.terms):
        return None
    return sum(given[name] * factor for name, factor in size.terms) + size.constant
