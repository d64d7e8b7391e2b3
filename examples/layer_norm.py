"""Layer norm with weight and bias, in two passes over rows that need not fit one tile."""

from __future__ import annotations

import numpy as np

import loom
import loom.triton.language as ltl


@ltl.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, stride, eps, BLOCK: ltl.constexpr):
    """out = (x - mean) / sqrt(variance + eps) * weight + bias, a row in each program, BLOCK columns at a time."""
    x_ptr += ltl.program_id(0) * stride
    out_ptr += ltl.program_id(0) * stride
    total = ltl.zeros((BLOCK,), dtype=ltl.float32)
    for start in range(0, columns, BLOCK):
        column = start + ltl.arange(0, BLOCK)
        total += ltl.load(x_ptr + column, mask=column < columns, other=0.0)
    mean = ltl.sum(total, axis=0) / columns
    squares = ltl.zeros((BLOCK,), dtype=ltl.float32)
    for start in range(0, columns, BLOCK):
        column = start + ltl.arange(0, BLOCK)
        x = ltl.load(x_ptr + column, mask=column < columns, other=0.0)
        centred = ltl.where(column < columns, x - mean, 0.0)
        squares += centred * centred
    scale = 1 / ltl.sqrt(ltl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        column = start + ltl.arange(0, BLOCK)
        inside = column < columns
        x = ltl.load(x_ptr + column, mask=inside, other=0.0)
        weight = ltl.load(weight_ptr + column, mask=inside)
        bias = ltl.load(bias_ptr + column, mask=inside)
        ltl.store(out_ptr + column, (x - mean) * scale * weight + bias, mask=inside)


def run(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float = 1e-5, block: int = 256) -> np.ndarray:
    """Layer norm of the rows of a C-contiguous float32 matrix."""
    rows, columns = x.shape
    out = np.empty_like(x)
    layer_norm[(rows,)](x, weight, bias, out, columns, columns, eps, BLOCK=block)
    return out


def reference(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """The same in float64."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + eps) * weight + bias


def main() -> None:
    """Check a width that fills no block."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((19, 700), dtype=np.float32) * 3 + 1
    weight, bias = (rng.standard_normal(700, dtype=np.float32) for _ in range(2))
    with loom.profile() as traces:
        found = run(x, weight, bias)
    error = np.abs(found - reference(x, weight, bias)).max()
    print(f"layer norm of 19 rows of 700: {found[0, :3]} ...")
    print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
    assert error < 1e-5


if __name__ == "__main__":
    main()
