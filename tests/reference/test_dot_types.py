"""Products of other types than float32: by exact integers, and by widened operands."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import DTypeLike

from loom_core.reference.dot import dot, dot32, dot_i32

INTEGERS: list[DTypeLike] = [np.int8, np.uint8, ml_dtypes.int4, ml_dtypes.uint4]
FLOATS: list[DTypeLike] = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(INTEGERS, INTEGERS)))
def test_integers_are_exact(left: DTypeLike, right: DTypeLike) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-128, 256, (3, 40)).astype(left), rng.integers(-128, 256, (40, 5)).astype(right)
    exact = [[sum(int(a[i, k]) * int(b[k, j]) for k in range(40)) for j in range(5)] for i in range(3)]
    got = dot(a, b)
    assert got.dtype == np.int32
    assert got.tolist() == exact


def test_integers_wrap() -> None:
    a, b = np.full((1, 3), 255, np.uint8), np.full((3, 1), 255, np.uint8)
    acc = np.array([[2**31 - 1]], np.int32)
    assert dot_i32(a, b, acc).item() == 2**31 - 1 + 3 * 255 * 255 - 2**32
    large = np.full((1, 2), 2**62, np.int64)
    assert dot_i32(large, np.array([[3], [1]], np.int64)).item() == 0


@pytest.mark.parametrize("kind", FLOATS)
def test_narrow_floats_widen(kind: DTypeLike) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((3, 200)).astype(kind), rng.standard_normal((200, 4)).astype(kind)
    acc = rng.standard_normal((3, 4)).astype(np.float32)
    wide = dot32(a.astype(np.float32), b.astype(np.float32), acc)
    assert dot(a, b, acc).tobytes() == wide.tobytes()
    assert dot(a, b.astype(np.float32), acc).tobytes() == wide.tobytes()


def test_types_without_a_product() -> None:
    one = np.ones((1, 1), np.float32)
    for other in (np.float64, np.int8, np.bool_):
        with pytest.raises(TypeError, match="no product"):
            dot(one, one.astype(other))
    with pytest.raises(ValueError, match="do not multiply"):
        dot(np.ones((2, 3), np.int8), np.ones((2, 3), np.int8))
