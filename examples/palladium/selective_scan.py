"""The selective scan of a state-space model (Mamba): a linear recurrence whose coefficients depend on the input.

    h[t] = exp(dt[t] * A) * h[t - 1] + dt[t] * B[t] * x[t]         for each channel and state
    y[t] = sum over states of C[t] * h[t]  +  D * x[t]

Time is a loop that carries the state; a grid point computes some channels of one sequence.
"""

from __future__ import annotations

import numpy as np

import loom
from loom.experimental import palladium as lpl


def selective_scan(x_ref, dt_ref, a_ref, b_ref, c_ref, d_ref, y_ref):
    """y of a block of channels of one sequence."""
    a, d = a_ref[...], d_ref[...]

    def step(t, h):
        x, dt, b, c = x_ref[t, :], dt_ref[t, :], b_ref[t, :], c_ref[t, :]
        h = lpl.exp(dt[:, None] * a) * h + (dt * x)[:, None] * b[None, :]
        y_ref[t, :] = lpl.sum(h * c[None, :], axis=1) + d * x
        return h

    lpl.fori(0, x_ref.shape[0], step, lpl.zeros(a.shape))


def run(x: np.ndarray, dt: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """y[batch, length, channels] of x and dt of that shape, a[channels, states], b and c[batch, length, states]."""
    (batch, length, channels), states = x.shape, a.shape[1]
    series = lpl.BlockSpec((None, length, 8), lambda i, s: (s, 0, i))
    rates = lpl.BlockSpec((None, length, states), lambda i, s: (s, 0, 0))
    kernel = lpl.call(
        selective_scan,
        out_shape=lpl.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(channels // 8, batch),
        in_specs=[
            series, series, lpl.BlockSpec((8, states), lambda i, s: (i, 0)), rates, rates,
            lpl.BlockSpec((8,), lambda i, s: (i,)),
        ],
        out_specs=series,
    )  # fmt: skip
    return kernel(x, dt, a, b, c, d)


def reference(x: np.ndarray, dt: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The same step by step in float64."""
    x, dt, a, b, c, d = (array.astype(np.float64) for array in (x, dt, a, b, c, d))
    h = np.zeros((len(x), *a.shape))
    y = np.empty_like(x)
    for t in range(x.shape[1]):
        decay = np.exp(dt[:, t, :, None] * a)
        h = decay * h + (dt[:, t] * x[:, t])[:, :, None] * b[:, t, None, :]
        y[:, t] = (h * c[:, t, None, :]).sum(-1) + d * x[:, t]
    return y


def operands(batch: int, length: int, channels: int, states: int) -> tuple[np.ndarray, ...]:
    """Random arguments of `run`, with rates as a model has them."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, length, channels), dtype=np.float32)
    dt = rng.uniform(0.001, 0.1, x.shape).astype(np.float32)
    a = -np.tile(np.arange(1, states + 1, dtype=np.float32), (channels, 1))
    b, c = rng.standard_normal((2, batch, length, states), dtype=np.float32)
    return x, dt, a, b, c, rng.standard_normal(channels, dtype=np.float32)


def main() -> None:
    """Check two sequences."""
    arguments = operands(batch=2, length=64, channels=16, states=16)
    with loom.profile() as traces:
        y = run(*arguments)
    error = np.abs(y - reference(*arguments)).max()
    print(f"selective scan, 2 sequences of 64 x 16, 16 states: {y[0, -1, :3]} ...")
    print(f"largest error {error:.1e}, {traces.cycles:,} cycles")
    assert error < 1e-5


if __name__ == "__main__":
    main()
