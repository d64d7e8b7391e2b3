"""Sorting several tiles by one, the places of sorted elements, and what is found with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loom_core.base import dtype as core
from loom_core.ops.rearrange import Sort
from palladium import elementwise, operators, reductions, shaping
from palladium.errors import WrongDtype, WrongShape, fail
from palladium.shaping import axis_of, item
from palladium.staging import look_up
from palladium.values import array, convert, emit, full, known_scalar, to_array, to_shape


def _keys(value: array, function: str) -> array:
    """Integers of 32 bits, in 64, that are ordered as the elements: zeros are equal, NaN is last."""
    if value.core.bits == 64:
        fail(WrongDtype, function=function, given=str(value), takes="keys have 32 bits or less")
    if not value.core.is_float:
        wide = convert(convert(value, core.i32) if value.core.is_bool else value, core.i64)
        return operators.subtract(wide, known_scalar(1 << 31, core.i64)) if value.core is core.u32 else wide
    wide = convert(value, core.f32)
    plain = operators.select(operators.compare("eq", wide, 0.0), known_scalar(0.0, core.f32), wide)
    plain = operators.select(elementwise.isnan(plain), known_scalar(float("nan"), core.f32), plain)
    bits = elementwise.bitcast_convert_type(plain, core.i32)
    least = operators.subtract(-1, operators.and_(bits, 0x7FFFFFFF))
    return convert(operators.select(operators.compare("lt", bits, 0), least, bits), core.i64)


def _places(value: array, axis: int, descending: bool, function: str) -> array:
    """The index of the element that comes first, second, ...; of equal ones the earlier first."""
    last = value.ndim - 1
    keys = _keys(shaping.swapaxes(value, axis, last), function)
    if descending:
        keys = operators.subtract(-1, keys)
    index = convert(shaping.broadcasted_iota(core.i32, keys.shape, last), core.i64)
    joined = operators.or_(operators.left_shift(keys, known_scalar(32, core.i64)), index)
    ordered = operators.and_(emit(Sort, joined, descending=False), known_scalar(0x7FFFFFFF, core.i64))
    return shaping.swapaxes(convert(ordered, core.i32), axis, last)


def argsort(a: Any, axis: int | None = -1, *, kind: Any = None, order: Any = None, stable: bool = True,
            descending: bool = False) -> array:  # fmt: skip
    """The indices in whose order the elements along an axis are sorted, int32; equal ones keep their order."""
    value = to_array(a, "argsort")
    flat = shaping.ravel(value) if axis is None else value
    return _places(flat, axis_of(0 if axis is None else axis, flat.ndim, "argsort"), descending, "argsort")


def sort_together(operands: Sequence[Any], dimension: int = -1, num_keys: int = 1) -> list[array]:
    """Tiles in the order of the first `num_keys` of them, compared one after the other; equal rows keep their order."""
    values = [to_array(one, "sort") for one in operands]
    if any(value.shape != values[0].shape for value in values):
        fail(WrongShape, function="sort", problem="the tiles differ in shape")
    if not 1 <= num_keys <= len(values):
        fail(WrongShape, function="sort", problem=f"num_keys is {num_keys} of {len(values)} tiles")
    axis = axis_of(dimension, values[0].ndim, "sort")
    order: array | None = None
    for key in reversed(values[:num_keys]):
        seen = key if order is None else look_up(key, order, axis)
        places = _places(seen, axis, False, "sort")
        order = places if order is None else look_up(order, places, axis)
    assert order is not None
    return [look_up(value, order, axis) for value in values]


def sort_key_val(keys: Any, values: Any, dimension: int = -1) -> list[array]:
    """Keys in order, and values in the order of their keys."""
    return sort_together([keys, values], dimension)


def top_k(operand: Any, k: int) -> list[array]:
    """The k largest elements along the last dimension, in order, and their indices; NaN is largest."""
    value = to_array(operand, "top_k")
    axis = value.ndim - 1
    if not 0 < k <= value.shape[-1]:
        fail(WrongShape, function="top_k", problem=f"{k} of {value.shape[-1]} elements")
    order = item(_places(value, axis, True, "top_k"), (..., slice(0, k)))
    return [look_up(value, order, axis), order]


def median(a: Any, axis: Any = None, keepdims: bool = False) -> array:
    """The middle element in order, or the mean of the two middle ones; NaN where there is one."""
    value = elementwise.floating(a, "median")
    flat = shaping.ravel(value) if axis is None else value
    place = axis_of(0 if axis is None else axis, flat.ndim, "median")
    ordered = shaping.swapaxes(reductions.sort(flat, place), place, flat.ndim - 1)
    size = ordered.shape[-1]
    low, high = (item(ordered, (..., (size - 1) // 2)), item(ordered, (..., size // 2)))
    middle = operators.multiply(operators.add(low, high), known_scalar(0.5, value.core))
    has_nan = elementwise.isnan(item(ordered, (..., size - 1)))
    found = operators.select(has_nan, known_scalar(float("nan"), value.core), middle)
    if not keepdims:
        return found
    return shaping.reshape(found, (1,) * value.ndim) if axis is None else shaping.expand_dims(found, place)


def searchsorted(a: Any, v: Any, side: str = "left") -> array:
    """Where each element of v belongs in the sorted row a, int32: before ("left") or behind ("right") equal ones."""
    row, wanted = to_array(a, "searchsorted"), to_array(v, "searchsorted")
    if row.ndim != 1 or side not in ("left", "right"):
        fail(WrongShape, function="searchsorted", problem=f"a of shape {row.shape}, side {side!r}")
    left = to_shape(row, (*wanted.shape, row.size))
    right = to_shape(shaping.expand_dims(wanted, wanted.ndim), (*wanted.shape, row.size))
    before = operators.compare("lt" if side == "left" else "le", left, right)
    if wanted.core.is_float:
        last = elementwise.isnan(right)  # NaN comes behind all numbers
        if side == "left" and row.core.is_float:
            last = operators.logical("and", last, elementwise.logical_not(elementwise.isnan(left)))
        before = operators.logical("or", before, last)
    return reductions.sum(convert(before, core.i32), axis=-1)


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> array:
    """How many elements are not 0, int32."""
    flags = operators.compare("ne", to_array(a, "count_nonzero"), 0)
    return reductions.sum(convert(flags, core.i32), axis, keepdims=keepdims)


def one_hot(x: Any, num_classes: int, *, dtype: Any = core.f32, axis: int = -1) -> array:
    """A new dimension with 1 at the index that x holds, 0 elsewhere."""
    from palladium.promotion import as_dtype

    value = to_array(x, "one_hot")
    rank = value.ndim + 1
    place = axis_of(axis, rank, "one_hot")
    spread = shaping.expand_dims(value, place)
    shape = tuple(num_classes if d == place else size for d, size in enumerate(spread.shape))
    classes = convert(shaping.broadcasted_iota(core.i32, shape, place), value.core)
    return convert(operators.compare("eq", to_shape(spread, shape), classes), as_dtype(dtype))


def nan_reduction(kind: str, x: Any, axis: Any, keepdims: bool) -> array:
    """A fold that leaves NaN out: of elements that all are NaN it is NaN for max and min, 0 for sum, 1 for prod."""
    value = to_array(x, f"nan{kind}")
    folds: dict[str, Callable[..., array]] = {
        "max": reductions.max, "min": reductions.min, "sum": reductions.sum, "prod": reductions.prod,
    }  # fmt: skip
    if not value.core.is_float:
        return folds[kind](value, axis, keepdims=keepdims)
    missing = elementwise.isnan(value)
    neutral = {"max": -float("inf"), "min": float("inf"), "sum": 0.0, "prod": 1.0}[kind]
    found = folds[kind](operators.select(missing, neutral, value), axis, keepdims=keepdims)
    if kind in ("sum", "prod"):
        return found
    nothing = reductions.all(missing, axis, keepdims=keepdims)
    return operators.select(nothing, full(found.shape, float("nan"), value.core), found)
