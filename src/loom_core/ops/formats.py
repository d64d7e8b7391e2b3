"""Float formats of the references: exact widening, and rounding to nearest even (or towards zero) exactly once.

NumPy and ml_dtypes convert float64 to the 8- and 16-bit types through float32, which rounds twice. Where that could
show, values are first rounded to odd: truncated to the intermediate format, and its last bit set if anything was lost.
Rounding that to a format of at least two bits less equals one rounding of the exact value.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.reference.arith import canonical32, canonical64

Array = npt.NDArray[Any]

LARGEST: Final = {core.f8e4m3: 448.0, core.f8e5m2: 57344.0}
"""The largest finite value of the 8-bit formats, to which casts saturate."""

_EXACT_INTEGER_BITS: Final = 53


def dtype_of(array: Array) -> DType:
    """Loom's dtype of an array."""
    return core.from_numpy(array.dtype)


def is_float(array: Array) -> bool:
    """Whether the elements are floats of any format (ml_dtypes' have kinds of their own)."""
    return array.dtype.kind == "f" or dtype_of(array).is_float


def widen(array: Array) -> Array:
    """Floats of 8 or 16 bits as float32, exactly; others as they are."""
    return array.astype(np.float32) if is_float(array) and array.dtype.itemsize < 4 else array


def round_float(values: Array, target: DType, *, toward_zero: bool = False, saturate: bool = True) -> Array:
    """float32 or float64 values as `target`, rounded once, NaNs canonical.

    8-bit formats: values beyond the largest finite one, infinities included, become it if `saturate`; otherwise they
    are infinite or NaN as the format has it. Towards zero, no finite value becomes infinite.
    """
    with np.errstate(all="ignore"):
        if toward_zero:
            return _toward_zero(values, target)
        if target is core.f64:
            return canonical64(values)
        if target is core.f32:
            return canonical32(values.astype(np.float32))
        exact = _odd32(values) if values.dtype == np.float64 and target is not core.f16 else values
        if saturate and target in LARGEST:
            limit = exact.dtype.type(LARGEST[target])
            exact = np.where(np.isnan(exact), exact, np.clip(exact, -limit, limit))
        rounded = exact.astype(target.numpy)
    # Not only NaNs of the operands: f8e4m3 has no other way to say that a value is too large.
    return np.where(np.isnan(rounded.astype(np.float32)), canonical_nan(target), rounded)


def canonical_nan(target: DType) -> Any:
    """The NaN that results have: positive, quiet, without payload."""
    return np.array(np.nan, np.float32).astype(target.numpy)[()]


def canonical(array: Array) -> Array:
    """Every NaN replaced by the canonical one; arrays that are no floats as they are."""
    if not is_float(array):
        return array
    return np.where(np.isnan(widen(array)), canonical_nan(dtype_of(array)), array)


def _odd32(values: Array) -> Array:
    """float64 rounded to odd in float32."""
    near = values.astype(np.float32)
    pattern = near.view(np.int32)
    error = values - near.astype(np.float64)
    # An infinite neighbour stands for an overflow, which is beyond every narrower format as well.
    inexact = np.isfinite(near) & (error != 0) & (pattern & 1 == 0)
    away = (error > 0) == (near > 0) if near.ndim else np.asarray((error > 0) == (near > 0))
    # At zero the sign of the error says on which side the smallest subnormal lies.
    at_zero = np.copysign(np.float32(2.0**-149), error.astype(np.float64)).astype(np.float32)
    stepped = np.where(near == 0, at_zero.view(np.int32), pattern + np.where(away, 1, -1).astype(np.int32))
    return np.where(inexact, stepped, pattern).astype(np.int32).view(np.float32)


def _toward_zero(values: Array, target: DType) -> Array:
    """The nearest value of `target` that is not larger in magnitude."""
    near = round_float(values, target)
    wide = near.astype(np.float64)
    exact = values.astype(np.float64)
    unsigned = np.dtype(f"u{target.itemsize}")
    below = (near.view(unsigned) - unsigned.type(1)).view(target.numpy)
    result = np.where(np.abs(wide) > np.abs(exact), below, near)
    return np.where(np.isinf(exact), round_float(values, target, saturate=False), result)


def integer_to_float(values: Array, target: DType, saturate: bool = True) -> Array:
    """Integers or bools as `target`, rounded once to nearest even; `saturate` as for `round_float`."""
    if values.dtype.kind == "b" or values.dtype.itemsize < 8:
        return round_float(values.astype(np.float64), target, saturate=saturate)
    if target is core.f64 or target is core.f32:
        return np.asarray(values.astype(target.numpy))
    # Round to odd at 53 bits: low bits that float64 cannot hold only say whether something is there.
    magnitude = np.where(values < 0, -values, values).view(np.uint64) if values.dtype.kind == "i" else values
    low = np.uint64((1 << (64 - _EXACT_INTEGER_BITS)) - 1)
    large = magnitude >> np.uint64(_EXACT_INTEGER_BITS) != 0
    sticky = np.where(magnitude & low != 0, low + np.uint64(1), np.uint64(0))
    kept = np.where(large, (magnitude & ~low) | sticky, magnitude).astype(np.float64)
    return round_float(np.where(values < 0, -kept, kept), target, saturate=saturate)


def float_to_integer(values: Array, target: DType) -> Array:
    """Truncated and saturated; NaN gives 0."""
    from loom_core.reference.cast import cast

    return cast(widen(values), target.numpy)


def convert(values: Array, target: DType, *, toward_zero: bool = False, saturate: bool = True) -> Array:
    """A cast of any dtype to any other, as `loom_core.ops.elementwise.Cast` defines it."""
    source = dtype_of(values)
    if target.is_bool:
        return np.asarray(widen(values) != 0)
    if target.is_float and source.is_float:
        wide = widen(values)
        if target.bits >= source.bits and target not in LARGEST and target.bits > 16:
            return canonical(wide.astype(target.numpy))
        return round_float(wide, target, toward_zero=toward_zero, saturate=saturate)
    if target.is_float:
        return integer_to_float(_integers(values), target, saturate)
    if source.is_float:
        return float_to_integer(values, target)
    return _integers(values).astype(target.numpy)


def _integers(values: Array) -> Array:
    """Four-bit integers, which NumPy cannot compute with, as 8-bit ones."""
    return values.astype(np.int8 if dtype_of(values).is_signed else np.uint8) if dtype_of(values).bits == 4 else values
