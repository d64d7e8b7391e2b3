"""Integers of addresses and bounds: Python ints where they are known, i64 scalars of the kernel where not."""

from __future__ import annotations

from loom_core.base.dtype import i64
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ops
from loom_core.trace.context import current

INDEX = TileType(i64)
Scalar = int | Value


def value_of(number: Scalar) -> Value:
    """The number as an i64 scalar."""
    return number if isinstance(number, Value) else current().constant(INDEX, number)


def _emit(kind: type[Op], a: Scalar, b: Scalar) -> Value:
    return current().builder.create(kind, value_of(a), value_of(b))  # type: ignore[no-any-return]


def add(a: Scalar, b: Scalar) -> Scalar:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0 or b == 0:
        return b if a == 0 else a
    return _emit(ops.Add, a, b)


def subtract(a: Scalar, b: Scalar) -> Scalar:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return a if b == 0 else _emit(ops.Sub, a, b)


def multiply(a: Scalar, b: int) -> Scalar:
    if isinstance(a, int):
        return a * b
    return a if b == 1 else _emit(ops.Mul, a, b)


def ceiling(a: Scalar, b: int) -> Scalar:
    """a / b rounded up, b > 0."""
    if isinstance(a, int):
        return -(-a // b)
    return a if b == 1 else _emit(ops.FloorDiv, add(a, b - 1), b)


def least(a: Scalar | None, b: Scalar | None) -> Scalar | None:
    """The smaller one; None is infinite."""
    return _extreme(ops.Min, a, b)


def greatest(a: Scalar | None, b: Scalar | None) -> Scalar | None:
    """The greater one; None is minus infinite."""
    return _extreme(ops.Max, a, b)


def _extreme(kind: type[Op], a: Scalar | None, b: Scalar | None) -> Scalar | None:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b) if kind is ops.Min else max(a, b)
    return _emit(kind, a, b)


def compare(predicate: str, a: Scalar, b: Scalar) -> Value:
    """A scalar bool."""
    return current().builder.create(ops.Compare, value_of(a), value_of(b), predicate=predicate)  # type: ignore[no-any-return]


def both(a: Value | None, b: Value | None) -> Value | None:
    """The conjunction of two scalar bools; None holds."""
    if a is None or b is None:
        return b if a is None else a
    return current().builder.create(ops.And, a, b)  # type: ignore[no-any-return]


def choose(condition: Value, a: Scalar, b: Scalar) -> Value:
    """a where the condition holds, else b."""
    return current().builder.create(ops.Select, condition, value_of(a), value_of(b))  # type: ignore[no-any-return]
