"""Grouped matrix product, as in a mixture of experts: each block of rows has the weights of a group of its own.

The number of the group is loaded by the program and becomes part of the address of the weights: no gather is needed.
"""

from __future__ import annotations

import numpy as np

import loom
import loom.triton.language as ltl


@ltl.jit
def grouped_matmul(groups_ptr, x_ptr, weights_ptr, out_ptr, width, ROWS: ltl.constexpr, DEPTH: ltl.constexpr,
                   COLUMNS: ltl.constexpr):  # fmt: skip
    """A block of rows of out = x @ weights[group of the block]."""
    group = ltl.load(groups_ptr + ltl.program_id(0))
    row = ltl.program_id(0) * ROWS + ltl.arange(0, ROWS)
    column = ltl.program_id(1) * COLUMNS + ltl.arange(0, COLUMNS)
    depth = ltl.arange(0, DEPTH)
    x = ltl.load(x_ptr + row[:, None] * DEPTH + depth[None, :])
    weights = ltl.load(weights_ptr + group * DEPTH * width + depth[:, None] * width + column[None, :])
    ltl.store(out_ptr + row[:, None] * width + column[None, :], ltl.dot(x, weights))


def run(x: np.ndarray, weights: np.ndarray, groups: np.ndarray, columns: int = 32) -> np.ndarray:
    """out[i] = x[i] @ weights[groups[i // rows]], rows = len(x) / len(groups), of contiguous float32 arrays."""
    _, depth, width = weights.shape
    out = np.empty((len(x), width), np.float32)
    grid = (len(groups), width // columns)
    rows = len(x) // len(groups)
    grouped_matmul[grid](groups, x, weights, out, width, ROWS=rows, DEPTH=depth, COLUMNS=columns)
    return out


def reference(x: np.ndarray, weights: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The same in float64."""
    parts = np.split(x.astype(np.float64), len(groups))
    return np.concatenate([part @ weights[group] for part, group in zip(parts, groups, strict=True)])


def main() -> None:
    """Check five blocks of three groups."""
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((80, 48), dtype=np.float32), rng.standard_normal((3, 48, 64), dtype=np.float32)
    groups = np.array([2, 0, 0, 1, 2], np.int32)
    with loom.profile() as traces:
        found = run(x, weights, groups)
    error = np.abs(found - reference(x, weights, groups)).max()
    print(f"grouped matmul, 5 blocks of 16 x 48 x 64: {found[0, :3]} ...")
    print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
    assert error < 1e-4


if __name__ == "__main__":
    main()
