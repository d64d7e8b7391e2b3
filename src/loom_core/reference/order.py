"""Places of extremes, sorting and counting along the last axis, by what the values are and never by their encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int32]


def _comparable(x: NDArray[Any]) -> NDArray[Any]:
    """The same values in a type that NumPy orders: floats that it does not have widened, exactly."""
    return x.astype(np.float32) if x.dtype.kind == "V" or x.dtype == np.float16 else x


def _is_nan(x: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(x != x)


def argument(x: NDArray[Any], largest: bool, nan_leads: bool = False, last: bool = False) -> Indices:
    """Where the largest (or smallest) element of each row stands, i32; the first of equal ones, or the `last`.

    -0 and +0 are equal. NaNs are passed over, unless all are; `nan_leads` makes any NaN the extreme.
    """
    x = _comparable(x)
    nan = _is_nan(x)
    candidates = ~nan
    if nan_leads:
        candidates = np.where(nan.any(axis=-1, keepdims=True), nan, candidates)
    else:
        candidates = np.where(nan.all(axis=-1, keepdims=True), nan, candidates)
    return _places(x, candidates, largest, last)


def _places(x: NDArray[Any], candidates: NDArray[np.bool_], largest: bool, last: bool) -> Indices:
    shape = x.shape[:-1]
    found = np.zeros(shape, np.int32)
    for index in np.ndindex(shape):
        allowed = np.flatnonzero(candidates[index])
        values = x[index][allowed]
        best = values.max() if largest else values.min()
        # All candidates are NaNs, or none is.
        equal = allowed if _is_nan(np.asarray(best)) else allowed[values == best]
        found[index] = equal[-1 if last else 0]
    return found


def sort_order(
    x: NDArray[Any], descending: bool = False, nan_first: bool = False, signed_zeros: bool = False
) -> Indices:
    """The stable permutation that sorts each row: result i is element order[i].

    Equal elements keep their order, in both directions. NaNs are equal to each other and come last, or first with
    `nan_first`, in both directions. -0 and +0 are equal unless `signed_zeros`, where -0 is below +0.
    """
    x = _comparable(x)
    shape = x.shape[:-1]
    order = np.zeros(x.shape, np.int32)
    for index in np.ndindex(shape):
        row = x[index]
        nan = _is_nan(row)
        # Ranks from 1 up, equal for equal numbers; NaNs outside of them.
        numbers = row[~nan]
        distinct = np.unique(numbers)  # -0 and +0 are one
        rank = np.zeros(row.shape, np.int64)
        rank[~nan] = 2 * np.searchsorted(distinct, numbers) + 2
        if signed_zeros and row.dtype.kind not in "biu":
            rank[(row == 0) & np.signbit(row) & ~nan] -= 1
        key = -rank if descending else rank
        key[nan] = -(1 << 40) if nan_first else 1 << 40
        order[index] = np.argsort(key, kind="stable")
    return order


def histogram(x: NDArray[Any], bins: int, mask: NDArray[np.bool_] | None = None) -> Indices:
    """How many elements of an integer array equal 0, 1, ... bins - 1, where `mask` holds; i32, others do not count."""
    counted = (x >= 0) & (x < bins)
    if mask is not None:
        counted &= mask
    return np.bincount(x[counted].astype(np.int64).ravel(), minlength=bins).astype(np.int32)
