"""Conversions between element types: to integers truncated and saturating, to floats rounded once, integers wrap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from loom_core.reference.arith import canonical32, canonical64


def cast(x: ArrayLike, to: DTypeLike) -> NDArray[Any]:
    """`x` (bool, an integer type, float32 or float64) converted to the NumPy type `to` of the same kinds.

    Float to integer truncates toward zero and saturates, NaN gives 0. Integer to a narrower integer keeps the low bits.
    Integer to float rounds to nearest even, once. Anything to bool is `x != 0`, so NaN is true; bool is 0 or 1.
    """
    source = np.asarray(x)
    target = np.dtype(to)
    if target.kind not in "biuf" or source.dtype.kind not in "biuf":
        raise TypeError(f"no cast from {source.dtype} to {target}")
    if target.kind == "b":
        return np.asarray(source != 0)
    if source.dtype.kind == "f" and target.kind in "iu":
        return _saturate(source, target)
    with np.errstate(all="ignore"):
        result: NDArray[Any] = source.astype(target)
    if target.kind == "f":
        return canonical32(result) if target == np.float32 else canonical64(result)
    return result


def _saturate(source: NDArray[Any], target: np.dtype[Any]) -> NDArray[Any]:
    limits = np.iinfo(target)
    truncated = np.trunc(np.where(np.isnan(source), 0, source).astype(np.float64))
    # As a float the upper limit of a 64-bit type is one too large, so values from there on are set, not converted.
    above, below = truncated >= float(limits.max), truncated <= float(limits.min)
    inside = np.where(above | below, 0, truncated).astype(target)
    result = np.where(above, limits.max, np.where(below, limits.min, inside))
    return result.astype(target)
