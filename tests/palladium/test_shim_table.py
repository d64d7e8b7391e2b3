"""Every function of the shim that takes one or two tiles, on every kind of dtype, against jax; values where cheap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import loom.experimental.pallas as pl
from loom.experimental import palladium as lpl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs
from tests.palladium.peers import SHIM, upstream

jax = pytest.importorskip("jax")

DTYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in ("float32", "bfloat16", "int32", "uint8", "bool")}
MODULES = ("jnp", "lax", "nn")
SHAPES_FIRST = {"zeros", "ones", "empty", "full", "eye", "arange", "iota", "broadcasted_iota", "broadcast"}
NOT_FUNCTIONS_OF_TILES = {
    *SHAPES_FIRST,
    "promote_types",
    "issubdtype",
    "ndim",
    "shape",
    "fori_loop",
    "array",
    "asarray",
}
REFUSED = {
    # Products of 32-bit integers and of bool have no engine.
    *(("jnp", name, dtype) for name in ("dot", "matmul") for dtype in ("int32", "bool")),
    *(("lax", "dot", dtype) for dtype in ("int32", "bool")),
}
"""What jax takes and a kernel refuses. The other way round is allowed: lax's functions take what jax.numpy's do."""


def functions(module: str) -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    mine, theirs = getattr(SHIM, module), getattr(upstream(), module)
    names = [name for name in dir(mine) if not name.startswith("_") and name not in NOT_FUNCTIONS_OF_TILES]
    pairs = {name: (getattr(mine, name), getattr(theirs, name, None)) for name in names}
    return {
        name: (one, other)
        for name, (one, other) in pairs.items()
        if callable(one) and callable(other) and not isinstance(one, type)
    }


def kind_of(function: Callable[..., Any], operands: list[Any]) -> Any:
    """Shape and dtype of the result; None where it is refused or no array."""
    try:
        found = function(*operands)
    except (LoomError, TypeError, ValueError, AttributeError, IndexError):
        return None
    return (tuple(found.shape), np.dtype(found.dtype)) if hasattr(found, "dtype") else None


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("module", MODULES)
def test_shapes_and_dtypes_of_results(module: str, dtype: str) -> None:
    wrong: list[str] = []
    refused: set[tuple[str, str, str]] = set()

    def body(x: Any, o: Any) -> None:
        for name, (mine, theirs) in functions(module).items():
            for count in (1, 2):
                given = [jax.ShapeDtypeStruct((8,), DTYPES[dtype])] * count
                wanted = kind_of(lambda *args, f=theirs: jax.eval_shape(f, *args), given)
                if wanted is None:
                    continue
                found = kind_of(mine, [x[...]] * count)
                if found is None:
                    refused.add((module, name, dtype))
                elif found != wanted:
                    wrong.append(f"{name} of {count}: {found}, upstream {wanted}")

    lpl.kernel(body, out_shape=pl.ShapeDtypeStruct((8,), DTYPES[dtype])).lower(np.zeros(8, DTYPES[dtype]))
    assert not wrong
    assert refused == {one for one in REFUSED if one[0] == module and one[2] == dtype}


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
