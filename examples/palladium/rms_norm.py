"""RMS norm: each row is divided by the root of its mean square. A grid point computes some whole rows."""

from __future__ import annotations

import functools

import numpy as np

import loom
from loom.experimental import palladium as lpl


def rms_norm(x_ref, weight_ref, out_ref, *, eps):
    """x / sqrt(mean(x * x) + eps) * weight, of the rows of a block."""
    x = x_ref[...]
    mean_square = lpl.mean(x * x, axis=1, keepdims=True)
    out_ref[...] = x * lpl.rsqrt(mean_square + eps) * weight_ref[...]


def run(x: np.ndarray, weight: np.ndarray, eps: float = 1e-6, rows: int = 8) -> np.ndarray:
    """RMS norm of the rows of a float32 matrix."""
    block = lpl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    kernel = lpl.call(
        functools.partial(rms_norm, eps=eps),
        out_shape=lpl.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(lpl.cdiv(len(x), rows),),
        in_specs=[block, lpl.BlockSpec(weight.shape, lambda i: (0,))],
        out_specs=block,
    )
    return kernel(x, weight)


def reference(x: np.ndarray, weight: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """The same in float64."""
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide * wide).mean(1, keepdims=True) + eps) * weight


def main() -> None:
    """Check a number of rows that fills no block."""
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((19, 700), dtype=np.float32), rng.standard_normal(700, dtype=np.float32)
    with loom.profile() as traces:
        found = run(x, weight)
    error = np.abs(found - reference(x, weight)).max()
    print(f"RMS norm of 19 rows of 700: {found[0, :3]} ...")
    print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
    assert error < 1e-5


if __name__ == "__main__":
    main()
