"""The examples' kernels at random shapes: the simulator gives the bits of the NumPy references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loom
from examples import flash_attention, layer_norm, matmul, softmax, vector_add

SHAPES = 50
Array = np.ndarray[Any, Any]


def _values(rng: np.random.Generator, *shape: int) -> Array:
    """Normal numbers with some zeros, subnormals and large ones among them."""
    values = rng.standard_normal(shape).astype(np.float32)
    special = np.array([0.0, -0.0, 1e-41, -1e-39, 1e20, -3e4], np.float32)
    places = rng.random(shape) < 0.02
    values[places] = rng.choice(special, int(places.sum()))
    return values


def _vector_add(rng: np.random.Generator) -> Array:
    n = int(rng.integers(1, 5000))
    return vector_add.run(_values(rng, n), _values(rng, n), block=int(rng.choice([64, 256, 1000])))


def _matmul(rng: np.random.Generator) -> Array:
    m, n, k = (int(x) for x in rng.integers(1, 90, 3))
    blocks = {"bm": int(rng.choice([16, 24, 32])), "bn": int(rng.choice([16, 32])), "bk": int(rng.choice([8, 32]))}
    a, b = _values(rng, m, k), _values(rng, n, k).T if rng.random() < 0.5 else _values(rng, k, n)
    return matmul.run(a, b, _values(rng, n), **blocks)


def _softmax(rng: np.random.Generator) -> Array:
    rows, columns = int(rng.integers(1, 20)), int(rng.integers(1, 2000))
    return softmax.run(_values(rng, rows, columns), programs=int(rng.integers(1, 4)))


def _layer_norm(rng: np.random.Generator) -> Array:
    rows, columns = int(rng.integers(1, 8)), int(rng.integers(1, 1500))
    arrays = _values(rng, rows, columns), _values(rng, columns), _values(rng, columns)
    return layer_norm.run(*arrays, block=int(rng.choice([64, 256])))


def _flash_attention(rng: np.random.Generator) -> Array:
    heads, n, d = int(rng.integers(1, 3)), int(rng.integers(1, 100)), int(rng.choice([8, 16, 32]))
    q, k, v = (_values(rng, heads, n, d) for _ in range(3))
    return flash_attention.run(q, k, v, rows=32, keys=int(rng.choice([16, 32])))


@pytest.mark.parametrize("run", [_vector_add, _matmul, _softmax, _layer_norm, _flash_attention])
def test_simulator_gives_the_bits_of_the_reference(run: Callable[[np.random.Generator], Array]) -> None:
    for seed in range(SHAPES):
        got = run(np.random.default_rng(seed))
        with loom.knobs.override(interpret=True):
            expected = run(np.random.default_rng(seed))
        different = got.view(np.uint32) != expected.view(np.uint32)
        assert not different.any(), f"seed {seed}: {int(different.sum())} of {different.size} elements differ"
