"""Functions of the shim against jax: a sample of the table of all of them, and those that are easily wrong."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import loom.experimental.pallas as pl
from loom.experimental import palladium as lpl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs
from tests.palladium import shim_table
from tests.palladium.peers import SHIM, upstream

jax = pytest.importorskip("jax")

SAMPLE = 96
"""One row in so many of the table is judged here; all of them by tests.palladium.shim_table."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_a_sample_of_the_table() -> None:
    kept = json.loads(shim_table.GOLDEN.read_text(encoding="utf-8"))["others"]
    chosen = [row for row in shim_table.rows() if zlib.crc32(row.key.encode()) % SAMPLE == 0]
    verdicts = {row.key: shim_table.judge(row) for row in chosen}
    assert sum(verdict == "" for verdict in verdicts.values()) > len(chosen) // 3
    wrong = {key: verdict for key, verdict in verdicts.items() if verdict not in ("", "no")}
    assert wrong == {key: verdict for key, verdict in kept.items() if key in verdicts}


FLOATS = np.array([0.5, -0.5, 1.5, -2.5, 0.25, 3.7, -0.0, np.inf, 7.0, -7.0], np.float32)
OTHERS = np.array([2, 2, -0.7, 0, 0, -0.0, 3, 2, 2, 2], np.float32)
INTEGERS = np.array([0, 1, -1, 2, -3, 7, -128, 127, 5, 9], np.int32)
SMALL = np.array([1, 2, 3, 4, 0, 3, 1, 2, 7, 5], np.int32)
BYTES, FEW = INTEGERS.astype(np.uint8), SMALL.astype(np.uint8)
TRUTHS, ALL = INTEGERS > 0, np.ones(10, bool)

VALUES: dict[str, tuple[Callable[[Any], Callable[..., Any]], list[tuple[np.ndarray, ...]]]] = {
    "lax.round": (lambda m: m.lax.round, [(FLOATS,), (FLOATS.astype(ml_dtypes.bfloat16),)]),
    "lax.round to even": (lambda m: lambda x: m.lax.round(x, m.lax.RoundingMethod.TO_NEAREST_EVEN), [(FLOATS,)]),
    "jnp.round decimals": (lambda m: lambda x: m.jnp.round(x, 1), [(FLOATS / 8,), (INTEGERS,)]),
    "jnp.round": (lambda m: m.jnp.round, [(FLOATS,), (INTEGERS,)]),
    "floor": (lambda m: m.jnp.floor, [(FLOATS,), (INTEGERS,), (TRUTHS,)]),
    "rint": (lambda m: m.jnp.rint, [(FLOATS,), (INTEGERS,)]),
    "lax.cumsum": (lambda m: lambda x: m.lax.cumsum(x.reshape(2, 5)), [(INTEGERS,), (BYTES,)]),
    "lax.cumsum reverse": (lambda m: lambda x: m.lax.cumsum(x, 0, reverse=True), [(INTEGERS,), (BYTES,)]),
    "lax.cumprod": (lambda m: lambda x: m.lax.cumprod(x.reshape(5, 2)), [(INTEGERS,), (BYTES,)]),
    "jnp.cumsum": (lambda m: m.jnp.cumsum, [(BYTES,), (TRUTHS,)]),
    "jnp.power": (lambda m: m.jnp.power, [(INTEGERS, SMALL), (BYTES, FEW), (TRUTHS, TRUTHS)]),
    "jnp.float_power": (lambda m: m.jnp.float_power, [(SMALL, SMALL)]),
    "floor_divide": (lambda m: lambda x, y: x // y, [(FLOATS, OTHERS), (TRUTHS, ALL)]),
    "remainder": (lambda m: lambda x, y: x % y, [(FLOATS, OTHERS), (TRUTHS, ALL)]),
    "shift": (lambda m: lambda x, y: x << y, [(INTEGERS, SMALL), (TRUTHS, ALL)]),
    "lax arithmetic shift": (lambda m: m.lax.shift_right_arithmetic, [(INTEGERS, SMALL), (BYTES, FEW)]),
    "square": (lambda m: m.jnp.square, [(TRUTHS,), (BYTES,)]),
    "logaddexp": (lambda m: m.jnp.logaddexp, [(BYTES, FEW), (FLOATS, OTHERS), (TRUTHS, ALL)]),
    "softplus": (lambda m: m.nn.softplus, [(BYTES,), (FLOATS,)]),
    "lax.sort": (lambda m: lambda x: m.lax.sort(x.reshape(2, 5), dimension=0), [(INTEGERS,)]),
    "lax.concatenate": (lambda m: lambda x, y: m.lax.concatenate([x, y], dimension=0), [(INTEGERS, SMALL)]),
    "select_n of 1": (lambda m: m.lax.select_n, [(SMALL * 0, INTEGERS)]),
    "select_n of 2": (lambda m: m.lax.select_n, [(TRUTHS, INTEGERS, SMALL)]),
    "select_n of 3": (lambda m: m.lax.select_n, [(SMALL % 3, INTEGERS, SMALL, -SMALL)]),
}


@pytest.mark.parametrize("what", VALUES)
def test_values(what: str) -> None:
    make, cases = VALUES[what]
    for operands in cases:
        wanted = np.asarray(make(upstream())(*map(jax.numpy.asarray, operands)))

        def body(*refs: Any) -> None:
            refs[-1][...] = make(SHIM)(*(ref[...] for ref in refs[:-1]))

        kernel = lpl.kernel(body, out_shape=pl.ShapeDtypeStruct(wanted.shape, wanted.dtype))
        with knobs.override(interpret=True):
            found = kernel(*operands)
        exact = wanted.dtype.kind in "iub"
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        assert np.array_equal(a, b) if exact else np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True), (
            found,
            wanted,
        )


def test_a_wrong_call_of_a_shim_function_is_the_users() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = SHIM.jnp.exp(x[...], 2, 3)

    with pytest.raises(LoomError, match=r"LOOM-F217.*exp takes \(x\).*called with 3 arguments") as caught:
        lpl.kernel(body, out_shape=pl.ShapeDtypeStruct((8,), np.float32)).lower(np.zeros(8, np.float32))
    assert caught.value.diagnostics[0].location.file == __file__
