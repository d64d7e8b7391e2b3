"""RMS norm: each row is divided by the root of its mean square. A program computes one whole row in SRAM."""

from __future__ import annotations

import numpy as np

import loom
import loom.triton.language as ltl


@ltl.jit
def rms_norm(x_ptr, weight_ptr, out_ptr, eps, COLUMNS: ltl.constexpr):
    """out = x / sqrt(mean(x * x) + eps) * weight, a row in each program."""
    column = ltl.arange(0, COLUMNS)
    x = ltl.load(x_ptr + ltl.program_id(0) * COLUMNS + column)
    mean_square = ltl.sum(x * x, axis=0) / COLUMNS
    scaled = x * ltl.rsqrt(mean_square + eps) * ltl.load(weight_ptr + column)
    ltl.store(out_ptr + ltl.program_id(0) * COLUMNS + column, scaled)


def run(x: np.ndarray, weight: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """RMS norm of the rows of a C-contiguous float32 matrix."""
    rows, columns = x.shape
    out = np.empty_like(x)
    rms_norm[(rows,)](x, weight, out, eps, COLUMNS=columns)
    return out


def reference(x: np.ndarray, weight: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """The same in float64."""
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide * wide).mean(1, keepdims=True) + eps) * weight


def main() -> None:
    """Check a width that is no power of two."""
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((19, 700), dtype=np.float32), rng.standard_normal(700, dtype=np.float32)
    with loom.profile() as traces:
        found = run(x, weight)
    error = np.abs(found - reference(x, weight)).max()
    print(f"RMS norm of 19 rows of 700: {found[0, :3]} ...")
    print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
    assert error < 1e-5


if __name__ == "__main__":
    main()
