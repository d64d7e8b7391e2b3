"""Paged gather: the pages of each sequence, in the order that its table says."""

from __future__ import annotations

import numpy as np

import loom
from loom.experimental import palladium as lpl


def gather(table_ref, pages_ref, out_ref):
    """One page to its place."""
    out_ref[...] = pages_ref[...]


def run(pages: np.ndarray, table: np.ndarray) -> np.ndarray:
    """out[s, t] = pages[table[s, t]]; a number outside of the pages is an error that names the grid point."""
    size, width = pages.shape[1:]
    spec = lpl.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=table.shape,
        in_specs=[lpl.BlockSpec((None, size, width), lambda s, t, table: (table[s, t], 0, 0))],
        out_specs=lpl.BlockSpec((None, None, size, width), lambda s, t, table: (s, t, 0, 0)),
    )
    out = lpl.ShapeDtypeStruct((*table.shape, size, width), pages.dtype)
    return lpl.call(gather, out_shape=out, grid_spec=spec)(table, pages)


def main() -> None:
    """Check two sequences of three pages."""
    pages = np.random.default_rng(0).standard_normal((8, 16, 32), dtype=np.float32)
    table = np.array([[3, 0, 7], [7, 7, 1]], np.int32)
    with loom.profile() as traces:
        found = run(pages, table)
    assert np.array_equal(found, pages[table])
    print(f"paged gather of 2 x 3 pages of 16 x 32: {found[0, 0, 0, :3]} ...")
    print(f"equal to NumPy, {traces.cycles:,} cycles")


if __name__ == "__main__":
    main()
