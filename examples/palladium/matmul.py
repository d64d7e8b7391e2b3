"""Matrix product: the third grid axis goes over the depth, an accumulator in SRAM is kept over it."""

from __future__ import annotations

import numpy as np

import loom
from loom.experimental import palladium as lpl


def matmul(x_ref, y_ref, out_ref, acc_ref):
    """One step of the product of a row of blocks and a column of blocks."""

    @lpl.when(lpl.program_id(2) == 0)
    def start():
        acc_ref[...] = lpl.zeros_like(acc_ref)

    acc_ref[...] += lpl.dot(x_ref[...], y_ref[...], preferred_element_type=lpl.float32)

    @lpl.when(lpl.program_id(2) == lpl.num_programs(2) - 1)
    def end():
        out_ref[...] = acc_ref[...].astype(out_ref.dtype)


def run(x: np.ndarray, y: np.ndarray, bm: int = 64, bn: int = 64, bk: int = 32) -> np.ndarray:
    """x @ y of matrices whose depth is a multiple of bk."""
    (m, k), n = x.shape, y.shape[1]
    kernel = lpl.call(
        matmul,
        out_shape=lpl.ShapeDtypeStruct((m, n), x.dtype),
        grid=(lpl.cdiv(m, bm), lpl.cdiv(n, bn), k // bk),
        in_specs=[lpl.BlockSpec((bm, bk), lambda i, j, k: (i, k)), lpl.BlockSpec((bk, bn), lambda i, j, k: (k, j))],
        out_specs=lpl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        scratch=[lpl.SRAM((bm, bn), lpl.float32)],
    )
    return kernel(x, y)


def main() -> None:
    """Check sizes that fill no block, with a transposed operand."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((100, 128), dtype=np.float32), rng.standard_normal((70, 128), dtype=np.float32).T
    with loom.profile() as traces:
        found = run(x, y)
    error = np.abs(found - x.astype(np.float64) @ y).max()
    print(f"matmul 100 x 128 x 70: {found[0, :3]} ...")
    print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
    assert error < 1e-4


if __name__ == "__main__":
    main()
