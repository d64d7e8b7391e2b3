"""Engines by hand: accumulators of the matrix unit, and windows."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from loom.experimental import palladium as lpl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs

RNG = np.random.default_rng(6)


def multiplied(body: Any, x: np.ndarray, y: np.ndarray, dtype: Any) -> tuple[np.ndarray, dict[str, int]]:
    """The product of two arrays by a kernel of their refs, and how many commands of each kind it has."""
    kernel = lpl.kernel(body, out_shape=lpl.ShapeDtypeStruct((32, 64), dtype))
    found = kernel(x, y)
    with knobs.override(interpret=True):
        assert kernel(x, y).tobytes() == found.tobytes()
    return found, kernel.compile(x, y).manifest["commands"]


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int8])
def test_an_accumulator_stays_in_the_matrix_unit_until_it_is_drained(dtype: Any) -> None:
    x, y = (RNG.integers(-4, 5, shape).astype(dtype) for shape in ((32, 256), (256, 64)))
    inner = np.int32 if dtype is np.int8 else np.float32

    def by_hand(x: Any, y: Any, o: Any) -> None:
        total = lpl.accumulator((32, 64), inner)

        @lpl.loop(0, 4)
        def step(k: Any) -> None:
            part = lpl.ds(k * 64, 64)
            total.add(x[:, part], y[part, :])

        o[...] = total.drain(lambda tile: lpl.maximum(tile, 3), np.float32)

    def by_value(x: Any, y: Any, o: Any) -> None:
        def step(k: Any, total: Any) -> Any:
            part = lpl.ds(k * 64, 64)
            return total + lpl.dot(x[:, part], y[part, :], preferred_element_type=inner)

        total = lpl.fori(0, 4, step, lpl.zeros((32, 64), inner))
        o[...] = lpl.maximum(total, 3).astype(np.float32)

    found, commands = multiplied(by_hand, x, y, np.float32)
    wanted, plain = multiplied(by_value, x, y, np.float32)
    assert np.array_equal(found, wanted)
    assert np.array_equal(found, np.maximum(x.astype(np.float64) @ y.astype(np.float64), 3))
    assert commands == plain, "no command more than where the compiler finds the accumulator"
    assert sum(count for name, count in commands.items() if name.startswith("program")) == 1, "the drain alone"


def test_what_does_not_fit_an_accumulator() -> None:
    def with_(use: Any) -> None:
        def body(x: Any, o: Any) -> None:
            use(lpl.accumulator((4, 8)), x[...])
            o[...] = x[...]

        lpl.kernel(body, out_shape=lpl.ShapeDtypeStruct((4, 8), np.float32)).lower(np.zeros((4, 8), np.float32))

    for use, message in (
        (lambda total, x: total.add(x, x), r"LOOM-F201.*\(4, 8\) and \(4, 8\)"),
        (lambda total, x: total.add(x, x.T), r"LOOM-F203.*a product of \(4, 4\) for an accumulator of \(4, 8\)"),
        (
            lambda total, x: total.add(x[:, :4].astype(np.int8), x[:, :8].astype(np.int8)),
            r"(?s)LOOM-F202.*products of i8.*this accumulator is f32",
        ),
    ):
        with pytest.raises(LoomError, match=message) as caught:
            with_(use)
        assert caught.value.diagnostics[0].location.file == __file__
    with pytest.raises(LoomError, match="LOOM-F212"):
        lpl.accumulator((4, 8))


def test_a_window_lives_where_it_stands_and_has_a_name() -> None:
    def body(x: Any, o: Any) -> None:
        @lpl.loop(0, 8)
        def step(i: Any) -> None:
            staged = lpl.window((16,), np.float32, "staged")
            lpl.copy(x.at[i], staged).wait()
            o[i] = staged[lpl.ds(0, 16)] + 1.0

    kernel = lpl.kernel(body, out_shape=lpl.ShapeDtypeStruct((8, 16), np.float32))
    x = RNG.standard_normal((8, 16)).astype(np.float32)
    assert np.array_equal(kernel(x), x + 1)
    assert "staged" in {window["name"] for window in kernel.compile(x).manifest["windows"]}
