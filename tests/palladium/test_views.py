"""Random reads and writes through views of scratch, blocks and whole arrays, against a model in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from loom.experimental import palladium as lpl
from loom_core.base.knobs import knobs

ROWS, COLUMNS, STEPS, SEEDS = 12, 10, 8, 8
POISON = np.iinfo(np.int32).min
Array = np.ndarray[Any, Any]


class Model:
    """A matrix that reads as poison outside, and drops what is written there."""

    def __init__(self, data: Array) -> None:
        self.data = data

    def places(self, rows: Array, columns: Array) -> tuple[Array, Array, Array]:
        r, c = np.meshgrid(rows, columns, indexing="ij")
        inside = (r >= 0) & (r < self.data.shape[0]) & (c >= 0) & (c < self.data.shape[1])
        return r, c, inside

    def read(self, rows: Array, columns: Array) -> Array:
        r, c, inside = self.places(rows, columns)
        return np.where(inside, self.data[np.where(inside, r, 0), np.where(inside, c, 0)], POISON).astype(np.int32)

    def write(self, rows: Array, columns: Array, value: Array, mask: Array | None = None) -> None:
        r, c, inside = self.places(rows, columns)
        inside = inside if mask is None else inside & mask
        self.data[r[inside], c[inside]] = value[inside]


class Axis:
    """How one axis is indexed: as text for the kernel's index (a function of the run-time numbers), and as indices."""

    def __init__(self, rng: np.random.Generator, size: int, numbers: list[int], wild: bool) -> None:
        kind = rng.choice(["all", "slice", "static", "dynamic", "strided"])
        count = int(rng.integers(1, size // 2 + 1))
        step = int(rng.integers(2, 4)) if kind == "strided" else 1
        start = int(rng.integers(0, size - step * (count - 1) if step * (count - 1) < size else 1))
        if kind == "all":
            start, count = 0, size
        if kind in ("dynamic", "strided") and wild:
            start = int(rng.integers(-3, size + 2))
        place = len(numbers)
        if kind in ("dynamic", "strided"):
            numbers.append(start)
        self.indices = start + step * np.arange(count)
        self.make: Callable[[Any], Any] = {
            "all": lambda at: slice(None),
            "slice": lambda at: slice(start, start + count),
            "static": lambda at: lpl.ds(start, count),
            "dynamic": lambda at: lpl.ds(at[place], count),
            "strided": lambda at: lpl.ds(at[place], count, step),
        }[str(kind)]


@pytest.mark.parametrize("space", ["scratch", "in place", "block"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_views_are_what_numpy_says(seed: int, space: str) -> None:
    rng = np.random.default_rng(seed)
    start = rng.integers(-99, 99, (ROWS, COLUMNS)).astype(np.int32)
    model, numbers, actions = Model(start.copy()), [], []
    numbers.append(0)
    for _ in range(STEPS):
        source = [Axis(rng, size, numbers, wild=True) for size in (ROWS, COLUMNS)]
        shape = tuple(len(axis.indices) for axis in source)
        factor, masked = int(rng.integers(2, 9)), bool(rng.random() < 0.3)
        target = [_moved(rng, axis, size, numbers) for axis, size in zip(source, (ROWS, COLUMNS), strict=True)]
        value = model.read(source[0].indices, source[1].indices) * np.int32(factor)
        mask = np.broadcast_to(np.arange(shape[1]) < shape[1] // 2 + 1, shape) if masked else None
        model.write(target[0][0], target[1][0], value, mask)
        actions.append((source, target, shape, factor, masked))

    def run(at: Any, ref: Any) -> None:
        for source, target, shape, factor, masked in actions:
            value = ref[source[0].make(at), source[1].make(at)] * factor
            mask = lpl.broadcasted_iota(np.int32, shape, 1) < shape[1] // 2 + 1 if masked else None
            lpl.store(ref, (target[0][1](at), target[1][1](at)), value, mask=mask)

    found = _call(space, run)(np.array(numbers, np.int32), start)
    assert np.array_equal(found, model.data)
    with knobs.override(interpret=True):
        assert np.array_equal(_call(space, run)(np.array(numbers, np.int32), start), found)


def _moved(rng: np.random.Generator, axis: Axis, size: int, numbers: list[int]) -> tuple[Array, Callable[[Any], Any]]:
    """As many indices as an axis has, at another place."""
    count = len(axis.indices)
    start, place = int(rng.integers(-2, size)), len(numbers)
    numbers.append(start)
    return start + np.arange(count), lambda at: lpl.ds(at[place], count)


def _call(space: str, run: Callable[[Any, Any], None]) -> lpl.Kernel:
    out = lpl.ShapeDtypeStruct((ROWS, COLUMNS), lpl.int32)
    if space == "scratch":

        def in_scratch(at, x, o, scratch):  # type: ignore[no-untyped-def]
            scratch[...] = x[...]
            run(at, scratch)
            o[...] = scratch[...]

        return lpl.kernel(in_scratch, out_shape=out, scratch=[lpl.SRAM((ROWS, COLUMNS), lpl.int32)])

    def in_output(at, x, o):  # type: ignore[no-untyped-def]
        o[...] = x[...]
        run(at, o)

    if space == "in place":
        return lpl.kernel(in_output, out_shape=out)
    block = lpl.BlockSpec((ROWS, COLUMNS), lambda: (0, 0))
    return lpl.kernel(in_output, out_shape=out, in_specs=[lpl.BlockSpec(), block], out_specs=block)
