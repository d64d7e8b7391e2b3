"""Affine forms of integer and pointer tiles.

A tile is affine when its element (i0, i1, ...) is offset + sum of stride_d * i_d, where offset and strides are
polynomials in scalar values. Tile arithmetic on such forms is exact arithmetic: that an i32 index tile wraps is
reported by the sanitizer as an address overflow, not reproduced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

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


@dataclass
class Form:
    """base (a pointer argument, or None for integers) + offset + sum of strides[d] * i_d, in elements."""

    base: Value | None
    offset: Polynomial
    strides: tuple[Polynomial, ...]

    @property
    def is_uniform(self) -> bool:
        """Every element is the same."""
        return all(stride == ZERO for stride in self.strides)


def uniform(offset: Polynomial, rank: int, base: Value | None = None) -> Form:
    return Form(base, offset, (ZERO,) * rank)


def add_forms(a: Form, b: Form) -> Form | None:
    if a.base is not None and b.base is not None:
        return None
    strides = tuple(x + y for x, y in zip(a.strides, b.strides, strict=True))
    return Form(a.base if a.base is not None else b.base, a.offset + b.offset, strides)


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


@dataclass
class Bounds:
    """Valid indices of one dimension: i < ceil(p / d) for (p, d) in `upper`, i > floor(p / d) for (p, d) in `lower`."""

    lower: list[tuple[Polynomial, int]] = field(default_factory=list)
    upper: list[tuple[Polynomial, int]] = field(default_factory=list)


@dataclass
class Region:
    """Where a mask holds: a box of indices, all of it only where every scalar bool of `conditions` holds."""

    dims: list[Bounds]
    conditions: list[Value] = field(default_factory=list)

    @staticmethod
    def everything(rank: int) -> Region:
        return Region([Bounds() for _ in range(rank)])

    def intersect(self, other: Region) -> Region:
        dims = [Bounds(a.lower + b.lower, a.upper + b.upper) for a, b in zip(self.dims, other.dims, strict=True)]
        return Region(dims, self.conditions + other.conditions)


def positive_region(difference: Form) -> Region | None:
    """The indices where `difference` > 0, or None where they are no box.

    The difference may vary along one dimension, by a constant step s: with offset o the condition o + s i > 0 is
    i < ceil(o / -s) for s < 0 and i > floor(-o / s) for s > 0.
    """
    varying = [d for d, stride in enumerate(difference.strides) if stride != ZERO]
    if len(varying) != 1:
        return None
    (dim,) = varying
    step = difference.strides[dim].as_constant
    if step is None:
        return None
    region = Region.everything(len(difference.strides))
    if step < 0:
        region.dims[dim].upper.append((difference.offset, -step))
    else:
        region.dims[dim].lower.append((difference.offset.scaled(-1), step))
    return region
