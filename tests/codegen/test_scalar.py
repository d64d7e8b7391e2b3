"""Integer arithmetic on scalars, on the command processor where it can, against the references of each type."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from loom_core.base.dtype import DType, bool_, i8, i16, i32, i64, u8, u16, u32, u64
from loom_core.codegen import scalar
from loom_core.codegen.scalar_ops import SCALAR_OPS
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ew
from tests.codegen.execution import Launch, faults
from tests.codegen.sketch import ELEMENTS, Sketch

EDGES = (0, 1, -1, 7, -3, 33, 255, -129, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63))
SIGNED, UNSIGNED = (i8, i16, i32, i64), (u8, u16, u32)
TYPES = (*SIGNED, *UNSIGNED)
BINARY = (ew.Add, ew.Sub, ew.Mul, ew.Min, ew.Max, ew.And, ew.Or, ew.Xor, ew.ShiftLeft, ew.ShiftRight, ew.Div,
          ew.FloorDiv, ew.Rem)  # fmt: skip
UNARY = (ew.Negate, ew.Abs, ew.Not, ew.Copy)


def edge(k: Sketch, index: Value, dtype: DType) -> Value:
    """One of the edges, wrapped to a type; they lie in `xi` as low and high halves."""
    low, high = (k.cast(k.load((), i32, k.add(index, k.constant(part * len(EDGES)))), i64) for part in (0, 1))
    word = k.op(ew.Or, k.op(ew.ShiftLeft, high, k.constant(32, i64)), k.op(ew.And, low, k.constant(0xFFFFFFFF, i64)))
    return word if dtype is i64 else k.cast(word, dtype)


def launch_of(k: Sketch) -> Launch:
    launch = k.launch()
    words = np.array(EDGES, np.int64)
    table = np.zeros(ELEMENTS, np.int32)
    table[: len(EDGES)] = words.astype(np.int32)
    table[len(EDGES) : 2 * len(EDGES)] = words >> 32
    return dataclasses.replace(launch, memories=(launch.memories[0], table.view(np.uint8), *launch.memories[2:]))


def store_halves(k: Sketch, value: Value, place: Value) -> None:
    """Store a scalar of any type as two i32."""
    wide = value if value.type.dtype is i64 else k.cast(value, i64)
    k.store(k.cast(wide, i32), place)
    k.store(k.cast(k.op(ew.ShiftRight, wide, k.constant(32, i64)), i32), k.add(place, k.constant(1)))


def over_all(dtype: DType, results: Any) -> Sketch:
    """A kernel that stores `results(sketch, a)` for all edges."""
    k = Sketch(n=len(EDGES))
    with k.loop(k.n, [], []) as rows:
        found = results(k, edge(k, rows.counter, dtype))
        first = k.mul(rows.counter, k.constant(2 * len(found)))
        for number, value in enumerate(found):
            store_halves(k, value, k.add(first, k.constant(2 * number)))
        rows.give()
    return k


def over_all_pairs(dtype: DType, results: Any) -> Sketch:
    """A kernel that stores `results(sketch, a, b)` for all pairs of edges."""
    k = Sketch(n=len(EDGES))
    with k.loop(k.n, [], []) as rows:
        with k.loop(k.n, [], []) as columns:
            found = results(k, edge(k, rows.counter, dtype), edge(k, columns.counter, dtype))
            pair = k.add(k.mul(rows.counter, k.n), columns.counter)
            first = k.mul(pair, k.constant(2 * len(found)))
            for number, value in enumerate(found):
                store_halves(k, value, k.add(first, k.constant(2 * number)))
            columns.give()
        rows.give()
    return k


@pytest.mark.parametrize("dtype", (*TYPES, u64), ids=repr)
def test_arithmetic(dtype: DType) -> None:
    def results(k: Sketch, a: Value, b: Value) -> list[Value]:
        # Unsigned division is one already.
        return [k.op(kind, a, b) for kind in BINARY if dtype is not u64 or kind is not ew.FloorDiv]

    k = over_all_pairs(dtype, results)
    assert not faults(k.finished(), launch_of(k))


@pytest.mark.parametrize("dtype", (*TYPES, u64), ids=repr)
def test_arithmetic_on_one_operand(dtype: DType) -> None:
    k = over_all(dtype, lambda k, a: [k.op(kind, a) for kind in UNARY])
    assert not faults(k.finished(), launch_of(k))


@pytest.mark.parametrize("dtype", (*TYPES, u64), ids=repr)
def test_comparisons_and_choice(dtype: DType) -> None:
    def results(k: Sketch, a: Value, b: Value) -> list[Value]:
        less = k.compare("lt", a, b)
        return [*(k.compare(predicate, a, b) for predicate in ew.COMPARISONS), k.op(ew.Select, less, a, b)]

    k = over_all_pairs(dtype, results)
    assert not faults(k.finished(), launch_of(k))


@pytest.mark.parametrize("dtype", (*TYPES, u64, bool_), ids=repr)
def test_conversions(dtype: DType) -> None:
    def results(k: Sketch, a: Value) -> list[Value]:
        return [k.cast(k.cast(a, target), i64) for target in (*TYPES, u64, bool_)]

    k = over_all(dtype, results)
    assert not faults(k.finished(), launch_of(k))


def test_bits_under_another_type() -> None:
    def results(k: Sketch, a: Value, b: Value) -> list[Value]:
        unsigned, back = k.op(ew.Bitcast, a, dtype=u32), k.op(ew.Bitcast, b, dtype=u32)
        return [k.cast(unsigned, i64), k.op(ew.Bitcast, back, dtype=i32)]

    k = over_all_pairs(i32, results)
    assert not faults(k.finished(), launch_of(k))


def test_logic() -> None:
    def results(k: Sketch, a: Value, b: Value) -> list[Value]:
        first, second = k.compare("lt", a, b), k.compare("gt", a, k.constant(1))
        logic = [k.op(kind, first, second) for kind in (ew.And, ew.Or, ew.Xor)]
        return [*logic, k.op(ew.Not, first), *(k.compare(p, first, second) for p in ew.COMPARISONS)]

    k = over_all_pairs(i32, results)
    assert not faults(k.finished(), launch_of(k))


def test_everything_for_the_command_processor_has_a_command() -> None:
    assert {*scalar._BINARY, *scalar._HANDLERS} == SCALAR_OPS
