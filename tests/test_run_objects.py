"""`loom.run(object, ...)`: compiled kernels from a file, on arrays and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loom
import loom.triton.language as ltl
from loom.experimental import palladium as lpl


@ltl.jit
def scale(x, y, n, factor, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(y + at, ltl.load(x + at, mask=at < n) * factor, mask=at < n)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> loom.LoomObject:
    path: Path = tmp_path_factory.mktemp("objects") / "scale.loom"
    path.write_bytes(loom.write_object(scale.compile("*fp32", "*fp32", "i32", "fp32", BLOCK=64)))
    return loom.read_object(path.read_bytes())


def test_an_object_runs_by_position_and_by_name(compiled: loom.LoomObject) -> None:
    x, y, z = np.arange(100, dtype=np.float32), np.zeros(100, np.float32), np.zeros(100, np.float32)
    loom.run(compiled, x, y, 100, 0.5, grid=2)
    loom.run(compiled, x, factor=0.5, n=100, y=z, grid=(1, 1, 1))
    assert np.array_equal(y, x / 2)
    assert np.array_equal(z[:64], x[:64] / 2) and not z[64:].any()
    loom.run(compiled, x, y, 100, 2, grid=0)
    assert np.array_equal(y, x / 2), "an empty grid runs nothing"


def test_an_object_of_palladium_has_its_grid_inside() -> None:
    spec = lpl.BlockSpec((8,), lambda i: (i,))
    kernel = lpl.kernel(
        lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...] + 1),
        out_shape=np.zeros(32, np.float32), grid=4, in_specs=[spec], out_specs=spec,
    )  # fmt: skip
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    loom.run(kernel.compile(x), x, out)
    assert np.array_equal(out, x + 1)


def test_objects_are_profiled_and_checked(compiled: loom.LoomObject) -> None:
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    with loom.profile() as traces:
        loom.run(compiled, x, y, 64, 3)
    assert traces[0].kernel == "scale" and traces.cycles > 0
    race = scale.compile("*fp32", "*fp32", "i32", "fp32", BLOCK=64)
    with loom.check():
        loom.run(race, x, y, 64, 3)
        with pytest.raises(loom.LoomError, match="LOOM-S205"):
            loom.run(_overwriting(), y, grid=2)


def _overwriting() -> Any:
    @ltl.jit
    def overwrite(y, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
        ltl.store(y + ltl.arange(0, BLOCK), ltl.program_id(0))

    return overwrite.compile("*fp32", BLOCK=64)


X, Y = np.zeros(64, np.float32), np.zeros(64, np.float32)
FROZEN = np.zeros(64, np.float32)
FROZEN.setflags(write=False)


@pytest.mark.parametrize(
    ("given", "named", "problem"),
    [
        ((X,), {}, "y is missing"),
        ((X, Y, 64, 1, 2), {}, "5 arguments given, it has 4"),
        ((X, Y, 64, 1), {"factor": 2}, "factor is given twice"),
        ((X, Y, 64, 1), {"size": 2}, "it has no argument size"),
        ((X, Y.astype(np.float64), 64, 1), {}, "y holds f32, and was given an array of f64"),
        ((X, 3, 64, 1), {}, "y is a buffer, and was given 3"),
        ((X, FROZEN, 64, 1), {}, "y is written, and was given a read-only NumPy array"),
        ((X, Y, 1 << 40, 1), {}, "n is i32, which cannot hold"),
        ((X, Y, 0.5, 1), {}, "n is i32, and was given 0.5"),
        ((X, X, 64, 1), {}, "x and y overlap"),
        ((X, Y, 64, 1), {"grid": (1, 2, 3, 4)}, "the grid is"),
        ((X, Y, 64, 1), {"grid": -1}, "the grid is"),
        ((X, Y, 64, 1), {"kernel": "scale"}, "are for modules"),
    ],
)
def test_wrong_arguments(compiled: loom.LoomObject, given: Any, named: Any, problem: str) -> None:
    with pytest.raises(loom.LoomError) as caught:
        loom.run(compiled, *given, **named)
    found = caught.value.diagnostics[0]
    assert found.code == "LOOM-R120" and problem in found.message
    assert found.hint == "its arguments are: x: *f32, y: *f32, n: i32, factor: f32"
    assert found.location.file.endswith("test_run_objects.py")
