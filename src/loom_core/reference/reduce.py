"""Reductions and scans in the machine's order, which depends on the logical index alone.

Float sums and products: the reduced axes flatten row-major; the elements split into blocks of 4096; in a block, lane j
of 32 folds elements j, j + 32, ... starting from its first, then lane j takes in lane j + h for h = 16, 8, 4, 2, 1
(absent lanes are skipped); the block results reduce again by the same rule. Minima, maxima and integer reductions do
not depend on an order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loom_core.reference.arith import Float32s, add32, canonical32, f32, max32, maxp32, min32, minp32, mul32

LANES = 32
BLOCK = 4096

Combine = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

# What a reduction of no elements gives.
_IDENTITY: dict[str, float] = {
    "sum": 0.0,
    "prod": 1.0,
    "min": np.inf,
    "minp": np.inf,
    "max": -np.inf,
    "maxp": -np.inf,
}
_COMBINE: dict[str, Combine] = {
    "sum": add32,
    "prod": mul32,
    "min": min32,
    "minp": minp32,
    "max": max32,
    "maxp": maxp32,
}


def _flatten(x: NDArray[Any], axes: int | Sequence[int] | None) -> NDArray[Any]:
    """`x` with the kept axes first and the reduced ones as one last axis, row-major in their own order."""
    chosen = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    reduced = sorted({axis + x.ndim if axis < 0 else axis for axis in chosen})
    if any(not 0 <= axis < x.ndim for axis in reduced):
        raise ValueError(f"axes {axes} of an array with {x.ndim} axes")
    kept = [axis for axis in range(x.ndim) if axis not in reduced]
    shape = tuple(x.shape[axis] for axis in kept)
    count = int(np.prod([x.shape[axis] for axis in reduced], dtype=np.int64))
    return x.transpose(*kept, *reduced).reshape(*shape, count)


def _fold_block(block: NDArray[Any], combine: Combine) -> NDArray[Any]:
    """The last axis, of 1 to 4096 elements, folded by lanes."""
    lanes = block[..., :LANES].copy()
    for start in range(LANES, block.shape[-1], LANES):
        row = block[..., start : start + LANES]
        width = row.shape[-1]
        lanes[..., :width] = combine(lanes[..., :width], row)
    half = LANES // 2
    while half:
        width = lanes.shape[-1]
        if width > half:
            lanes[..., : width - half] = combine(lanes[..., : width - half], lanes[..., half:])
            lanes = lanes[..., :half]
        half //= 2
    result: NDArray[Any] = lanes[..., 0]
    return result


def fold_last(elements: NDArray[Any], combine: Combine) -> NDArray[Any]:
    """The last axis, of any positive length, folded by blocks; `combine` gives the type of its operands."""
    while elements.shape[-1] > 1:
        blocks = [
            _fold_block(elements[..., start : start + BLOCK], combine) for start in range(0, elements.shape[-1], BLOCK)
        ]
        elements = np.stack(blocks, axis=-1)
    result: NDArray[Any] = elements[..., 0]
    return result


def reduce32(function: str, x: ArrayLike, axes: int | Sequence[int] | None = None) -> Float32s:
    """A float32 reduction, `function` one of sum, prod, min, max (numbers win over NaN), minp, maxp (NaN wins).

    `axes` as in NumPy, None for all. A reduction of no elements gives the identity: 0, 1, inf or -inf.
    """
    elements = _flatten(f32(x), axes)
    if elements.shape[-1] == 0:
        return np.full(elements.shape[:-1], _IDENTITY[function], np.float32)
    return canonical32(fold_last(elements, _COMBINE[function]))


def sum32(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Float32s:
    """Sum in the machine's order."""
    return reduce32("sum", x, axes)


def prod32(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Float32s:
    """Product in the machine's order."""
    return reduce32("prod", x, axes)


def min32_over(x: ArrayLike, axes: int | Sequence[int] | None = None, propagate_nan: bool = False) -> Float32s:
    """Smallest element; NaNs are passed over, or win if `propagate_nan`."""
    return reduce32("minp" if propagate_nan else "min", x, axes)


def max32_over(x: ArrayLike, axes: int | Sequence[int] | None = None, propagate_nan: bool = False) -> Float32s:
    """Largest element; NaNs are passed over, or win if `propagate_nan`."""
    return reduce32("maxp" if propagate_nan else "max", x, axes)


def scan32(function: str, x: ArrayLike, axis: int, reverse: bool = False) -> Float32s:
    """Inclusive scan along `axis`, one carried state, element after element; `function` as in `reduce32`.

    `reverse` goes from the last element to the first.
    """
    elements = np.moveaxis(f32(x), axis, 0)
    result = np.empty_like(elements)
    order = range(elements.shape[0])
    carried: Float32s | None = None
    for index in reversed(order) if reverse else order:
        element = canonical32(elements[index])
        carried = element if carried is None else _COMBINE[function](carried, element)
        result[index] = carried
    return np.moveaxis(result, 0, axis)
