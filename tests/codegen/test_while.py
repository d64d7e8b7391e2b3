"""Loops with a condition: what they carry and hand on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from loom_core.base.dtype import f32
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ew
from tests.codegen.execution import faults
from tests.codegen.sketch import Sketch

SQUARE = (8, 8)
OPTIONS: tuple[dict[str, Any], ...] = ({}, {"prefetch": "none"}, {"assume_noalias": False})


def counted(
    k: Sketch,
    initials: Sequence[Value],
    step: Callable[..., Sequence[Value]],
    hand_on: Callable[..., Sequence[Value]] = lambda *values: values,
) -> list[Value]:
    """`n` iterations of `step`; `hand_on` is what the condition block does to the values before it."""
    return k.while_loop(
        [k.constant(0), *initials],
        lambda i, *values: (k.compare("lt", i, k.n), [i, *hand_on(*values)]),
        lambda i, *values: [k.add(i, k.constant(1)), *step(*values)],
    )


def an_accumulator() -> Sketch:
    k = Sketch()
    x, y, start = (k.load(SQUARE) for _ in range(3))
    results = counted(k, [start], lambda acc: [k.dot(x, y, acc)])
    k.store(results[1])
    return k


def an_accumulator_that_starts_as_a_constant() -> Sketch:
    k = Sketch()
    x, y = k.load(SQUARE), k.load(SQUARE)
    results = counted(k, [k.constant(0.0, f32, SQUARE)], lambda acc: [k.dot(x, y, acc)])
    k.store(results[1])
    return k


def a_product_in_the_condition() -> Sketch:
    k = Sketch()
    x, y, start = (k.load(SQUARE) for _ in range(3))
    results = counted(k, [start], lambda v: [k.add(v, x)], lambda v: [k.dot(x, y, v)])
    k.store(results[1])
    return k


def values_change_places() -> Sketch:
    k = Sketch(n=4)
    x, y = k.load(SQUARE), k.load(SQUARE)
    total = k.add(x, y)
    results = counted(k, [total, x], lambda b, a: [k.dot(b, y, a), a], lambda a, b: [b, a])
    for value in (*results[1:], total):
        k.store(value)
    return k


def an_operand() -> Sketch:
    k = Sketch()
    x, y = k.load(SQUARE), k.load(SQUARE)
    results = counted(k, [x], lambda v: [k.dot(k.transposed(v), y)])
    k.store(results[1])
    k.store(k.dot(results[1], y))
    return k


def tiles_are_turned() -> Sketch:
    k = Sketch()
    results = counted(k, [k.load((64, 64))], lambda v: [k.add(v, k.transposed(v))], lambda v: [k.transposed(v)])
    k.store(results[1])
    return k


def a_float_decides() -> Sketch:
    k = Sketch()
    results = k.while_loop(
        [k.load(())],
        lambda v: (k.compare("lt", v, k.constant(50.0, f32)), [v]),
        lambda v: [k.add(k.op(ew.Abs, v), k.op(ew.Abs, k.s))],
    )
    k.store(results[0])
    return k


def a_tile_that_no_iteration_changes() -> Sketch:
    k = Sketch(n=0)
    results = counted(k, [k.load(SQUARE)], lambda v: [k.add(v, v)])
    k.store(results[1])
    k.store(results[0])
    return k


def loads_and_a_counted_loop_inside() -> Sketch:
    k = Sketch()

    def step(v: Value) -> list[Value]:
        inner: list[Value] = []
        with k.loop(k.n, [v], inner) as body:
            body.give(k.add(body.carried[0], k.load((8,), offset=k.mul(body.counter, k.constant(8)))))
        k.store(inner[0], k.constant(200))
        return inner

    results = counted(k, [k.load((8,))], step)
    k.store(results[1])
    return k


KERNELS = (
    an_accumulator,
    an_accumulator_that_starts_as_a_constant,
    a_product_in_the_condition,
    values_change_places,
    an_operand,
    tiles_are_turned,
    a_float_decides,
    a_tile_that_no_iteration_changes,
    loads_and_a_counted_loop_inside,
)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("make", KERNELS, ids=lambda make: make.__name__)
def test_is_right(make: Callable[[], Sketch], options: dict[str, Any]) -> None:
    sketch = make()
    assert not faults(sketch.finished(), sketch.launch(), **options)
