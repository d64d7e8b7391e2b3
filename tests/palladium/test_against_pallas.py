"""Kernels in upstream's spelling, run by the shim and by Pallas's own interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.palladium.peers import Maker, differences

pytest.importorskip("jax")

Kernel = Callable[..., None]
RNG = np.random.default_rng(5)
CASES: list[tuple[Maker, tuple[Any, ...]]] = []
BFLOAT16 = ml_dtypes.bfloat16


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def i32(*shape: int, low: int = -50, high: int = 50) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(np.int32)


def case(*args: Any) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        CASES.append((make, args))
        return make

    return add


@pytest.mark.parametrize(("make", "args"), CASES, ids=[make.__name__ for make, _ in CASES])
def test_equals_pallas(make: Maker, args: tuple[Any, ...]) -> None:
    assert not differences(make, args)


def whole(m: Any, body: Kernel, *outputs: tuple[tuple[int, ...], Any], **options: Any) -> Any:
    """A call over one grid point, of whole arrays."""
    shapes = [m.shape(shape, dtype) for shape, dtype in outputs]
    return m.pl.pallas_call(body, shapes if len(shapes) > 1 else shapes[0], **options)


def rows(m: Any, body: Kernel, size: int, block: int, dtype: Any = np.float32, operands: int = 1) -> Any:
    """A call over blocks of one dimension."""
    spec = m.pl.BlockSpec((block,), lambda i: (i,))
    grid = (-(-size // block),)
    return m.pl.pallas_call(body, m.shape((size,), dtype), grid=grid, in_specs=[spec] * operands, out_specs=spec)


# ---- grids and blocks ------------------------------------------------------------------------------------------------


@case(f32(1000), f32(1000))
def vector_add_with_a_ragged_end(m: Any) -> Any:
    def body(x, y, o):  # type: ignore[no-untyped-def]
        o[...] = x[...] + y[...]

    return rows(m, body, 1000, 256, operands=2)


@case(f32(256, 192), f32(192, 128))
def matmul_over_a_third_axis(m: Any) -> Any:
    def body(x, y, o):  # type: ignore[no-untyped-def]
        @m.pl.when(m.pl.program_id(2) == 0)
        def start() -> None:
            o[...] = m.jnp.zeros_like(o)

        o[...] += m.jnp.dot(x[...], y[...], preferred_element_type=m.jnp.float32)

    specs = [m.pl.BlockSpec((64, 64), lambda i, j, k: (i, k)), m.pl.BlockSpec((64, 64), lambda i, j, k: (k, j))]
    out = m.pl.BlockSpec((64, 64), lambda i, j, k: (i, j))
    return m.pl.pallas_call(body, m.shape((256, 128), np.float32), grid=(4, 2, 3), in_specs=specs, out_specs=out)


@case(f32(3, 16, 16), f32(3, 16, 16))
def squeezed_dimensions(m: Any) -> Any:
    def body(x, y, o):  # type: ignore[no-untyped-def]
        o[...] = m.jnp.dot(x[...], y[...])

    spec = m.pl.BlockSpec((None, 16, 16), lambda b: (b, 0, 0))
    return m.pl.pallas_call(body, m.shape((3, 16, 16), np.float32), grid=(3,), in_specs=[spec] * 2, out_specs=spec)


@case(f32(34))
def element_dimensions_overlap(m: Any) -> Any:
    def body(x, o):  # type: ignore[no-untyped-def]
        o[...] = x[0:8] + x[1:9] + x[2:10]

    spec = m.pl.BlockSpec((m.pl.Element(10),), lambda i: (i * 8,))
    out = m.pl.BlockSpec((8,), lambda i: (i,))
    return m.pl.pallas_call(body, m.shape((32,), np.float32), grid=(4,), in_specs=[spec], out_specs=out)


@case(f32(32))
def whole_arrays_in_place(m: Any) -> Any:
    def body(x, o):  # type: ignore[no-untyped-def]
        i = m.pl.program_id(0)
        o[m.pl.ds(i * 8, 8)] = x[m.pl.ds(i * 8, 8)] * 2

    return whole(m, body, ((32,), np.float32), grid=(4,))


@case(i32(11, 5))
def ragged_rows_of_integers(m: Any) -> Any:
    def body(x, o):  # type: ignore[no-untyped-def]
        o[...] = x[...] + 1

    spec = m.pl.BlockSpec((8, 5), lambda i: (i, 0))
    return m.pl.pallas_call(body, m.shape((11, 5), np.int32), grid=(2,), in_specs=[spec], out_specs=spec)


@case(f32(8, 16))
def blocks_in_another_order(m: Any) -> Any:
    def body(x, o):  # type: ignore[no-untyped-def]
        o[...] = x[...].T

    spec, out = m.pl.BlockSpec((4, 8), lambda i, j: (i, j)), m.pl.BlockSpec((8, 4), lambda i, j: (j, i))
    return m.pl.pallas_call(body, m.shape((16, 8), np.float32), grid=(2, 2), in_specs=[spec], out_specs=out)


# ---- state -----------------------------------------------------------------------------------------------------------


@case(f32(16, 16))
def scratch_kept_over_the_grid(m: Any) -> Any:
    def body(x, o, best):  # type: ignore[no-untyped-def]
        @m.pl.when(m.pl.program_id(0) == 0)
        def start() -> None:
            best[...] = m.jnp.full_like(best, -m.jnp.inf)

        best[...] = m.jnp.maximum(best[...], x[...].max(axis=0))

        @m.pl.when(m.pl.program_id(0) == m.pl.num_programs(0) - 1)
        def end() -> None:
            o[...] = best[...]

    return m.pl.pallas_call(
        body,
        m.shape((16,), np.float32),
        grid=(4,),
        in_specs=[m.pl.BlockSpec((4, 16), lambda i: (i, 0))],
        out_specs=m.pl.BlockSpec((16,), lambda i: (0,)),
        scratch_shapes=[m.tpu.VMEM((16,), m.jnp.float32)],
    )


@case(f32(16, 8))
def scratch_written_in_slices(m: Any) -> Any:
    def body(x, o, buffer):  # type: ignore[no-untyped-def]
        def step(i: Any, carry: Any) -> Any:
            buffer[m.pl.ds(i * 4, 4), :] = x[m.pl.ds((3 - i) * 4, 4), :] * 2
            return carry

        m.lax.fori_loop(0, 4, step, 0)
        o[...] = buffer[...]

    return whole(m, body, ((16, 8), np.float32), scratch_shapes=[m.tpu.VMEM((16, 8), m.jnp.float32)])


@case(f32(4, 8))
def an_alias_begins_with_the_input(m: Any) -> Any:
    def body(x, o):  # type: ignore[no-untyped-def]
        o[0] = x[1]

    return whole(m, body, ((4, 8), np.float32), input_output_aliases={0: 0})


@case(np.array([3, 1, 4, 1, 5, 0], np.int32), f32(6, 8))
def prefetched_scalars_choose_blocks(m: Any) -> Any:
    def body(index, x, o):  # type: ignore[no-untyped-def]
        o[...] = x[...] * index[m.pl.program_id(0)]

    spec = m.tpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(6,),
        in_specs=[m.pl.BlockSpec((1, 8), lambda i, index: (index[i], 0))],
        out_specs=m.pl.BlockSpec((1, 8), lambda i, index: (i, 0)),
    )
    return m.pl.pallas_call(body, m.shape((6, 8), np.float32), grid_spec=spec)


@case(f32(8))
def copies_in_nested_scopes(m: Any) -> Any:
    """jax-ml/jax#33260."""

    def body(x, o):  # type: ignore[no-untyped-def]
        def outer(semaphore, y):  # type: ignore[no-untyped-def]
            def inner(z):  # type: ignore[no-untyped-def]
                copy = m.tpu.make_async_copy(x, z.at[0], semaphore)
                copy.start()
                copy.wait()
                y[...] = z[0] * 2

            m.pl.run_scoped(inner, m.tpu.VMEM((2, 8), m.jnp.float32))
            o[...] = y[...]

        m.pl.run_scoped(outer, m.tpu.SemaphoreType.DMA, m.tpu.VMEM((8,), m.jnp.float32))

    return whole(m, body, ((8,), np.float32))


