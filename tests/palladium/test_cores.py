"""Cores as a grid axis with a name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loom.experimental.pallas as pl
import loom.experimental.pallas.tpu as pltpu
from loom.experimental import palladium as lpl
from loom.experimental.pallas import lax
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs

X = np.random.default_rng(3).standard_normal((8, 128)).astype(np.float32)


@pytest.mark.parametrize("cores", [None, 1, 4])
def test_a_kernel_over_the_cores_of_a_mesh(cores: int | None) -> None:
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=cores)
    count = mesh.shape["core"]

    def body(x: Any, o: Any, row: Any, semaphore: Any) -> None:
        @pl.loop(0, 8 // count)
        def step(i: Any) -> None:
            at = lax.axis_index("core") * (8 // lax.axis_size("core")) + i
            copy = pltpu.make_async_copy(x.at[at], row, semaphore)
            copy.start()
            copy.wait()
            o[at] = row[...] * 2.0 + lax.axis_index("core")

    scratch = [pltpu.VMEM((128,), np.float32), pltpu.SemaphoreType.DMA]
    call = pl.kernel(body, out_type=pl.ShapeDtypeStruct((8, 128), np.float32), mesh=mesh, scratch_types=scratch)
    wanted = X * 2 + np.repeat(np.arange(count), 8 // count)[:, None].astype(np.float32)
    assert np.array_equal(call(X), wanted)
    with knobs.override(interpret=True):
        assert np.array_equal(call(X), wanted)


def test_the_decorator_and_what_the_first_core_does() -> None:
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)

    @pl.kernel(out_type=pl.ShapeDtypeStruct((2,), np.int32), mesh=mesh)
    def where_it_runs(o: Any) -> None:
        @pltpu.run_on_first_core("core")
        def first() -> None:
            o[0] = 10

        @pl.when(lax.axis_index("core") == 1)
        def second() -> None:
            o[1] = 11

    assert where_it_runs().tolist() == [10, 11]


def test_axes_of_a_grid_have_names() -> None:
    def body(o: Any) -> None:
        o[...] = lpl.full((1, 1), lpl.program_id("row") * 10 + pl.program_id(1) * lpl.num_programs("column"))

    call = pl.pallas_call(
        body, pl.ShapeDtypeStruct((2, 3), np.int32), grid=(("row", 2), ("column", 3)),
        out_specs=pl.BlockSpec((1, 1), lambda i, j: (i, j)),
    )  # fmt: skip
    assert call().tolist() == [[0, 3, 6], [10, 13, 16]]

    def wrong(o: Any) -> None:
        o[...] = lpl.full((2,), lpl.program_id("rows"))

    with pytest.raises(LoomError, match=r"LOOM-F204.*axis 'rows'"):
        lpl.kernel(wrong, out_shape=lpl.ShapeDtypeStruct((2,), np.int32), grid=2, axis_names=["row"]).lower()
    with pytest.raises(LoomError, match=r"LOOM-R124.*axis_names"):
        lpl.kernel(wrong, out_shape=lpl.ShapeDtypeStruct((2,), np.int32), grid=2, axis_names=["a", "b"])


def test_what_upstream_has_beside_it_is_refused_by_name() -> None:
    for use in (lambda: pl.core_map(None), lambda: pl.BoundedSlice(8), lambda: pltpu.make_async_remote_copy()):
        with pytest.raises(LoomError, match="LOOM-F211"):
            use()


def test_scratch_of_a_decorated_function() -> None:
    def body(x: Any, o: Any) -> None:
        @pl.with_scoped(pltpu.VMEM((8, 128), np.float32))
        def inner(factor: float, kept: Any) -> None:
            kept[...] = x[...] * factor
            o[...] = kept[...] + 1.0

        inner(3.0)

    assert np.array_equal(pl.pallas_call(body, pl.ShapeDtypeStruct((8, 128), np.float32))(X), X * 3 + 1)
