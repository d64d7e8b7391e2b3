"""Attribute values of the interchange model, and the predicates that signatures and assumptions carry."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

ATTR_AGGREGATE_MAX_NESTING_DEPTH: Final = 8
"""How deep arrays and dictionaries may nest."""


class CanonicalAttrDict(Mapping[str, Any]):
    """An immutable mapping with ascending keys, equal to any mapping with the same entries."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        """ValueError for a key given twice, TypeError for one that is no string."""
        pairs = list(entries.items() if isinstance(entries, Mapping) else entries)
        for key, _ in pairs:
            if not isinstance(key, str):
                raise TypeError(f"attribute names are strings, not {type(key).__name__}")
        if len(pairs) > 1:
            pairs.sort(key=_first)
        self._entries = dict(pairs)
        if len(self._entries) != len(pairs):
            raise ValueError("an attribute name occurs twice")

    def __getitem__(self, key: str) -> Any:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def get(self, key: str, default: Any = None) -> Any:
        return self._entries.get(key, default)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self.items()) == dict(other.items())

    def __hash__(self) -> int:
        return hash(tuple((key, _frozen(value)) for key, value in self._entries.items()))

    def __repr__(self) -> str:
        return f"CanonicalAttrDict({self._entries!r})"


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


EMPTY_ATTRIBUTES: Final = CanonicalAttrDict()


def canonicalize_attr_dict(entries: Mapping[str, Any] | Iterable[tuple[str, Any]] | None) -> CanonicalAttrDict:
    """The entries as a `CanonicalAttrDict`; one that is canonical already is returned itself."""
    if isinstance(entries, CanonicalAttrDict):
        return entries
    return CanonicalAttrDict(entries) if entries else EMPTY_ATTRIBUTES


def replace_canonical_attr_dict(
    entries: Mapping[str, Any], changes: Mapping[str, Any] | None = None, /, **more: Any
) -> CanonicalAttrDict:
    """`entries` with `changes` made; None removes an entry."""
    merged = {**entries, **(changes or {}), **more}
    return CanonicalAttrDict({key: value for key, value in merged.items() if value is not None})


class SymbolName(str):
    """The name of a symbol, without its `@`."""

    __slots__ = ()


class SymbolNameArray(tuple[SymbolName, ...]):
    """Names of symbols, in order."""

    __slots__ = ()

    def __new__(cls, names: Iterable[str] = ()) -> SymbolNameArray:
        return super().__new__(cls, map(SymbolName, names))


class SymbolNameSet(SymbolNameArray):
    """Names of symbols, ascending, each once."""

    __slots__ = ()

    def __new__(cls, names: Iterable[str] = ()) -> SymbolNameSet:
        return super().__new__(cls, sorted(set(names)))  # type: ignore[return-value]


class EnumArrayAttr(tuple[str, ...]):
    """Keywords of one enumeration, in order."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class SignedEnumSetAttr:
    """Keywords that are asked for and keywords that are ruled out, each ascending."""

    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "positive", tuple(sorted(set(self.positive))))
        object.__setattr__(self, "negative", tuple(sorted(set(self.negative))))
        if set(self.positive) & set(self.negative):
            raise ValueError("a keyword is both asked for and ruled out")


@dataclass(frozen=True, slots=True)
class ParameterizedAttr:
    """A named attribute of a family with parameters."""

    family: str
    params: CanonicalAttrDict = EMPTY_ATTRIBUTES

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", canonicalize_attr_dict(self.params))


class ParameterizedAttrArray(tuple[ParameterizedAttr, ...]):
    """Parameterized attributes, in order."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding of a module: its family, parameters, and the `#alias` that text gives it (empty: none)."""

    family: str
    params: CanonicalAttrDict = EMPTY_ATTRIBUTES
    alias: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", canonicalize_attr_dict(self.params))


@dataclass(frozen=True, slots=True)
class EncodingAttr:
    """An attribute that is an encoding of the module: its position in `module.encodings`."""

    index: int


# ---- predicates ----


@dataclass(frozen=True, slots=True)
class PredicateArg:
    """An argument of a predicate: a value id or a constant."""

    tag: Literal["value", "const"]
    value: int


@dataclass(frozen=True, slots=True)
class Predicate:
    """A fact about values, `kind(args)`."""

    kind: str
    args: tuple[PredicateArg, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "args", tuple(self.args))


PREDICATE_KINDS: Final = {
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "mul", "min", "max"), 2),
    "pow2": 1,
    "range": 3,
    **dict.fromkeys(("not_nan", "not_inf", "finite"), 1),
}
"""Kind -> number of arguments; the order is that of the bytecode."""

_MEANINGS: Final[dict[str, Callable[..., bool]]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "mul": lambda a, b: b != 0 and a % b == 0,
    "min": lambda a, b: a >= b,
    "max": lambda a, b: a <= b,
    "pow2": lambda a: a > 0 and a & (a - 1) == 0,
    "range": lambda a, low, high: low <= a <= high,
    "not_nan": lambda a: not math.isnan(a),
    "not_inf": lambda a: not math.isinf(a),
    "finite": lambda a: math.isfinite(a),
}


def evaluate_predicate(predicate: Predicate, resolve: Callable[[int], Any] | Mapping[int, Any]) -> bool:
    """Whether the predicate holds; True where `resolve` knows a value's number (its id) as None, or the kind is none.

    resolve: value id -> its number.
    """
    look = resolve.get if isinstance(resolve, Mapping) else resolve
    numbers = [arg.value if arg.tag == "const" else look(arg.value) for arg in predicate.args]
    meaning = _MEANINGS.get(predicate.kind)
    if meaning is None or None in numbers or len(numbers) != PREDICATE_KINDS[predicate.kind]:
        return True
    return bool(meaning(*numbers))


def evaluate_predicates(predicates: Sequence[Predicate], resolve: Callable[[int], Any] | Mapping[int, Any]) -> bool:
    """Whether all of them hold."""
    return all(evaluate_predicate(predicate, resolve) for predicate in predicates)