# ---- control flow ----------------------------------------------------------------------------------------------------


@case(f32(8, 16))
def fori_over_rows(m: Any) -> Any:
    def body(x, o):  # type: ignore[no-untyped-def]
        o[...] = m.lax.fori_loop(0, 8, lambda i, total: total + x[i], m.jnp.zeros((16,), m.jnp.float32))

    return whole(m, body, ((16,), np.float32))


@case(f32(16))
def while_with_two_values(m: Any) -> Any:
    def body(x, o):  # type: ignore[no-untyped-def]
        _, value = m.lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.5), (0, x[...]))
        o[...] = value

    return whole(m, body, ((16,), np.float32))


@case(f32(16))
def branches_by_program(m: Any) -> Any:
    def body(x, o):  # type: ignore[no-untyped-def]
        even = m.pl.program_id(0) % 2 == 0
        o[...] = m.lax.cond(even, lambda v: v + 1, lambda v: v * 2, x[...])

    return rows(m, body, 16, 4)


@case(f32(24))
def a_switch(m: Any) -> Any:
    def body(x, o):  # type: ignore[no-untyped-def]
        o[...] = m.lax.switch(m.pl.program_id(0), [lambda v: v, lambda v: -v, lambda v: v * v], x[...])

    return rows(m, body, 24, 8)


