"""Matrix products over random grids: ragged blocks, axes in either order, accumulators of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from loom.experimental import palladium as lpl
from loom_core.base.knobs import knobs

Body = Callable[..., None]


def in_output(x, y, o):  # type: ignore[no-untyped-def]
    @lpl.when(lpl.program_id(2) == 0)
    def start() -> None:
        o[...] = lpl.zeros_like(o)

    o[...] += lpl.dot(x[...], y[...])


def in_scratch(x, y, o, total):  # type: ignore[no-untyped-def]
    @lpl.when(lpl.program_id(2) == 0)
    def start() -> None:
        total[...] = lpl.zeros_like(total)

    total[...] += lpl.dot(x[...], y[...])

    @lpl.when(lpl.program_id(2) == lpl.num_programs(2) - 1)
    def end() -> None:
        o[...] = total[...]


def chosen_element_by_element(x, y, o):  # type: ignore[no-untyped-def]
    o[...] = lpl.where(lpl.program_id(2) == 0, 0.0, o[...]) + lpl.dot(x[...], y[...])


def by_outer_products(x, y, o):  # type: ignore[no-untyped-def]
    def step(i: Any, total: Any) -> Any:
        return total + x[:, lpl.ds(i, 1)] * y[lpl.ds(i, 1), :]

    part = lpl.fori(0, x.shape[1], step, lpl.zeros(o.shape))

    @lpl.when(lpl.program_id(2) == 0)
    def start() -> None:
        o[...] = part

    @lpl.when(lpl.program_id(2) > 0)
    def go_on() -> None:
        o[...] = o[...] + part


@pytest.mark.parametrize("body", [in_output, in_scratch, chosen_element_by_element, by_outer_products])
@pytest.mark.parametrize("seed", range(4))
def test_products_are_exact(seed: int, body: Body) -> None:
    rng = np.random.default_rng(seed)
    m, n, k = (int(size) for size in rng.integers(3, 40, 3))
    bm, bn = (int(size) for size in rng.integers(2, 20, 2))
    bk = int(rng.choice([size for size in range(1, k + 1) if k % size == 0]))
    swapped = bool(rng.integers(2))

    def place(a: Any, b: Any) -> tuple[Any, Any]:
        return (b, a) if swapped else (a, b)

    kernel = lpl.kernel(
        body,
        out_shape=lpl.ShapeDtypeStruct((m, n), lpl.float32),
        grid=(*place(lpl.cdiv(m, bm), lpl.cdiv(n, bn)), k // bk),
        in_specs=[
            lpl.BlockSpec((bm, bk), lambda a, b, k: (place(a, b)[0], k)),
            lpl.BlockSpec((bk, bn), lambda a, b, k: (k, place(a, b)[1])),
        ],
        out_specs=lpl.BlockSpec((bm, bn), lambda a, b, k: place(a, b)),
        scratch=[lpl.SRAM((bm, bn), lpl.float32)] if body is in_scratch else (),
    )
    x, y = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    found = kernel(x, y)
    assert np.array_equal(found, x @ y)
    for knob in ("interpret", "check"):
        with knobs.override(**{knob: True}):
            assert kernel(x, y).tobytes() == found.tobytes()
