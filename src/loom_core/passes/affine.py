"""Affine forms: offset + sum of stride_d * i_d, with offsets and strides that are polynomials in scalar values.

Arithmetic on forms is exact. A tile of i32 wraps, its form does not: that an index tile leaves its type is an address
overflow for the sanitizer to report, it is not reproduced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from loom_core.ir.op import Op
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value

Monomial = tuple[Value, ...]


def _serial(value: Value) -> int:
    return value.serial


class Polynomial:
    """A sum of integer coefficients times products of scalar values, in order of first appearance (deterministic)."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, int] = {}) -> None:
        self.terms = {monomial: c for monomial, c in terms.items() if c}

    @staticmethod
    def constant(value: int) -> Polynomial:
        return Polynomial({(): value})

    @staticmethod
    def atom(value: Value) -> Polynomial:
        return Polynomial({(value,): 1})

    @property
    def as_constant(self) -> int | None:
        """The value where it depends on nothing, else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and () in self.terms:
            return self.terms[()]
        return None

    @property
    def as_atom(self) -> Value | None:
        """The scalar value that it is, or None."""
        if len(self.terms) != 1:
            return None
        ((monomial, coefficient),) = self.terms.items()
        return monomial[0] if len(monomial) == 1 and coefficient == 1 else None

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, c in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + c
        return Polynomial(terms)

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for left, c in self.terms.items():
            for right, d in other.terms.items():
                monomial = tuple(sorted(left + right, key=_serial))
                terms[monomial] = terms.get(monomial, 0) + c * d
        return Polynomial(terms)

    def scaled(self, factor: int) -> Polynomial:
        return Polynomial({monomial: c * factor for monomial, c in self.terms.items()})

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other.scaled(-1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[tuple[Monomial, int]]:
        return iter(self.terms.items())


ZERO = Polynomial()
ONE = Polynomial.constant(1)


@dataclass(frozen=True)
class Index:
    """A tile of integers without a form, as seen through views (splat, broadcast, ...), the innermost first."""

    tile: Value
    views: tuple[Op, ...] = ()


@dataclass(frozen=True)
class Form:
    """base (a pointer argument, or None for integers) + offset + sum of strides[d] * i_d, in elements.

    `indices`: of a pointer, tiles of integers that are added and have no form.

    `widened`: on the way a narrower type, which may have wrapped, was widened. Addresses and masks take the exact
    value; as data the tile has to be computed by its own operations.
    """

    base: Value | None
    offset: Polynomial
    strides: tuple[Polynomial, ...]
    widened: bool = False
    indices: tuple[Index, ...] = ()

    @property
    def is_uniform(self) -> bool:
        """Every element is the same."""
        return all(not stride.terms for stride in self.strides)


def uniform(offset: Polynomial, rank: int, base: Value | None = None) -> Form:
    return Form(base, offset, (ZERO,) * rank)


def add_forms(a: Form, b: Form) -> Form | None:
    if a.base is not None and b.base is not None:
        return None
    strides = tuple(x + y for x, y in zip(a.strides, b.strides, strict=True))
    base = b.base if a.base is None else a.base
    return Form(base, a.offset + b.offset, strides, indices=a.indices + b.indices)


def subtract_forms(a: Form, b: Form) -> Form | None:
    if b.base is not None:
        return None
    return add_forms(a, Form(None, b.offset.scaled(-1), tuple(s.scaled(-1) for s in b.strides)))


def multiply_forms(a: Form, b: Form) -> Form | None:
    """The product where one side is the same in every element."""
    if a.base is not None or b.base is not None:
        return None
    if not a.is_uniform:
        a, b = b, a
    if not a.is_uniform:
        return None
    return Form(None, a.offset * b.offset, tuple(a.offset * stride for stride in b.strides))


def is_index(type: TileType) -> bool:
    """Whether values of the type may have a form: pointers and integers."""
    return isinstance(type.element, PointerType) or type.element.kind in ("int", "uint")
