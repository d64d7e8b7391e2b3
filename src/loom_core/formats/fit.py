"""Tables for weights: the entries nearest to all values, found the same way on every host."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

_ROUNDS: Final = 25


def fit_table(values: Doubles, entries: int) -> NDArray[np.float16]:
    """A table of `entries` fp16 values, ascending, for a vector of finite float64 values within the range of fp16.

    If that many fp16 values hold them all, these, the last one repeated. Else Lloyd's algorithm: it starts from the
    quantiles (i + 1/2) / entries and moves each entry to the mean of the values nearest to it, at most 25 times. Sums
    run in ascending order of the values, so that their rounding is the same everywhere.
    """
    distinct = np.unique(values.astype(np.float16))
    distinct = np.where(distinct == 0, np.float16(0), distinct)  # one zero, +0
    if len(distinct) == 0:
        return np.zeros(entries, np.float16)
    if len(distinct) <= entries:
        return np.concatenate([distinct, np.repeat(distinct[-1:], entries - len(distinct))])
    ordered = np.sort(values)
    places = (2 * np.arange(entries) + 1) * len(ordered) // (2 * entries)
    centres = ordered[places]
    # sums[i] is the sum of the i smallest values: cumsum adds one after the other.
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    for _ in range(_ROUNDS):
        bounds = np.searchsorted(ordered, _middles(centres), side="right")
        bounds = np.concatenate([[0], bounds, [len(ordered)]])
        counts = np.diff(bounds)
        means = np.diff(sums[bounds]) / np.maximum(counts, 1)
        moved = np.where(counts > 0, means, centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return np.sort(centres.astype(np.float16))


def nearest_entries(values: Doubles, table: NDArray[np.float16]) -> NDArray[np.uint8]:
    """For each value the code of the table's nearest entry: of two equally near the lower, of equal ones the first."""
    entries, codes = np.unique(table.astype(np.float64), return_index=True)
    found = np.searchsorted(_middles(entries), values, side="left")
    return np.asarray(codes[found]).astype(np.uint8)


def _middles(ascending: Doubles) -> Doubles:
    return (ascending[:-1] + ascending[1:]) / 2
