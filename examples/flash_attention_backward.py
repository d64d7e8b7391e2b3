"""The gradients of causal attention, without a matrix of all scores.

The forward pass keeps one number a row: the logarithm of its sum of exponentials. From it both backward kernels get the
weights p of a block again. With dp = dout v^T, and delta = sum(dout * out) of each row, the gradient of the scores is
ds = p * (dp - delta); then dq = ds k, dk = ds^T q and dv = p^T dout, each times the scale where it belongs. A program
of `backward_kv` owns a block of keys and goes down over the queries, one of `backward_q` owns a block of queries.
"""

from __future__ import annotations

import numpy as np

import loom
import loom.triton.language as ltl


@ltl.jit
def tile(ptr, head, first, D: ltl.constexpr, BLOCK: ltl.constexpr):
    """Pointers to the rows [first, first + BLOCK) of a head."""
    return ptr + head + (first + ltl.arange(0, BLOCK))[:, None] * D + ltl.arange(0, D)[None, :]


@ltl.jit
def scores_of(q, k, row, key):
    """q k^T where the key is not behind the query, elsewhere far below every score."""
    return ltl.where(key[None, :] <= row[:, None], ltl.dot(q, ltl.trans(k)), -1e30)


@ltl.jit
def forward(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, n, scale, D: ltl.constexpr, BLOCK: ltl.constexpr):
    """out = softmax(q k^T * scale, causal) v, and the logarithms of the sums of exponentials."""
    head, first = ltl.program_id(1) * n * D, ltl.program_id(0) * BLOCK
    row = first + ltl.arange(0, BLOCK)
    q = ltl.load(tile(q_ptr, head, first, D, BLOCK)) * scale
    acc = ltl.zeros((BLOCK, D), dtype=ltl.float32)
    top = ltl.full((BLOCK,), -1e30, dtype=ltl.float32)
    total = ltl.zeros((BLOCK,), dtype=ltl.float32)
    for start in range(0, first + BLOCK, BLOCK):
        k, v = ltl.load(tile(k_ptr, head, start, D, BLOCK)), ltl.load(tile(v_ptr, head, start, D, BLOCK))
        scores = scores_of(q, k, row, start + ltl.arange(0, BLOCK))
        following = ltl.maximum(top, ltl.max(scores, axis=1))
        weights = ltl.exp(scores - following[:, None])
        shrink = ltl.exp(top - following)
        acc = acc * shrink[:, None] + ltl.dot(weights, v)
        total = total * shrink + ltl.sum(weights, axis=1)
        top = following
    ltl.store(tile(out_ptr, head, first, D, BLOCK), acc / total[:, None])
    ltl.store(lse_ptr + ltl.program_id(1) * n + row, top + ltl.log(total))


@ltl.jit
def backward_kv(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, dout_ptr, dk_ptr, dv_ptr, n, scale, D: ltl.constexpr,
                BLOCK: ltl.constexpr):  # fmt: skip
    """dk and dv of a block of keys: a sum over the queries at and behind it."""
    head, first = ltl.program_id(1) * n * D, ltl.program_id(0) * BLOCK
    key = first + ltl.arange(0, BLOCK)
    k, v = ltl.load(tile(k_ptr, head, first, D, BLOCK)), ltl.load(tile(v_ptr, head, first, D, BLOCK))
    dk, dv = ltl.zeros((BLOCK, D), dtype=ltl.float32), ltl.zeros((BLOCK, D), dtype=ltl.float32)
    for start in range(first, n, BLOCK):
        row = start + ltl.arange(0, BLOCK)
        q = ltl.load(tile(q_ptr, head, start, D, BLOCK)) * scale
        out, dout = ltl.load(tile(out_ptr, head, start, D, BLOCK)), ltl.load(tile(dout_ptr, head, start, D, BLOCK))
        weights = ltl.exp(scores_of(q, k, row, key) - ltl.load(lse_ptr + ltl.program_id(1) * n + row)[:, None])
        dv += ltl.dot(ltl.trans(weights), dout)
        dscores = weights * (ltl.dot(dout, ltl.trans(v)) - ltl.sum(dout * out, axis=1)[:, None])
        dk += ltl.dot(ltl.trans(dscores), q)
    ltl.store(tile(dk_ptr, head, first, D, BLOCK), dk)
    ltl.store(tile(dv_ptr, head, first, D, BLOCK), dv)


@ltl.jit
def backward_q(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, dout_ptr, dq_ptr, n, scale, D: ltl.constexpr,
               BLOCK: ltl.constexpr):  # fmt: skip
    """dq of a block of queries: a sum over the keys before and at it."""
    head, first = ltl.program_id(1) * n * D, ltl.program_id(0) * BLOCK
    row = first + ltl.arange(0, BLOCK)
    q = ltl.load(tile(q_ptr, head, first, D, BLOCK)) * scale
    out, dout = ltl.load(tile(out_ptr, head, first, D, BLOCK)), ltl.load(tile(dout_ptr, head, first, D, BLOCK))
    lse = ltl.load(lse_ptr + ltl.program_id(1) * n + row)
    delta = ltl.sum(dout * out, axis=1)
    dq = ltl.zeros((BLOCK, D), dtype=ltl.float32)
    for start in range(0, first + BLOCK, BLOCK):
        k, v = ltl.load(tile(k_ptr, head, start, D, BLOCK)), ltl.load(tile(v_ptr, head, start, D, BLOCK))
        weights = ltl.exp(scores_of(q, k, row, start + ltl.arange(0, BLOCK)) - lse[:, None])
        dscores = weights * (ltl.dot(dout, ltl.trans(v)) - delta[:, None])
        dq += ltl.dot(dscores, k)
    ltl.store(tile(dq_ptr, head, first, D, BLOCK), dq * scale)


def run(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, dout: np.ndarray, block: int = 32
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Attention of float32 arrays [heads, n, d], n a multiple of block: out, and dq, dk, dv for the gradient dout."""
    heads, n, d = q.shape
    out, dq, dk, dv = (np.empty_like(q) for _ in range(4))
    lse = np.empty((heads, n), np.float32)
    grid, blocks = (n // block, heads), {"D": d, "BLOCK": block}
    scale = 1 / float(np.sqrt(d))
    forward[grid](q, k, v, out, lse, n, scale, **blocks)
    backward_kv[grid](q, k, v, out, lse, dout, dk, dv, n, scale, **blocks)
    backward_q[grid](q, k, v, out, lse, dout, dq, n, scale, **blocks)
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
