"""The gradients of causal attention, without a matrix of all scores.

The forward pass keeps one number a row: the logarithm of its sum of exponentials. From it both backward kernels get the
weights p of a block again. With dp = dout v^T, and delta = sum(dout * out) of each row, the gradient of the scores is
ds = p * (dp - delta); then dq = ds k, dk = ds^T q and dv = p^T dout, each times the scale where it belongs. A grid
point of `backward_kv` owns a block of keys and goes down over the queries, one of `backward_q` a block of queries.
"""

from __future__ import annotations

import functools

import numpy as np

import loom
from loom.experimental import palladium as lpl


def scores_of(q, k, first_row, first_key):
    """q k^T where the key is not behind the query, elsewhere far below every score."""
    shape = len(q), len(k)
    row = first_row + lpl.broadcasted_iota(lpl.int32, shape, 0)
    key = first_key + lpl.broadcasted_iota(lpl.int32, shape, 1)
    return lpl.where(key <= row, lpl.dot(q, k.T), -1e30)


def forward(q_ref, k_ref, v_ref, out_ref, lse_ref, *, scale):
    """A block of rows of softmax(q k^T * scale, causal) v, and the logarithms of their sums of exponentials."""
    block = len(q_ref)
    first = lpl.program_id(1) * block
    q = q_ref[...] * scale

    def step(i, state):
        acc, top, total = state
        at = lpl.ds(i * block, block)
        scores = scores_of(q, k_ref[at, :], first, i * block)
        following = lpl.maximum(top, lpl.max(scores, axis=1))
        weights = lpl.exp(scores - following[:, None])
        shrink = lpl.exp(top - following)
        acc = acc * shrink[:, None] + lpl.dot(weights, v_ref[at, :])
        return acc, following, total * shrink + lpl.sum(weights, axis=1)

    start = lpl.zeros(q.shape), lpl.full((block,), -1e30), lpl.zeros((block,))
    acc, top, total = lpl.fori(0, lpl.program_id(1) + 1, step, start)
    out_ref[...] = acc / total[:, None]
    lse_ref[...] = top + lpl.log(total)


def backward_kv(q_ref, k_ref, v_ref, out_ref, lse_ref, dout_ref, dk_ref, dv_ref, *, scale):
    """dk and dv of a block of keys: a sum over the queries at and behind it."""
    block = len(k_ref)
    first = lpl.program_id(1) * block
    k, v = k_ref[...], v_ref[...]

    def step(i, state):
        dk, dv = state
        at = lpl.ds(i * block, block)
        q, out, dout = q_ref[at, :] * scale, out_ref[at, :], dout_ref[at, :]
        weights = lpl.exp(scores_of(q, k, i * block, first) - lse_ref[at][:, None])
        dv = dv + lpl.dot(weights.T, dout)
        dscores = weights * (lpl.dot(dout, v.T) - lpl.sum(dout * out, axis=1)[:, None])
        return dk + lpl.dot(dscores.T, q), dv

    start = lpl.zeros(k.shape), lpl.zeros(k.shape)
    dk_ref[...], dv_ref[...] = lpl.fori(lpl.program_id(1), len(q_ref) // block, step, start)


def backward_q(q_ref, k_ref, v_ref, out_ref, lse_ref, dout_ref, dq_ref, *, scale):
    """dq of a block of queries: a sum over the keys before and at it."""
    block = len(q_ref)
    first = lpl.program_id(1) * block
    q, dout, lse = q_ref[...] * scale, dout_ref[...], lse_ref[...]
    delta = lpl.sum(dout * out_ref[...], axis=1)

    def step(i, dq):
        at = lpl.ds(i * block, block)
        k = k_ref[at, :]
        weights = lpl.exp(scores_of(q, k, first, i * block) - lse[:, None])
        dscores = weights * (lpl.dot(dout, v_ref[at, :].T) - delta[:, None])
        return dq + lpl.dot(dscores, k)

    dq_ref[...] = lpl.fori(0, lpl.program_id(1) + 1, step, lpl.zeros(q.shape)) * scale


def run(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, dout: np.ndarray, block: int = 32
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Attention of float32 arrays [heads, n, d], n a multiple of block: out, and dq, dk, dv for the gradient dout."""
    heads, n, d = q.shape
    part, whole = (
        lpl.BlockSpec((None, block, d), lambda h, i: (h, i, 0)),
        lpl.BlockSpec((None, n, d), lambda h, i: (h, 0, 0)),
    )
    part_sums, sums = lpl.BlockSpec((None, block), lambda h, i: (h, i)), lpl.BlockSpec((None, n), lambda h, i: (h, 0))
    array, row = lpl.ShapeDtypeStruct(q.shape, q.dtype), lpl.ShapeDtypeStruct((heads, n), q.dtype)

    def call(function, in_specs, out_specs, out_shape, *operands):
        kernel = functools.partial(function, scale=1 / float(np.sqrt(d)))
        options = {"in_specs": in_specs, "out_specs": out_specs, "out_shape": out_shape}
        return lpl.call(kernel, grid=(heads, n // block), **options)(*operands)

    out, lse = call(forward, [part, whole, whole], [part, part_sums], [array, row], q, k, v)
    operands = q, k, v, out, lse, dout
    dk, dv = call(backward_kv, [whole, part, part, whole, sums, whole], [part, part], [array, array], *operands)
    dq = call(backward_q, [part, whole, whole, part, part_sums, part], part, array, *operands)
    return out, dq, dk, dv


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, dout: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The same in float64, with the whole matrix of weights."""
    q, k, v, dout = (array.astype(np.float64) for array in (q, k, v, dout))
    scale = 1 / np.sqrt(q.shape[-1])
    scores = np.where(np.tri(q.shape[1], dtype=bool), q @ k.swapaxes(1, 2) * scale, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    out = weights @ v
    dscores = weights * (dout @ v.swapaxes(1, 2) - (dout * out).sum(-1, keepdims=True)) * scale
    return out, dscores @ k, dscores.swapaxes(1, 2) @ q, weights.swapaxes(1, 2) @ dout


def main() -> None:
    """Check two heads; the tests compare with PyTorch's gradients."""
    q, k, v, dout = np.random.default_rng(0).standard_normal((4, 2, 128, 64), dtype=np.float32)
    with loom.profile() as traces:
        found = run(q, k, v, dout)
    for name, array, expected in zip(("out", "dq", "dk", "dv"), found, reference(q, k, v, dout), strict=True):
        error = np.abs(array - expected).max()
        print(f"{name} of 2 heads of 128 x 64: {array[1, -1, :3]} ...; largest error {error:.1e}")
        assert error < 1e-5
    print("cycles of forward, backward_kv, backward_q:", *(f"{trace.cycles:,}" for trace in traces))


if __name__ == "__main__":
    main()
