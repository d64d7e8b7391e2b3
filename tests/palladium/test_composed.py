"""What a body computes with tiles beyond one operation: run-time parts, scans with stacked results, random numbers,
products of any dimensions; against jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loom.experimental.pallas as pl
import loom.experimental.pallas.tpu as pltpu
from loom.experimental import palladium as lpl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs
from tests.palladium.peers import differences

jax = pytest.importorskip("jax")
X = np.arange(48, dtype=np.float32).reshape(8, 6) - 20
I = np.array([3, -1, 11, 0], np.int32)  # noqa: E741

PAIRS = (((2,), (2,)), ((0,), (1,)))


def of(function: Callable[[Any, Any, Any], Any], *shape: int, dtype: Any = np.float32) -> Callable[[Any], Any]:
    """A maker of a kernel whose output is function(names, x, i) of x and of scalars read at run time."""

    def make(m: Any) -> Any:
        def body(x: Any, i: Any, o: Any) -> None:
            o[...] = function(m, x[...], [i[k] for k in range(4)])

        return m.pl.pallas_call(body, m.shape(shape, dtype))

    return make


CASES: dict[str, tuple[Any, ...]] = {
    "dynamic_slice": (lambda m, x, i: m.lax.dynamic_slice(x, (i[2], i[0]), (3, 4)), 3, 4),
    "dynamic_slice negative": (lambda m, x, i: m.lax.dynamic_slice_in_dim(x, i[1], 2, 1), 8, 2),
    "dynamic_index": (lambda m, x, i: m.lax.dynamic_index_in_dim(x, i[0], 0, False), 6),
    "dynamic_update": (lambda m, x, i: m.lax.dynamic_update_slice(x, x[:2, :2], (i[0], i[2])), 8, 6),
    "a scalar index": (lambda m, x, i: x[i[0]], 6),
    "a negative scalar index": (lambda m, x, i: x[:, i[1]], 8),
    "roll": (lambda m, x, i: m.jnp.roll(x, i[0], 1), 8, 6),
    "take": (lambda m, x, i: m.jnp.take(x, (x[:, 0] > 0).astype(np.int32) * 2 + i[0], axis=1), 8, 8),
    "take_along_axis": (lambda m, x, i: m.jnp.take_along_axis(x, (x > 0).astype(np.int32) + i[0], axis=0), 8, 6),
    "einsum": (lambda m, x, i: m.jnp.einsum("abc,dbc->da", x.reshape(4, 2, 6), x.reshape(4, 2, 6)), 4, 4),
    "einsum batch": (lambda m, x, i: m.jnp.einsum("bij,bjk->bik", x.reshape(2, 4, 6), x.reshape(2, 6, 4)), 2, 4, 4),
    "einsum of one": (lambda m, x, i: m.jnp.einsum("ij->j", x), 6),
    "einsum of three": (lambda m, x, i: m.jnp.einsum("ij,kj,kl->il", x[:2], x[:3], x[:3]), 2, 6),
    "dot_general": (
        lambda m, x, i: m.lax.dot_general(x.reshape(2, 4, 6), x.reshape(4, 2, 6), PAIRS), 2, 4, 4,
    ),
    "matmul broadcast": (lambda m, x, i: m.jnp.matmul(x.reshape(2, 4, 6), x[:6, :2]), 2, 4, 2),
    "tensordot": (lambda m, x, i: m.jnp.tensordot(x.reshape(2, 4, 6), x.reshape(4, 6, 2), 2), 2, 2),
    "where and initial": (lambda m, x, i: m.jnp.max(x, axis=1, where=x < 9, initial=-3.0), 8),
    "mean where": (lambda m, x, i: m.jnp.mean(x, axis=0, where=x > 0), 6),
    "sort by two": (
        lambda m, x, i: m.lax.sort(((x % 3).astype(np.int32), x % 5, x), dimension=0, num_keys=2)[2], 8, 6,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_tiles_at_run_time(what: str) -> None:
    function, *shape = CASES[what]
    assert not differences(of(function, *shape), [X, I])


@pytest.mark.parametrize("place", ["x[:, k]", "x[k]", "x[1:5, k]", "x[k, k]", "x[2, k]", "x[j, :, k]", "x[:, j, k]"])
def test_tiles_of_indices_stand_where_numpy_puts_them(place: str) -> None:
    """Of refs, read and written, and of values."""
    source = X if "j" not in place else np.stack([X, X + 100, X * 2])
    row = np.array([3, 0, 5, 2], np.int32) if "j" not in place else np.array([3, 0, 5], np.int32)
    shape = eval(place, {"x": source, "k": row, "j": 1}).shape

    def make(m: Any) -> Any:
        def body(x: Any, k: Any, read: Any, value: Any) -> None:
            names = {"k": k[...], "j": 1}
            read[...] = eval(place, {**names, "x": x})
            value[...] = eval(place, {**names, "x": x[...]})

        return m.pl.pallas_call(body, [m.shape(shape, np.float32)] * 2)

    assert not differences(make, [source, row])


@pytest.mark.parametrize("dtype", [np.int32, np.int16, np.uint32, np.bool_])
def test_products_of_integers(dtype: Any) -> None:
    a = (np.arange(24).reshape(4, 6) * 77777 - 5).astype(dtype)

    def make(m: Any) -> Any:
        def body(x: Any, o: Any) -> None:
            o[...] = m.jnp.dot(x[...], x[...].T)

        return m.pl.pallas_call(body, m.shape((4, 4), dtype))

    assert not differences(make, [a])


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_takes_and_gives_arrays(reverse: bool) -> None:
    def make(m: Any) -> Any:
        def body(x: Any, last: Any, sums: Any, rows: Any) -> None:
            def step(carry: Any, part: Any) -> Any:
                row, number = part
                carry = carry * 0.5 + row
                return carry, {"sum": m.jnp.sum(carry), "row": carry * number}

            given = (x[...], m.jnp.arange(8).astype(np.float32))
            carry, made = m.lax.scan(step, m.jnp.zeros(6, np.float32), given, reverse=reverse)
            last[...], sums[...], rows[...] = carry, made["sum"], made["row"]

        return m.pl.pallas_call(
            body, [m.shape((6,), np.float32), m.shape((8,), np.float32), m.shape((8, 6), np.float32)]
        )

    assert not differences(make, [X])


def test_map_applies_a_function_to_the_parts() -> None:
    def make(m: Any) -> Any:
        def body(x: Any, o: Any) -> None:
            o[...] = m.lax.map(lambda row: row * m.jnp.max(row), x[...])

        return m.pl.pallas_call(body, m.shape((8, 6), np.float32))

    assert not differences(make, [X])


def test_scans_that_do_not_fit() -> None:
    def body(x: Any, o: Any) -> None:
        lpl.scan(lambda c, row: (c, row), 0, (x[...], x[0]))

    with pytest.raises(LoomError, match=r"LOOM-F203.*first dimensions \['6', '8'\]") as caught:
        lpl.kernel(body, out_shape=lpl.ShapeDtypeStruct((8, 6), np.float32)).lower(X)
    assert caught.value.diagnostics[0].location.file == __file__


# ---- random numbers --------------------------------------------------------------------------------------------------


def drawn(body: Any, shape: tuple[int, ...], dtype: Any, grid: Any = (), **options: Any) -> np.ndarray:
    kernel = pl.pallas_call(body, pl.ShapeDtypeStruct(shape, dtype), grid=grid, **options)
    found = kernel()
    with knobs.override(interpret=True):
        assert kernel().tobytes() == found.tobytes()
    return found  # type: ignore[no-any-return]


def test_bits_are_those_of_jax() -> None:
    def body(o: Any) -> None:
        pltpu.prng_seed(1234)
        o[0] = pltpu.prng_random_bits((3, 5))
        o[1] = pltpu.prng_random_bits((3, 5))

    wanted = np.asarray(jax.random.bits(jax.random.key(1234), (2, 3, 5))).view(np.int32)
    assert np.array_equal(drawn(body, (2, 3, 5), np.int32), wanted), "the second draw goes on where the first ended"


def test_seeds_are_mixed_as_keys_are_folded() -> None:
    def body(o: Any) -> None:
        pltpu.prng_seed(7, pl.program_id(0))
        o[...] = pltpu.stateful_bits((1, 8))

    found = drawn(body, (4, 8), np.uint32, (4,), out_specs=pl.BlockSpec((1, 8), lambda i: (i, 0)))
    for i in range(4):
        assert np.array_equal(found[i], jax.random.bits(jax.random.fold_in(jax.random.key(7), i), (1, 8))[0])


def test_distributions_are_those_of_jax() -> None:
    def body(o: Any) -> None:
        pltpu.prng_seed(5)
        o[0] = pltpu.stateful_uniform((64,), minval=-2.0, maxval=3.0)
        pltpu.prng_seed(5)
        o[1] = pltpu.stateful_normal((64,))
        pltpu.prng_seed(5)
        o[2] = pltpu.stateful_bernoulli(0.3, (64,)).astype(np.float32)

    found, key = drawn(body, (3, 64), np.float32), jax.random.key(5)
    assert np.allclose(found[0], jax.random.uniform(key, (64,), minval=-2.0, maxval=3.0), rtol=1e-6)
    assert np.allclose(found[1], jax.random.normal(key, (64,)), rtol=1e-5, atol=1e-6)
    assert np.array_equal(found[2], jax.random.bernoulli(key, 0.3, (64,)))


def test_the_state_goes_on_in_loops_and_over_the_grid() -> None:
    def body(o: Any) -> None:
        pl.when(pl.program_id(0) == 0)(lambda: pltpu.prng_seed(9))

        @pl.loop(0, 2)
        def step(i: Any) -> None:
            o[0, i] = pltpu.stateful_bits((4,))

    found = drawn(body, (3, 2, 4), np.uint32, (3,), out_specs=pl.BlockSpec((1, 2, 4), lambda i: (i, 0, 0)))
    assert np.array_equal(found.reshape(-1), jax.random.bits(jax.random.key(9), (24,)))


def test_stochastic_rounding_is_right_on_average_and_keeps_what_is_exact() -> None:
    value = np.float32(1 + 2.0**-9)  # a quarter of the way to the next bfloat16

    def body(o: Any) -> None:
        pltpu.prng_seed(3)
        bits = pltpu.stateful_bits((4096,))
        rounded = pltpu.stochastic_round(lpl.full((4096,), value), bits, target_dtype=lpl.bfloat16)
        o[...] = rounded.astype(np.float32)

    found = drawn(body, (4096,), np.float32)
    assert set(found.tolist()) == {1.0, 1.0 + 2.0**-7} and 0.2 < (found > 1).mean() < 0.3
