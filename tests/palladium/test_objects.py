"""What becomes of a kernel: loops of the command processor, blocks loaded ahead, scratch in windows of SRAM."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import loom
from loom.experimental import palladium as lpl
from loom_core.tools.loomc import main


def matmul(x, y, o, total):  # type: ignore[no-untyped-def]
    @lpl.when(lpl.program_id(2) == 0)
    def start() -> None:
        total[...] = lpl.zeros_like(total)

    total[...] += lpl.dot(x[...], y[...])

    @lpl.when(lpl.program_id(2) == lpl.num_programs(2) - 1)
    def end() -> None:
        o[...] = total[...]


def kernel(mode: lpl.Buffered | None = None, **options: Any) -> lpl.Kernel:
    return lpl.call(
        matmul,
        out_shape=lpl.ShapeDtypeStruct((64, 64), lpl.float32),
        grid=(4, 2, 8),
        in_specs=[
            lpl.BlockSpec((16, 8), lambda i, j, k: (i, k), pipeline_mode=mode),
            lpl.BlockSpec((8, 32), lambda i, j, k: (k, j), pipeline_mode=mode),
        ],
        out_specs=lpl.BlockSpec((16, 32), lambda i, j, k: (i, j)),
        scratch=[lpl.SRAM((16, 32), lpl.float32)],
        **options,
    )


X = np.random.default_rng(1).standard_normal((2, 64, 64)).astype(np.float32)


def manifest(obj: loom.LoomObject, folder: Path) -> dict[str, Any]:
    path = folder / "matmul.loom"
    path.write_bytes(loom.write_object(obj))
    result = CliRunner().invoke(main, ["manifest", str(path), "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output)["manifest"]
    return found


def test_the_manifest_shows_loops_blocks_and_scratch(tmp_path: Path) -> None:
    found = manifest(kernel().compile(*X), tmp_path)
    assert found["commands"]["loop"] == 3 + 3 + 1, "the launch's loops, one for each grid axis, one for the first loads"
    windows = {window["name"]: window["slots"] for window in found["windows"]}
    assert windows["x_block.a"] == windows["y_block.b"] > 2, "small blocks are loaded far ahead"
    assert windows["scratch0"] == 1


def test_one_buffer_means_no_load_ahead(tmp_path: Path) -> None:
    found = manifest(kernel(lpl.Buffered(1)).compile(*X), tmp_path)
    assert {window["slots"] for window in found["windows"]} == {1}
    assert np.array_equal(kernel(lpl.Buffered(1))(*X), kernel()(*X))
    assert kernel(lpl.Buffered(1)).trace(*X).cycles > kernel().trace(*X).cycles


def test_the_object_is_the_same_each_time_and_explains_itself(tmp_path: Path) -> None:
    first, second = (loom.write_object(kernel(name=name).compile(*X)) for name in ("matmul", "matmul"))
    assert first == second
    path = tmp_path / "matmul.loom"
    path.write_bytes(first)
    result = CliRunner().invoke(main, ["explain", "--object-file", str(path)])
    assert result.exit_code == 0, result.output
    assert "jump to word" in result.output


def test_a_small_machine_compiles_the_same_kernel() -> None:
    obj = kernel().compile(*X, machine=loom.L1_MINI)
    assert obj.machine == loom.L1_MINI


# ---- what a call depends on ------------------------------------------------------------------------------------------


def test_strided_operands_are_read_in_place() -> None:
    wide = np.zeros((64, 128), np.float32)
    wide[:, ::2] = X[0]
    assert np.array_equal(kernel()(wide[:, ::2], np.asfortranarray(X[1])), kernel()(*X))


def test_equal_functions_share_what_was_compiled_and_changed_globals_do_not() -> None:
    def make(factor: float) -> lpl.Kernel:
        def body(x, o):  # type: ignore[no-untyped-def]
            o[...] = x[...] * factor * SCALE

        return lpl.call(body, out_shape=lpl.ShapeDtypeStruct((4,), lpl.float32))

    x = np.ones(4, np.float32)
    assert make(2.0).lower(x) is make(2.0).lower(x)
    assert make(2.0).lower(x) is not make(3.0).lower(x)
    assert np.array_equal(make(2.0)(x), [2, 2, 2, 2])
    held = make(2.0)
    globals()["SCALE"] = 5.0
    try:
        assert np.array_equal(held(x), [10, 10, 10, 10])
    finally:
        globals()["SCALE"] = 1.0


SCALE = 1.0


def test_outputs_are_of_the_kind_of_the_operands() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    wanted = kernel()(*X)
    tensors = kernel()(*map(torch.from_numpy, X))
    assert isinstance(tensors, torch.Tensor) and np.array_equal(tensors.numpy(), wanted)
    arrays = kernel()(*map(jax.numpy.asarray, X))
    assert isinstance(arrays, jax.Array) and np.array_equal(np.asarray(arrays), wanted)


def test_trees_of_operands_outputs_and_scratch() -> None:
    def body(pair, nothing, o, *, one, two):  # type: ignore[no-untyped-def]
        assert nothing is None
        one[...] = pair["a"][...]
        two[...] = pair["b"][...]
        o["sum"][...], o["difference"][...] = one[...] + two[...], one[...] - two[...]

    shape = lpl.ShapeDtypeStruct((4,), lpl.float32)
    scratch = {"one": lpl.SRAM((4,), lpl.float32), "two": lpl.SRAM((4,), lpl.float32)}
    call = lpl.call(body, out_shape={"sum": shape, "difference": shape}, scratch=scratch)
    a, b = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    found = call({"a": a, "b": b}, None)
    assert np.array_equal(found["sum"], a + b) and np.array_equal(found["difference"], a - b)


def test_captured_values_that_change_are_seen() -> None:
    held = SimpleNamespace(factor=2.0, table=[1.0, 5.0], array=np.full(4, 3.0, np.float32))

    def body(x, o):  # type: ignore[no-untyped-def]
        o[...] = x[...] * held.factor + held.table[1] + held.array

    call = lpl.kernel(body, out_shape=lpl.ShapeDtypeStruct((4,), lpl.float32))
    x = np.ones(4, np.float32)
    assert np.array_equal(call(x), [10] * 4)
    held.factor, held.table[1] = 4.0, 6.0
    held.array[:] = 1.0
    assert np.array_equal(call(x), [11] * 4)


def test_the_shim_needs_no_jax() -> None:
    code = """
import sys
import numpy as np
import loom.experimental.pallas as pl
import loom.experimental.pallas.numpy as jnp
from loom.experimental.pallas import lax, nn, tpu, triton
assert "numba" not in sys.modules
names = "BlockSpec GridSpec pallas_call program_id num_programs when ds dslice load store cdiv dot softmax debug_print"
assert all(hasattr(pl, name) for name in [*names.split(), "run_scoped", "loop", "ANY"])
def body(x, o):
    o[...] = nn.softmax(jnp.exp(x[...]))
x = np.ones(8, np.float32)
assert np.allclose(pl.pallas_call(body, pl.ShapeDtypeStruct((8,), jnp.float32))(x), 1 / 8)
assert not {"jax", "jaxlib", "torch"} & set(sys.modules)
"""
    source = str(Path(loom.__file__).resolve().parents[1])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r})\n{code}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