# ---- indexing --------------------------------------------------------------------------------------------------------


@case(f32(16), np.array([3, 1, 15, 0, 3], np.int32))
def gather_of_elements(m: Any) -> Any:
    def body(x, index, o):  # type: ignore[no-untyped-def]
        o[...] = x[index[...]]

    return whole(m, body, ((5,), np.float32))


@case(f32(16, 8), np.array([3, 1, 15, 0, 3], np.int32))
def gather_of_rows(m: Any) -> Any:
    def body(x, index, o):  # type: ignore[no-untyped-def]
        o[...] = x[index[...], :]

    return whole(m, body, ((5, 8), np.float32))


@case(f32(20))
def masked_loads_and_stores(m: Any) -> Any:
    def body(x, o):  # type: ignore[no-untyped-def]
        at = m.pl.program_id(0) * 8 + m.jnp.arange(8)
        part = x.at[m.pl.ds(m.pl.program_id(0) * 8, 8)]
        value = m.triton.load(part, mask=at < 18, other=7.0)
        m.triton.store(o.at[m.pl.ds(m.pl.program_id(0) * 8, 8)], value, mask=at < 20)

    return whole(m, body, ((20,), np.float32), grid=(3,))


@case(np.arange(8, dtype=np.float32).reshape(8, 1))
def a_negative_index(m: Any) -> Any:
    """jax-ml/jax#27490."""

    def body(x, o):  # type: ignore[no-untyped-def]
        o[...] = x[-1, :]

    return whole(m, body, ((1,), np.float32))


@case(f32(6, 10))
def strided_slices(m: Any) -> Any:
    def body(x, o):  # type: ignore[no-untyped-def]
        o[...] = x[m.pl.ds(0, 3, stride=2), :]

    return whole(m, body, ((3, 10), np.float32))


# ---- functions -------------------------------------------------------------------------------------------------------


