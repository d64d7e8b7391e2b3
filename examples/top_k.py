"""The k largest elements of each row and where they stand, as a router chooses experts.

k rounds of argmax: each takes the first largest element that is left. `ltl.topk` gives the values alone, in one sort.
"""

from __future__ import annotations

import numpy as np

import loom
import loom.triton.language as ltl


@ltl.jit
def top_k(x_ptr, values_ptr, indices_ptr, rows, COLUMNS: ltl.constexpr, K: ltl.constexpr, ROWS: ltl.constexpr):
    """ROWS rows in each program; equal elements in the order of their indices."""
    row = ltl.program_id(0) * ROWS + ltl.arange(0, ROWS)
    column = ltl.arange(0, COLUMNS)
    inside = row < rows
    x = ltl.load(x_ptr + row[:, None] * COLUMNS + column[None, :], mask=inside[:, None], other=0.0)
    for i in ltl.static_range(K):
        values, indices = ltl.max(x, axis=1, return_indices=True)
        ltl.store(values_ptr + row * K + i, values, mask=inside)
        ltl.store(indices_ptr + row * K + i, indices, mask=inside)
        x = ltl.where(column[None, :] == indices[:, None], -float("inf"), x)


def run(x: np.ndarray, k: int, rows: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Values and int32 indices, [len(x), k], of a C-contiguous float32 matrix without NaN and -inf."""
    values, indices = np.empty((len(x), k), np.float32), np.empty((len(x), k), np.int32)
    top_k[(ltl.cdiv(len(x), rows),)](x, values, indices, len(x), COLUMNS=x.shape[1], K=k, ROWS=rows)
    return values, indices


def reference(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The same by a stable sort."""
    indices = np.argsort(-x, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(x, indices, 1), indices.astype(np.int32)


def main() -> None:
    """Check rows with equal elements among them."""
    x = np.random.default_rng(0).integers(0, 50, (19, 100)).astype(np.float32)
    with loom.profile() as traces:
        values, indices = run(x, 4)
    expected = reference(x, 4)
    assert np.array_equal(values, expected[0]) and np.array_equal(indices, expected[1])
    print(f"4 largest of 100, 19 rows: {values[0]} at {indices[0]} ...")
    print(f"equal to NumPy, {traces.cycles:,} cycles")


if __name__ == "__main__":
    main()
