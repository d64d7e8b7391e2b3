"""COPY against an element-by-element copy in NumPy, and its bounds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import loom_sim
from loom_core.isa.encoding import Reg, command
from loom_sim.errors import OutOfBounds, OversizedCommand, ReadOnlySpace
from tests.sim.harness import Buffer, build, copy, launch, prepared

Array = NDArray[Any]
Dim = tuple[int, int, int, int, int]  # size, source stride, target stride, lo, hi

_SIZE = 4096
_LEAST = -(1 << 63)


def expected(
    source: Array, target: Array, start: tuple[int, int], dims: Sequence[Dim], itemsize: int, fill: int, skip: bool
) -> Array:
    """`target` (bytes) after the copy, by its definition."""
    after = target.copy()
    filling = np.frombuffer((fill % (1 << 64)).to_bytes(8, "little"), np.uint8)[:itemsize]
    for index in itertools.product(*(range(dim[0]) for dim in dims)):
        from_, to = (
            begin + sum(i * dim[side] for i, dim in zip(index, dims, strict=True))
            for side, begin in zip((1, 2), start, strict=True)
        )
        if all(dim[3] <= i < dim[4] for i, dim in zip(index, dims, strict=True)):
            after[to : to + itemsize] = source[from_ : from_ + itemsize]
        elif not skip:
            after[to : to + itemsize] = filling
    return after


def run_copy(
    source: Array, target: Array, start: tuple[int, int], dims: Sequence[Dim], itemsize: int = 4, **more: Any
) -> Array:
    obj = build([copy((1, start[0]), (2, start[1]), dims, itemsize, **more)], buffers=2, read_only=[0])
    before, after = launch(obj, [source, target])
    assert (before == source).all()
    return after


def random_bytes(rng: np.random.Generator) -> Array:
    return rng.integers(0, 256, _SIZE).astype(np.uint8)


def strides(rng: np.random.Generator, sizes: Sequence[int], itemsize: int, target: bool) -> list[int]:
    """Strides of a permuted, padded layout; targets never meet themselves, sources may repeat."""
    result, step = [0] * len(sizes), itemsize
    order = rng.permutation(len(sizes)) if rng.random() < 0.5 else np.arange(len(sizes))[::-1]
    for dim in order:
        result[dim] = step if target or rng.random() < 0.85 else 0
        step *= max(sizes[dim], 1)
        if rng.random() < 0.3:
            step += itemsize * int(rng.integers(1, 3))
        if rng.random() < 0.2:
            result[dim] = -result[dim]
    return result


@pytest.mark.parametrize("seed", range(40))
def test_random_boxes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(25):
        rank, log2 = int(rng.integers(1, 6)), int(rng.integers(0, 4))
        itemsize, skip = 1 << log2, bool(rng.integers(0, 2))
        sizes = [int(n) for n in rng.integers(1, [0, 300, 24, 9, 6, 4][rank], rank)]
        sides = [strides(rng, sizes, itemsize, target) for target in (False, True)]
        start = [-sum(min(0, (n - 1) * s) for n, s in zip(sizes, side, strict=True)) for side in sides]
        extent = [
            begin + sum(max(0, (n - 1) * s) for n, s in zip(sizes, side, strict=True)) + itemsize
            for begin, side in zip(start, sides, strict=True)
        ]
        if max(extent) > _SIZE:
            continue
        dims: list[Dim] = []
        for size, source_stride, target_stride in zip(sizes, *sides, strict=True):
            lo = int(rng.integers(-2, size + 2)) if rng.random() < 0.3 else 0
            hi = int(rng.integers(-2, size + 2)) if rng.random() < 0.3 else size
            dims.append((size, source_stride, target_stride, lo, hi))
        source, target, fill = random_bytes(rng), random_bytes(rng), int(rng.integers(_LEAST, (1 << 63) - 1))
        got = run_copy(source, target, (start[0], start[1]), dims, itemsize, fill=fill, skip=skip)
        assert (got == expected(source, target, (start[0], start[1]), dims, itemsize, fill, skip)).all(), (
            dims,
            itemsize,
            skip,
        )


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
@pytest.mark.parametrize("shape", [(8, 8), (17, 33), (40, 12), (3, 100)])
def test_transposition(shape: tuple[int, int], itemsize: int) -> None:
    rows, columns = shape
    source = np.random.default_rng(rows).integers(0, 256, (rows, columns, itemsize)).astype(np.uint8)
    dims = [(rows, columns * itemsize, itemsize, 0, rows), (columns, itemsize, rows * itemsize, 0, columns)]
    got = run_copy(source.ravel(), np.zeros(source.size, np.uint8), (0, 0), dims, itemsize)
    assert (got.reshape(columns, rows, itemsize) == source.transpose(1, 0, 2)).all()


def test_a_target_written_twice_keeps_the_last_element() -> None:
    source = np.arange(64, dtype=np.uint8)
    for dims in ([(64, 1, 0, 0, 64)], [(8, 8, 1, 0, 8), (8, 1, 0, 0, 8)], [(8, 1, 0, 0, 8), (8, 8, 1, 0, 8)]):
        got = run_copy(source, np.zeros(8, np.uint8), (0, 0), dims, 1)
        assert (got == expected(source, np.zeros(8, np.uint8), (0, 0), dims, 1, 0, False)).all()


def test_overlapping_runs_move_as_a_whole() -> None:
    data = np.arange(100, dtype=np.uint8)
    (after,) = launch(build([copy((1, 0), (1, 10), [(90, 1, 1)], 1)], buffers=1), [data])
    assert after.tolist() == [*range(10), *range(90)]


def test_to_and_from_sram_with_register_operands() -> None:
    commands = [
        copy((1, Reg(3)), (0, Reg(4)), [(Reg(5), 4, 4, 0, Reg(5))]),
        copy((0, Reg(4)), (Reg(6), 0), [(Reg(5), 4, 4, 0, Reg(5))]),
    ]
    source = np.arange(1000, dtype=np.int32)
    _, after = launch(build(commands, buffers=2), [source, np.zeros(500, np.int32)], {3: 400, 4: 1024, 5: 500, 6: 2})
    assert (after == source[100:600]).all()


def test_a_size_of_zero_or_less_does_nothing() -> None:
    source, target = np.arange(64, dtype=np.uint8), np.zeros(64, np.uint8)
    for sizes in ((0,), (-5,), (4, 0), (_LEAST, 4)):
        dims = [(size, 1 << 62, 1 << 62, 0, 1 << 62) for size in sizes]
        assert (run_copy(source, target, (1 << 62, _LEAST), dims, 1) == target).all()


def test_elements_that_are_not_valid_do_not_touch_the_source() -> None:
    target = np.arange(64, dtype=np.uint8)
    dims = [(16, 4, 4, 5, 5)]
    assert (
        run_copy(np.zeros(4, np.uint8), target, (1 << 40, 0), dims, fill=0x01020304).view(np.uint32) == 0x01020304
    ).all()
    assert (run_copy(np.zeros(4, np.uint8), target, (1 << 40, 1 << 40), dims, skip=True) == target).all()
    # A tile that hangs over both ends of its source.
    source = np.arange(10, dtype=np.int32)
    got = run_copy(source.view(np.uint8), np.zeros(64, np.uint8), (-12, 0), [(16, 4, 4, 3, 13)], fill=7)
    assert got.view(np.int32).tolist() == [7] * 3 + list(range(10)) + [7] * 3


_BAD_BOXES: list[tuple[tuple[int, int], list[Dim]]] = [
    ((-1, 0), [(4, 1, 1, 0, 4)]),
    ((0, -1), [(4, 1, 1, 0, 4)]),
    ((61, 0), [(4, 1, 1, 0, 4)]),
    ((0, 61), [(4, 1, 1, 0, 4)]),
    ((0, 0), [(65, 1, 1, 0, 65)]),
    ((0, 0), [(65, 1, 1, 0, 5)]),  # the fill runs over
    ((0, 0), [(2, -1, 1, 0, 2)]),
    ((0, 0), [(2, 1, -1, 0, 2)]),
    ((0, 0), [(8, 8, 8, 0, 8), (9, 1, 1, 0, 9)]),
    (((1 << 63) - 1, 0), [(4, 1, 1, 0, 4)]),
    ((0, (1 << 63) - 1), [(4, 1, 1, 0, 4)]),
    ((_LEAST, 0), [(4, 1, 1, 0, 4)]),
    ((0, _LEAST), [(1, 1, 1, 0, 1)]),
    ((0, 0), [(2, 1 << 62, 0, 0, 2)]),
    ((0, 0), [(5, 1 << 62, 0, 0, 5)]),  # 4 * 2^62 = 2^64
    ((0, 0), [(3, _LEAST, 0, 0, 3)]),  # 2 * -2^63 = -2^64
    ((0, 0), [(5, 0, 1 << 62, 0, 5)]),
    ((0, 0), [(2, 1 << 59, 0, 0, 2), (2, -(1 << 59), 0, 0, 2)]),
    ((0, 0), [(8, 1 << 61, 0, 0, 8), (8, -(1 << 61), 1, 0, 8)]),
    ((0, 0), [(8, 1 << 60, 1, 4, 8), (8, -(1 << 60), 8, 4, 8)]),  # the first valid element is back at 0
    ((0, 0), [(1 << 20, 1, 1 << 44, 0, 1 << 20)]),
]  # fmt: skip


@pytest.mark.parametrize(("start", "dims"), _BAD_BOXES)
def test_boxes_outside_a_space_are_faults(start: tuple[int, int], dims: list[Dim]) -> None:
    source, target = np.zeros(64, np.uint8), np.full(64, 9, np.uint8)
    with pytest.raises(OutOfBounds, match="copy touches bytes"):
        run_copy(source, target, start, dims, 1)


def test_a_faulting_copy_names_the_bytes() -> None:
    with pytest.raises(OutOfBounds, match=r"copy touches bytes 56 to 71 of buffer 'b1', which holds bytes 0 to 63"):
        run_copy(np.zeros(64, np.uint8), np.zeros(64, np.uint8), (0, 56), [(4, 4, 4, 0, 4)])


def test_a_negative_range_is_legal() -> None:
    data = np.arange(64, dtype=np.uint8)
    program = loom_sim.load(build([copy((1, -32), (1, 0), [(32, 1, 1)], 1)], buffers=1))
    buffer = Buffer(data)
    program.run([(buffer.array.ctypes.data + 32, -32, 32)])
    buffer.check_guards()
    assert buffer.array.tolist() == [*range(32), *range(32)]
    with pytest.raises(OutOfBounds, match="holds bytes -31 to 31"):
        program.run([(buffer.array.ctypes.data + 32, -31, 32)])


def test_a_binding_without_bytes_faults_at_any_access() -> None:
    with pytest.raises(OutOfBounds, match="which holds no bytes"):
        loom_sim.load(build([copy((1, 0), (0, 0), [(1, 1, 1)], 1)], buffers=1)).run([(0, 0, 0)])


def test_endless_copies_are_refused() -> None:
    for dims in ([(1 << 40, 0, 0, 0, 1 << 40)], [(1 << 20, 0, 0, 0, 1 << 20)] * 5):
        with pytest.raises(OversizedCommand, match="copy covers"):
            run_copy(np.zeros(64, np.uint8), np.zeros(64, np.uint8), (0, 0), dims, 1)


def test_read_only_targets_are_faults() -> None:
    commands = [command("mov", 5, 1), copy((0, 0), (Reg(5), 0), [(4, 1, 1)], 1)]
    with pytest.raises(ReadOnlySpace, match="copy writes to buffer 'b0'"):
        launch(build(commands, buffers=1, read_only=[0]), [np.zeros(64, np.uint8)])


def test_a_prepared_launch_sees_new_data() -> None:
    program = loom_sim.load(build([copy((1, 0), (2, 0), [(16, 4, 4)])], buffers=2))
    source, target = Buffer(np.arange(16, dtype=np.int32)), Buffer(np.zeros(16, np.int32))
    launched = prepared(program, [source, target])
    for _ in range(3):
        source.array += 1
        launched.go()
        assert (target.array == source.array).all()
