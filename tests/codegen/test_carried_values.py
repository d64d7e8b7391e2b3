"""What loops and branches carry: swaps, rotations, accumulators, views, scalars under several names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from loom_core.base.dtype import f32, i32, i64
from loom_core.ops import elementwise as ew
from loom_core.ops import memory, reduction, shape
from tests.codegen.execution import faults
from tests.codegen.sketch import Sketch

OPTIONS: tuple[dict[str, Any], ...] = ({}, {"prefetch": "none"}, {"assume_noalias": False})
SQUARE = (8, 8)
LARGE = (64, 64)  # more than one pass of the stream engine over a tile

Kernel = Callable[[], Sketch]
KERNELS: list[Kernel] = []


def kernel(make: Kernel) -> Kernel:
    KERNELS.append(make)
    return make


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("make", KERNELS, ids=lambda make: make.__name__)
def test_is_right(make: Kernel, options: dict[str, Any]) -> None:
    sketch = make()
    assert not faults(sketch.finished(), sketch.launch(), **options)


@kernel
def an_accumulator_moves_on_to_another_name() -> Sketch:
    """The product lies in the window of `a`, and is the next `b`: `a` must not be overwritten first."""
    k = Sketch()
    a, b, x, y = (k.load(SQUARE) for _ in range(4))
    results: list[Any] = []
    with k.loop(k.n, [a, b], results) as body:
        a, b = body.carried
        body.give(k.add(b, k.constant(1.0, f32, SQUARE)), k.dot(x, y, a))
    for value in results:
        k.store(value)
    return k


@kernel
def accumulators_are_swapped() -> Sketch:
    k = Sketch()
    a, b, x, y = (k.load(SQUARE) for _ in range(4))
    results: list[Any] = []
    with k.loop(k.n, [a, b], results) as body:
        a, b = body.carried
        product = k.dot(x, y, a)
        body.give(b, product)
    for value in results:
        k.store(value)
    return k


@kernel
def three_tiles_rotate() -> Sketch:
    k = Sketch(n=4)
    results: list[Any] = []
    with k.loop(k.n, [k.load((9,)) for _ in range(3)], results) as body:
        a, b, c = body.carried
        body.give(b, c, a)
    for value in results:
        k.store(value)
    return k


@kernel
def fibonacci() -> Sketch:
    k = Sketch(n=9)
    results: list[Any] = []
    with k.loop(k.n, [k.constant(0), k.constant(1)], results) as body:
        a, b = body.carried
        body.give(b, k.add(a, b))
    for value in results:
        k.store(value)
    return k


@kernel
def both_are_computed_from_the_other_in_place() -> Sketch:
    k = Sketch()
    results: list[Any] = []
    with k.loop(k.n, [k.load((8,)), k.load((8,))], results) as body:
        a, b = body.carried
        body.give(k.add(b, b), k.mul(a, a))
    for value in results:
        k.store(value)
    return k


@kernel
def a_tile_plus_its_transpose() -> Sketch:
    """Reads element (j, i) while it writes (i, j): not in place."""
    k = Sketch()
    results: list[Any] = []
    with k.loop(k.n, [k.load(LARGE)], results) as body:
        (a,) = body.carried
        body.give(k.add(a, k.transposed(a)))
    k.store(results[0])
    return k


@kernel
def a_tile_is_transposed_each_time() -> Sketch:
    k = Sketch()
    results: list[Any] = []
    with k.loop(k.n, [k.load(LARGE)], results) as body:
        body.give(k.transposed(body.carried[0]))
    k.store(results[0])
    return k


@kernel
def a_scalar_is_carried_under_another_type() -> Sketch:
    """The cast to i64 is the same register, which the next `a` overwrites."""
    k = Sketch()
    results: list[Any] = []
    with k.loop(k.n, [k.constant(1), k.constant(2, i64)], results) as body:
        a, _ = body.carried
        body.give(k.add(a, k.constant(3)), k.cast(a, i64))
    for value in results:
        k.store(value)
    return k


@kernel
def a_scalar_is_carried_as_a_copy() -> Sketch:
    k = Sketch()
    results: list[Any] = []
    with k.loop(k.n, [k.constant(1), k.constant(2)], results) as body:
        a, b = body.carried
        body.give(k.add(b, k.constant(3)), k.op(ew.Copy, a))
    for value in results:
        k.store(value)
    return k


@kernel
def a_row_is_an_operand() -> Sketch:
    k = Sketch()
    row, matrix = k.load((8,)), k.load(SQUARE)
    results: list[Any] = []
    with k.loop(k.n, [row], results) as body:
        product = k.dot(k.op(shape.ExpandDims, body.carried[0], axis=0), matrix)
        body.give(k.op(shape.Reshape, product, shape=(8,)))
    k.store(k.dot(k.op(shape.ExpandDims, results[0], axis=0), matrix))
    return k


@kernel
def an_accumulator_from_outside_the_loop() -> Sketch:
    """Every iteration starts from the same accumulator."""
    k = Sketch()
    x, y = k.load(SQUARE), k.load(SQUARE)
    acc = k.add(x, y)
    results: list[Any] = []
    with k.loop(k.n, [x], results) as body:
        body.give(k.dot(body.carried[0], y, acc))
    k.store(results[0])
    return k


@kernel
def an_accumulator_that_lives_on_after_a_branch() -> Sketch:
    k = Sketch()
    x, y = k.load(SQUARE), k.load(SQUARE)
    acc = k.add(x, y)
    blocks: list[Any] = []
    with k.arm(blocks):
        k.give(k.dot(x, y, acc))
    with k.arm(blocks):
        k.give(x)
    (taken,) = k.branch(k.compare("gt", k.n, k.constant(0)), blocks)
    k.store(taken)
    k.store(acc)
    return k


@kernel
def an_accumulator_that_a_branch_gives_is_stored() -> Sketch:
    k = Sketch()
    a, b = k.load(SQUARE), k.load(SQUARE)
    blocks: list[Any] = []
    with k.arm(blocks):
        k.give(k.add(a, b))
    with k.arm(blocks):
        k.give(a)
    (chosen,) = k.branch(k.compare("lt", k.n, k.constant(100)), blocks)
    product = k.dot(a, b, chosen)
    k.store(chosen)
    k.store(product)
    return k


@kernel
def an_accumulator_is_its_own_operand() -> Sketch:
    k = Sketch()
    a = k.add(k.load(SQUARE), k.load(SQUARE))
    k.store(k.dot(a, a, a))
    k.store(a)
    return k


@kernel
def a_loaded_tile_is_carried() -> Sketch:
    k = Sketch(grid=(2, 1, 1))
    results: list[Any] = []
    with k.loop(k.n, [k.load((8,))], results) as body:
        at = k.mul(body.counter, k.constant(8))
        loaded = k.load((8,), offset=at)
        k.store(k.add(loaded, body.carried[0]), k.add(at, k.constant(100)))
        body.give(loaded)
    k.store(results[0])
    return k


@kernel
def a_loop_without_iterations_gives_the_initial_values() -> Sketch:
    k = Sketch(n=0)
    initial = [k.load(SQUARE), k.constant(7), k.load(())]
    results: list[Any] = []
    with k.loop(k.n, initial, results) as body:
        tile, number, single = body.carried
        body.give(k.dot(tile, tile, tile), k.add(number, body.counter), k.add(single, k.s))
    for value in results:
        k.store(value)
    return k


@kernel
def an_index_tile_that_does_not_stay_affine() -> Sketch:
    """Its strides change; the scalars computed beside it must be those of the loop as it is built in the end."""
    k = Sketch()
    results: list[Any] = []
    with k.loop(k.n, [k.index((8,), 0)], results) as body:
        offset = k.add(k.mul(body.counter, k.constant(3)), k.n)
        k.store(k.load((8,), offset=offset), k.add(k.mul(body.counter, k.constant(8)), k.constant(100)))
        body.give(k.op(ew.Sub, k.constant(0, i32, (8,)), body.carried[0]))
    k.store(results[0])
    return k


@kernel
def a_computed_scalar_is_given_by_both_arms() -> Sketch:
    """What one arm loads into a register is not there in the other."""
    k = Sketch()
    largest = k.op(reduction.Reduce, k.load((8,), i32), kind="max", axis=0)
    blocks: list[Any] = []
    for _ in range(2):
        with k.arm(blocks):
            k.give(largest)
    (value,) = k.branch(k.compare("gt", k.n, k.constant(100)), blocks)
    k.store(value)
    return k


@kernel
def a_computed_scalar_fills_in_a_loop_that_does_not_run() -> Sketch:
    k = Sketch(n=0)
    tile = k.load((8,))
    fill = k.splat(k.op(reduction.Reduce, tile, kind="max", axis=0), (8,))
    mask = k.compare("lt", k.index((8,), 0), k.constant(3, i32, (8,)))
    results: list[Any] = []
    with k.loop(k.n, [tile], results) as body:
        body.give(k.op(memory.Load, k.row_major(k.x, (8,)), mask, fill))
    k.store(results[0])
    k.store(k.op(memory.Load, k.row_major(k.x, (8,)), mask, fill))
    return k


@kernel
def a_computed_scalar_bounds_a_loop() -> Sketch:
    k = Sketch()
    largest = k.op(reduction.Reduce, k.load((8,), i32), kind="max", axis=0)
    results: list[Any] = []
    with k.loop(largest, [k.constant(0)], results) as body:
        body.give(k.add(body.carried[0], body.counter))
    k.store(results[0])
    return k


@kernel
def pointers_through_an_index_tile_move_on() -> Sketch:
    """As in a matrix product whose rows wrap around: the index tile stays, the offset moves."""
    k = Sketch()
    wrapped = k.op(ew.Rem, k.index((9,), 0), k.constant(4, i32, (9,)))
    pointers = k.op(memory.AddPointer, k.splat(k.x, (9,)), wrapped)
    results: list[Any] = []
    with k.loop(k.n, [pointers, k.constant(0.0, f32, (9,))], results) as body:
        pointer, total = body.carried
        loaded = k.op(memory.Load, pointer, None, None)
        body.give(k.op(memory.AddPointer, pointer, k.constant(5, i32, (9,))), k.add(total, loaded))
    k.store(k.op(memory.Load, results[0], None, None))
    k.store(results[1])
    return k


@kernel
def an_offset_that_only_this_iteration_knows() -> Sketch:
    """`following` depends on a loaded scalar, so nothing that depends on it may be computed an iteration ahead."""
    k = Sketch()
    results: list[Any] = []
    with k.loop(k.n, [k.constant(1)], results) as body:
        (at,) = body.carried
        twice = k.mul(at, k.constant(2))
        loaded = k.load((), i32, at)
        following = k.add(twice, k.op(ew.Max, loaded, k.constant(0)))
        total = k.add(k.load((8,), offset=following), k.load((8,), offset=twice))
        k.store(total, k.add(k.mul(body.counter, k.constant(8)), k.constant(100)))
        body.give(following)
    k.store(results[0])
    return k
