"""Vector addition: the smallest kernel with a mask."""

from __future__ import annotations

import numpy as np

import loom
import loom.triton.language as ltl


@ltl.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: ltl.constexpr):
    """out = x + y for n elements, BLOCK of them in each program."""
    offsets = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    mask = offsets < n
    x = ltl.load(x_ptr + offsets, mask=mask)
    y = ltl.load(y_ptr + offsets, mask=mask)
    ltl.store(out_ptr + offsets, x + y, mask=mask)


def run(x: np.ndarray, y: np.ndarray, block: int = 1024) -> np.ndarray:
    """The sum of two float32 vectors."""
    out = np.empty_like(x)
    add[(ltl.cdiv(x.size, block),)](x, y, out, x.size, BLOCK=block)
    return out


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
