"""Folds along axes, scans, and what is composed of them."""

from __future__ import annotations

from math import prod as product
from typing import Any

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.ops.rearrange import Sort
from loom_core.ops.reduction import Reduce, Scan
from loom_core.ops.shape import ExpandDims
from palladium import elementwise, operators, promotion, shaping
from palladium.errors import WrongDtype, fail
from palladium.values import array, convert, emit, known_scalar, to_array


def _axes(axis: Any, rank: int, function: str) -> list[int]:
    if axis is None:
        return list(range(rank))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    return sorted(shaping.axis_of(one, rank, function) for one in given)


def fold(value: array, kind: str, axis: Any, keepdims: bool, function: str) -> array:
    """Fold axes, several as one in row-major order."""
    axes = _axes(axis, value.ndim, function)
    shape = value.shape
    result = value
    if len(axes) > 1:
        kept = [d for d in range(value.ndim) if d not in axes]
        moved = shaping.transpose(value, [*kept, *axes])
        result = shaping.reshape(moved, (*(shape[d] for d in kept), product(shape[d] for d in axes)))
        result = emit(Reduce, result, kind=kind, axis=len(kept))
    elif axes:
        result = emit(Reduce, value, kind=kind, axis=axes[0])
    if keepdims:
        for place in axes:
            result = emit(ExpandDims, result, axis=place) if result.shape else shaping.reshape(result, (1,))
    return result


def _accumulated(x: Any, dtype: Any, function: str) -> tuple[array, DType]:
    """What a sum runs over, and the dtype of its result: 16-bit floats in float32, small integers as 32-bit ones."""
    value = to_array(x, function)
    own = value.core
    if dtype is not None:
        target = promotion.as_dtype(dtype)
    elif own.is_float or own.bits >= 32:
        target = own
    else:
        target = core.u32 if own.kind == "uint" else core.i32
    inner = core.f32 if target.is_float and target.bits < 32 else target
    return convert(value, inner), target


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> array:
    """The sum along axes (all if None); floats in the fixed order of docs/numerics.md."""
    value, target = _accumulated(x, dtype, "sum")
    return convert(fold(value, "sum", axis, keepdims, "sum"), target)


def prod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> array:
    """The product along axes (all if None)."""
    value, target = _accumulated(x, dtype, "prod")
    return convert(fold(value, "prod", axis, keepdims, "prod"), target)


def _extreme(x: Any, axis: Any, keepdims: bool, function: str) -> array:
    value = to_array(x, function)
    if value.core.is_bool:
        return fold(value, "or" if function == "max" else "and", axis, keepdims, function)
    return fold(value, function + "p" if value.core.is_float else function, axis, keepdims, function)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> array:
    """The largest element along axes (all if None); NaN where there is one."""
    return _extreme(x, axis, keepdims, "max")


def min(x: Any, axis: Any = None, keepdims: bool = False) -> array:
    """The smallest element along axes (all if None); NaN where there is one."""
    return _extreme(x, axis, keepdims, "min")


def any(x: Any, axis: Any = None, keepdims: bool = False) -> array:
    """Whether an element along axes is not 0."""
    return fold(convert(to_array(x, "any"), core.bool_), "or", axis, keepdims, "any")


def all(x: Any, axis: Any = None, keepdims: bool = False) -> array:
    """Whether no element along axes is 0."""
    return fold(convert(to_array(x, "all"), core.bool_), "and", axis, keepdims, "all")


def mean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> array:
    """The sum divided by the number of elements; of 16-bit floats in float32, rounded once."""
    value = to_array(x, "mean")
    target = promotion.as_dtype(dtype) if dtype is not None else elementwise.floating(value, "mean").core
    inner = core.f32 if target.bits < 32 else target
    total = fold(convert(value, inner), "sum", axis, keepdims, "mean")
    count = product(value.shape[d] for d in _axes(axis, value.ndim, "mean"))
    return convert(operators.true_divide(total, known_scalar(float(count), inner)), target)


