"""`Buffered(n)`: as many blocks in SRAM as was said, seen in the manifest; what cannot be is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import loom
import loom.experimental.pallas as pl
import loom.experimental.pallas.tpu as pltpu
from loom.experimental import palladium as lpl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs
from loom_core.tools.loomc import main

X = np.random.default_rng(4).standard_normal((64, 32)).astype(np.float32)
IDS = np.array([3, 0, 7, 7, 1, 2, 6, 5], np.int32)


def windows(kernel: lpl.Kernel, folder: Path, *args: Any) -> dict[str, int]:
    """Slots by name, as `loomc manifest --json` tells them."""
    path = folder / "k.loom"
    path.write_bytes(loom.write_object(kernel.compile(*args)))
    result = CliRunner().invoke(main, ["manifest", str(path), "--json"])
    assert result.exit_code == 0, result.output
    return {window["name"]: window["slots"] for window in json.loads(result.output)["manifest"]["windows"]}


def both(kernel: lpl.Kernel, *args: Any) -> np.ndarray:
    found = kernel(*args)
    with knobs.override(interpret=True):
        assert kernel(*args).tobytes() == found.tobytes()
    return found  # type: ignore[no-any-return]


def doubling(x: Any, o: Any) -> None:
    o[...] = x[...] * 2.0


def rows(count: int | None) -> lpl.BlockSpec:
    return lpl.BlockSpec((8, 32), lambda i: (i, 0), pipeline_mode=None if count is None else lpl.Buffered(count))


def doubled(count: int | None, out: int | None = None, body: Any = doubling) -> lpl.Kernel:
    return lpl.call(
        body, out_shape=lpl.ShapeDtypeStruct((64, 32), np.float32), grid=8, in_specs=[rows(count)], out_specs=rows(out)
    )


@pytest.mark.parametrize("count", [1, 2, 3, 5, 20])
def test_an_operand_has_the_blocks_in_sram_that_it_was_given(count: int, tmp_path: Path) -> None:
    kernel = doubled(count)
    assert windows(kernel, tmp_path, X)["x_block"] == count
    assert np.array_equal(both(kernel, X), X * 2)


@pytest.mark.parametrize("count", [1, 2, 6])
def test_an_output_has_the_blocks_on_their_way_that_it_was_given(count: int, tmp_path: Path) -> None:
    kernel = doubled(None, count)
    assert windows(kernel, tmp_path, X)["mul"] == count
    assert np.array_equal(both(kernel, X), X * 2)


def test_operands_of_one_loop_have_numbers_of_their_own(tmp_path: Path) -> None:
    def body(x: Any, y: Any, z: Any, o: Any) -> None:
        o[...] = x[...] + y[...] * z[...]

    specs = [rows(4), rows(1), rows(None)]
    kernel = lpl.call(
        body, out_shape=lpl.ShapeDtypeStruct((64, 32), np.float32), grid=8, in_specs=specs, out_specs=rows(None)
    )
    found = windows(kernel, tmp_path, X, X, X)
    assert found["x_block"] == 4 and found["y_block"] == 1 and found["z_block"] > 1
    assert np.array_equal(both(kernel, X, X, X), X + X * X)


def test_more_slots_cost_fewer_cycles_until_memory_is_busy() -> None:
    cycles = [doubled(count, 8).trace(X).cycles for count in (1, 2, 4)]
    assert cycles[0] > cycles[1] > cycles[2]


def test_blocks_named_by_prefetched_operands_are_loaded_ahead(tmp_path: Path) -> None:
    def body(ids: Any, x: Any, o: Any) -> None:
        o[...] = x[...] + ids[lpl.program_id(0)].astype(np.float32)

    def kernel(count: int | None) -> lpl.Kernel:
        mode = None if count is None else lpl.Buffered(count)
        return lpl.call(
            body,
            out_shape=lpl.ShapeDtypeStruct((64, 32), np.float32),
            grid=8,
            num_scalar_prefetch=1,
            in_specs=[lpl.BlockSpec((8, 32), lambda i, ids: (ids[i], 0), pipeline_mode=mode)],
            out_specs=lpl.BlockSpec((8, 32), lambda i, ids: (i, 0)),
        )

    wanted = X.reshape(8, 8, 32)[IDS] + IDS[:, None, None].astype(np.float32)
    for count in (None, 1, 3):
        assert np.array_equal(both(kernel(count), IDS, X), wanted.reshape(64, 32))
    found = windows(kernel(3), tmp_path, IDS, X)
    assert found["x_block"] == 3 and found["ids"] == 1, "the indices are in SRAM"
    assert kernel(None).trace(IDS, X).cycles < 0.6 * kernel(1).trace(IDS, X).cycles


def test_printing_changes_nothing_in_what_was_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def body(x: Any, o: Any) -> None:
        lpl.debug_print("row {}", lpl.program_id(0))
        o[...] = x[...] * 2.0

    kernel = doubled(3, body=body)
    assert windows(kernel, tmp_path, X)["x_block"] == 3
    assert np.array_equal(kernel(X), X * 2)
    assert capsys.readouterr().out.count("row") == 8


def test_a_block_that_stays_is_loaded_once(tmp_path: Path) -> None:
    def body(x: Any, w: Any, o: Any) -> None:
        o[...] = x[...] * w[...]

    still = lpl.BlockSpec((8, 32), lambda i: (0, 0), pipeline_mode=lpl.Buffered(2))
    kernel = lpl.call(
        body,
        out_shape=lpl.ShapeDtypeStruct((64, 32), np.float32),
        grid=8,
        in_specs=[rows(None), still],
        out_specs=rows(None),
    )
    assert windows(kernel, tmp_path, X, X[:8])["w_block"] == 1
    assert np.array_equal(both(kernel, X, X[:8]), (X.reshape(8, 8, 32) * X[:8]).reshape(64, 32))


def test_too_many_blocks_for_sram() -> None:
    with pytest.raises(LoomError, match="LOOM-C101"):
        doubled(5000).compile(X)


def test_what_is_copied_through_cannot_take_turns_on_its_way_out() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    with pytest.raises(LoomError, match=r"LOOM-C107.*2 slots") as caught:
        doubled(None, 2, body).compile(X)
    assert caught.value.diagnostics[0].location.file == __file__


@pytest.mark.parametrize("count", [0, -1, 1.5, "two"])
def test_no_number_of_blocks(count: Any) -> None:
    with pytest.raises(LoomError, match=r"LOOM-F216.*the count of Buffered"):
        lpl.Buffered(count)


def test_an_output_may_come_back_where_it_says_so() -> None:
    def body(x: Any, o: Any) -> None:
        @lpl.when(lpl.program_id(0) == 0)
        def first() -> None:
            o[...] = x[...]

        @lpl.when(lpl.program_id(0) > 0)
        def later() -> None:
            o[...] += x[...]

    def call(**mode: Any) -> Any:
        return pl.pallas_call(
            body,
            pl.ShapeDtypeStruct((16, 32), np.float32),
            grid=(4, 2),
            in_specs=[pl.BlockSpec((8, 32), lambda i, j: (2 * i + j, 0))],
            out_specs=pl.BlockSpec((8, 32), lambda i, j: (j, 0), **mode),
        )

    with pytest.raises(LoomError, match="LOOM-R122"):
        call()(X)
    kernel = call(pipeline_mode=pl.Buffered(1, revisit=pl.RevisitMode.ANY))
    wanted = X.reshape(4, 16, 32)
    total = wanted[0].copy()
    for part in wanted[1:]:
        total += part
    assert np.array_equal(both(kernel, X), total)


@pytest.mark.parametrize("form", ["specs", "grid", "prefetch"])
def test_specs_of_jax_itself_mean_the_same(form: str, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    import jax.experimental.pallas as upl
    import jax.experimental.pallas.tpu as upltpu

    def body(*refs: Any) -> None:
        x, o, total, sem = refs[-4:]
        copy = pltpu.make_async_copy(x, total, sem)
        copy.start()
        copy.wait()
        o[...] = x[...] * 2.0 + total[...]

    spec = upl.BlockSpec(
        (8, upl.Blocked(32)), lambda i, *ids: (i, 0), memory_space=upltpu.VMEM, pipeline_mode=upl.Buffered(3)
    )
    parts: dict[str, Any] = {
        "in_specs": [spec],
        "out_specs": spec,
        "scratch_shapes": [upltpu.VMEM((8, 32), np.float32), upltpu.SemaphoreType.DMA],
    }
    if form == "specs":
        parts |= {"grid": (("rows", 8),)}
    elif form == "grid":
        parts = {"grid_spec": upl.GridSpec(grid=(8,), **parts)}
    else:
        parts = {"grid_spec": upltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(8,), **parts)}
    parallel = upltpu.CompilerParams(dimension_semantics=("parallel",))
    kernel = pl.pallas_call(body, pl.ShapeDtypeStruct((64, 32), np.float32), compiler_params=parallel, **parts)
    args = [IDS, X] if form == "prefetch" else [X]
    found = windows(kernel, tmp_path, *args)
    assert 3 in found.values() and np.array_equal(both(kernel, *args), X * 3)
