"""Paged gather: the pages of each sequence, in the order that its table says."""

from __future__ import annotations

import numpy as np

import loom.experimental.pallas as pl
from loom.experimental.pallas import tpu as pltpu


def gather(table_ref, pages_ref, out_ref):
    """One page to its place."""
    out_ref[...] = pages_ref[...]


def run(pages: np.ndarray, table: np.ndarray) -> np.ndarray:
    """out[s, t] = pages[table[s, t]]; a number outside of the pages is an error that names the grid point."""
    size, width = pages.shape[1:]
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=table.shape,
        in_specs=[pl.BlockSpec((None, size, width), lambda s, t, table: (table[s, t], 0, 0))],
        out_specs=pl.BlockSpec((None, None, size, width), lambda s, t, table: (s, t, 0, 0)),
    )
    out = pl.ShapeDtypeStruct((*table.shape, size, width), pages.dtype)
    return pl.pallas_call(gather, out_shape=out, grid_spec=spec)(table, pages)


def main() -> None:
    """Check two sequences of three pages."""
    pages = np.random.default_rng(0).standard_normal((8, 16, 32), dtype=np.float32)
    table = np.array([[3, 0, 7], [7, 7, 1]], np.int32)
    assert np.array_equal(run(pages, table), pages[table])
    print("paged gather of 2 x 3 pages of 16 x 32: equal to NumPy")


if __name__ == "__main__":
    main()
