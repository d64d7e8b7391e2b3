"""The k largest elements of each row and where they stand, as a router chooses experts.

k rounds of argmax, unrolled by Python's own loop: each takes the first largest element that is left.
"""

from __future__ import annotations

import numpy as np

import loom
from loom.experimental import palladium as lpl


def top_k(x_ref, values_ref, indices_ref):
    """Some whole rows; equal elements in the order of their indices."""
    x = x_ref[...]
    column = lpl.broadcasted_iota(lpl.int32, x.shape, 1)
    for i in range(values_ref.shape[1]):
        indices = lpl.argmax(x, axis=1)
        values_ref[:, i] = lpl.max(x, axis=1)
        indices_ref[:, i] = indices
        x = lpl.where(column == indices[:, None], -np.inf, x)


def run(x: np.ndarray, k: int, rows: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Values and int32 indices, [len(x), k], of a float32 matrix without NaN and -inf."""
    values, indices = lpl.ShapeDtypeStruct((len(x), k), x.dtype), lpl.ShapeDtypeStruct((len(x), k), np.int32)
    part = lpl.BlockSpec((rows, k), lambda i: (i, 0))
    kernel = lpl.call(
        top_k,
        out_shape=[values, indices],
        grid=(lpl.cdiv(len(x), rows),),
        in_specs=[lpl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))],
        out_specs=[part, part],
    )
    return tuple(kernel(x))


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
