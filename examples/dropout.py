"""Dropout whose mask is never stored: both directions draw it anew from the seed and each element's position.

The random numbers are Philox's, a counter-based generator: number i depends on the seed and i alone, so any program can
draw any of them, and the gradient meets exactly the elements that the forward pass kept.
"""

from __future__ import annotations

import numpy as np

import loom
import loom.triton.language as ltl


@ltl.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: ltl.constexpr):
    """out = x / (1 - p) where a random number in [0, 1) is at least p, else 0."""
    offsets = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    inside = offsets < n
    x = ltl.load(x_ptr + offsets, mask=inside, other=0.0)
    kept = ltl.rand(seed, offsets) >= p
    ltl.store(out_ptr + offsets, ltl.where(kept, x / (1 - p), 0.0), mask=inside)


def run(x: np.ndarray, p: float, seed: int, block: int = 1024) -> np.ndarray:
    """Dropout of a contiguous float32 array. Of a gradient, with the same p and seed, it is the backward pass."""
    out = np.empty_like(x)
    dropout[(ltl.cdiv(x.size, block),)](x, out, x.size, p, seed, BLOCK=block)
    return out


def philox(seed: int, n: int) -> np.ndarray:
    """n random float32 in [0, 1): the first word of Philox-4x32-10 (Salmon et al. 2011) of each counter below n."""
    low = np.uint64(0xFFFFFFFF)
    c0, c1, c2, c3 = np.arange(n, dtype=np.uint64), *(np.zeros(n, np.uint64) for _ in range(3))
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (b >> np.uint64(32)) ^ c1 ^ k0, b & low, (a >> np.uint64(32)) ^ c3 ^ k1, a & low
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    signed = c0.astype(np.uint32).view(np.int32)
    return np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(4.6566127342e-10)


def reference(x: np.ndarray, p: float, seed: int) -> np.ndarray:
    """The same in NumPy."""
    kept = philox(seed, x.size).reshape(x.shape) >= np.float32(p)
    return np.where(kept, x / (np.float32(1) - np.float32(p)), np.float32(0))


def main() -> None:
    """Check both directions, and how many elements stay."""
    x, gradient = np.random.default_rng(0).standard_normal((2, 100, 137), dtype=np.float32)
    with loom.profile() as traces:
        out, back = run(x, 0.3, seed=42), run(gradient, 0.3, seed=42)
    assert out.tobytes() == reference(x, 0.3, 42).tobytes()
    assert np.array_equal(out == 0, back == 0), "one mask for both directions"
    kept = np.count_nonzero(out) / out.size
    print(f"dropout of {x.size} elements, p = 0.3: {kept:.1%} kept, in both directions the same")
    print(f"equal to NumPy, {traces.cycles:,} cycles")


if __name__ == "__main__":
    main()
