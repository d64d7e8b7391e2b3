"""The Palladium examples: the spelling of Pallas gives the same bits, and LTL too where it is the same sum."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import loom.triton.language as ltl

NAMES = (
    "vector_add", "matmul", "softmax", "layer_norm", "flash_attention", "grouped_matmul", "paged_gather", "stencil",
    "pipeline",
)  # fmt: skip
RNG = np.random.default_rng(4)
Array = np.ndarray[Any, Any]


def f32(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


ARGUMENTS: dict[str, tuple[Array, ...]] = {
    "vector_add": (f32(5000), f32(5000)),
    "matmul": (f32(100, 64), f32(64, 90)),
    "softmax": (f32(19, 200),),
    "layer_norm": (f32(13, 300), f32(300), f32(300)),
    "flash_attention": (f32(2, 128, 32), f32(2, 128, 32), f32(2, 128, 32)),
    "grouped_matmul": (f32(48, 24), f32(4, 24, 64), np.array([3, 0, 3], np.int32)),
    "paged_gather": (f32(5, 8, 16), np.array([[4, 1], [0, 4]], np.int32)),
    "stencil": (f32(34, 40),),
    "pipeline": (f32(8192),),
}


@pytest.mark.parametrize("name", NAMES)
def test_both_spellings_give_the_same_bits(name: str) -> None:
    ours, shim = (
        import_module(f"examples.{package}.{name}").run(*ARGUMENTS[name]) for package in ("palladium", "pallas")
    )
    assert ours.tobytes() == shim.tobytes()


# ---- the same in LTL -------------------------------------------------------------------------------------------------


@ltl.jit
def add_blocks(x, y, out, n, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(out + at, ltl.load(x + at, mask=at < n) + ltl.load(y + at, mask=at < n), mask=at < n)


@ltl.jit
def multiply_blocks(x, y, out, M, N, K, BM: ltl.constexpr, BN: ltl.constexpr, BK: ltl.constexpr):  # type: ignore[no-untyped-def]
    row = ltl.program_id(0) * BM + ltl.arange(0, BM)[:, None]
    column = ltl.program_id(1) * BN + ltl.arange(0, BN)[None, :]
    acc = ltl.zeros((BM, BN), dtype=ltl.float32)
    for k in range(0, K, BK):
        depth = k + ltl.arange(0, BK)
        a = ltl.load(x + row * K + depth[None, :], mask=row < M, other=0.0)
        b = ltl.load(y + depth[:, None] * N + column, mask=column < N, other=0.0)
        acc += ltl.dot(a, b)
    ltl.store(out + row * N + column, acc, mask=(row < M) & (column < N))


@ltl.jit
def softmax_row(x, out, n: ltl.constexpr):  # type: ignore[no-untyped-def]
    at = ltl.program_id(0) * n + ltl.arange(0, n)
    value = ltl.load(x + at)
    weights = ltl.exp(value - ltl.max(value, axis=0))
    ltl.store(out + at, weights / ltl.sum(weights, axis=0))


@ltl.jit
def norm_row(x, weight, bias, out, n: ltl.constexpr):  # type: ignore[no-untyped-def]
    column = ltl.arange(0, n)
    value = ltl.load(x + ltl.program_id(0) * n + column)
    centred = value - ltl.sum(value, axis=0) / n
    variance = ltl.sum(centred * centred, axis=0) / n
    scaled = centred * ltl.rsqrt(variance + 1e-5) * ltl.load(weight + column)
    ltl.store(out + ltl.program_id(0) * n + column, scaled + ltl.load(bias + column))


@ltl.jit
def attend_rows(q_ptr, k_ptr, v_ptr, out, n, D: ltl.constexpr, ROWS: ltl.constexpr, KEYS: ltl.constexpr):  # type: ignore[no-untyped-def]
    head, first = ltl.program_id(0) * n * D, ltl.program_id(1) * ROWS
    row, width = first + ltl.arange(0, ROWS), ltl.arange(0, D)
    place = head + row[:, None] * D + width[None, :]
    q = ltl.load(q_ptr + place) * (1.0 / D**0.5)
    total = ltl.zeros((ROWS, D), dtype=ltl.float32)
    top = ltl.full((ROWS,), -1e30, dtype=ltl.float32)
    weight = ltl.zeros((ROWS,), dtype=ltl.float32)
    for i in range((first + ROWS) // KEYS):
        key = i * KEYS + ltl.arange(0, KEYS)
        keys = head + key[:, None] * D + width[None, :]
        scores = ltl.dot(q, ltl.trans(ltl.load(k_ptr + keys)))
        scores = ltl.where(key[None, :] <= row[:, None], scores, -1e30)
        following = ltl.maximum(top, ltl.max(scores, axis=1))
        shares = ltl.exp(scores - following[:, None])
        kept = ltl.exp(top - following)
        total = total * kept[:, None] + ltl.dot(shares, ltl.load(v_ptr + keys))
        top, weight = following, weight * kept + ltl.sum(shares, axis=1)
    ltl.store(out + place, total / weight[:, None])


def in_ltl(name: str, arrays: tuple[Array, ...]) -> Array:
    """The LTL kernel of the same algorithm, at the blocks of the example."""
    first = arrays[0]
    if name == "matmul":
        (m, k), n = first.shape, arrays[1].shape[1]
        out = np.empty((m, n), np.float32)
        multiply_blocks[ltl.cdiv(m, 64), ltl.cdiv(n, 64)](*arrays, out, m, n, k, BM=64, BN=64, BK=32)
        return out
    out = np.empty_like(first)
    launches: dict[str, Callable[[], object]] = {
        "vector_add": lambda: add_blocks[(ltl.cdiv(first.size, 1024),)](*arrays, out, first.size, BLOCK=1024),
        "softmax": lambda: softmax_row[(len(first),)](first, out, first.shape[1]),
        "layer_norm": lambda: norm_row[(len(first),)](*arrays, out, first.shape[1]),
        "flash_attention": lambda: attend_rows[len(first), first.shape[1] // 64](
            *arrays, out, first.shape[1], D=first.shape[2], ROWS=64, KEYS=32
        ),
    }
    launches[name]()
    return out


@pytest.mark.parametrize("name", ["vector_add", "matmul", "softmax", "layer_norm", "flash_attention"])
def test_ltl_gives_the_same_bits(name: str) -> None:
    found = import_module(f"examples.palladium.{name}").run(*ARGUMENTS[name])
    assert found.tobytes() == in_ltl(name, ARGUMENTS[name]).tobytes()