@case(f32(8, 33))
def reductions_of_floats(m: Any) -> Any:
    def body(x, total, best, where, mean, var):  # type: ignore[no-untyped-def]
        v = x[...]
        total[...], best[...], where[...] = v.sum(axis=1), v.max(axis=0), m.jnp.argmax(v, axis=1)
        mean[...], var[...] = v.mean(axis=1), m.jnp.var(v, axis=0)

    shapes = ((8,), np.float32), ((33,), np.float32), ((8,), np.int32), ((8,), np.float32), ((33,), np.float32)
    return whole(m, body, *shapes)


@case(i32(64), i32(64, low=1, high=9))
def integers_divide_and_shift(m: Any) -> Any:
    def body(x, y, a, b, c, d):  # type: ignore[no-untyped-def]
        p, q = x[...], y[...]
        a[...], b[...] = p // q, p % q
        c[...], d[...] = m.lax.div(p, q) * 100 + m.lax.rem(p, q), (p << 2) ^ (p >> 1) & ~q | m.jnp.abs(p)

    return whole(m, body, *[((64,), np.int32)] * 4)


@case(f32(64))
def floats_of_every_kind(m: Any) -> Any:
    def body(x, o):  # type: ignore[no-untyped-def]
        v = x[...]
        a = m.jnp.exp(v) + m.jnp.log1p(m.jnp.abs(v)) - m.lax.rsqrt(m.jnp.square(v) + 1) + m.jnp.tanh(v) / 3
        b = m.jnp.where(v > 0, v, 0.1 * v) + m.jnp.clip(v, -0.5, 0.5) + v**3 + m.jnp.floor(v) + m.jnp.sign(v)
        o[...] = a + b + m.nn.gelu(v) + m.nn.silu(v) + m.lax.erf(v) + m.jnp.maximum(v, 0.25)

    return whole(m, body, ((64,), np.float32))


@case(f32(64).astype(BFLOAT16), f32(64).astype(BFLOAT16))
def bfloat16_rounds_every_step(m: Any) -> Any:
    def body(x, y, o):  # type: ignore[no-untyped-def]
        o[...] = x[...] * y[...] + x[...] - 0.1

    return whole(m, body, ((64,), BFLOAT16))


@case(f32(32, 16).astype(BFLOAT16), f32(16, 32).astype(BFLOAT16))
def bfloat16_products(m: Any) -> Any:
    def body(x, y, o, p):  # type: ignore[no-untyped-def]
        product = m.jnp.dot(x[...], y[...], preferred_element_type=m.jnp.float32)
        o[...], p[...] = product.astype(m.jnp.bfloat16), product.sum(axis=0)

    return whole(m, body, ((32, 32), BFLOAT16), ((32,), np.float32))


@case(i32(16).astype(np.int8), f32(16))
def mixed_dtypes(m: Any) -> Any:
    def body(x, y, o, p, q):  # type: ignore[no-untyped-def]
        o[...], p[...], q[...] = x[...] + y[...], x[...] / 3, (x[...] > 2) & (y[...] < 0.5)

    return whole(m, body, ((16,), np.float32), ((16,), np.float32), ((16,), np.bool_))


def casts_of_floats(m: Any) -> Any:
    def body(x, half, brain, small, wide, numbers):  # type: ignore[no-untyped-def]
        v = x[...]
        half[...], brain[...] = v.astype(m.jnp.float16), v.astype(m.jnp.bfloat16)
        small[...], wide[...] = v.astype(m.jnp.float8_e4m3fn), v.astype(m.jnp.float8_e5m2)
        numbers[...] = v.astype(m.jnp.int32)

    kinds = (np.float16, BFLOAT16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.int32)
    return whole(m, body, *[((51,), kind) for kind in kinds])


def test_casts_are_equal() -> None:
    special = [0.0, -0.0, 3e38, -1e30, 448.0, 464.0, 465.0, 6e4, 7e4, 1e-8, 2.5]
    assert not differences(casts_of_floats, (np.concatenate([f32(40) * 100, np.float32(special)]),), rtol=0.0)
