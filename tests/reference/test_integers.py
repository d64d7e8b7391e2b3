"""The integer references against Python's integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from exhaustive.inputs import mixed_values, special_values
from loom_core.reference.integers import BOOL, INTEGER

_TYPES = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
_COUNTS = ("popcount", "clz")


def _truncated(a: int, b: int) -> int:
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _expected(bits: int) -> dict[str, Callable[..., int]]:
    """Exact values; they wrap afterwards."""
    mask = (1 << bits) - 1
    return {
        "mov": lambda a: a,
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": _truncated,
        "rem": lambda a, b: a if b == 0 else a - b * _truncated(a, b),
        "min": min,
        "max": max,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "not": lambda a: ~a,
        "shl": lambda a, b: a << b if 0 <= b < bits else 0,
        "shr": lambda a, b: a >> b if 0 <= b < bits else -(a < 0),
        "shru": lambda a, b: (a & mask) >> b if 0 <= b < bits else 0,
        "neg": lambda a: -a,
        "abs": abs,
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
        "ltu": lambda a, b: a & mask < b & mask,
        "leu": lambda a, b: a & mask <= b & mask,
        "select": lambda c, a, b: a if c else b,
        "mulhi": lambda a, b: a * b >> bits,
        "popcount": lambda a: (a & mask).bit_count(),
        "clz": lambda a: bits - (a & mask).bit_length(),
        "brev": lambda a: int(format(a & mask, f"0{bits}b")[::-1], 2),
    }


@pytest.mark.parametrize("name", _TYPES)
@pytest.mark.parametrize("function", INTEGER)
def test_is_exact_and_wraps(function: str, name: str) -> None:
    special = special_values(name)
    more = mixed_values(name, np.random.default_rng(1), 300)
    first = np.concatenate([np.repeat(special, len(special)), more])
    second = np.concatenate([np.tile(special, len(special)), more[::-1]])
    exact = _expected(8 * first.itemsize)[function]
    operands = [first, second][: exact.__code__.co_argcount if hasattr(exact, "__code__") else 1]
    if function in ("min", "max"):
        operands = [first, second]
    if function == "select":
        operands = [np.arange(len(first)) % 3 == 0, first, second]
    got = INTEGER[function](*operands)
    values = [int(exact(*row)) for row in zip(*(x.tolist() for x in operands), strict=True)]
    if got.dtype == np.bool_:
        assert got.tolist() == [bool(value) for value in values]
        return
    assert got.dtype == (np.int32 if function in _COUNTS else first.dtype)
    mask = (1 << 8 * got.itemsize) - 1
    assert got.view(f"u{got.itemsize}").tolist() == [value & mask for value in values]


def test_bools() -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    assert BOOL["xor"](a, b).tolist() == [False, True, True, False]
    assert BOOL["lt"](a, b).tolist() == [False, True, False, False]
    assert BOOL["not"](a).tolist() == [True, True, False, False]
    assert set(BOOL) == {"mov", "and", "or", "xor", "not", "select", "eq", "ne", "lt", "le", "gt", "ge"}


def test_operands_of_two_types_are_refused() -> None:
    with pytest.raises(TypeError):
        INTEGER["add"](np.zeros(1, np.int8), np.zeros(1, np.int16))
    with pytest.raises(TypeError):
        INTEGER["mulhi"](np.zeros(1), np.zeros(1))
