"""Softmax of rows: each grid point takes some whole rows."""

from __future__ import annotations

import numpy as np

import loom
from loom.experimental import palladium as lpl


def softmax(x_ref, out_ref):
    """Softmax of the rows of a block."""
    x = x_ref[...]
    weights = lpl.exp(x - lpl.max(x, axis=1, keepdims=True))
    out_ref[...] = weights / lpl.sum(weights, axis=1, keepdims=True)


def run(x: np.ndarray, rows: int = 8) -> np.ndarray:
    """Softmax of the rows of a float32 matrix."""
    spec = lpl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    out = lpl.ShapeDtypeStruct(x.shape, x.dtype)
    return lpl.call(softmax, out_shape=out, grid=(lpl.cdiv(len(x), rows),), in_specs=[spec], out_specs=spec)(x)


def reference(x: np.ndarray) -> np.ndarray:
    """The same in float64."""
    weights = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def main() -> None:
    """Check a number of rows that fills no block."""
    x = np.random.default_rng(0).standard_normal((37, 781), dtype=np.float32)
    with loom.profile() as traces:
        found = run(x)
    error = np.abs(found - reference(x)).max()
    print(f"softmax of 37 rows of 781: {found[0, :3]} ...")
    print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
    assert error < 1e-6


if __name__ == "__main__":
    main()
