"""How busy the matrix units of machine l1 are in the kernels that were written for it: bfloat16, both cores."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import examples.matmul_epilogue as products
import examples.paired_attention as attention
import loom
from loom_core.isa.machine import L1
from loom_sim.trace import Trace


def product_trace(n: int) -> tuple[Trace, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
    """The cycles of an n x n x n product, its result and its arguments."""
    arguments = products.operands(ml_dtypes.bfloat16, n, n, n)
    a, b, bias, scale = arguments
    out = np.empty((n, n), a.dtype)
    grid = (n // 512, n // 256)
    trace = products.linear_relu.trace(a, b, bias, out, n, n, n, scale, BM=512, BN=256, BK=128, grid=grid)
    return trace, out, arguments


def attention_trace(heads: int, n: int, d: int) -> tuple[Trace, np.ndarray, tuple[np.ndarray, ...]]:
    """The cycles of causal attention, its result and its arguments."""
    q, k, v = attention.operands(heads, n, d)
    out = np.empty_like(q)
    rows = attention.ROWS
    grid = (n // (2 * rows), heads)
    trace = attention.attention.trace(q, k, v, out, n, 1 / float(np.sqrt(d)), D=d, ROWS=rows, grid=grid)
    return trace, out, (q, k, v)


def test_a_large_product_keeps_the_matrix_units_busy() -> None:
    with loom.cores(L1.cores):
        trace, out, arguments = product_trace(2048)
    assert trace.cores == L1.cores
    assert trace.busy_fraction("MXU") >= 0.90, trace.table()
    a, b, bias, scale = arguments
    expected = products.reference(a[:64], b, bias, scale)
    assert np.allclose(out[:64].astype(np.float64), expected, rtol=2**-7, atol=2**-6)


def test_causal_attention_keeps_the_matrix_units_busy() -> None:
    with loom.cores(L1.cores):
        trace, out, (q, k, v) = attention_trace(8, 2048, 128)
    assert trace.cores == L1.cores
    assert trace.busy_fraction("MXU") >= 0.60, trace.table()
    expected = attention.reference(q[:1], k[:1], v[:1])
    assert np.abs(out[:1].astype(np.float64) - expected).max() < 2**-6
