"""A warm launch of a one-element kernel against a warm call of a jitted scalar addition in JAX."""

from __future__ import annotations

import numpy as np

import loom.triton.language as ltl
from benchmarks.measure import compare
from benchmarks.result import Result

BAR = 1.5
PAIRS = 21


@ltl.jit
def scalar_add(x, y, z):
    ltl.store(z, ltl.load(x) + ltl.load(y))


def run() -> list[Result]:
    """Time of ours as a multiple of JAX's."""
    import jax
    import jax.numpy as jnp

    x, y, z = np.float32([1]), np.float32([2]), np.float32([0])
    launch = scalar_add[1,]
    add = jax.jit(lambda a, b: a + b)
    a, b = jnp.float32(1), jnp.float32(2)
    measured = compare(lambda: launch(x, y, z), lambda: add(a, b).block_until_ready(), PAIRS)
    assert z[0] == 3
    detail = {"ours_us": measured.ours * 1e6, "jax_us": measured.theirs * 1e6}
    return [Result("warm scalar add, time against jax.jit", 1 / measured.ratio, BAR, "<=", detail=detail)]
