"""Softmax of rows: each grid point takes some whole rows."""

from __future__ import annotations

import numpy as np

import loom.experimental.pallas as pl
from loom.experimental.pallas import numpy as jnp


def softmax(x_ref, out_ref):
    """Softmax of the rows of a block."""
    x = x_ref[...]
    weights = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    out_ref[...] = weights / jnp.sum(weights, axis=1, keepdims=True)


def run(x: np.ndarray, rows: int = 8) -> np.ndarray:
    """Softmax of the rows of a float32 matrix."""
    spec = pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    out = pl.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(softmax, out_shape=out, grid=(pl.cdiv(len(x), rows),), in_specs=[spec], out_specs=spec)(x)


def reference(x: np.ndarray) -> np.ndarray:
    """The same in float64."""
    weights = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def main() -> None:
    """Check a number of rows that fills no block."""
    x = np.random.default_rng(0).standard_normal((37, 781), dtype=np.float32)
    error = np.abs(run(x) - reference(x)).max()
    print(f"softmax of 37 rows of 781: largest error {error:.1e}")
    assert error < 1e-6


if __name__ == "__main__":
    main()
