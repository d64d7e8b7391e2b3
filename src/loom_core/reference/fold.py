"""Folds of several arrays together by a function of the user: in the order of a tree, and element after element.

A combine function takes what is on the left (one array for each of the folded ones) and what is on the right, and gives
as many. It is called with whole slices: every step is elementwise over the other axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = list[NDArray[Any]]
Combine: TypeAlias = Callable[[Arrays, Arrays], Sequence[NDArray[Any]]]


def tree(arrays: Sequence[NDArray[Any]], combine: Combine) -> Arrays:
    """The fold of the last axis, of one length >= 1, without that axis.

    Neighbours 0 and 1, 2 and 3, ... are combined, the lower index on the left; a last one without a neighbour stays;
    and again until one is left. A single element is returned as it is.
    """
    rows = [np.asarray(x) for x in arrays]
    while rows[0].shape[-1] > 1:
        paired = rows[0].shape[-1] // 2 * 2
        left, right = ([x[..., first:paired:2] for x in rows] for first in (0, 1))
        combined = combine(left, right)
        rows = [np.concatenate([new, x[..., paired:]], axis=-1) for new, x in zip(combined, rows, strict=True)]
    return [x[..., 0] for x in rows]


def scan(arrays: Sequence[NDArray[Any]], combine: Combine, reverse: bool = False) -> Arrays:
    """Inclusive scan of the last axis: what is carried on the left, the next element on the right.

    `reverse` begins at the last element. The first element met is the first result as it is.
    """
    rows = [np.asarray(x) for x in arrays]
    results = [np.empty_like(x) for x in rows]
    order = range(rows[0].shape[-1])
    carried: Arrays | None = None
    for index in reversed(order) if reverse else order:
        elements = [x[..., index] for x in rows]
        carried = elements if carried is None else list(combine(carried, elements))
        for result, value in zip(results, carried, strict=True):
            result[..., index] = value
    return results