def var(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> array:
    """The mean squared distance from the mean."""
    value = elementwise.floating(to_array(x, "var"), "var")
    target = value.core
    inner = convert(value, core.f32) if target.bits < 32 else value
    centred = operators.subtract(inner, mean(inner, axis, keepdims=True))
    count = product(value.shape[d] for d in _axes(axis, value.ndim, "var")) - ddof
    total = fold(operators.multiply(centred, centred), "sum", axis, keepdims, "var")
    return convert(operators.true_divide(total, known_scalar(float(count), inner.core)), target)


def std(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> array:
    """The square root of the variance."""
    return elementwise.sqrt(var(x, axis, ddof, keepdims))


def _arg_extreme(x: Any, axis: Any, keepdims: bool, function: str) -> array:
    value = to_array(x, function)
    flat = shaping.ravel(value) if axis is None else value
    place = shaping.axis_of(0 if axis is None else axis, flat.ndim, function)
    extreme = _extreme(flat, place, True, function[3:])
    hit = operators.compare("eq", flat, extreme)
    if value.core.is_float:
        hit = operators.logical("or", hit, elementwise.isnan(flat))
    size = flat.shape[place]
    positions = shaping.broadcasted_iota(core.i32, flat.shape, place)
    chosen = fold(operators.select(hit, positions, size), "min", place, keepdims, function)
    return shaping.reshape(chosen, (1,) * value.ndim) if axis is None and keepdims else chosen


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> array:
    """The index of the first largest element, int32; that of the first NaN where there is one."""
    return _arg_extreme(x, axis, keepdims, "argmax")


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> array:
    """The index of the first smallest element, int32; that of the first NaN where there is one."""
    return _arg_extreme(x, axis, keepdims, "argmin")


def _scan(x: Any, kind: str, axis: Any, dtype: Any, reverse: bool, function: str) -> array:
    own = operators.without_bool(to_array(x, function))
    value, target = _accumulated(own, own.core if dtype is None else dtype, function)
    flat = shaping.ravel(value) if axis is None else value
    place = shaping.axis_of(0 if axis is None else axis, flat.ndim, function)
    return convert(emit(Scan, flat, kind=kind, axis=place, reverse=reverse), target)


def cumsum(x: Any, axis: Any = None, dtype: Any = None, reverse: bool = False) -> array:
    """The sums of all prefixes along an axis (of all elements in order if None), one element after the other."""
    return _scan(x, "sum", axis, dtype, reverse, "cumsum")


def cumprod(x: Any, axis: Any = None, dtype: Any = None, reverse: bool = False) -> array:
    """The products of all prefixes along an axis."""
    return _scan(x, "prod", axis, dtype, reverse, "cumprod")


def sort(x: Any, axis: int = -1, descending: bool = False) -> array:
    """The elements along an axis in order; -0 before +0, NaN last."""
    value = to_array(x, "sort")
    if not value.shape:
        fail(WrongDtype, function="sort", given="a scalar", takes="it takes tiles")
    place = shaping.axis_of(axis, value.ndim, "sort")
    moved = shaping.swapaxes(value, place, value.ndim - 1)
    return shaping.swapaxes(emit(Sort, moved, descending=bool(descending)), place, value.ndim - 1)


def softmax(x: Any, axis: int = -1) -> array:
    """exp(x - max) / sum(exp(x - max)) along an axis."""
    value = elementwise.floating(x, "softmax")
    weights = elementwise.exp(operators.subtract(value, max(value, axis, keepdims=True)))
    return operators.true_divide(weights, sum(weights, axis, keepdims=True))


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> array:
    """log(sum(exp(x))) along axes, about the maximum."""
    value = elementwise.floating(x, "logsumexp")
    top = max(value, axis, keepdims=True)
    top = operators.select(elementwise.isfinite(top), top, known_scalar(0.0, value.core))
    total = elementwise.log(sum(elementwise.exp(operators.subtract(value, top)), axis, keepdims=keepdims))
    return operators.add(total, top if keepdims else shaping.reshape(top, total.shape))
