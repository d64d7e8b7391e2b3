"""Matrix product with scale, bias and ReLU, of float32, bfloat16 or int8: one kernel, one epilogue.

The product accumulates in a scratch buffer, in float32 or exactly in int32. At the last step of the depth it is scaled
and rounded: this is part of the drain, in which it leaves the matrix unit.
"""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np

import loom
from loom.experimental import palladium as lpl


def linear_relu(a_ref, b_ref, bias_ref, out_ref, acc_ref, *, scale):
    """One step over the depth of a block of relu(a @ b * scale + bias)."""

    @lpl.when(lpl.program_id(2) == 0)
    def start():
        acc_ref[...] = lpl.zeros_like(acc_ref)

    acc_ref[...] += lpl.dot(a_ref[...], b_ref[...], preferred_element_type=acc_ref.dtype)

    @lpl.when(lpl.program_id(2) == lpl.num_programs(2) - 1)
    def end():
        result = lpl.maximum(acc_ref[...].astype(lpl.float32) * scale + bias_ref[...], 0.0)
        if out_ref.dtype == lpl.int8:
            result = lpl.floor(result + 0.5)  # the cast saturates at 127
        out_ref[...] = result.astype(out_ref.dtype)


def run(a: np.ndarray, b: np.ndarray, bias: np.ndarray, scale: float, bm: int = 64, bn: int = 64) -> np.ndarray:
    """relu(a @ b * scale + bias) of matrices of one dtype, whose depth is a multiple of 32."""
    (m, k), n = a.shape, b.shape[1]
    kernel = lpl.call(
        functools.partial(linear_relu, scale=scale),
        out_shape=lpl.ShapeDtypeStruct((m, n), a.dtype),
        grid=(lpl.cdiv(m, bm), lpl.cdiv(n, bn), k // 32),
        in_specs=[
            lpl.BlockSpec((bm, 32), lambda i, j, k: (i, k)),
            lpl.BlockSpec((32, bn), lambda i, j, k: (k, j)),
            lpl.BlockSpec((bn,), lambda i, j, k: (j,)),
        ],
        out_specs=lpl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        scratch=[lpl.SRAM((bm, bn), lpl.int32 if a.dtype == np.int8 else lpl.float32)],
    )
    return kernel(a, b, bias)


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
