"""The selective scan of a state-space model (Mamba): a linear recurrence whose coefficients depend on the input.

    h[t] = exp(dt[t] * A) * h[t - 1] + dt[t] * B[t] * x[t]         for each channel and state
    y[t] = sum over states of C[t] * h[t]  +  D * x[t]

Two steps of h' = a h + b make one of the same form: (a2 a1, a2 b1 + b2). So a block of steps is an associative scan of
pairs (a, b) along time; its last state begins the next block.
"""

from __future__ import annotations

import numpy as np

import loom
import loom.triton.language as ltl


@ltl.jit
def after(a1, b1, a2, b2):
    """One step for two: first h' = a1 h + b1, then h' = a2 h + b2."""
    return a2 * a1, a2 * b1 + b2


@ltl.jit
def selective_scan(x_ptr, dt_ptr, a_ptr, b_ptr, c_ptr, d_ptr, y_ptr, length, channels, CHANNELS: ltl.constexpr,
                   STATES: ltl.constexpr, STEPS: ltl.constexpr):  # fmt: skip
    """y of CHANNELS channels of one sequence, STEPS steps at a time; STEPS divides the length."""
    channel = ltl.program_id(0) * CHANNELS + ltl.arange(0, CHANNELS)
    state, step = ltl.arange(0, STATES), ltl.arange(0, STEPS)
    sequence = ltl.program_id(1) * length
    a_matrix = ltl.load(a_ptr + channel[:, None] * STATES + state[None, :])
    d = ltl.load(d_ptr + channel)
    h = ltl.zeros((CHANNELS, STATES), dtype=ltl.float32)
    for start in range(0, length, STEPS):
        time = sequence + start + step
        at = time[:, None] * channels + channel[None, :]
        x, dt = ltl.load(x_ptr + at), ltl.load(dt_ptr + at)
        b = ltl.load(b_ptr + time[:, None] * STATES + state[None, :])
        c = ltl.load(c_ptr + time[:, None] * STATES + state[None, :])
        decay = ltl.exp(dt[:, :, None] * a_matrix[None, :, :])
        entry = (dt * x)[:, :, None] * b[:, None, :]
        # The state before the block enters with its first step.
        entry = ltl.where(step[:, None, None] == 0, decay * h[None, :, :] + entry, entry)
        _, states = ltl.associative_scan((decay, entry), axis=0, combine_fn=after)
        y = ltl.sum(states * c[:, None, :], axis=2) + d[None, :] * x
        ltl.store(y_ptr + at, y)
        h = ltl.sum(ltl.where(step[:, None, None] == STEPS - 1, states, 0.0), axis=0)


def run(
    x: np.ndarray, dt: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, steps: int = 16
) -> np.ndarray:
    """y[batch, length, channels] of x and dt of that shape, a[channels, states], b and c[batch, length, states]."""
    batch, length, channels = x.shape
    y = np.empty_like(x)
    grid = (channels // 8, batch)
    selective_scan[grid](x, dt, a, b, c, d, y, length, channels, CHANNELS=8, STATES=a.shape[1], STEPS=steps)
    return y


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
