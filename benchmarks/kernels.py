"""The kernels of the comparison with Triton's interpreter, loaded as LTL and as Triton (see `language.py`)."""

from __future__ import annotations

from typing import Any

tl: Any
jit: Any


@jit
def scalar_add(x, y, z):
    tl.store(z, tl.load(x) + tl.load(y))


@jit
def vector_add(x, y, z, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offset < n
    tl.store(z + offset, tl.load(x + offset, mask=mask) + tl.load(y + offset, mask=mask), mask=mask)


@jit
def softmax(x, z, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < n
    value = tl.load(x + row * n + column, mask=mask, other=-float("inf"))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(z + row * n + column, value / tl.sum(value, axis=0), mask=mask)


@jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    a_at = a + row[:, None] * k + depth[None, :]
    b_at = b + depth[:, None] * n + column[None, :]
    acc = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        left = tl.load(a_at, mask=(row[:, None] < m) & (depth[None, :] < k - start), other=0.0)
        right = tl.load(b_at, mask=(depth[:, None] < k - start) & (column[None, :] < n), other=0.0)
        acc += tl.dot(left, right)
        a_at += K
        b_at += K * n
    tl.store(c + row[:, None] * n + column[None, :], acc, mask=(row[:, None] < m) & (column[None, :] < n))


@jit
def flash_attention(q, k, v, out, n, scale, D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr):
    block = tl.program_id(0)
    row = block * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, D)
    queries = tl.load(q + row[:, None] * D + column[None, :], mask=row[:, None] < n, other=0.0)
    top = tl.full((ROWS,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    acc = tl.zeros((ROWS, D), dtype=tl.float32)
    for start in range(0, (block + 1) * ROWS, KEYS):
        key = start + tl.arange(0, KEYS)
        place = key[:, None] * D + column[None, :]
        keys = tl.load(k + place, mask=key[:, None] < n, other=0.0)
        scores = tl.dot(queries, tl.trans(keys)) * scale
        scores = tl.where(row[:, None] >= key[None, :], scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None]
        values = tl.load(v + place, mask=key[:, None] < n, other=0.0)
        acc += tl.dot(weights, values)
        top = higher
    tl.store(out + row[:, None] * D + column[None, :], acc / total[:, None], mask=row[:, None] < n)
