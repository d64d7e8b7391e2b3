"""A five-point stencil: blocks of rows overlap by a halo, so the index map counts elements."""

from __future__ import annotations

import numpy as np

import loom
from loom.experimental import palladium as lpl


def stencil(x_ref, out_ref):
    """The mean of each inner element and its four neighbours."""
    rows, columns = out_ref.shape
    inner = lpl.ds(1, columns)
    total = x_ref[0:rows, inner] + x_ref[2 : rows + 2, inner] + x_ref[1 : rows + 1, inner]
    total += x_ref[1 : rows + 1, 0:columns] + x_ref[1 : rows + 1, lpl.ds(2, columns)]
    out_ref[...] = total * 0.2


def run(x: np.ndarray, rows: int = 16) -> np.ndarray:
    """The stencil of the inner elements of a float32 matrix; the inner rows are a multiple of `rows`."""
    height, width = x.shape
    out = lpl.ShapeDtypeStruct((height - 2, width - 2), x.dtype)
    kernel = lpl.call(
        stencil,
        out_shape=out,
        grid=((height - 2) // rows,),
        in_specs=[lpl.BlockSpec((lpl.Element(rows + 2), width), lambda i: (i * rows, 0))],
        out_specs=lpl.BlockSpec((rows, width - 2), lambda i: (i, 0)),
    )
    return kernel(x)


def reference(x: np.ndarray) -> np.ndarray:
    """The same in NumPy, in the same order."""
    total = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, 1:-1]
    total += x[1:-1, :-2] + x[1:-1, 2:]
    return total * np.float32(0.2)


def main() -> None:
    """Check three blocks of rows."""
    x = np.random.default_rng(0).standard_normal((50, 70), dtype=np.float32)
    with loom.profile() as traces:
        found = run(x)
    assert np.array_equal(found, reference(x))
    print(f"stencil of 50 x 70: {found[1, 1:4]} ...")
    print(f"equal to NumPy, {traces.cycles:,} cycles")


if __name__ == "__main__":
    main()
