"""A pipeline written by hand: the next chunk is copied into one half of a window while the other half is computed on.

`automatic` leaves the same work to the compiler, which does just that by itself.
"""

from __future__ import annotations

import functools

import numpy as np

from loom.experimental import palladium as lpl


def by_hand(x_ref, out_ref, first, second, *, chunk):
    """out = exp(x) * x, two chunks in each iteration: one in either window."""
    pairs = x_ref.shape[0] // (2 * chunk)

    def place(i):
        return lpl.ds(i * chunk, chunk)

    def compute(window, i):
        out_ref[place(i)] = lpl.exp(window[...]) * window[...]

    lpl.copy(x_ref.at[lpl.ds(0, chunk)], first).wait()

    @lpl.loop(0, pairs)
    def step(i):
        behind = lpl.copy(x_ref.at[place(2 * i + 1)], second)
        compute(first, 2 * i)
        behind.wait()
        last = i == pairs - 1
        ahead = lpl.copy(x_ref.at[place(lpl.where(last, 0, 2 * i + 2))], first)
        compute(second, 2 * i + 1)
        ahead.wait()


def in_blocks(x_ref, out_ref):
    """out = exp(x) * x of one block."""
    out_ref[...] = lpl.exp(x_ref[...]) * x_ref[...]


def explicit(shape: tuple[int, ...], chunk: int) -> lpl.Kernel:
    """The pipeline by hand; the array is a multiple of 2 * chunk long."""
    scratch = [lpl.SRAM((chunk,), lpl.float32)] * 2
    out = lpl.ShapeDtypeStruct(shape, lpl.float32)
    return lpl.call(functools.partial(by_hand, chunk=chunk), out_shape=out, scratch=scratch)


def automatic(shape: tuple[int, ...], chunk: int) -> lpl.Kernel:
    """The same in blocks."""
    spec = lpl.BlockSpec((chunk,), lambda i: (i,))
    out = lpl.ShapeDtypeStruct(shape, lpl.float32)
    return lpl.call(in_blocks, out_shape=out, grid=(shape[0] // chunk,), in_specs=[spec], out_specs=spec)


def run(x: np.ndarray, chunk: int = 1024) -> np.ndarray:
    """exp(x) * x of a float32 vector, by hand."""
    return explicit(x.shape, chunk)(x)


def main() -> None:
    """Compare results and modelled cycles."""
    x = np.random.default_rng(0).standard_normal(1 << 15, dtype=np.float32)
    hand, compiler = explicit(x.shape, 1024), automatic(x.shape, 1024)
    assert np.array_equal(hand(x), compiler(x))
    cycles = hand.trace(x).cycles, compiler.trace(x).cycles
    print(f"pipeline of 32 chunks: {cycles[0]} cycles by hand, {cycles[1]} by the compiler")
    assert cycles[0] >= 0.95 * cycles[1]


if __name__ == "__main__":
    main()
