"""Causal flash attention: heads and blocks of queries on the grid, keys in a loop that ends at the diagonal."""

from __future__ import annotations

import functools

import numpy as np

import loom.experimental.pallas as pl
from loom.experimental.pallas import lax
from loom.experimental.pallas import numpy as jnp

MASKED = -1e30


def flash_attention(q_ref, k_ref, v_ref, out_ref, *, keys):
    """softmax(q k^T / sqrt(d), causal) v of one block of queries of one head."""
    rows, width = q_ref.shape
    first = pl.program_id(1) * rows
    q = q_ref[...] * (1.0 / width**0.5)
    row = first + lax.broadcasted_iota(jnp.int32, (rows, keys), 0)

    def step(i, state):
        total, top, weight = state
        scores = jnp.dot(q, k_ref[pl.ds(i * keys, keys), :].T)
        column = i * keys + lax.broadcasted_iota(jnp.int32, (rows, keys), 1)
        scores = jnp.where(column <= row, scores, MASKED)
        following = jnp.maximum(top, jnp.max(scores, axis=1))
        shares = jnp.exp(scores - following[:, None])
        kept = jnp.exp(top - following)
        total = total * kept[:, None] + jnp.dot(shares, v_ref[pl.ds(i * keys, keys), :])
        return total, following, weight * kept + jnp.sum(shares, axis=1)

    start = jnp.zeros((rows, width)), jnp.full((rows,), MASKED), jnp.zeros((rows,))
    total, _, weight = lax.fori_loop(0, (first + rows) // keys, step, start)
    out_ref[...] = total / weight[:, None]


def run(q: np.ndarray, k: np.ndarray, v: np.ndarray, rows: int = 64, keys: int = 32) -> np.ndarray:
    """Attention of float32 arrays [heads, n, d]; n is a multiple of rows, rows of keys."""
    heads, n, d = q.shape
    block = pl.BlockSpec((None, rows, d), lambda h, i: (h, i, 0))
    whole = pl.BlockSpec((None, n, d), lambda h, i: (h, 0, 0))
    kernel = pl.pallas_call(
        functools.partial(flash_attention, keys=keys),
        out_shape=pl.ShapeDtypeStruct(q.shape, q.dtype),
        grid=(heads, n // rows),
        in_specs=[block, whole, whole],
        out_specs=block,
    )
    return kernel(q, k, v)


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The same in float64."""
    scores = np.einsum("hid,hjd->hij", q, k, dtype=np.float64) / np.sqrt(q.shape[-1])
    scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hij,hjd->hid", weights / weights.sum(-1, keepdims=True), v)


def main() -> None:
    """Check two heads."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 192, 64), dtype=np.float32) for _ in range(3))
    error = np.abs(run(q, k, v) - reference(q, k, v)).max()
    print(f"flash attention, 2 heads of 192 x 64: largest error {error:.1e}")
    assert error < 1e-5


if __name__ == "__main__":
    main()
