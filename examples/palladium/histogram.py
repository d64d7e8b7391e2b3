"""A histogram: all grid points add to one block of counts, with one addition in memory for each element."""

from __future__ import annotations

import functools

import numpy as np

import loom
from loom.experimental import palladium as lpl


def histogram(x_ref, counts_ref, *, n, low, scale):
    """counts[b] += how many x of a block lie in bin b = (x - low) * scale; those outside of all bins do not count."""

    @lpl.when(lpl.program_id(0) == 0)
    def start():
        counts_ref[...] = lpl.zeros_like(counts_ref)

    (block,), (bins,) = x_ref.shape, counts_ref.shape
    inside = lpl.program_id(0) * block + lpl.arange(block) < n
    bin_of = lpl.floor((x_ref[...] - low) * scale).astype(lpl.int32)
    counted = inside & (bin_of >= 0) & (bin_of < bins)
    lpl.read_modify_write("add", counts_ref, bin_of, 1, mask=counted)


def run(x: np.ndarray, bins: int, low: float, high: float, block: int = 1024) -> np.ndarray:
    """int32 counts of a float32 vector in equal bins of [low, high)."""
    kernel = lpl.call(
        functools.partial(histogram, n=x.size, low=low, scale=bins / (high - low)),
        out_shape=lpl.ShapeDtypeStruct((bins,), np.int32),
        grid=(lpl.cdiv(x.size, block),),
        in_specs=[lpl.BlockSpec((block,), lambda i: (i,))],
        out_specs=lpl.BlockSpec((bins,), lambda i: (0,)),
    )
    return kernel(x)


def reference(x: np.ndarray, bins: int, low: float, high: float) -> np.ndarray:
    """The same in NumPy."""
    found = np.floor((x - np.float32(low)) * np.float32(bins / (high - low))).astype(np.int64)
    return np.bincount(found[(found >= 0) & (found < bins)], minlength=bins).astype(np.int32)


def main() -> None:
    """Check a size that fills no block."""
    x = np.random.default_rng(0).standard_normal(10_007, dtype=np.float32)
    with loom.profile() as traces:
        counts = run(x, 32, -4, 4)
    assert np.array_equal(counts, reference(x, 32, -4, 4))
    print(f"histogram of {x.size} elements: {counts[14:18]} in the middle")
    print(f"equal to NumPy, {traces.cycles:,} cycles")


if __name__ == "__main__":
    main()
