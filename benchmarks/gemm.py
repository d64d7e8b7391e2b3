"""GEMM through `@ltl.jit`, whole objects: fp32 against OpenBLAS on one thread, other types against our fp32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import loom.triton.language as ltl
from benchmarks.language import kernels_in
from benchmarks.measure import compare
from benchmarks.result import Result

SIZES = {128: 0.7, 256: 0.85, 512: 0.85, 1024: 0.85, 2048: 0.85}
BLOCK, DEPTH = 512, 128
TYPES: dict[str, Any] = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "int8": np.int8}
TYPED_SIZE = 1024


def run() -> list[Result]:
    """Blocks are 512 x 512 x 128, or the whole matrix where that is smaller."""
    return [*_against_openblas(), *_types()]


def _against_openblas() -> list[Result]:
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


@ltl.jit
def typed_matmul(a, b, c, n, ACC: ltl.constexpr, M: ltl.constexpr, N: ltl.constexpr, K: ltl.constexpr):
    row = ltl.program_id(0) * M + ltl.arange(0, M)
    column = ltl.program_id(1) * N + ltl.arange(0, N)
    depth = ltl.arange(0, K)
    a_at, b_at = a + row[:, None] * n + depth[None, :], b + depth[:, None] * n + column[None, :]
    acc = ltl.zeros((M, N), dtype=ACC)
    for _ in range(0, n, K):
        acc = ltl.dot(ltl.load(a_at), ltl.load(b_at), acc)
        a_at += K
        b_at += K * n
    ltl.store(c + row[:, None] * n + column[None, :], acc)


def _types() -> list[Result]:
    import torch

    torch.set_num_threads(1)
    n = TYPED_SIZE
    values = np.random.default_rng(1).integers(-8, 8, (2, n, n)).astype(np.float32)
    plain, plain_torch = _typed(values), _torch_product(torch, torch.from_numpy(values))
    results = []
    for name, dtype in TYPES.items():
        measured = compare(_typed(values.astype(dtype)), plain)
        torch_type = {"bf16": torch.bfloat16, "fp16": torch.float16, "int8": torch.int8}[name]
        peer = compare(_torch_product(torch, torch.from_numpy(values).to(torch_type)), plain_torch, pairs=3)
        detail = {"gflops": 2 * n**3 / measured.ours / 1e9, "torch_ratio": peer.ratio}
        results.append(Result(f"GEMM {name} n={n} against our fp32", measured.ratio, 0.8, detail=detail))
    return results


def _typed(operands: Any) -> Callable[[], None]:
    """The product of two matrices of whole numbers, checked once."""
    n, is_integer = TYPED_SIZE, operands.dtype == np.int8
    out = np.empty((n, n), np.int32 if is_integer else np.float32)
    accumulator = ltl.int32 if is_integer else ltl.float32
    grid = (n // BLOCK, n // BLOCK)

    def product() -> None:
        typed_matmul[grid](operands[0], operands[1], out, n, ACC=accumulator, M=BLOCK, N=BLOCK, K=DEPTH)

    product()
    wide = operands.astype(np.float64)
    assert (out == wide[0] @ wide[1]).all()
    return product


def _torch_product(torch: Any, operands: Any) -> Callable[[], Any]:
    multiply = torch._int_mm if operands.dtype == torch.int8 else torch.mm
    return lambda: multiply(operands[0], operands[1])
