"""Result dtypes are JAX's, for every pair of dtypes, weak and strong."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from loom_core.base import dtype as core
from loom_core.base.diagnostics import LoomError
from palladium.promotion import as_dtype, result_dtype

jax = pytest.importorskip("jax")
NARROW = [dtype for dtype in core.ALL if dtype.bits <= 32]
WIDE = {"int64": "int32", "uint64": "uint32", "float64": "float32"}


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations_with_replacement(NARROW, 2)), ids=str)
def test_two_dtypes(a: core.DType, b: core.DType) -> None:
    try:
        wanted = jax.numpy.promote_types(a.numpy, b.numpy).name
    except ValueError:
        with pytest.raises(LoomError, match="no common dtype"):
            result_dtype([(a, False), (b, False)], "add")
        return
    # promote_types knows 64-bit types even where arrays have none.
    assert result_dtype([(a, False), (b, False)], "add") == (as_dtype(WIDE.get(wanted, wanted)), False)


@pytest.mark.parametrize("number", [1, 1.0], ids=["int", "float"])
@pytest.mark.parametrize("dtype", [d for d in NARROW if d.bits >= 8 or d.is_bool], ids=str)
def test_a_number_and_a_dtype(dtype: core.DType, number: float) -> None:
    wanted = (jax.numpy.zeros((), dtype.numpy) + number).dtype
    weak = (core.f32 if isinstance(number, float) else core.i32), True
    assert result_dtype([(dtype, False), weak], "add")[0].numpy == wanted


def test_64_bits_stay() -> None:
    assert result_dtype([(core.i64, False), (core.i32, False)], "add") == (core.i64, False)
    assert result_dtype([(core.f64, False), (core.f32, True)], "add") == (core.f64, False)
    assert as_dtype(np.float64) is core.f64 and as_dtype(float) is core.f32
