"""What Loom decides where Pallas's modes disagree, and the public reports about them: right, or named precisely."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import loom.experimental.pallas as pl
import loom.experimental.pallas.numpy as jnp
import loom.experimental.pallas.tpu as pltpu
import loom.experimental.pallas.triton as pltriton
from loom.experimental import palladium as lpl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs

RNG = np.random.default_rng(2)


def copy_body(x, o):  # type: ignore[no-untyped-def]
    o[...] = x[...]


def shape(*sizes: int, dtype: Any = np.float32) -> pl.ShapeDtypeStruct:
    return pl.ShapeDtypeStruct(sizes, dtype)


def both(call: Any, *args: Any) -> Any:
    """The result, the same by the simulator and by the reference."""
    found = call(*args)
    with knobs.override(interpret=True):
        assert np.asarray(call(*args)).tobytes() == np.asarray(found).tobytes()
    return found


# ---- blocks out of range (jax-ml/jax#31395, #31707) ------------------------------------------------------------------


def test_element_offsets_given_for_block_indices() -> None:
    spec = pl.BlockSpec((8, 4), lambda i: (i * 8, 0))
    with pytest.raises(LoomError) as caught:
        pl.pallas_call(copy_body, shape(32, 4), grid=(4,), in_specs=[spec], out_specs=spec)(
            np.zeros((32, 4), np.float32)
        )
    (found,) = caught.value.diagnostics
    assert found.code == "LOOM-R121"
    assert "block (8, 0) of x at grid point (1,) is outside: dimension 0 has 4 blocks" in found.message
    assert "block indices, not element offsets" in found.hint
    assert found.location.file == __file__


@pytest.mark.parametrize(("index", "block"), [(lambda i: (i + 1,), 3), (lambda i: (i - 1,), -1)])
def test_a_block_beside_the_array_names_operand_point_and_block(index: Any, block: int) -> None:
    inside, outside = pl.BlockSpec((8,), lambda i: (i,)), pl.BlockSpec((8,), index)
    x = np.arange(24, dtype=np.float32)
    point = 2 if block > 0 else 0
    for name, ins, outs in (("x", outside, inside), ("o", inside, outside)):
        message = rf"block \({block},\) of {name} at grid point \({point},\)"
        with pytest.raises(LoomError, match=message):
            pl.pallas_call(copy_body, shape(24), grid=(3,), in_specs=[ins], out_specs=outs)(x)


def test_blocks_out_of_range_read_as_poison_where_that_is_asked_for() -> None:
    inside, outside = lpl.BlockSpec((8,), lambda i: (i,)), lpl.BlockSpec((8,), lambda i: (i + 1,))
    kernel = lpl.kernel(
        copy_body,
        out_shape=shape(24),
        grid=3,
        in_specs=[outside],
        out_specs=inside,
        out_of_bounds_reads="uninitialized",
    )
    x = np.arange(24, dtype=np.float32)
    found = both(kernel, x)
    assert np.array_equal(found[:16], x[8:]) and np.isnan(found[16:]).all()


# ---- ragged blocks (jax-ml/jax#22275) --------------------------------------------------------------------------------

POISON = {"float32": np.nan, "bfloat16": np.nan, "float16": np.nan, "int32": -(2**31), "int8": -128, "uint16": 0}


@pytest.mark.parametrize("name", [*POISON, "bool"])
def test_elements_outside_read_as_poison_and_are_not_written(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x = RNG.integers(0, 2, 11).astype(dtype)
    seen = pl.BlockSpec((1, 8), lambda i: (i, 0))
    spec = pl.BlockSpec((8,), lambda i: (i,))

    def body(x, copied, blocks):  # type: ignore[no-untyped-def]
        copied[...] = x[...]
        blocks[...] = x[...].reshape(1, 8)

    call = pl.pallas_call(
        body, [shape(11, dtype=dtype), shape(2, 8, dtype=dtype)], grid=(2,), in_specs=[spec], out_specs=[spec, seen]
    )
    copied, blocks = call(x)
    assert np.array_equal(copied, x)
    assert np.array_equal(blocks.reshape(-1)[:11], x)
    rest = blocks.reshape(-1)[11:]
    wanted = np.full(5, POISON.get(name, False), dtype)
    assert np.array_equal(rest.astype(np.float64), wanted.astype(np.float64), equal_nan=True)


# ---- uncovered outputs -----------------------------------------------------------------------------------------------


def test_what_no_grid_point_writes_is_poison() -> None:
    spec = pl.BlockSpec((4,), lambda i: (i,))
    found = both(
        pl.pallas_call(copy_body, shape(16), grid=(2,), in_specs=[spec], out_specs=spec), np.ones(16, np.float32)
    )
    assert np.array_equal(found[:8], np.ones(8)) and np.isnan(found[8:]).all()


def test_a_store_that_does_not_happen_leaves_poison() -> None:
    def body(x, o):  # type: ignore[no-untyped-def]
        @pl.when(pl.program_id(0) == 1)
        def write() -> None:
            o[...] = x[...]

    spec = pl.BlockSpec((4,), lambda i: (i,))
    found = both(pl.pallas_call(body, shape(8), grid=(2,), in_specs=[spec], out_specs=spec), np.ones(8, np.float32))
    assert np.isnan(found[:4]).all() and np.array_equal(found[4:], np.ones(4))


def test_scratch_and_blocks_begin_as_poison() -> None:
    def body(o, p, scratch):  # type: ignore[no-untyped-def]
        o[...] = scratch[...]
        p[...] = p[...]

    floats, integers = pl.pallas_call(
        body, [shape(4), shape(4, dtype=np.int32)], scratch_shapes=[pltpu.VMEM((4,), jnp.float32)]
    )()
    assert np.isnan(floats).all() and (integers == np.iinfo(np.int32).min).all()


# ---- revisited blocks (jax-ml/jax#30581) -----------------------------------------------------------------------------


def accumulate(x, o):  # type: ignore[no-untyped-def]
    o[...] += x[...]


def test_a_block_that_comes_back_is_refused() -> None:
    spec, out = pl.BlockSpec((4,), lambda i, j: (i,)), pl.BlockSpec((4,), lambda i, j: (j,))
    message = r"block \(0,\) of output o is written at grid point \(0, 0\) and again at \(1, 0\), after others"
    with pytest.raises(LoomError, match=message):
        pl.pallas_call(accumulate, shape(8), grid=(2, 2), in_specs=[spec], out_specs=out)(np.ones(8, np.float32))


def test_consecutive_steps_share_their_block() -> None:
    """Along an axis that the output does not depend on, and where its index map joins steps."""

    def body(x, o):  # type: ignore[no-untyped-def]
        @pl.when(pl.program_id(0) % 2 == 0)
        def start() -> None:
            o[...] = jnp.zeros_like(o)

        o[...] += x[...]

    spec, out = pl.BlockSpec((4,), lambda i: (i,)), pl.BlockSpec((4,), lambda i: (i // 2,))
    x = np.arange(16, dtype=np.float32)
    found = both(pl.pallas_call(body, shape(8), grid=(4,), in_specs=[spec], out_specs=out), x)
    assert np.array_equal(found, x.reshape(2, 2, 4).sum(1).reshape(-1))


# ---- scalar prefetch (jax-ml/jax#39179, #27337) ----------------------------------------------------------------------


def prefetching(body: Any, mode: Any = None) -> Any:
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(6,),
        in_specs=[pl.BlockSpec((1, 4), lambda i, ids: (ids[i], 0), pipeline_mode=mode)],
        out_specs=pl.BlockSpec((1, 4), lambda i, ids: (i, 0)),
    )
    return pl.pallas_call(body, shape(6, 4), grid_spec=spec)


@pytest.mark.parametrize("mode", [pl.Buffered(1), pl.Buffered(2)])
def test_prefetched_scalars_are_what_the_call_was_given(mode: pl.Buffered) -> None:
    def body(ids, x, o):  # type: ignore[no-untyped-def]
        ids[1] = 3
        o[...] = x[...]

    with pytest.raises(LoomError, match=r"LOOM-F208.*ids is an input, and the kernel writes to it"):
        prefetching(body, mode)(np.arange(6, dtype=np.int32), np.ones((6, 4), np.float32))


def test_a_prefetched_block_outside_is_found_at_the_call() -> None:
    call = prefetching(lambda ids, x, o: copy_body(x, o))
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    assert np.array_equal(both(call, np.array([5, 4, 3, 2, 1, 0], np.int32), x), x[::-1])
    with pytest.raises(LoomError, match=r"block \(6, 0\) of x at grid point \(4,\) is outside"):
        call(np.array([5, 4, 3, 2, 6, 0], np.int32), x)


def test_aliases_count_prefetched_operands() -> None:
    def body(ids, x, o):  # type: ignore[no-untyped-def]
        o[0, :] = x[ids[0], :]

    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,), in_specs=[pl.BlockSpec()])
    call = pl.pallas_call(body, shape(6, 4), grid_spec=spec, input_output_aliases={1: 0})
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    before = x.copy()
    found = both(call, np.array([3], np.int32), x)
    assert np.array_equal(found[0], x[3]) and np.array_equal(found[1:], x[1:])
    assert np.array_equal(x, before), "the operand itself stays"


# ---- aliases (jax-ml/jax#22304) --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aliases", "dtype", "message"),
    [
        ({0: 1}, np.float32, "0 -> 1, and there are 1 outputs"),
        ({2: 0}, np.float32, "2 -> 0, and there are 1 operands"),
        ({0: 0}, np.int32, r"operand 0 is f32\[8\], output 0 is i32\[8\]"),
    ],
)
def test_wrong_aliases_are_named(aliases: dict[int, int], dtype: Any, message: str) -> None:
    with pytest.raises(LoomError, match=message):
        pl.pallas_call(copy_body, shape(8, dtype=dtype), input_output_aliases=aliases)(np.zeros(8, np.float32))


def test_an_accumulator_begins_with_what_it_aliases() -> None:
    spec, out = pl.BlockSpec((1, 4), lambda i, k: (k, i)), pl.BlockSpec((1, 4), lambda i, k: (0, i))

    def body(start, x, o):  # type: ignore[no-untyped-def]
        o[...] += x[...]

    call = pl.pallas_call(
        body, shape(1, 8), grid=(2, 3), in_specs=[out, spec], out_specs=out, input_output_aliases={0: 0}
    )
    start, x = np.full((1, 8), 10, np.float32), np.arange(24, dtype=np.float32).reshape(3, 8)
    assert np.array_equal(both(call, start, x), start + x.sum(0))


# ---- empty grids (jax 0.10.2) ----------------------------------------------------------------------------------------


def test_an_empty_grid_gives_the_output_without_a_write() -> None:
    spec = pl.BlockSpec((8,), lambda i: (i,))
    empty = pl.pallas_call(copy_body, shape(0), grid=(0,), in_specs=[spec], out_specs=spec)(np.zeros(0, np.float32))
    assert empty.shape == (0,)
    untouched = pl.pallas_call(copy_body, shape(8), grid=(0,), in_specs=[spec], out_specs=spec)(np.zeros(8, np.float32))
    assert np.isnan(untouched).all()


# ---- indices ---------------------------------------------------------------------------------------------------------


def test_run_time_indices_outside_read_poison_and_write_nothing() -> None:
    def body(x, at, o):  # type: ignore[no-untyped-def]
        o[...] = jnp.zeros_like(o)
        o[pl.ds(at[0], 4)] = x[pl.ds(at[1], 4)]

    call = pl.pallas_call(body, shape(8))
    x = np.arange(8, dtype=np.float32)
    assert np.array_equal(both(call, x, np.array([2, 3], np.int32)), [0, 0, 3, 4, 5, 6, 0, 0])
    found = both(call, x, np.array([6, -2], np.int32))
    assert np.isnan(found[6:]).all() and np.array_equal(found[:6], np.zeros(6))
    found = both(call, x, np.array([-2, 6], np.int32))
    assert np.isnan(found[:2]).all()


def test_known_indices_outside_are_refused() -> None:
    for index in (8, -9, (0, 0), slice(3, 12)):
        with pytest.raises(LoomError, match=r"LOOM-F207.*x of shape \(8,\) cannot be indexed"):

            def body(x, o, index=index):  # type: ignore[no-untyped-def]
                o[...] = x[index]

            pl.pallas_call(body, shape(8))(np.zeros(8, np.float32))


# ---- kernels that run here and not on a TPU (jax-ml/jax#23181, #25230, #21928) ---------------------------------------


def test_squeezed_batches_with_bias_and_gelu() -> None:
    from loom.experimental.pallas import nn

    def body(x, y, bias, o):  # type: ignore[no-untyped-def]
        o[...] = nn.gelu(jnp.dot(x[...], y[...]) + bias[...])

    batch = pl.BlockSpec((None, 8, 8), lambda b: (b, 0, 0))
    row = pl.BlockSpec((1, 8), lambda b: (0, 0))
    x, y = RNG.standard_normal((2, 3, 8, 8)).astype(np.float32)
    bias = RNG.standard_normal((1, 8)).astype(np.float32)
    found = both(
        pl.pallas_call(body, shape(3, 8, 8), grid=(3,), in_specs=[batch, batch, row], out_specs=batch), x, y, bias
    )
    z = x @ y + bias
    wanted = 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
    assert np.allclose(found, wanted, atol=1e-5)


def test_bfloat16_matrix_times_vector_in_batches() -> None:
    def body(x, v, o):  # type: ignore[no-untyped-def]
        o[...] = jnp.dot(x[...], v[...], preferred_element_type=jnp.float32).astype(jnp.bfloat16)

    x = RNG.standard_normal((2, 16, 16)).astype(ml_dtypes.bfloat16)
    v = RNG.standard_normal((2, 16)).astype(ml_dtypes.bfloat16)
    specs = [pl.BlockSpec((None, 16, 16), lambda b: (b, 0, 0)), pl.BlockSpec((None, 16), lambda b: (b, 0))]
    call = pl.pallas_call(body, shape(2, 16, dtype=ml_dtypes.bfloat16), grid=(2,), in_specs=specs, out_specs=specs[1])
    wanted = np.einsum("bij,bj->bi", x.astype(np.float32), v.astype(np.float32))
    assert np.allclose(both(call, x, v).astype(np.float32), wanted, rtol=1e-2, atol=1e-2)


def test_a_power_of_float16() -> None:
    def body(x, o):  # type: ignore[no-untyped-def]
        o[...] = jnp.power(x[...], 3)

    x = RNG.standard_normal(16).astype(np.float16)
    assert np.array_equal(both(pl.pallas_call(body, shape(16, dtype=np.float16)), x), x * (x * x))


# ---- mistakes --------------------------------------------------------------------------------------------------------


def run_body(body: Any, **options: Any) -> Any:
    return pl.pallas_call(body, shape(8), **options)(np.arange(8, dtype=np.float32))


def branch_in_python(x, o):  # type: ignore[no-untyped-def]
    if x[0] > 0:
        o[...] = x[...]


def name_without_value(x, o):  # type: ignore[no-untyped-def]
    o[...] = x[...] + missing  # noqa: F821


def wrong_call(x, o):  # type: ignore[no-untyped-def]
    o[...] = lpl.exp(x[...], 1)


def returns(x, o):  # type: ignore[no-untyped-def]
    return x[...]


def captures(x, o):  # type: ignore[no-untyped-def]
    o[...] = x[...] + np.arange(8)


def writes_input(x, o):  # type: ignore[no-untyped-def]
    x[0] = 1.0


def grows(x, o):  # type: ignore[no-untyped-def]
    o[...] = lpl.fori(0, 3, lambda i, v: v.astype(np.int32), x[...])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (branch_in_python, "LOOM-F205.*the truth of this value must be known"),
        (name_without_value, "LOOM-F004.*missing is not defined"),
        (wrong_call, r"LOOM-F021.*exp: takes 1 positional argument"),
        (returns, r"LOOM-F214.*returns returns <f32\[8\]>"),
        (captures, r"LOOM-F206.*a NumPy array of shape \(8,\) is no value of a kernel"),
        (writes_input, "LOOM-F208.*x is an input, and the kernel writes to it"),
        (grows, r"LOOM-F209.*fori: the body was given \(f32\[8\]\) and returned \(i32\[8\]\)"),
    ],
)
def test_mistakes_are_named_at_the_users_line(body: Any, message: str) -> None:
    with pytest.raises(LoomError, match=message) as caught:
        run_body(body)
    (found,) = caught.value.diagnostics
    lines = range(body.__code__.co_firstlineno, body.__code__.co_firstlineno + 3)
    assert found.location.file == __file__ and found.location.line in lines


def test_a_copy_that_nobody_waits_for() -> None:
    def body(x, o, scratch):  # type: ignore[no-untyped-def]
        lpl.copy(x, scratch)
        o[...] = scratch[...]

    with pytest.raises(LoomError, match=r"LOOM-F210.*the copy into scratch0 is started and never waited for"):
        run_body(body, scratch_shapes=[pltpu.VMEM((8,), jnp.float32)])


def test_a_semaphore_that_would_never_be_signalled() -> None:
    def body(x, o, semaphore):  # type: ignore[no-untyped-def]
        pl.semaphore_signal(semaphore, 2)
        pl.semaphore_wait(semaphore, 1)
        o[...] = x[...] * pl.semaphore_read(semaphore)
        pl.semaphore_wait(semaphore, 2)

    with pytest.raises(LoomError, match="semaphore0 is waited for and would never be signalled"):
        run_body(body, scratch_shapes=[pltpu.SemaphoreType.REGULAR])


def test_kernel_functions_outside_kernels() -> None:
    with pytest.raises(LoomError, match=r"LOOM-F212.*program_id can be used only inside a kernel"):
        pl.program_id(0)


# ---- axes declared parallel ------------------------------------------------------------------------------------------


def test_an_output_does_not_accumulate_along_a_parallel_axis() -> None:
    def body(x, o):  # type: ignore[no-untyped-def]
        o[...] += x[...]

    def call(*semantics: str) -> Any:
        spec, out = pl.BlockSpec((4,), lambda i, k: (2 * i + k,)), pl.BlockSpec((4,), lambda i, k: (i,))
        params = pltpu.CompilerParams(dimension_semantics=semantics)
        return pl.pallas_call(body, shape(8), grid=(2, 2), in_specs=[spec], out_specs=out, compiler_params=params)(
            np.ones(16, np.float32)
        )

    assert np.isnan(call("parallel", "arbitrary")).all(), "accumulates on poison"
    message = (
        r"LOOM-R126.*axis 1 is declared parallel, and the grid points \(0, 0\) and \(0, 1\) share block \(0,\) of o"
    )
    assert np.isnan(call("parallel", "parallel")).all(), "upstream lets it: the axis runs in order"
    spec, out = lpl.BlockSpec((4,), lambda i, k: (2 * i + k,)), lpl.BlockSpec((4,), lambda i, k: (i,))
    with pytest.raises(LoomError, match=message):
        lpl.kernel(
            body, out_shape=shape(8), grid=(2, 2), in_specs=[spec], out_specs=out, dimension_semantics=["parallel"] * 2
        )(np.ones(16, np.float32))
    with pytest.raises(LoomError, match="1 dimension_semantics for 2 grid axes"):
        call("parallel")


def test_element_dimensions_pad_with_poison() -> None:
    def body(x, o):  # type: ignore[no-untyped-def]
        o[...] = x[...]

    spec = pl.BlockSpec((pl.Element(6, (1, 1)),), lambda i: (i * 4,))
    call = pl.pallas_call(
        body, shape(12, dtype=np.int32), grid=(2,), in_specs=[spec], out_specs=pl.BlockSpec((6,), lambda i: (i,))
    )
    least = np.iinfo(np.int32).min
    found = both(call, np.arange(8, dtype=np.int32))
    assert np.array_equal(found, [least, 0, 1, 2, 3, 4, 3, 4, 5, 6, 7, least])


def test_a_loop_over_weak_numbers_stores_once() -> None:
    """The dtype that such a loop carries is found by a trial of its body, which leaves nothing behind."""

    def body(x, o, p):  # type: ignore[no-untyped-def]
        def step(i: Any, total: Any) -> Any:
            p[pl.ds(i * 2, 2)] = x[pl.ds(i * 2, 2)] * 2
            o[...] = x[...] + total
            return total + x[i]

        o[...] = x[...] * 0 + lpl.fori(0, 4, step, 0)

    spec = pl.BlockSpec((8,), lambda i: (0,))
    call = pl.pallas_call(body, [shape(8), shape(8)], grid=(1,), in_specs=[spec], out_specs=[spec, spec])
    x = np.arange(8, dtype=np.float32)
    first, second = both_of(call, x)
    assert np.array_equal(first, np.full(8, 6)) and np.array_equal(second, x * 2)


def both_of(call: Any, *args: Any) -> list[Any]:
    """As `both`, of a call with several outputs."""
    found = call(*args)
    with knobs.override(interpret=True):
        assert [one.tobytes() for one in call(*args)] == [one.tobytes() for one in found]
    return list(found)


# ---- values and NumPy ------------------------------------------------------------------------------------------------


def test_values_are_shown_by_dtype_and_shape() -> None:
    shown: list[str] = []

    def body(x, o):  # type: ignore[no-untyped-def]
        tile = x[...]
        shown.extend([repr(tile), f"{tile}", f"{pl.program_id(0):>12}", str(tile)])
        o[...] = tile

    lpl.kernel(body, out_shape=shape(4), grid=2).lower(np.zeros(4, np.float32))
    assert shown[:2] == ["<f32[4]>", "<f32[4]>"] and shown[3] == "f32[4]"


def test_an_index_map_that_gives_floats_is_named() -> None:
    spec = pl.BlockSpec((2, 2), lambda i: (i / 2, 0))
    with pytest.raises(LoomError, match=r"LOOM-F213.*gives <f32\[\]"):
        pl.pallas_call(copy_body, shape(4, 2), grid=(2,), in_specs=[spec], out_specs=spec)(np.zeros((4, 2), np.float32))


def test_numpy_numbers_may_stand_left_of_tiles_and_numpy_functions_are_refused() -> None:
    def body(x, o):  # type: ignore[no-untyped-def]
        o[...] = np.float32(3) * x[...] - np.int32(1) * (np.float32(0) < x[...])

    x = np.float32([-1, 0, 2])
    assert both(pl.pallas_call(body, shape(3)), x).tolist() == [-3, 0, 5]
    for function in (np.exp, np.asarray, np.add.reduce):

        def wrong(x, o, function=function):  # type: ignore[no-untyped-def]
            o[...] = function(x[...])

        with pytest.raises(LoomError, match="LOOM-F20"):
            pl.pallas_call(wrong, shape(3))(x)


def test_known_floats_are_rounded_where_they_are_converted() -> None:
    def body(o):  # type: ignore[no-untyped-def]
        tenth = jnp.asarray(0.1, jnp.float32).astype(jnp.float16).astype(jnp.float32)
        o[...] = jnp.zeros((1,), jnp.float32) + tenth

    assert both(pl.pallas_call(body, shape(1)))[0] == np.float32(np.float16(0.1))


# ---- arguments that mean nothing, and misspelled ones ----------------------------------------------------------------

HINTED = {
    "kernel": (lambda: lpl.kernel(copy_body, out_shape=shape(4), gird=(1,)), "kernel has no argument 'gird'", "'grid'"),
    "pallas_call": (
        lambda: pl.pallas_call(copy_body, shape(4), out_spec=pl.BlockSpec()),
        "no argument 'out_spec'",
        "'out_specs'",
    ),
    "tpu": (lambda: pltpu.CompilerParams(dimension_semantic=()), "CompilerParams has no", "'dimension_semantics'"),
    "triton": (lambda: pltriton.CompilerParams(num_warp=4), "CompilerParams has no argument", "'num_warps'"),
}


@pytest.mark.parametrize("what", HINTED)
def test_misspelled_arguments_are_named(what: str) -> None:
    make, message, near = HINTED[what]
    with pytest.raises(LoomError, match="LOOM-F215") as caught:
        make()
    (found,) = caught.value.diagnostics
    assert message in found.message and f"did you mean {near}?" in found.hint
    assert found.location.file == __file__


IN_KERNELS = {
    "load": (lambda x: lpl.load(x, msk=True), "LOOM-F215.*load has no argument 'msk'"),
    "store": (lambda x: lpl.store(x, ..., 0, maks=True), "LOOM-F215.*store has no argument 'maks'"),
    "triton load": (lambda x: pltriton.load(x, evict="x"), "LOOM-F215"),
    "print": (lambda x: lpl.debug_print("x", order=True), "LOOM-F215.*debug_print"),
    "scan": (lambda x: lpl.scan(lambda c, _: (c, None), 0, lenght=3), "LOOM-F215.*scan"),
    "roll": (lambda x: pltpu.roll(x[...], 1, 0, stride=1), "LOOM-F216.*stride and stride_axis belong together"),
    "signal": (lambda x: lpl.semaphore_signal(x, 1, device_id=1), "LOOM-F211.*device_id=1"),
}


@pytest.mark.parametrize("what", IN_KERNELS)
def test_arguments_of_functions_in_kernels(what: str) -> None:
    use, message = IN_KERNELS[what]
    with pytest.raises(LoomError, match=message):
        lpl.kernel(lambda x, o: use(x), out_shape=shape(4)).lower(np.zeros(4, np.float32))


def test_hints_are_taken() -> None:
    def body(x, o):  # type: ignore[no-untyped-def]
        pltriton.store(o, lpl.load(x, eviction_policy="evict_last", volatile=True), eviction_policy="evict_first")

    call = pl.pallas_call(
        body, shape(4), debug=True, interpret=True, cost_estimate=None, compiler_params=pltriton.CompilerParams()
    )
    assert call(np.ones(4, np.float32)).tolist() == [1] * 4


# ---- plain mistakes --------------------------------------------------------------------------------------------------

ROWS = np.zeros((8, 4), np.float32)


def blocked(*sizes: Any) -> Any:
    return lambda: pl.BlockSpec(sizes, lambda: (0, 0))


def declared(body: Any = copy_body, *operands: Any, **options: Any) -> Any:
    return lambda: lpl.kernel(body, **{"out_shape": shape(8, 4), **options}).lower(*(operands or (ROWS,)))


MISTAKES = {
    "an operand too many": (
        declared(copy_body, ROWS, ROWS),
        r"LOOM-F217.*takes \(x, o\).*called with 3 refs: too many",
    ),
    "no operand": (
        lambda: lpl.kernel(copy_body, out_shape=shape(8, 4))(),
        "LOOM-F217.*missing a required argument: 'o'",
    ),
    "a ref times 2": (declared(lambda x, o: o.set(x * 2)), r"LOOM-F218.*x is a ref(.|\n)*read it: x\[\.\.\.\]"),
    "2 plus a ref": (declared(lambda x, o: o.set(2 + x)), "LOOM-F218.*x is a ref"),
    "a NumPy number times a ref": (declared(lambda x, o: o.set(np.float32(2) * x)), "LOOM-F218.*x is a ref"),
    "a function of a ref": (declared(lambda x, o: o.set(jnp.exp(x))), "LOOM-F218.*exp takes values"),
    "block size 0": (blocked(0, 4), "LOOM-F216.*0 is below 1"),
    "block size -8": (blocked(-8, 4), "LOOM-F216.*-8 is below 1"),
    "block size '4'": (blocked("4", 4), "LOOM-F216.*'4' is no int"),
    "block shape 4": (lambda: pl.BlockSpec(4), "LOOM-F216.*block_shape is 4"),  # type: ignore[arg-type]
    "index map": (lambda: pl.BlockSpec((4,), 3), "LOOM-F216.*index_map is 3"),
    "memory space": (lambda: pl.BlockSpec(memory_space="hmb"), "LOOM-F216.*no memory space 'hmb'"),
    "out_shape": (declared(out_shape=(8, 4)), "LOOM-R124.*out_shape holds 8"),
    "scratch": (declared(scratch=[(8, 8)]), "LOOM-F216.*scratch: 8 is no buffer"),
    "in_specs": (declared(in_specs=[(4, 8)]), "LOOM-F216.*4 is no BlockSpec"),
    "aliases": (declared(input_output_aliases=[0]), r"LOOM-R125.*\[0\] is no dictionary"),
    "nested list": (declared(copy_body, [[1, 2], [3, 4]]), "LOOM-R123.*a sequence of numbers"),
    "prefetched": (declared(num_scalar_prefetch=2), "LOOM-R124.*num_scalar_prefetch is 2"),
    "a fault of an index map": (
        declared(in_specs=[pl.BlockSpec((8, 4), lambda: (len(1, 2), 0))]),  # type: ignore[call-arg]
        r"test_rules.py.*LOOM-F015.*len\(\) takes exactly one",
    ),
    "num_programs": (declared(lambda x, o: lpl.num_programs(3)), "LOOM-F204.*num_programs: axis 3"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_plain_mistakes_are_named(what: str) -> None:
    make, message = MISTAKES[what]
    with pytest.raises(LoomError, match=message):
        make()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda copy: copy.start(), "LOOM-F210.*the copy into scratch0 is started and never waited for"),
        (lambda copy: copy.wait(), "LOOM-F219.*semaphore1 tells of is waited for and never started"),
    ],
    ids=["start", "wait"],
)
def test_half_of_an_asynchronous_copy_is_named(use: Any, message: str) -> None:
    def body(x, o, buffer, semaphore):  # type: ignore[no-untyped-def]
        use(pltpu.make_async_copy(x, buffer, semaphore))
        o[...] = x[...]

    scratch = [pltpu.VMEM((4,), np.float32), pltpu.SemaphoreType.DMA]
    with pytest.raises(LoomError, match=message) as caught:
        lpl.kernel(body, out_shape=shape(4), scratch=scratch).lower(np.zeros(4, np.float32))
    assert caught.value.diagnostics[0].location.file == __file__


def _from_a_branch(x: Any, o: Any) -> None:
    kept: list[Any] = []
    pl.when(jnp.sum(x[...]) > 0)(lambda: kept.append(x[...] * 2))
    o[...] = kept[0]


def _from_a_loop(x: Any, o: Any) -> None:
    kept: list[Any] = []
    pl.loop(0, 8)(kept.append)
    o[...] = x[...] + kept[0]


KEPT: list[Any] = []


def _from_another_kernel(x: Any, o: Any) -> None:
    KEPT.append(x[...] + 1)
    o[...] = KEPT[0]


@pytest.mark.parametrize("body", [_from_a_branch, _from_a_loop, _from_another_kernel])
def test_a_tile_that_left_its_block_is_named(body: Any) -> None:
    KEPT.clear()
    with pytest.raises(LoomError, match=r"LOOM-F220.*was made in a branch, loop or kernel that is over") as caught:
        for _ in range(2):
            lpl.kernel(body, out_shape=shape(4)).lower(np.zeros(4, np.float32))
    assert caught.value.diagnostics[0].location.file == __file__
