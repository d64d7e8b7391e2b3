"""Palladium and the Pallas shim: against Pallas's interpreter (inside jax.jit) at equal blocks, and OpenBLAS.

One text of each kernel serves upstream, the shim, and Palladium's own names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.measure import compare
from benchmarks.result import Result

Call = Callable[..., Any]
SIZES = (512, 1024, 2048)
BLOCK, DEPTH = 512, 128


def vector_add(m: Any, n: int, block: int) -> Call:
    """x + y in blocks of one dimension."""

    def body(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] + y[...]

    spec = m.BlockSpec((block,), lambda i: (i,))
    return m.call(body, m.Shape((n,), np.float32), (n // block,), [spec, spec], spec)  # type: ignore[no-any-return]


def softmax(m: Any, rows: int, columns: int) -> Call:
    """A row at a time."""

    def body(x: Any, o: Any) -> None:
        weights = m.np.exp(x[...] - m.np.max(x[...]))
        o[...] = weights / m.np.sum(weights)

    spec = m.BlockSpec((None, columns), lambda i: (i, 0))
    return m.call(body, m.Shape((rows, columns), np.float32), (rows,), [spec], spec)  # type: ignore[no-any-return]


def matmul(m: Any, n: int, block: int, depth: int) -> Call:
    """Accumulates in the output over a third grid axis."""

    def body(x: Any, y: Any, o: Any) -> None:
        @m.when(m.program_id(2) == 0)
        def start() -> None:
            o[...] = m.np.zeros_like(o)

        o[...] += m.np.dot(x[...], y[...], preferred_element_type=np.float32)

    grid = n // block, n // block, n // depth
    specs = [m.BlockSpec((block, depth), lambda i, j, k: (i, k)), m.BlockSpec((depth, block), lambda i, j, k: (k, j))]
    out = m.BlockSpec((block, block), lambda i, j, k: (i, j))
    return m.call(body, m.Shape((n, n), np.float32), grid, specs, out)  # type: ignore[no-any-return]


def flash_attention(m: Any, length: int, width: int, block: int) -> Call:
    """Causal, one head; the second grid axis goes over keys and values, what is carried is scratch."""
    scale = 1.0 / np.sqrt(width).item()

    def body(q: Any, k: Any, v: Any, o: Any, total: Any, top: Any, weight: Any) -> None:
        row, column = m.program_id(0), m.program_id(1)

        @m.when(column == 0)
        def start() -> None:
            total[...] = m.np.zeros_like(total)
            top[...] = m.np.full_like(top, -1e30)
            weight[...] = m.np.zeros_like(weight)

        @m.when(column <= row)
        def step() -> None:
            scores = m.np.dot(q[...] * scale, k[...].T)
            rows = row * block + m.lax.broadcasted_iota(np.int32, (block, block), 0)
            columns = column * block + m.lax.broadcasted_iota(np.int32, (block, block), 1)
            scores = m.np.where(columns <= rows, scores, -1e30)
            new = m.np.maximum(top[...], scores.max(axis=1))
            shares = m.np.exp(scores - new[:, None])
            kept = m.np.exp(top[...] - new)
            weight[...] = weight[...] * kept + shares.sum(axis=1)
            total[...] = total[...] * kept[:, None] + m.np.dot(shares, v[...])
            top[...] = new

        @m.when(column == m.num_programs(1) - 1)
        def end() -> None:
            o[...] = total[...] / weight[...][:, None]

    queries, keys = m.BlockSpec((block, width), lambda i, j: (i, 0)), m.BlockSpec((block, width), lambda i, j: (j, 0))
    scratch = [m.scratch((block, width)), m.scratch((block,)), m.scratch((block,))]
    grid, out = (length // block, length // block), m.Shape((length, width), np.float32)
    return m.call(body, out, grid, [queries, keys, keys], queries, scratch)  # type: ignore[no-any-return]


def palladium_names() -> Any:
    """Palladium's own names."""
    import palladium as lpl

    def call(body: Call, out: Any, grid: Any, ins: Any, outs: Any, scratch: Any = ()) -> Call:
        return lpl.kernel(body, out_shape=out, grid=grid, in_specs=ins, out_specs=outs, scratch=scratch)  # type: ignore[no-any-return]

    return SimpleNamespace(
        np=lpl, lax=lpl, BlockSpec=lpl.BlockSpec, Shape=lpl.ShapeDtypeStruct, when=lpl.when, ds=lpl.ds,
        program_id=lpl.program_id, num_programs=lpl.num_programs, call=call,
        scratch=lambda shape: lpl.SRAM(shape, np.float32),
    )  # fmt: skip


