"""Values seen while tracing: what frontends' run-time values must offer, names without a value, and joining."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from loom_core.base.location import UNKNOWN, Location
from loom_core.ir.types import TileType
from loom_core.ir.value import Value


class Traced(ABC):
    """A run-time value of a frontend: a tile, or a structure that holds several IR values (a block pointer).

    Equality of `structure` decides whether two of them may meet at a join or in a loop.
    """

    __slots__ = ()

    @abstractmethod
    def ir_values(self) -> list[Value]:
        """The IR values inside, made in the present block where they are constants."""

    @abstractmethod
    def ir_types(self) -> list[TileType]:
        """The types of `ir_values`, without making any."""

    @abstractmethod
    def with_ir_values(self, values: Sequence[Value]) -> Traced:
        """The same structure around other values."""

    @abstractmethod
    def structure(self) -> Hashable:
        """All that a join must find equal: class, types, static parts."""

    @abstractmethod
    def same(self, other: Traced) -> bool:
        """Whether both are known to be the same value, so that joining them needs no operation."""

    @abstractmethod
    def suggest_name(self, name: str) -> None:
        """Name the IR values inside as the variable that holds this, where they have no name yet."""

    @property
    @abstractmethod
    def origin(self) -> Location:
        """Where the value was made."""


@dataclass(frozen=True)
class Unset:
    """Stands for the value of a name that has none, and says why."""

    reason: str = ""
    assigned: Location = UNKNOWN
    control: Location = UNKNOWN


UNDEFINED = Unset()
NUMBERS = (bool, int, float)


def is_number(value: Any) -> bool:
    """Whether `value` is a plain Python number (bool, int, float), which a frontend can lift."""
    return type(value) in NUMBERS


def has_traced(value: Any) -> bool:
    """Whether a run-time value is in `value` or in the tuples, lists and dictionaries that it consists of."""
    if isinstance(value, Traced):
        return True
    if isinstance(value, (tuple, list)):
        return any(map(has_traced, value))
    if isinstance(value, dict):
        return any(map(has_traced, value.values()))
    return False


def describe(value: Any) -> str:
    """A value as diagnostics name it: its type for run-time values, itself for others."""
    if isinstance(value, tuple):
        return "(" + ", ".join(map(describe, value)) + ")"
    if isinstance(value, Traced):
        return str(value)
    return repr(value)


def origin(value: Any) -> Location:
    """Where the first run-time value in `value` was made; UNKNOWN if there is none."""
    if isinstance(value, Traced):
        return value.origin
    if isinstance(value, tuple):
        return next((at for at in map(origin, value) if at.known), UNKNOWN)
    return UNKNOWN


def rebuild_tuple(original: tuple[Any, ...], items: Sequence[Any]) -> tuple[Any, ...]:
    """A tuple (or named tuple) of the class of `original` with other items."""
    make = getattr(type(original), "_make", None)
    return make(items) if make is not None else tuple(items)


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """`value` with `function` applied to it, or to the leaves of the tuples that it consists of."""
    if isinstance(value, tuple):
        return rebuild_tuple(value, [map_leaves(function, item) for item in value])
    return function(value)


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of nested tuples."""
    if isinstance(value, tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def same_static(a: Any, b: Any) -> bool:
    """Whether two compile-time values are interchangeable: 1, 1.0 and True are not."""
    if a is b:
        return True
    return type(a) is type(b) and bool(a == b)


class Mismatch(Exception):
    """Two values that cannot be joined; caught where both lines are known."""

    def __init__(self, static: bool) -> None:
        super().__init__()
        self.static = static


@dataclass
class Pair:
    """Two values on their way to a join, after numbers were lifted: same structure, or `Mismatch` was raised."""

    first: Any
    second: Any
    lift: Callable[[Any], Traced] = field(repr=False)

    def unify(self) -> tuple[Any, Any]:
        """Both values with numbers lifted where that is needed. Mismatch where they do not fit."""
        return self._unify(self.first, self.second)

    def _unify(self, a: Any, b: Any) -> tuple[Any, Any]:
        if isinstance(a, tuple) and isinstance(b, tuple):
            if type(a) is not type(b) or len(a) != len(b):
                raise Mismatch(static=False)
            pairs = [self._unify(x, y) for x, y in zip(a, b, strict=True)]
            return rebuild_tuple(a, [p[0] for p in pairs]), rebuild_tuple(b, [p[1] for p in pairs])
        if not isinstance(a, Traced) and not isinstance(b, Traced):
            if same_static(a, b):
                return a, a
            if not (is_number(a) and is_number(b)):
                raise Mismatch(static=True)
        a, b = (self.lift(v) if is_number(v) else v for v in (a, b))
        if not isinstance(a, Traced) or not isinstance(b, Traced) or a.structure() != b.structure():
            raise Mismatch(static=False)
        return a, b


# ---- plain and structured values -------------------------------------------------------------------------------------


def flatten(values: Sequence[Value | Traced]) -> list[Value]:
    """The IR values of plain and structured values."""
    flat: list[Value] = []
    for value in values:
        flat += [value] if isinstance(value, Value) else value.ir_values()
    return flat


def rebuild(like: Sequence[Value | Traced], values: Sequence[Value]) -> list[Value | Traced]:
    """`like` around other IR values."""
    remaining = iter(values)
    made: list[Value | Traced] = []
    for value in like:
        if isinstance(value, Value):
            made.append(next(remaining))
        else:
            made.append(value.with_ir_values([next(remaining) for _ in value.ir_types()]))
    return made


def types_of(values: Sequence[Value | Traced]) -> list[TileType]:
    """The types of the IR values of plain and structured values."""
    return [value.type for value in flatten(values)]
