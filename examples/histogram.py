"""A histogram: each program counts its own block, then adds its counts to the result with atomic additions.

Programs may meet in memory only through atomics: a plain store here would be a race, which `loom.check()` reports.
"""

from __future__ import annotations

import numpy as np

import loom
import loom.triton.language as ltl


@ltl.jit
def histogram(x_ptr, counts_ptr, n, low, scale, BINS: ltl.constexpr, BLOCK: ltl.constexpr):
    """counts[b] += how many x lie in bin b = (x - low) * scale; those outside of all bins do not count."""
    offsets = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    x = ltl.load(x_ptr + offsets, mask=offsets < n, other=float("-inf"))
    bins = ltl.floor((x - low) * scale).to(ltl.int32)
    counts = ltl.histogram(bins, BINS)
    ltl.atomic_add(counts_ptr + ltl.arange(0, BINS), counts)


def run(x: np.ndarray, bins: int, low: float, high: float, block: int = 1024) -> np.ndarray:
    """int32 counts of a contiguous float32 vector in equal bins of [low, high)."""
    counts = np.zeros(bins, np.int32)
    scale = bins / (high - low)
    histogram[(ltl.cdiv(x.size, block),)](x, counts, x.size, low, scale, BINS=bins, BLOCK=block)
    return counts


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