def shim_names() -> Any:
    """The shim's."""
    import loom.experimental.pallas as pl
    from loom.experimental.pallas import lax, tpu
    from loom.experimental.pallas import numpy as jnp

    def call(body: Call, out: Any, grid: Any, ins: Any, outs: Any, scratch: Any = ()) -> Call:
        return pl.pallas_call(body, out, grid=grid, in_specs=ins, out_specs=outs, scratch_shapes=scratch)

    return SimpleNamespace(
        np=jnp, lax=lax, BlockSpec=pl.BlockSpec, Shape=pl.ShapeDtypeStruct, when=pl.when, ds=pl.ds,
        program_id=pl.program_id, num_programs=pl.num_programs, call=call,
        scratch=lambda shape: tpu.VMEM(shape, np.float32),
    )  # fmt: skip


def upstream_names() -> Any:
    """Upstream's, interpreted, in one jitted call."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    import jax
    import jax.experimental.pallas as pl
    from jax.experimental.pallas import tpu

    def call(body: Call, out: Any, grid: Any, ins: Any, outs: Any, scratch: Any = ()) -> Call:
        specs = {"grid": grid, "in_specs": ins, "out_specs": outs, "scratch_shapes": scratch}
        made = jax.jit(pl.pallas_call(body, out, interpret=True, **specs))
        return lambda *arrays: jax.block_until_ready(made(*arrays))

    return SimpleNamespace(
        np=jax.numpy, lax=jax.lax, BlockSpec=pl.BlockSpec, Shape=jax.ShapeDtypeStruct, when=pl.when, ds=pl.ds,
        program_id=pl.program_id, num_programs=pl.num_programs, call=call,
        scratch=lambda shape: tpu.VMEM(shape, np.float32),
    )  # fmt: skip


def _cases() -> list[tuple[str, float, Callable[[Any], Call], list[Any]]]:
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape, dtype=np.float32)

    n = 1 << 20
    return [
        ("vector add 1M", 500, lambda m: vector_add(m, n, 1024), [normal(n), normal(n)]),
        ("softmax 1024x1024", 200, lambda m: softmax(m, 1024, 1024), [normal(1024, 1024)]),
        ("matmul 512", 10, lambda m: matmul(m, 512, 64, 64), [normal(512, 512), normal(512, 512)]),
        ("flash attention 512x64", 20, lambda m: flash_attention(m, 512, 64, 64), [normal(512, 64) for _ in range(3)]),
    ]


def run() -> list[Result]:
    """Four kernels against the interpreter in both spellings, then matmul against OpenBLAS."""
    results = []
    theirs = upstream_names()
    for claim, bar, make, arrays in _cases():
        peer = make(theirs)
        for spelling, names in (("Palladium", palladium_names()), ("shim", shim_names())):
            ours = make(names)
            sides = partial(ours, *arrays), partial(peer, *arrays)
            measured = compare(*sides, clock=time.process_time)  # XLA works in threads of its own
            assert np.allclose(ours(*arrays), peer(*arrays), atol=1e-3), claim
            detail = {"ours_ms": measured.ours * 1e3, "interpreter_ms": measured.theirs * 1e3}
            text = f"{spelling}: {claim} against Pallas interpret"
            results.append(Result(text, measured.ratio, bar, detail=detail))
    return results + [_against_openblas(n) for n in SIZES]


def _against_openblas(n: int) -> Result:
    a, b = np.random.default_rng(0).standard_normal((2, n, n), dtype=np.float32)
    ours = matmul(palladium_names(), n, BLOCK, DEPTH)
    measured = compare(lambda: ours(a, b), lambda: np.matmul(a, b))
    assert np.allclose(ours(a, b), a @ b, atol=1e-2)
    detail = {"gflops": 2 * n**3 / measured.ours / 1e9, "openblas_gflops": 2 * n**3 / measured.theirs / 1e9}
    return Result(f"Palladium: matmul n={n} against OpenBLAS", measured.ratio, 0.85, detail=detail)
