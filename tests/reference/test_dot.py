"""The dot rule against a scalar loop of the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loom_core.reference.arith import add32, fma32
from loom_core.reference.dot import dot32


@pytest.mark.parametrize("depth", [0, 1, 127, 128, 129, 300])
@pytest.mark.parametrize("with_accumulator", [False, True])
def test_passes_of_128(depth: int, with_accumulator: bool) -> None:
    rng = np.random.default_rng(depth)
    a = rng.standard_normal((3, depth)).astype(np.float32)
    b = rng.standard_normal((depth, 2)).astype(np.float32)
    acc = rng.standard_normal((3, 2)).astype(np.float32) if with_accumulator else None
    got = dot32(a, b, acc)
    for i in range(3):
        for j in range(2):
            total: Any = np.float32(0) if acc is None else acc[i, j]
            for start in range(0, depth, 128):
                t: Any = np.float32(0)
                for k in range(start, min(depth, start + 128)):
                    t = fma32(a[i, k], b[k, j], t)
                total = add32(total, t)
            assert np.float32(total).tobytes() == got[i, j].tobytes()


def test_the_order_matters_and_is_kept() -> None:
    # 1e8 absorbs the ones of its own pass only.
    a = np.ones((1, 256), np.float32)
    a[0, 0], a[0, 127] = 1e8, -1e8
    assert dot32(a, np.ones((256, 1), np.float32)).item() == 128.0


def test_batches_broadcast() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((4, 2, 8)).astype(np.float32)
    b = rng.standard_normal((8, 3)).astype(np.float32)
    got = dot32(a, b)
    assert got.shape == (4, 2, 3)
    assert got[2].tobytes() == dot32(a[2], b).tobytes()


def test_shapes_that_do_not_multiply() -> None:
    with pytest.raises(ValueError, match="do not multiply"):
        dot32(np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32))
