"""Tiles of more dimensions than engines walk: compiled and interpreted alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ltl
from loom_core.base.knobs import knobs


@ltl.jit
def elementwise(x, out):
    at = ltl.arange(0, 64)
    v = ltl.reshape(ltl.load(x + at), (2, 2, 2, 2, 2, 2))
    w = ltl.where(v > 0, v * 2.0, -v) + 1.0
    ltl.store(out + at, ltl.reshape(w.to(ltl.float16).to(ltl.float32), (64,)))


@ltl.jit
def folds(x, out):
    at = ltl.arange(0, 64)
    v = ltl.reshape(ltl.load(x + at), (2, 4, 1, 2, 2, 2))
    total = ltl.sum(v, axis=1)
    running = ltl.cumsum(v, axis=4)
    ltl.store(out + at, ltl.reshape(running + ltl.max(v, axis=3, keep_dims=True), (64,)))
    ltl.store(out + ltl.arange(0, 16), ltl.reshape(total, (16,)))


@ltl.jit
def broadcasts(x, out):
    at = ltl.arange(0, 64)
    v = ltl.reshape(ltl.load(x + ltl.arange(0, 8)), (2, 1, 2, 1, 2, 1))
    w = ltl.broadcast_to(v, (2, 2, 2, 2, 2, 2))
    i = ltl.reshape(ltl.arange(0, 2), (1, 1, 1, 2, 1, 1))
    ltl.store(out + at, ltl.reshape(w * (i + 1).to(ltl.float32), (64,)))


@ltl.jit
def moves(x, out):
    at = ltl.arange(0, 64)
    v = ltl.reshape(ltl.load(x + at), (2, 2, 2, 2, 2, 2))
    turned = ltl.permute(v, (4, 5, 2, 3, 0, 1))
    ltl.store(out + at, ltl.reshape(ltl.flip(turned, 3), (64,)))


@ltl.jit
def joins(x, out):
    at = ltl.arange(0, 32)
    v = ltl.reshape(ltl.load(x + at), (2, 2, 2, 2, 2))
    both = ltl.join(v, v * 2.0)
    first, second = ltl.split(both)
    ordered = ltl.sort(first + second)
    ltl.store(out + at, ltl.reshape(ordered, (32,)))
    ltl.store(out + 32 + at, ltl.reshape(ltl.sum(both, axis=5), (32,)))


@pytest.mark.parametrize(
    "kernel", [elementwise, folds, broadcasts, moves, joins], ids=lambda kernel: kernel.traced.name
)
def test_compiled_and_interpreted(kernel: Any) -> None:
    x = np.random.default_rng(3).standard_normal(64).astype(np.float32)
    x[:4] = [np.nan, -0.0, np.inf, 0.0]
    compiled, interpreted = np.zeros(64, np.float32), np.zeros(64, np.float32)
    kernel[(1,)](x, compiled)
    with knobs.override(interpret=True):
        kernel[(1,)](x, interpreted)
    assert np.any(compiled)
    assert compiled.tobytes() == interpreted.tobytes()
