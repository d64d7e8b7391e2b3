"""Causal flash attention in bfloat16, made for machine l1: two blocks of queries are in flight.

The matrix unit multiplies for one block while the stream engine takes the softmax of the other: each works in order, so
the blocks share a loop over the keys, and nothing of one depends on the other. Blocks of 128 queries and 256 keys keep
both engines' tiles large; heads are shared among the cores.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import loom
import loom.triton.language as ltl

LOG2_E = ltl.constexpr(1.4426950408889634)
ROWS = 128


@ltl.jit
def fold(q, k, v, acc, m, total, scale, row, key, CAUSAL: ltl.constexpr):  # fmt: skip
    """One block of keys into the weighted sum `acc`, the running maximum `m` and the denominator `total`."""
    scores = ltl.dot(q, ltl.trans(k)) * scale
    if CAUSAL:
        scores = ltl.where(row[:, None] >= key[None, :], scores, -float("inf"))
    m_next = ltl.maximum(m, ltl.max(scores, 1))
    weights = ltl.exp2(scores - m_next[:, None])
    shrink = ltl.exp2(m - m_next)
    total = total * shrink + ltl.sum(weights, 1)
    acc = ltl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
    return acc, m_next, total


@ltl.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, n, scale, D: ltl.constexpr, ROWS: ltl.constexpr):
    """out = softmax(q k^T * scale, causal) v for heads of n rows of D columns; 2 * ROWS divides n."""
    first = ltl.program_id(0) * (2 * ROWS)
    head = ltl.program_id(1) * n * D
    column = ltl.arange(0, D)
    keys = ltl.arange(0, 2 * ROWS)
    block = keys[:, None] * D + column[None, :]
    row0 = first + ltl.arange(0, ROWS)
    row1 = row0 + ROWS
    place0 = head + row0[:, None] * D + column[None, :]
    place1 = head + row1[:, None] * D + column[None, :]
    q0, q1 = ltl.load(q_ptr + place0), ltl.load(q_ptr + place1)
    acc0, acc1 = ltl.zeros((ROWS, D), dtype=ltl.float32), ltl.zeros((ROWS, D), dtype=ltl.float32)
    m0 = m1 = ltl.full((ROWS,), -float("inf"), dtype=ltl.float32)
    total0 = total1 = ltl.zeros((ROWS,), dtype=ltl.float32)
    scale *= LOG2_E
    for start in range(0, first, 2 * ROWS):
        k = ltl.load(k_ptr + head + start * D + block)
        v = ltl.load(v_ptr + head + start * D + block)
        acc0, m0, total0 = fold(q0, k, v, acc0, m0, total0, scale, row0, start + keys, False)
        acc1, m1, total1 = fold(q1, k, v, acc1, m1, total1, scale, row1, start + keys, False)
    k = ltl.load(k_ptr + head + first * D + block)
    v = ltl.load(v_ptr + head + first * D + block)
    acc0, m0, total0 = fold(q0, k, v, acc0, m0, total0, scale, row0, first + keys, True)
    acc1, m1, total1 = fold(q1, k, v, acc1, m1, total1, scale, row1, first + keys, True)
    ltl.store(out_ptr + place0, (acc0 / total0[:, None]).to(out_ptr.dtype.element_ty))
    ltl.store(out_ptr + place1, (acc1 / total1[:, None]).to(out_ptr.dtype.element_ty))


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The same in float64."""
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    scores = np.einsum("hid,hjd->hij", q, k) / np.sqrt(q.shape[-1])
    scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hij,hjd->hid", weights / weights.sum(-1, keepdims=True), v)


def run(q: np.ndarray, k: np.ndarray, v: np.ndarray, rows: int = ROWS) -> np.ndarray:
    """Attention of contiguous arrays [heads, n, d] of one float dtype; n is a multiple of 2 * rows."""
    heads, n, d = q.shape
    out = np.empty_like(q)
    attention[n // (2 * rows), heads](q, k, v, out, n, 1 / float(np.sqrt(d)), D=d, ROWS=rows)
    return out


def operands(heads: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random arguments of `run`."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((heads, n, d), dtype=np.float32).astype(ml_dtypes.bfloat16) for _ in range(3))
    return q, k, v


def main() -> None:
    """Check two heads, and show how busy the matrix units are."""
    arrays = operands(2, 512, 128)
    with loom.profile() as traces:
        found = run(*arrays)
    error = np.abs(found.astype(np.float64) - reference(*arrays)).max()
    print(f"causal attention, 2 heads of 512 x 128: {found[0, 0, :3]} ...")
    print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
    for trace in traces:
        print(f"the matrix units work {trace.busy_fraction('MXU'):.0%} of the time, {trace.division}")
    assert error < 2**-6


if __name__ == "__main__":
    main()
