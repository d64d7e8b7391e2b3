"""Vector addition: blocks of one dimension, the last of which may reach over the end."""

from __future__ import annotations

import numpy as np

import loom
from loom.experimental import palladium as lpl


def add(x_ref, y_ref, out_ref):
    """One block of x + y."""
    out_ref[...] = x_ref[...] + y_ref[...]


def run(x: np.ndarray, y: np.ndarray, block: int = 1024) -> np.ndarray:
    """The sum of two float32 vectors."""
    spec = lpl.BlockSpec((block,), lambda i: (i,))
    kernel = lpl.call(
        add,
        out_shape=lpl.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(lpl.cdiv(x.size, block),),
        in_specs=[spec, spec],
        out_specs=spec,
    )
    return kernel(x, y)


def main() -> None:
    """Check a size that fills no block."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(100_003, dtype=np.float32) for _ in range(2))
    with loom.profile() as traces:
        found = run(x, y)
    assert np.array_equal(found, x + y)
    print(f"vector add of {x.size} elements: {found[:3]} ...")
    print(f"equal to NumPy, {traces.cycles:,} cycles")


if __name__ == "__main__":
    main()
