"""Causal flash attention for any sequence length: one program computes a block of rows of one head.

The scores of a block of keys go into running sums while the running maximum moves, so that the full matrix of scores
never exists. Blocks wholly below the diagonal need no causal mask; the last ones do.
"""

from __future__ import annotations

import numpy as np

import loom
import loom.triton.language as ltl

LOG2_E = ltl.constexpr(1.4426950408889634)


@ltl.jit
def attend(q, k_ptr, v_ptr, acc, m, total, low, high, row, n, stride, scale, D: ltl.constexpr,
           KEYS: ltl.constexpr, CAUSAL: ltl.constexpr):  # fmt: skip
    """Fold the keys from `low` to `high` into the running maximum `m`, denominator `total` and weighted sum `acc`."""
    column = ltl.arange(0, D)
    for start in range(low, high, KEYS):
        key = start + ltl.arange(0, KEYS)
        inside = key[:, None] < n
        k = ltl.load(k_ptr + key[:, None] * stride + column[None, :], mask=inside, other=0.0)
        scores = ltl.dot(q, ltl.trans(k)) * scale
        if CAUSAL:
            scores = ltl.where((row[:, None] >= key[None, :]) & (key[None, :] < n), scores, -float("inf"))
        m_next = ltl.maximum(m, ltl.max(scores, 1))
        weights = ltl.exp2(scores - m_next[:, None])
        shrink = ltl.exp2(m - m_next)
        total = total * shrink + ltl.sum(weights, 1)
        v = ltl.load(v_ptr + key[:, None] * stride + column[None, :], mask=inside, other=0.0)
        acc = acc * shrink[:, None]
        acc = ltl.dot(weights.to(v.dtype), v, acc)
        m = m_next
    return acc, m, total


@ltl.jit
def flash_attention(q_ptr, k_ptr, v_ptr, out_ptr, n, stride_head, stride_row, scale, D: ltl.constexpr,
                    ROWS: ltl.constexpr, KEYS: ltl.constexpr):  # fmt: skip
    """out = softmax(q k^T * scale, causal) v for heads of n rows of D columns; ROWS is a multiple of KEYS."""
    block = ltl.program_id(0)
    head = ltl.program_id(1) * stride_head
    row = block * ROWS + ltl.arange(0, ROWS)
    column = ltl.arange(0, D)
    place = head + row[:, None] * stride_row + column[None, :]
    q = ltl.load(q_ptr + place, mask=row[:, None] < n, other=0.0)
    acc = ltl.zeros((ROWS, D), dtype=ltl.float32)
    m = ltl.full((ROWS,), -float("inf"), dtype=ltl.float32)
    total = ltl.zeros((ROWS,), dtype=ltl.float32)
    first = block * ROWS
    last = ltl.minimum(first + ROWS, n)
    k_ptr += head
    v_ptr += head
    scale *= LOG2_E
    acc, m, total = attend(q, k_ptr, v_ptr, acc, m, total, 0, first, row, n, stride_row, scale, D, KEYS, False)
    acc, m, total = attend(q, k_ptr, v_ptr, acc, m, total, first, last, row, n, stride_row, scale, D, KEYS, True)
    ltl.store(out_ptr + place, acc / total[:, None], mask=row[:, None] < n)


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The same in float64."""
    scores = np.einsum("hid,hjd->hij", q, k, dtype=np.float64) / np.sqrt(q.shape[-1])
    scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hij,hjd->hid", weights / weights.sum(-1, keepdims=True), v)


def run(q: np.ndarray, k: np.ndarray, v: np.ndarray, rows: int = 64, keys: int = 32) -> np.ndarray:
    """Attention of arrays [heads, n, d] of float32, contiguous."""
    heads, n, d = q.shape
    out = np.empty_like(q)
    grid = (ltl.cdiv(n, rows), heads)
    flash_attention[grid](q, k, v, out, n, n * d, d, 1 / float(np.sqrt(d)), D=d, ROWS=rows, KEYS=keys)
    return out


def main() -> None:
    """Check a shape that fills no block."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 200, 64), dtype=np.float32) for _ in range(3))
    with loom.profile() as traces:
        found = run(q, k, v)
    error = np.abs(found - reference(q, k, v)).max()
    print(f"flash attention, 2 heads of 200 x 64: {found[0, 0, :3]} ...")
    print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
    assert error < 1e-5


if __name__ == "__main__":
    main()
