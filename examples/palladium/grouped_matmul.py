"""Grouped matrix product: each block of rows is multiplied with the weights of the group that it belongs to.

The groups of the blocks are prefetched scalars: the index map of the weights reads them.
"""

from __future__ import annotations

import numpy as np

import loom
from loom.experimental import palladium as lpl


def grouped_matmul(groups_ref, x_ref, weights_ref, out_ref):
    """One block of rows times one group's weights."""
    out_ref[...] = lpl.dot(x_ref[...], weights_ref[...])


def run(x: np.ndarray, weights: np.ndarray, groups: np.ndarray, columns: int = 32) -> np.ndarray:
    """out[i] = x[i] @ weights[groups[i // rows]], rows = len(x) / len(groups), of float32 arrays."""
    rows, (_, depth, width) = len(x) // len(groups), weights.shape
    spec = lpl.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(len(groups), width // columns),
        in_specs=[
            lpl.BlockSpec((rows, depth), lambda i, j, groups: (i, 0)),
            lpl.BlockSpec((None, depth, columns), lambda i, j, groups: (groups[i], 0, j)),
        ],
        out_specs=lpl.BlockSpec((rows, columns), lambda i, j, groups: (i, j)),
    )
    out = lpl.ShapeDtypeStruct((len(x), width), x.dtype)
    return lpl.call(grouped_matmul, out_shape=out, grid_spec=spec)(groups, x, weights)


def reference(x: np.ndarray, weights: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The same in float64."""
    parts = np.split(x.astype(np.float64), len(groups))
    return np.concatenate([part @ weights[group] for part, group in zip(parts, groups, strict=True)])


def main() -> None:
    """Check five blocks of three groups."""
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((80, 48), dtype=np.float32), rng.standard_normal((3, 48, 64), dtype=np.float32)
    groups = np.array([2, 0, 0, 1, 2], np.int32)
    with loom.profile() as traces:
        found = run(x, weights, groups)
    error = np.abs(found - reference(x, weights, groups)).max()
    print(f"grouped matmul, 5 blocks of 16 x 48 x 64: {found[0, :3]} ...")
    print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
    assert error < 1e-4


if __name__ == "__main__":
    main()
