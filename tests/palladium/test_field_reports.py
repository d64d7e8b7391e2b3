"""Public reports about Pallas's interpreters, each by its number: what they ask for happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import loom
import loom.experimental.pallas as pl
import loom.experimental.pallas.numpy as jnp
import loom.experimental.pallas.tpu as pltpu
from loom.experimental.pallas import nn
from loom_core.base.diagnostics import Diagnostic, LoomError
from loom_core.base.knobs import knobs
from loom_core.tools.loomc import main

F32 = np.float32


def struct(*shape: int, dtype: Any = F32) -> pl.ShapeDtypeStruct:
    return pl.ShapeDtypeStruct(shape, dtype)


def copied(x: Any, o: Any) -> None:
    o[...] = x[...]


def run(call: Any, *args: Any) -> Any:
    """The result of the simulator, which is that of the reference."""
    found = call(*args)
    with knobs.override(interpret=True):
        again = call(*args)
    assert np.asarray(found).tobytes() == np.asarray(again).tobytes()
    return found


def diagnosed(call: Any, *args: Any) -> Diagnostic:
    with pytest.raises(LoomError) as caught:
        call(*args)
    (found,) = caught.value.diagnostics
    assert found.location.file == __file__ and found.hint
    return found


def test_p41_an_index_map_that_gives_element_offsets() -> None:
    spec = pl.BlockSpec((8, 4), lambda i: (i * 8, 0))
    call = pl.pallas_call(copied, struct(32, 4), grid=(4,), in_specs=[spec], out_specs=spec)
    found = diagnosed(call, np.zeros((32, 4), F32))
    assert "block (8, 0) of x at grid point (1,)" in found.message and "not element offsets" in found.hint


def test_p42_a_block_index_outside_names_operand_and_step_or_reads_poison() -> None:
    inside, outside = pl.BlockSpec((8,), lambda i: (i,)), pl.BlockSpec((8,), lambda i: (i + 1,))
    x = np.arange(24, dtype=F32)
    for name, ins, outs in (("x", outside, inside), ("o", inside, outside)):
        found = diagnosed(pl.pallas_call(copied, struct(24), grid=(3,), in_specs=[ins], out_specs=outs), x)
        assert f"block (3,) of {name} at grid point (2,)" in found.message
    params = pltpu.InterpretParams(out_of_bounds_reads="uninitialized")
    call = pl.pallas_call(copied, struct(24), grid=(3,), in_specs=[outside], out_specs=inside, interpret=params)
    found = run(call, x)
    assert np.array_equal(found[:16], x[8:]) and np.isnan(found[16:]).all()


@pytest.mark.parametrize(
    ("dtype", "poison"), [("float32", np.nan), ("bfloat16", np.nan), ("int32", -(2**31)), ("bool", False)]
)
def test_p43_blocks_that_do_not_divide(dtype: str, poison: Any) -> None:
    own = np.dtype(getattr(ml_dtypes, dtype, dtype))

    def body(x: Any, o: Any) -> None:
        o[...] = x[...].reshape(1, 8)

    call = pl.pallas_call(
        body, struct(2, 8, dtype=own), grid=(2,), in_specs=[pl.BlockSpec((8,), lambda i: (i,))],
        out_specs=pl.BlockSpec((1, 8), lambda i: (i, 0)),
    )  # fmt: skip
    found = run(call, np.ones(11, own)).reshape(-1)
    assert (found[:11] == 1).all()
    assert np.array_equal(found[11:].astype(F32), np.full(5, poison, F32), equal_nan=True)


@pytest.mark.parametrize("count", [1, 2])
def test_p44_prefetched_scalars_are_those_of_the_call(count: int) -> None:
    def body(ids: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    def writing(ids: Any, x: Any, o: Any) -> None:
        ids[1] = 3
        o[...] = x[...]

    x, ids = np.arange(24, dtype=F32).reshape(6, 4), np.array([5, 0, 3, 3, 1, 2], np.int32)
    mode = pl.Buffered(count)
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(6,), out_specs=pl.BlockSpec((1, 4), lambda i, ids: (i, 0)),
        in_specs=[pl.BlockSpec((1, 4), lambda i, ids: (ids[i], 0), pipeline_mode=mode)],
    )  # fmt: skip
    assert np.array_equal(run(pl.pallas_call(body, struct(6, 4), grid_spec=spec), ids, x), x[ids])
    assert diagnosed(pl.pallas_call(writing, struct(6, 4), grid_spec=spec), ids, x).code == "LOOM-F208"


def test_p45_aliases_count_prefetched_operands_and_leave_the_operand() -> None:
    def body(ids: Any, x: Any, o: Any) -> None:
        o[...] += ids[pl.program_id(0)].astype(F32)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(2,), in_specs=[pl.BlockSpec((4,), lambda i, ids: (i,))],
        out_specs=pl.BlockSpec((4,), lambda i, ids: (i,)),
    )  # fmt: skip
    x = np.arange(8, dtype=F32)
    call = pl.pallas_call(body, struct(8), grid_spec=spec, input_output_aliases={1: 0})
    assert np.array_equal(run(call, np.array([10, 20], np.int32), x), x + np.repeat(F32([10, 20]), 4))
    assert np.array_equal(x, np.arange(8))


@pytest.mark.parametrize(
    ("aliases", "dtype", "problem"),
    [
        ({0: 1}, F32, "there are 1 outputs"),
        ({0: 0}, np.int32, "f32[8], output 0 is i32[8]"),
        ({3: 0}, F32, "1 operands"),
    ],
)
def test_p46_aliases_that_do_not_fit(aliases: Any, dtype: Any, problem: str) -> None:
    def call(x: Any) -> Any:
        return pl.pallas_call(copied, struct(8, dtype=dtype), input_output_aliases=aliases)(x)

    found = diagnosed(call, np.zeros(8, F32))
    assert found.code == "LOOM-R125" and problem in found.message


def test_p47_a_copy_into_a_part_of_scratch_of_an_inner_scope() -> None:
    def body(x: Any, o: Any) -> None:
        def outer(semaphore: Any, y: Any) -> None:
            def inner(z: Any) -> None:
                copy = pltpu.make_async_copy(x, z.at[0], semaphore)
                copy.start()
                copy.wait()
                y[...] = z[0]

            pl.run_scoped(inner, pltpu.VMEM((1, 1), F32))
            o[...] = y[...]

        pl.run_scoped(outer, pltpu.SemaphoreType.DMA, pltpu.VMEM((1,), F32))

    assert run(pl.pallas_call(body, struct(1)), np.ones(1, F32)).tolist() == [1.0]


def test_p48_negative_known_indices_count_from_the_end() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = x[-1, :]

    assert run(pl.pallas_call(body, struct(1)), np.arange(8, dtype=F32).reshape(8, 1)).tolist() == [7.0]


def test_p49_an_output_block_that_comes_back() -> None:
    spec = pl.BlockSpec((4,), lambda i, j: (j,))
    call = pl.pallas_call(copied, struct(8), grid=(2, 2), in_specs=[spec], out_specs=spec)
    found = diagnosed(call, np.zeros(8, F32))
    assert found.code == "LOOM-R122" and "(0, 0) and again at (1, 0)" in found.message


def squeezed_matmul() -> tuple[Any, tuple[np.ndarray, ...], np.ndarray]:
    def body(x: Any, w: Any, b: Any, o: Any) -> None:
        o[...] = nn.gelu(jnp.dot(x[...], w[...]) + b[...])

    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s).astype(F32) for s in ((2, 8, 16), (2, 16, 8), (1, 8)))
    ins = [pl.BlockSpec((None, *s), lambda i: (i, 0, 0)) for s in ((8, 16), (16, 8))]
    call = pl.pallas_call(
        body, struct(2, 8, 8), grid=(2,), in_specs=[*ins, pl.BlockSpec((1, 8), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((None, 8, 8), lambda i: (i, 0, 0)),
    )  # fmt: skip
    y = x @ w + b
    return call, (x, w, b), 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))


def batched_vectors() -> tuple[Any, tuple[np.ndarray, ...], np.ndarray]:
    def body(x: Any, v: Any, o: Any) -> None:
        o[...] = jnp.sum(x[...] * v[...], axis=2)

    x, v = np.ones((2, 4, 8), ml_dtypes.bfloat16) * 2, np.ones((2, 1, 8), ml_dtypes.bfloat16) * 3
    return pl.pallas_call(body, struct(2, 4, dtype=x.dtype)), (x, v), np.full((2, 4), 48.0)


def cubes() -> tuple[Any, tuple[np.ndarray, ...], np.ndarray]:
    def body(x: Any, o: Any) -> None:
        o[...] = jnp.power(x[...], 3)

    x = np.arange(8).astype(np.float16)
    return pl.pallas_call(body, struct(8, dtype=x.dtype)), (x,), x**3


@pytest.mark.parametrize("make", [squeezed_matmul, batched_vectors, cubes])
def test_p50_what_is_interpreted_also_compiles_and_runs_and_validates(make: Any, tmp_path: Path) -> None:
    call, args, wanted = make()
    assert np.allclose(run(call, *args).astype(F32), wanted.astype(F32), rtol=1e-3, atol=1e-4)
    for machine in (loom.L1, loom.L1_MINI):
        path = tmp_path / "kernel.loom"
        path.write_bytes(loom.write_object(call.compile(*args, machine=machine)))
        assert CliRunner().invoke(main, ["validate", str(path), "--strict"]).exit_code == 0


def test_p50_limits_of_the_machine_are_named_when_compiling() -> None:
    call = pl.pallas_call(lambda x, o: o.set(x[...] + x[...].T), struct(512, 512))
    x = np.ones((512, 512), F32)
    assert np.array_equal(run(call, x), x + x.T)
    with pytest.raises(LoomError, match=r"LOOM-C101.*l1-mini has 262144") as caught:
        call.compile(x, machine=loom.L1_MINI)
    assert caught.value.diagnostics[0].location.file == __file__


@pytest.mark.parametrize(("size", "out"), [(0, 0), (8, 8)])
def test_p51_empty_grids(size: int, out: int) -> None:
    spec = pl.BlockSpec((8,), lambda i: (i,))
    call = pl.pallas_call(copied, struct(out), grid=(0,), in_specs=[spec], out_specs=spec)
    found = run(call, np.zeros(size, F32))
    assert found.shape == (out,) and np.isnan(found).all()
