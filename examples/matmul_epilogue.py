"""Matrix product with scale, bias and ReLU, of float32, bfloat16 or int8: one kernel, one epilogue.

The product accumulates in float32, or exactly in int32 for int8 operands. What is done to it element by element is
part of the drain, in which it leaves the matrix unit, so that the product itself is never stored. With int8 this is a
quantised layer: `scale` is the product of the scales of both operands, divided by that of the result.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import loom
import loom.triton.language as ltl


@ltl.jit
def linear_relu(a_ptr, b_ptr, bias_ptr, out_ptr, M, N, K, scale, BM: ltl.constexpr, BN: ltl.constexpr,
                BK: ltl.constexpr):  # fmt: skip
    """out[M, N] = relu(a[M, K] @ b[K, N] * scale + bias[N]), rounded to the dtype of out; BK divides K."""
    rows = ltl.program_id(0) * BM + ltl.arange(0, BM)[:, None]
    columns = ltl.program_id(1) * BN + ltl.arange(0, BN)[None, :]
    integers: ltl.constexpr = a_ptr.dtype.element_ty == ltl.int8
    acc = ltl.zeros((BM, BN), dtype=ltl.int32 if integers else ltl.float32)
    for first in range(0, K, BK):
        depth = first + ltl.arange(0, BK)
        a = ltl.load(a_ptr + rows * K + depth[None, :], mask=rows < M, other=0)
        b = ltl.load(b_ptr + depth[:, None] * N + columns, mask=columns < N, other=0)
        acc = ltl.dot(a, b, acc)
    bias = ltl.load(bias_ptr + columns, mask=columns < N, other=0.0)
    result = ltl.maximum(acc.to(ltl.float32) * scale + bias, 0.0)
    if integers:
        result = ltl.floor(result + 0.5)  # the store saturates at 127
    ltl.store(out_ptr + rows * N + columns, result.to(out_ptr.dtype.element_ty), mask=(rows < M) & (columns < N))


def run(a: np.ndarray, b: np.ndarray, bias: np.ndarray, scale: float, bm: int = 64, bn: int = 64) -> np.ndarray:
    """relu(a @ b * scale + bias) of C-contiguous matrices of one dtype, whose depth is a multiple of 32."""
    (m, k), n = a.shape, b.shape[1]
    out = np.empty((m, n), a.dtype)
    linear_relu[ltl.cdiv(m, bm), ltl.cdiv(n, bn)](a, b, bias, out, m, n, k, scale, BM=bm, BN=bn, BK=32)
    return out


def reference(a: np.ndarray, b: np.ndarray, bias: np.ndarray, scale: float) -> np.ndarray:
    """The same in NumPy: of floats in float64, not rounded; of integers exactly, with the epilogue in float32."""
    if a.dtype == np.int8:
        product = (a.astype(np.int32) @ b.astype(np.int32)).astype(np.float32)
        result = np.maximum(product * np.float32(scale) + bias, np.float32(0))
        return np.minimum(np.floor(result + np.float32(0.5)), 127).astype(np.int8)
    return np.maximum(a.astype(np.float64) @ b.astype(np.float64) * scale + bias, 0)


def operands(dtype: np.dtype, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Random arguments of `run`."""
    rng = np.random.default_rng(0)
    bias = rng.standard_normal(n, dtype=np.float32)
    if dtype == np.int8:
        a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
        return a, b, bias, 1e-3
    a, b = (rng.standard_normal(shape, dtype=np.float32).astype(dtype) for shape in ((m, k), (k, n)))
    return a, b, bias, 0.5


def main() -> None:
    """Check sizes that fill no block."""
    for dtype, tolerance in (("float32", 1e-5), (ml_dtypes.bfloat16, 2**-8), ("int8", 0)):
        arguments = operands(np.dtype(dtype), 100, 70, 128)
        with loom.profile() as traces:
            found = run(*arguments)
        expected = reference(*arguments).astype(np.float64)
        error = (np.abs(found.astype(np.float64) - expected) / np.maximum(np.abs(expected), 1)).max()
        name = f"{found.dtype} 100 x 128 x 70 with epilogue"
        print(f"{name}: {found[0, :3]} ...")
        print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
        assert error <= tolerance


if __name__ == "__main__":
    main()
