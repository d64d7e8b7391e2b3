"""A pipeline written by hand, with asynchronous copies and their semaphores."""

from __future__ import annotations

import functools

import numpy as np

import loom.experimental.pallas as pl
from loom.experimental.pallas import numpy as jnp
from loom.experimental.pallas import tpu as pltpu


def by_hand(x_ref, out_ref, first, second, arrived, *, chunk):
    """out = exp(x) * x, two chunks in each iteration: one in either window."""
    pairs = x_ref.shape[0] // (2 * chunk)

    def place(i):
        return pl.ds(i * chunk, chunk)

    def compute(window, i):
        out_ref[place(i)] = jnp.exp(window[...]) * window[...]

    def fetch(i, window, slot):
        return pltpu.make_async_copy(x_ref.at[place(i)], window, arrived.at[slot])

    fetch(0, first, 0).start()

    @pl.loop(0, pairs)
    def step(i):
        fetch(2 * i, first, 0).wait()
        fetch(2 * i + 1, second, 1).start()
        compute(first, 2 * i)
        fetch(2 * i + 1, second, 1).wait()
        fetch(jnp.where(i == pairs - 1, 0, 2 * i + 2), first, 0).start()
        compute(second, 2 * i + 1)

    fetch(0, first, 0).wait()


def run(x: np.ndarray, chunk: int = 1024) -> np.ndarray:
    """exp(x) * x of a float32 vector that is a multiple of 2 * chunk long."""
    kernel = pl.pallas_call(
        functools.partial(by_hand, chunk=chunk),
        out_shape=pl.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[pltpu.VMEM((chunk,), x.dtype), pltpu.VMEM((chunk,), x.dtype), pltpu.SemaphoreType.DMA((2,))],
    )
    return kernel(x)


def main() -> None:
    """Check against NumPy."""
    x = np.random.default_rng(0).standard_normal(1 << 15, dtype=np.float32)
    assert np.allclose(run(x), np.exp(x) * x, rtol=1e-6)
    print("pipeline of 32 chunks: as NumPy computes it")


if __name__ == "__main__":
    main()
