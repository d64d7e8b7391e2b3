"""Conversions between element types: to integers truncated and saturating, to floats rounded once, integers wrap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loom_core.base.dtype import DType, from_numpy
from loom_core.reference.arith import canonical32, canonical64
from loom_core.reference.narrow import FORMATS, Rounding, round_integers, round_to, widen

Array = NDArray[Any]


def cast(x: ArrayLike, to: Any, rounding: Rounding = "nearest") -> Array:
    """`x` converted to the type `to`: a DType, or a NumPy type that has one.

    Float to integer truncates toward zero and saturates, NaN gives 0. Integer to a narrower integer keeps the low bits.
    Anything to bool is `x != 0`, so NaN is true; bool is 0 or 1. To a float type values are rounded once, as `rounding`
    says: "nearest" (ties to even; too large gives an infinity, or NaN in f8e4m3), "saturate" (f8e4m3 and f8e5m2 only:
    too large, or infinite, gives the largest finite value), "truncate" (float to a narrower float).
    """
    source = np.asarray(x)
    target = to if isinstance(to, DType) else from_numpy(to)
    given = from_numpy(source.dtype)
    value = widen(source) if given.name in FORMATS else _byte(source, given)
    if target.is_bool:
        return np.asarray(value != 0)
    if target.name in FORMATS:
        if given.is_float:
            return round_to(value, target, rounding)
        return round_integers(value.astype(np.uint8) if given.is_bool else value, target, rounding)
    if target.is_float:
        return _to_float(value, target, rounding)
    return _saturated(value, target) if given.is_float else _wrapped(value, target)


def _byte(x: Array, dtype: DType) -> Array:
    """Four-bit integers as 8-bit ones, with which NumPy computes."""
    if dtype.bits != 4:
        return x
    low = x.view(np.uint8) & np.uint8(15)
    return np.where(low & 8, low | np.uint8(0xF0), low).view(np.int8) if dtype.is_signed else low


def _to_float(value: Array, target: DType, rounding: Rounding) -> Array:
    with np.errstate(all="ignore"):
        result = value.astype(target.numpy)
        if rounding == "truncate" and value.dtype == np.float64:
            larger = np.abs(result.astype(np.float64)) > np.abs(value)
            result = np.where(larger, (result.view(np.uint32) - larger).astype(np.uint32).view(np.float32), result)
    return canonical32(result) if target.name == "f32" else canonical64(result)


def _wrapped(value: Array, target: DType) -> Array:
    whole = value.astype(np.int64 if value.dtype.kind != "u" else np.uint64)
    if target.bits == 4:
        return (whole & whole.dtype.type(15)).astype(np.uint8).view(target.numpy)
    with np.errstate(all="ignore"):
        result: Array = whole.astype(target.numpy)
    return result


def _saturated(value: Array, target: DType) -> Array:
    truncated = np.trunc(np.where(np.isnan(value), 0, value).astype(np.float64))
    # As a float the upper limit of a 64-bit type is one too large, so values from there on are set, not converted.
    low, high = target.min_value, target.max_value
    above, below = truncated >= float(high), truncated <= float(low)
    kind = np.uint64 if target.kind == "uint" else np.int64
    inside = np.where(above | below, 0, truncated).astype(kind)
    return _wrapped(np.where(above, kind(high), np.where(below, kind(low), inside)), target)
