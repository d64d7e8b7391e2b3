"""Floats of 8 and 16 bits: what a pattern is worth, rounding to a format exactly once, functions through float32.

Arrays have the NumPy type of the dtype (float16, or one of ml_dtypes: bfloat16, float8_e4m3fn, float8_e5m2); only their
bits are used, none of the conversions that come with the type. A NaN result is the canonical one of its format.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loom_core.base.dtype import DType, by_name, from_numpy
from loom_core.reference import arith
from loom_core.reference.elementary import REFERENCE_F32

Array = NDArray[Any]
Rounding = Literal["nearest", "saturate", "truncate"]


@dataclass(frozen=True)
class Format:
    """Patterns of a float format, sign bit excluded: sign, exponent with this bias, `mantissa` bits.

    `infinity` is None for f8e4m3, which has none and but one NaN, its last pattern.
    """

    dtype: DType
    mantissa: int
    bias: int
    largest: int
    infinity: int | None
    nan: int

    @property
    def sign(self) -> int:
        return 1 << (self.dtype.bits - 1)

    @property
    def largest_value(self) -> float:
        return self.worth(self.largest)

    def worth(self, pattern: int) -> float:
        """The value of a finite non-negative pattern."""
        exponent, mantissa = pattern >> self.mantissa, pattern & ((1 << self.mantissa) - 1)
        if exponent == 0:
            return float(mantissa * 2.0 ** (1 - self.bias - self.mantissa))
        return float((mantissa + (1 << self.mantissa)) * 2.0 ** (exponent - self.bias - self.mantissa))


FORMATS: Final[dict[str, Format]] = {
    "f16": Format(by_name("f16"), 10, 15, largest=0x7BFF, infinity=0x7C00, nan=0x7E00),
    "bf16": Format(by_name("bf16"), 7, 127, largest=0x7F7F, infinity=0x7F80, nan=0x7FC0),
    "f8e5m2": Format(by_name("f8e5m2"), 2, 15, largest=0x7B, infinity=0x7C, nan=0x7E),
    "f8e4m3": Format(by_name("f8e4m3"), 3, 7, largest=0x7E, infinity=None, nan=0x7F),
}


def format_of(x: Array) -> Format:
    """The format of an array's elements; TypeError if they are no float of 8 or 16 bits."""
    dtype = from_numpy(x.dtype)
    if dtype.name not in FORMATS:
        raise TypeError(f"{dtype.name} is not a float type of 8 or 16 bits")
    return FORMATS[dtype.name]


def patterns(x: Array) -> Array:
    """The bits of the elements, as unsigned integers."""
    return np.asarray(x).view(f"u{x.dtype.itemsize}")


@functools.cache
def _values(name: str) -> NDArray[np.float32]:
    """What each pattern without the sign bit is worth."""
    form = FORMATS[name]
    values = np.full(form.sign, np.nan, np.float32)
    finite = form.largest + 1
    values[:finite] = [form.worth(pattern) for pattern in range(finite)]
    if form.infinity is not None:
        values[form.infinity] = np.inf
    return values


def widen(x: ArrayLike) -> NDArray[np.float32]:
    """The float32 of each element, exact; NaNs are canonical."""
    array = np.asarray(x)
    form = format_of(array)
    pattern = patterns(array)
    value = _values(form.dtype.name)[pattern & (form.sign - 1)]
    signed: NDArray[np.float32] = np.where(np.isnan(value) | (pattern & form.sign == 0), value, -value)
    return signed


def round_to(x: ArrayLike, dtype: DType, rounding: Rounding = "nearest") -> Array:
    """float32 or float64 values as `dtype`, rounded once.

    "nearest": ties to even, and what is too large becomes infinite (f8e4m3: NaN); "saturate": that becomes the largest
    finite value, infinities too; "truncate": towards zero, where only infinities become infinite.
    """
    form = FORMATS[dtype.name]
    value = np.asarray(x, np.float64)
    magnitude = np.where(np.isfinite(value), np.abs(value), 0.0)
    _, exponent = np.frexp(magnitude)
    least = 1 - form.bias
    exponent = np.maximum(np.where(magnitude == 0, least, exponent - 1), least).astype(np.int64)
    # In units of the last place the magnitude is below 2^(mantissa + 1); scaling by powers of two is exact.
    scaled = np.ldexp(magnitude, (form.mantissa - exponent).astype(np.int32))
    units = (np.floor if rounding == "truncate" else np.rint)(scaled).astype(np.int64)
    pattern = ((exponent - least) << form.mantissa) + units
    overflow = form.nan if form.infinity is None else form.infinity
    limit = overflow if rounding == "nearest" else form.largest
    pattern = np.where(pattern > form.largest, limit, pattern)
    pattern = np.where(np.isinf(value), form.largest if rounding == "saturate" else overflow, pattern)
    signed = np.where(np.signbit(value), pattern | form.sign, pattern)
    is_nan = np.isnan(value) | (pattern == form.nan)
    result: Array = np.where(is_nan, form.nan, signed).astype(f"u{dtype.itemsize}")
    return result.view(dtype.numpy)


