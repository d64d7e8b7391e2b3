"""Row softmax: a program computes whole rows, as many as there are programs for."""

from __future__ import annotations

import numpy as np

import loom
import loom.triton.language as ltl


@ltl.jit
def softmax_rows(x_ptr, out_ptr, rows, columns, stride_x, stride_out, BLOCK: ltl.constexpr):
    """out = softmax of each row of x; BLOCK >= columns."""
    column = ltl.arange(0, BLOCK)
    inside = column < columns
    for row in range(ltl.program_id(0), rows, ltl.num_programs(0)):
        x = ltl.load(x_ptr + row * stride_x + column, mask=inside, other=-float("inf"))
        weights = ltl.exp(x - ltl.max(x, axis=0))
        ltl.store(out_ptr + row * stride_out + column, weights / ltl.sum(weights, axis=0), mask=inside)


def run(x: np.ndarray, programs: int = 8) -> np.ndarray:
    """Softmax of the rows of a C-contiguous float32 matrix."""
    rows, columns = x.shape
    out = np.empty_like(x)
    softmax_rows[(programs,)](x, out, rows, columns, columns, columns, BLOCK=columns)
    return out


def reference(x: np.ndarray) -> np.ndarray:
    """The same in float64."""
    weights = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def main() -> None:
    """Check a width that is no power of two."""
    x = np.random.default_rng(0).standard_normal((37, 781), dtype=np.float32)
    with loom.profile() as traces:
        found = run(x)
    error = np.abs(found - reference(x)).max()
    print(f"softmax of 37 rows of 781: {found[0, :3]} ...")
    print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
    assert error < 1e-6


if __name__ == "__main__":
    main()
