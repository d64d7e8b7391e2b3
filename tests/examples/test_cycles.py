"""How busy the matrix units of machine l1 are in kernels that were written for it; their results are right."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import examples.matmul_epilogue as products
import examples.paired_attention as attention
from benchmarks import cycles
from loom_core.isa.machine import L1


def test_a_large_product_keeps_the_matrix_units_busy() -> None:
    trace, out = cycles.product(2048)
    assert trace.cores == L1.cores
    assert trace.busy_fraction("MXU") >= cycles.PRODUCT_BAR, trace.table()
    a, b, bias, scale = products.operands(np.dtype(ml_dtypes.bfloat16), 2048, 2048, 2048)
    expected = products.reference(a[:64], b, bias, scale)
    assert np.allclose(out[:64].astype(np.float64), expected, rtol=2**-7, atol=2**-6)


def test_causal_attention_keeps_the_matrix_units_busy() -> None:
    trace, out = cycles.causal_attention(8, 2048, 128)
    assert trace.cores == L1.cores
    assert trace.busy_fraction("MXU") >= cycles.ATTENTION_BAR, trace.table()
    q, k, v = attention.operands(8, 2048, 128)
    expected = attention.reference(q[-1:], k[-1:], v[-1:])
    assert np.abs(out[-1:].astype(np.float64) - expected).max() < 2**-6
