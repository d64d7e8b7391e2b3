"""Dropout whose mask is never stored: both directions draw it anew from the seed and each element's position.

Palladium has no random numbers of its own; Philox, a counter-based generator, is ten rounds of integer arithmetic.
"""

from __future__ import annotations

import functools

import numpy as np

import loom
from loom.experimental import palladium as lpl


def multiply(x, factor):
    """The high and the low 32 bits of x * factor."""
    product = x.astype(lpl.uint64) * factor
    return (product >> 32).astype(lpl.uint32), product.astype(lpl.uint32)


def uniform(seed, counter):
    """Random float32 in [0, 1): the first word of Philox-4x32-10 of each counter (Salmon et al. 2011)."""
    words = [counter.astype(lpl.uint32), *(lpl.zeros(counter.shape, lpl.uint32) for _ in range(3))]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a_high, a_low = multiply(words[0], np.uint64(0xD2511F53))
        b_high, b_low = multiply(words[2], np.uint64(0xCD9E8D57))
        words = [b_high ^ words[1] ^ np.uint32(keys[0]), b_low, a_high ^ words[3] ^ np.uint32(keys[1]), a_low]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    signed = words[0].astype(lpl.int32)
    return lpl.where(signed < 0, ~signed, signed).astype(lpl.float32) * np.float32(4.6566127342e-10)


def dropout(x_ref, out_ref, *, p, seed):
    """A block of x / (1 - p) where a random number is at least p, else 0."""
    (block,) = x_ref.shape
    position = lpl.program_id(0) * block + lpl.arange(block)
    kept = uniform(seed, position) >= p
    out_ref[...] = lpl.where(kept, x_ref[...] / (np.float32(1) - np.float32(p)), 0.0)


def run(x: np.ndarray, p: float, seed: int, block: int = 1024) -> np.ndarray:
    """Dropout of a float32 array. Of a gradient, with the same p and seed, it is the backward pass."""
    spec = lpl.BlockSpec((block,), lambda i: (i,))
    kernel = lpl.call(
        functools.partial(dropout, p=p, seed=seed),
        out_shape=lpl.ShapeDtypeStruct((x.size,), x.dtype),
        grid=(lpl.cdiv(x.size, block),),
        in_specs=[spec],
        out_specs=spec,
    )
    return kernel(x.reshape(-1)).reshape(x.shape)


def main() -> None:
    """Check that both directions keep the same elements, and how many."""
    x, gradient = np.random.default_rng(0).standard_normal((2, 100, 137), dtype=np.float32)
    with loom.profile() as traces:
        out, back = run(x, 0.3, seed=42), run(gradient, 0.3, seed=42)
    assert np.array_equal(out == 0, back == 0), "one mask for both directions"
    assert np.array_equal(out[out != 0], (x / np.float32(0.7))[out != 0])
    kept = np.count_nonzero(out) / out.size
    print(f"dropout of {x.size} elements, p = 0.3: {kept:.1%} kept, in both directions the same")
    print(f"equal to NumPy where they are, {traces.cycles:,} cycles")


if __name__ == "__main__":
    main()