def round_integers(x: ArrayLike, dtype: DType, rounding: Rounding = "nearest") -> Array:
    """Integers as `dtype`, rounded once."""
    value = np.asarray(x)
    negative = value < 0
    with np.errstate(over="ignore"):
        magnitude = np.where(negative, -value, value) if value.dtype.kind == "i" else value
    magnitude = magnitude.view(f"u{value.dtype.itemsize}").astype(np.uint64)
    # Of more than 53 bits the lowest eleven become one that says whether any was set: far below the last place.
    is_long = magnitude >= np.uint64(1 << 53)
    lost = (magnitude & np.uint64(0x7FF) != 0).astype(np.uint64)
    short = np.where(is_long, magnitude >> np.uint64(11) | lost, magnitude).astype(np.float64)
    exact = np.where(is_long, short * 2048.0, short)
    return round_to(np.where(negative, -exact, exact), dtype, rounding)


def canonical(x: ArrayLike) -> Array:
    """Every NaN replaced by the canonical one."""
    array = np.asarray(x)
    form = format_of(array)
    pattern = patterns(array)
    is_nan = pattern & (form.sign - 1) > (form.largest if form.infinity is None else form.infinity)
    return np.where(is_nan, form.nan, pattern).astype(pattern.dtype).view(array.dtype)


def isnan(x: ArrayLike) -> NDArray[np.bool_]:
    """Whether an element is a NaN."""
    return np.isnan(widen(x))


def fma(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Array:
    """a * b + c rounded once: the product is exact in float64, the sum rounded to odd there."""
    x, y, z = (widen(value).astype(np.float64) for value in (a, b, c))
    with np.errstate(all="ignore"):
        total, error = arith.two_sum(*np.broadcast_arrays(x * y, z))
        return round_to(arith.round_to_odd(total, error), from_numpy(np.asarray(a).dtype))


def nextafter(x: ArrayLike, y: ArrayLike) -> Array:
    """The element next to x in the direction of y; y where they are equal; from a zero the smallest of y's sign."""
    a, b = np.broadcast_arrays(np.asarray(x), np.asarray(y))
    form = format_of(a)
    value, target = widen(a), widen(b)
    pattern = patterns(a).astype(np.int64)
    outward = (value < target) == (pattern < form.sign)
    moved = np.where(value == 0, (patterns(b) & form.sign) | 1, pattern + np.where(outward, 1, -1))
    moved = np.where(value == target, patterns(b), moved)
    moved = np.where(np.isnan(value) | np.isnan(target), form.nan, moved)
    return moved.astype(patterns(a).dtype).view(a.dtype)


def _moved(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function that only looks at bits; its result made canonical."""
    return lambda *arguments: canonical(function(*arguments))


def _neg(x: ArrayLike) -> Array:
    array = np.asarray(x)
    flipped: Array = patterns(array) ^ patterns(array).dtype.type(format_of(array).sign)
    return flipped.view(array.dtype)


def _abs(x: ArrayLike) -> Array:
    array = np.asarray(x)
    cleared: Array = patterns(array) & patterns(array).dtype.type(format_of(array).sign - 1)
    return cleared.view(array.dtype)


def _copysign(x: ArrayLike, y: ArrayLike) -> Array:
    array = np.asarray(x)
    sign = patterns(np.asarray(y)) & patterns(array).dtype.type(format_of(array).sign)
    signed: Array = patterns(_abs(array)) | sign
    return signed.view(array.dtype)


def _select(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    return np.where(np.asarray(condition, np.bool_), x, y)


def through_f32(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of float32 arrays as one of these types: widened, computed, a float32 result rounded once."""

    def narrowed(*arguments: ArrayLike) -> Array:
        arrays = [np.asarray(argument) for argument in arguments]
        dtype = from_numpy(arrays[0].dtype)
        wide = [widen(array) if array.dtype == arrays[0].dtype else array for array in arrays]
        result = np.asarray(function(*wide))
        return round_to(result, dtype) if result.dtype == np.float32 else result

    return narrowed


NARROW: Final[dict[str, Callable[..., Any]]] = {
    **{name: through_f32(function) for name, function in REFERENCE_F32.items()},
    **{
        name: through_f32(function)
        for name, function in (
            ("add", arith.add32),
            ("sub", arith.sub32),
            ("mul", arith.mul32),
            ("div", arith.div32),
            ("eq", np.equal),
            ("ne", np.not_equal),
            ("lt", np.less),
            ("le", np.less_equal),
            ("gt", np.greater),
            ("ge", np.greater_equal),
        )
    },
    "mov": canonical,
    "neg": _moved(_neg),
    "abs": _moved(_abs),
    "copysign": _moved(_copysign),
    "select": _moved(_select),
    "isnan": isnan,
    "fma": fma,
    "nextafter": nextafter,
}
"""Function name of the command table -> reference, for every one of these types."""
