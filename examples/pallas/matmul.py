"""Matrix product: the third grid axis goes over the depth, an accumulator in SRAM is kept over it."""

from __future__ import annotations

import numpy as np

import loom.experimental.pallas as pl
from loom.experimental.pallas import numpy as jnp
from loom.experimental.pallas import tpu as pltpu


def matmul(x_ref, y_ref, out_ref, acc_ref):
    """One step of the product of a row of blocks and a column of blocks."""

    @pl.when(pl.program_id(2) == 0)
    def start():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def end():
        out_ref[...] = acc_ref[...].astype(out_ref.dtype)


def run(x: np.ndarray, y: np.ndarray, bm: int = 64, bn: int = 64, bk: int = 32) -> np.ndarray:
    """x @ y of matrices whose depth is a multiple of bk."""
    (m, k), n = x.shape, y.shape[1]
    kernel = pl.pallas_call(
        matmul,
        out_shape=pl.ShapeDtypeStruct((m, n), x.dtype),
        grid=(pl.cdiv(m, bm), pl.cdiv(n, bn), k // bk),
        in_specs=[pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)), pl.BlockSpec((bk, bn), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
    )
    return kernel(x, y)


def main() -> None:
    """Check sizes that fill no block, with a transposed operand."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((100, 128), dtype=np.float32), rng.standard_normal((70, 128), dtype=np.float32).T
    error = np.abs(run(x, y) - x.astype(np.float64) @ y).max()
    print(f"matmul 100 x 128 x 70: largest error {error:.1e}")
    assert error < 1e-4


if __name__ == "__main__":
    main()
