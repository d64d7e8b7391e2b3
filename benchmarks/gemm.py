"""fp32 GEMM through `@ltl.jit`, whole objects, against OpenBLAS on one thread."""

from __future__ import annotations

import numpy as np

import loom.triton.language as ltl
from benchmarks.language import kernels_in
from benchmarks.measure import compare
from benchmarks.result import Result

SIZES = {128: 0.7, 256: 0.85, 512: 0.85, 1024: 0.85, 2048: 0.85}
BLOCK, DEPTH = 512, 128


def run() -> list[Result]:
    """The kernel's blocks are 512 x 512 x 128, or the whole matrix where that is smaller."""
    matmul = kernels_in(ltl, ltl.jit).matmul
    rng = np.random.default_rng(0)
    warm = rng.standard_normal((2048, 2048), dtype=np.float32)
    np.matmul(warm, warm)
    results = []
    for n, bar in SIZES.items():
        a, b = rng.standard_normal((2, n, n), dtype=np.float32)
        ours, theirs = np.empty_like(a), np.empty_like(a)
        block = min(n, BLOCK)
        launch = matmul[ltl.cdiv(n, block), ltl.cdiv(n, block)]

        def loom() -> None:
            launch(a, b, ours, n, n, n, M=block, N=block, K=DEPTH)  # noqa: B023 (called in this iteration only)

        def openblas() -> None:
            np.matmul(a, b, out=theirs)  # noqa: B023

        measured = compare(loom, openblas)
        assert np.allclose(ours, theirs, atol=1e-2)
        detail = {"gflops": 2 * n**3 / measured.ours / 1e9, "openblas_gflops": 2 * n**3 / measured.theirs / 1e9}
        results.append(Result(f"GEMM fp32 n={n} against OpenBLAS", measured.ratio, bar, detail=detail))
    return results
