"""Matrix product with bias and GELU: the epilogue runs while the accumulator is drained."""

from __future__ import annotations

from math import erf

import numpy as np

import loom
import loom.triton.language as ltl


@ltl.jit
def gelu(x):
    """x times the normal distribution function of x."""
    return 0.5 * x * (1.0 + ltl.erf(x * 0.7071067811865476))


@ltl.jit
def linear_gelu(a_ptr, b_ptr, bias_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om,
                stride_on, BM: ltl.constexpr, BN: ltl.constexpr, BK: ltl.constexpr):  # fmt: skip
    """out[M, N] = gelu(a[M, K] @ b[K, N] + bias[N]), a block of BM x BN in each program."""
    rows = ltl.program_id(0) * BM + ltl.arange(0, BM)
    columns = ltl.program_id(1) * BN + ltl.arange(0, BN)
    depth = ltl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * stride_am + depth[None, :] * stride_ak
    b_ptrs = b_ptr + depth[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = ltl.zeros((BM, BN), dtype=ltl.float32)
    for k in range(ltl.cdiv(K, BK)):
        left = K - k * BK
        a = ltl.load(a_ptrs, mask=(rows[:, None] < M) & (depth[None, :] < left), other=0.0)
        b = ltl.load(b_ptrs, mask=(depth[:, None] < left) & (columns[None, :] < N), other=0.0)
        acc += ltl.dot(a, b)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    bias = ltl.load(bias_ptr + columns, mask=columns < N, other=0.0)
    out_ptrs = out_ptr + rows[:, None] * stride_om + columns[None, :] * stride_on
    ltl.store(out_ptrs, gelu(acc + bias[None, :]), mask=(rows[:, None] < M) & (columns[None, :] < N))


def element_strides(array: np.ndarray) -> tuple[int, ...]:
    """Strides in elements, as Triton counts them."""
    return tuple(stride // array.itemsize for stride in array.strides)


def run(a: np.ndarray, b: np.ndarray, bias: np.ndarray, bm: int = 64, bn: int = 64, bk: int = 32) -> np.ndarray:
    """gelu(a @ b + bias) of float32 matrices of any strides."""
    (m, k), n = a.shape, b.shape[1]
    out = np.empty((m, n), np.float32)
    strides = (*element_strides(a), *element_strides(b), *element_strides(out))
    grid = (ltl.cdiv(m, bm), ltl.cdiv(n, bn))
    linear_gelu[grid](a, b, bias, out, m, n, k, *strides, BM=bm, BN=bn, BK=bk)
    return out


def reference(a: np.ndarray, b: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The same in float64."""
    x = a.astype(np.float64) @ b.astype(np.float64) + bias
    return 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def main() -> None:
    """Check sizes that fill no block, with a transposed operand."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((100, 130), dtype=np.float32)
    b = rng.standard_normal((70, 130), dtype=np.float32).T
    bias = rng.standard_normal(70, dtype=np.float32)
    with loom.profile() as traces:
        found = run(a, b, bias)
    error = np.abs(found - reference(a, b, bias)).max()
    print(f"matmul + bias + gelu, 100 x 130 x 70: {found[0, :3]} ...")
    print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
    assert error < 1e-4


if __name__ == "__main__":
    main()
