"""How far floats are apart, in units in the last place."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base.dtype import DType
from loom_core.ops.formats import widen

Array = npt.NDArray[Any]

_LEAST_EXPONENT: Final = {"f64": -1022, "f32": -126, "f16": -14, "bf16": -126, "f8e4m3": -6, "f8e5m2": -14}


def ulp_distance(got: Array, wanted: Array, dtype: DType) -> Array:
    """Distances in units in the last place of the wanted values; inf for integers, NaN and infinities that differ."""
    if not dtype.is_float:
        return np.full(got.shape, np.inf)
    a, b = widen(got).astype(np.float64), widen(wanted).astype(np.float64)
    with np.errstate(invalid="ignore"):
        distance = np.abs(a - b) / unit(b, dtype)
    return np.where(np.isfinite(a) & np.isfinite(b), distance, np.inf)


def unit(values: Array, dtype: DType) -> Array:
    """The unit in the last place of float64 values as numbers of `dtype`; that of the smallest normal below it."""
    smallest = _LEAST_EXPONENT[dtype.name]
    _, exponent = np.frexp(values)
    steps = np.where(values == 0, smallest, np.maximum(exponent - 1, smallest)) - dtype.mantissa
    return np.asarray(np.ldexp(1.0, steps))
