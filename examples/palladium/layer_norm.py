"""Layer norm with weight and bias, which every grid point reads whole."""

from __future__ import annotations

import functools

import numpy as np

import loom
from loom.experimental import palladium as lpl


def layer_norm(x_ref, weight_ref, bias_ref, out_ref, *, eps):
    """(x - mean) / sqrt(variance + eps) * weight + bias, of the rows of a block."""
    x = x_ref[...]
    centred = x - lpl.mean(x, axis=1, keepdims=True)
    variance = lpl.mean(centred * centred, axis=1, keepdims=True)
    out_ref[...] = centred * lpl.rsqrt(variance + eps) * weight_ref[...] + bias_ref[...]


def run(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float = 1e-5, rows: int = 8) -> np.ndarray:
    """Layer norm of the rows of a float32 matrix."""
    block = lpl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    row = lpl.BlockSpec(weight.shape, lambda i: (0,))
    kernel = lpl.call(
        functools.partial(layer_norm, eps=eps),
        out_shape=lpl.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(lpl.cdiv(len(x), rows),),
        in_specs=[block, row, row],
        out_specs=block,
    )
    return kernel(x, weight, bias)


def reference(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """The same in float64."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + eps) * weight + bias


def main() -> None:
    """Check a number of rows that fills no block."""
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
