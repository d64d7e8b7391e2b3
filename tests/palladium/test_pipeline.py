"""Pipelines inside of a kernel: blocks of refs over a grid of their own, against upstream's where it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loom.experimental.pallas as pl
import loom.experimental.pallas.tpu as pltpu
from loom.experimental import palladium as lpl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs

RNG = np.random.default_rng(8)
X, Y = RNG.standard_normal((2, 64, 64)).astype(np.float32)
ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)


def run(body: Any, *args: Any, shape: tuple[int, ...] = (64, 64), scratch: Any = ()) -> np.ndarray:
    call = pl.pallas_call(
        body, pl.ShapeDtypeStruct(shape, np.float32), in_specs=[ANYWHERE] * len(args), out_specs=ANYWHERE,
        scratch_shapes=scratch,
    )  # fmt: skip
    found = call(*args)
    with knobs.override(interpret=True):
        assert call(*args).tobytes() == found.tobytes()
    return found  # type: ignore[no-any-return]


def rows(i: Any, j: Any) -> tuple[Any, Any]:
    return i, j


SPEC = pl.BlockSpec((16, 32), rows)


def test_blocks_of_several_refs() -> None:
    def add(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] + y[...] * pl.program_id(0)

    def body(x: Any, y: Any, o: Any) -> None:
        pltpu.emit_pipeline(add, grid=(4, 2), in_specs=[SPEC, SPEC], out_specs=SPEC)(x, y, o)

    assert np.array_equal(run(body, X, Y), X + Y * np.repeat(np.arange(4, dtype=np.float32), 16)[:, None])


def test_a_matmul_accumulates_over_the_last_axis_and_loads_ahead() -> None:
    def step(x: Any, y: Any, o: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def first() -> None:
            o[...] = lpl.zeros_like(o)

        o[...] += lpl.dot(x[...], y[...])

    def body(x: Any, y: Any, o: Any) -> None:
        pltpu.emit_pipeline(
            step,
            grid=(2, 2, 4),
            in_specs=[pl.BlockSpec((32, 16), lambda i, j, k: (i, k)), pl.BlockSpec((16, 32), lambda i, j, k: (k, j))],
            out_specs=pl.BlockSpec((32, 32), lambda i, j, k: (i, j)),
        )(x, y, o)

    found = run(body, X, Y)
    whole = pl.pallas_call(
        step, pl.ShapeDtypeStruct((64, 64), np.float32), grid=(2, 2, 4),
        in_specs=[pl.BlockSpec((32, 16), lambda i, j, k: (i, k)), pl.BlockSpec((16, 32), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((32, 32), lambda i, j, k: (i, j)),
    )  # fmt: skip
    assert np.array_equal(found, whole(X, Y)), "the same bits as over the grid of a kernel"
    call = pl.pallas_call(
        body, pl.ShapeDtypeStruct((64, 64), np.float32), in_specs=[ANYWHERE, ANYWHERE], out_specs=ANYWHERE
    )
    slots = {window["name"]: window["slots"] for window in call.compile(X, Y).manifest["windows"]}
    assert slots["x_block.a"] > 1 and slots["y_block.b"] > 1
    one_core = 2 * whole.trace(X, Y).cycles  # two cores share the grid of a kernel, a pipeline is one core's
    assert call.trace(X, Y).cycles < 1.1 * one_core


def test_sizes_and_places_that_are_known_at_run_time() -> None:
    def double(x: Any, o: Any) -> None:
        o[...] = x[...] * 2.0 + pl.num_programs(0)

    def body(count: Any, x: Any, o: Any) -> None:
        n, first = count[0], count[1]
        o[...] = x[...]
        spec = pl.BlockSpec((8, 64), lambda i: (i + first, 0))
        pltpu.emit_pipeline(double, grid=(n,), in_specs=[spec], out_specs=[spec])(x, o)

    for n, first in ((3, 2), (1, 0), (8, 0), (4, 6)):
        wanted = X.copy()
        part = slice(8 * first, 8 * min(first + n, 8))
        wanted[part] = X[part] * 2 + n
        assert np.array_equal(run(body, np.array([n, first], np.int32), X), wanted)


def test_parts_of_refs_and_scratch_are_pipelined_too() -> None:
    def move(x: Any, o: Any) -> None:
        o[...] = x[...] + 1.0

    def body(x: Any, o: Any, kept: Any) -> None:
        spec = pl.BlockSpec((8, 16), lambda i: (i, 0))
        pltpu.emit_pipeline(move, grid=(4,), in_specs=[spec], out_specs=spec)(x.at[32:64, 16:32], kept)
        o[...] = lpl.zeros_like(o)
        pltpu.emit_pipeline(move, grid=(4,), in_specs=[spec], out_specs=spec)(kept, o.at[0:32, 0:16])

    wanted = np.zeros((64, 64), np.float32)
    wanted[:32, :16] = X[32:, 16:32] + 1 + 1
    assert np.array_equal(run(body, X, scratch=[pltpu.VMEM((32, 16), np.float32)]), wanted)


def test_a_pipeline_in_a_grid_and_ragged_blocks() -> None:
    def double(x: Any, o: Any) -> None:
        o[...] = x[...] * 2.0

    def body(x: Any, o: Any) -> None:
        spec = pl.BlockSpec((5, 64), lambda i: (i, 0))
        at = pl.ds(pl.program_id(0) * 32, 32)
        pltpu.emit_pipeline(double, grid=(7,), in_specs=[spec], out_specs=spec)(x.at[at], o.at[at])

    call = pl.pallas_call(
        body, pl.ShapeDtypeStruct((64, 64), np.float32), grid=(2,), in_specs=[ANYWHERE], out_specs=ANYWHERE
    )
    with knobs.override(interpret=True):
        assert np.array_equal(call(X), X * 2)
    assert np.array_equal(call(X), X * 2)


def test_mistakes() -> None:
    def body_with(**options: Any) -> Any:
        def body(x: Any, o: Any) -> None:
            given: dict[str, Any] = {"grid": (4, 2), "in_specs": [SPEC], "out_specs": SPEC} | options
            pltpu.emit_pipeline(lambda x, o: o.set(x[...]), **given)(x, o)

        return body

    outside = pl.BlockSpec((16, 32), lambda i, j: (i + 1, j))
    for options, code in (
        ({"in_specs": [SPEC, SPEC]}, "LOOM-F202.*2 operands for 2 in_specs and 1 out_specs"),
        ({"in_specs": [outside]}, r"LOOM-R121.*block \(4, 0\) of x at grid point \(3, 0\)"),
        ({"out_specs": pl.BlockSpec((16, 32), lambda i, j: (j, 0))}, "LOOM-R122"),
        ({"in_specs": [pl.BlockSpec((16,), lambda i, j: (i,))]}, "LOOM-F216.*has 1 dimensions, the ref 2"),
        ({"grid": (0, 2)}, "LOOM-F203.*a grid size of 0"),
    ):
        with pytest.raises(LoomError, match=code):
            run(body_with(**options), X)
