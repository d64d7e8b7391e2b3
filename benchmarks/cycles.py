"""How busy the matrix units of machine l1 are, both cores taken together, in the cycle model: bfloat16.

These figures are the same on every host.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import examples.matmul_epilogue as products
import examples.paired_attention as attention
import loom
from benchmarks.result import Result
from loom_core.isa.machine import L1
from loom_sim.trace import Trace

PRODUCT_BAR = 0.90
ATTENTION_BAR = 0.60


def product(n: int) -> tuple[Trace, np.ndarray]:
    """The trace of relu(a @ b * scale + bias) of n x n matrices, and its result."""
    a, b, bias, scale = products.operands(np.dtype(ml_dtypes.bfloat16), n, n, n)
    out = np.empty((n, n), a.dtype)
    grid = (n // 512, n // 256)
    with loom.cores(L1.cores):
        trace = products.linear_relu.trace(a, b, bias, out, n, n, n, scale, BM=512, BN=256, BK=128, grid=grid)
    return trace, out


def causal_attention(heads: int, n: int, d: int) -> tuple[Trace, np.ndarray]:
    """The trace of attention over heads of n rows of d columns, and its result."""
    q, k, v = attention.operands(heads, n, d)
    out = np.empty_like(q)
    blocks = {"D": d, "ROWS": attention.ROWS}
    grid = (n // (2 * attention.ROWS), heads)
    with loom.cores(L1.cores):
        trace = attention.attention.trace(q, k, v, out, n, 1 / float(np.sqrt(d)), grid=grid, **blocks)
    return trace, out


def run() -> list[Result]:
    """The part of all cycles in which the matrix units work."""
    measured = (
        ("MXU busy, matmul 2048^3, bf16, l1", product(2048)[0], PRODUCT_BAR),
        ("MXU busy, causal attention 8 x 2048 x 128, bf16, l1", causal_attention(8, 2048, 128)[0], ATTENTION_BAR),
    )
    return [
        Result(claim, trace.busy_fraction("MXU"), bar, unit="", detail=_detail(trace)) for claim, trace, bar in measured
    ]


def _detail(trace: Trace) -> dict[str, object]:
    """With the part of the cycles that the products alone would take at the array's full rate."""
    cells = 2 * L1.mxu_rows * L1.mxu_cols * trace.cycles * trace.cores
    return {
        "cycles": trace.cycles,
        "cores": trace.cores,
        "machine": f"{trace.machine} {trace.machine_digest}",
        "products_at_full_rate": trace.matrix_flops / cells,
    }
