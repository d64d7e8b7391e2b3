"""Parts of tiles, and tiles made of parts, compiled: the bits of the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ltl
from loom_core.base.knobs import knobs


@ltl.jit
def rearranged(joined, halves, turned, x, n, N: ltl.constexpr):
    """In a loop whose loads run ahead: the tile's address changes from row to row."""
    i = ltl.arange(0, N)
    half = ltl.arange(0, N // 2)
    for row in range(n):
        value = ltl.load(x + row * N + i)
        ltl.store(joined + row * 2 * N + ltl.arange(0, 2 * N), ltl.cat(value, ltl.flip(value, 0), can_reorder=True))
        even, odd = ltl.split(ltl.reshape(value, (N // 2, 2)))
        ltl.store(halves + row * N + half, odd)
        ltl.store(halves + row * N + N // 2 + half, even)
        ltl.store(turned + row * N + i, ltl.interleave(odd, even))


@ltl.jit
def split_product(out, a, N: ltl.constexpr):
    """What is taken apart stands in an accumulator."""
    i, half = ltl.arange(0, N), ltl.arange(0, N // 2)
    x = ltl.load(a + i[:, None] * N + i[None, :])
    even, odd = ltl.split(ltl.reshape(ltl.dot(x, x), (N, N // 2, 2)))
    at = out + i[:, None] * N + half[None, :]
    ltl.store(at, odd)
    ltl.store(at + N // 2, even)


def both(kernel: ltl.JitFunction, *args: Any, **kwargs: Any) -> tuple[list[bytes], list[bytes]]:
    """What the arrays hold after a run by the interpreter, and after a compiled one."""
    found = []
    for interpret in (True, False):
        arrays = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        with knobs.override(interpret=interpret):
            kernel[(1,)](*arrays, **kwargs)
        found.append([array.tobytes() for array in arrays if isinstance(array, np.ndarray)])
    return found[0], found[1]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float16, np.int64])
def test_parts_in_a_loop(dtype: Any) -> None:
    x = (np.random.default_rng(7).standard_normal((5, 16)) * 50).astype(dtype)
    arrays = np.zeros((5, 32), dtype), np.zeros((5, 16), dtype), np.zeros((5, 16), dtype)
    interpreted, compiled = both(rearranged, *arrays, x, 5, N=16)
    assert interpreted == compiled
    joined, halves, turned = (np.frombuffer(data, dtype).reshape(5, -1) for data in compiled[:3])
    assert np.array_equal(joined, np.concatenate([x, x[:, ::-1]], axis=1))
    assert np.array_equal(halves, np.concatenate([x[:, 1::2], x[:, ::2]], axis=1))
    assert np.array_equal(turned, x.reshape(5, 8, 2)[:, :, ::-1].reshape(5, 16))


def test_parts_of_a_product() -> None:
    a = np.random.default_rng(8).standard_normal((16, 16)).astype(np.float32)
    interpreted, compiled = both(split_product, np.zeros((16, 16), np.float32), a, N=16)
    assert interpreted == compiled
    assert np.frombuffer(compiled[0], np.float32).any()


@ltl.jit
def single_elements(out, x, n):
    """Scalars that are the only element of a tile, used by the command processor."""
    first, second = ltl.split(ltl.load(x + ltl.arange(0, 2)))
    at = ltl.sum(ltl.arange(0, 1) + n, 0)
    ltl.store(out + first.to(ltl.int64), second.to(ltl.int64) + 1)
    ltl.store(out + at, at * 2)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int64])
def test_tiles_of_one_element_are_scalars(dtype: Any) -> None:
    interpreted, compiled = both(single_elements, np.zeros(8, np.int64), np.array([3, 40], dtype), 5)
    assert interpreted == compiled
    assert np.frombuffer(compiled[0], np.int64).tolist() == [0, 0, 0, 41, 0, 10, 0, 0]
