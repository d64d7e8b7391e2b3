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
from palladium.values import array, convert, emit, known_scalar, to_array, to_shape


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


def _chosen(value: array, where: Any, neutral: bool | int | float) -> array:
    """The value with a neutral element where the condition does not hold."""
    return value if where is None else operators.select(where, value, known_scalar(neutral, value.core))


def sum(
    x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> array:
    """The sum along axes (all if None) of the elements where a condition holds; floats in the fixed order of
    docs/numerics.md.
    """
    value, target = _accumulated(x, dtype, "sum")
    total = convert(fold(_chosen(value, where, 0), "sum", axis, keepdims, "sum"), target)
    return total if initial is None else operators.add(total, initial)


def prod(
    x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> array:
    """The product along axes (all if None) of the elements where a condition holds."""
    value, target = _accumulated(x, dtype, "prod")
    total = convert(fold(_chosen(value, where, 1), "prod", axis, keepdims, "prod"), target)
    return total if initial is None else operators.multiply(total, initial)


def _extreme(x: Any, axis: Any, keepdims: bool, function: str, initial: Any = None, where: Any = None) -> array:
    value = to_array(x, function)
    if where is not None:
        if initial is None:
            fail(WrongDtype, function=function, given="where without initial", takes="give the result of no elements")
        value = operators.select(where, value, convert(to_array(initial, function), value.core))
    if value.core.is_bool:
        found = fold(value, "or" if function == "max" else "and", axis, keepdims, function)
    else:
        found = fold(value, function + "p" if value.core.is_float else function, axis, keepdims, function)
    if initial is None:
        return found
    first = convert(to_array(initial, function), value.core)
    return elementwise.maximum(found, first) if function == "max" else elementwise.minimum(found, first)


def max(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> array:
    """The largest element along axes (all if None), and `initial`, where a condition holds; NaN where there is one."""
    return _extreme(x, axis, keepdims, "max", initial, where)


def min(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> array:
    """The smallest element along axes (all if None), and `initial`, where a condition holds; NaN where there is one."""
    return _extreme(x, axis, keepdims, "min", initial, where)


def any(x: Any, axis: Any = None, keepdims: bool = False, *, where: Any = None) -> array:
    """Whether an element along axes is not 0, where a condition holds."""
    value = _chosen(convert(to_array(x, "any"), core.bool_), where, False)
    return fold(value, "or", axis, keepdims, "any")


def all(x: Any, axis: Any = None, keepdims: bool = False, *, where: Any = None) -> array:
    """Whether no element along axes is 0, where a condition holds."""
    value = _chosen(convert(to_array(x, "all"), core.bool_), where, True)
    return fold(value, "and", axis, keepdims, "all")


def mean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = None) -> array:
    """The sum divided by the number of elements, where a condition holds; of 16-bit floats in float32, rounded once."""
    value = to_array(x, "mean")
    target = promotion.as_dtype(dtype) if dtype is not None else elementwise.floating(value, "mean").core
    inner = core.f32 if target.bits < 32 else target
    total = fold(_chosen(convert(value, inner), where, 0.0), "sum", axis, keepdims, "mean")
    if where is None:
        count = known_scalar(float(product(value.shape[d] for d in _axes(axis, value.ndim, "mean"))), inner)
    else:
        flags = to_shape(convert(to_array(where, "mean"), core.bool_), value.shape, "mean")
        count = fold(convert(flags, inner), "sum", axis, keepdims, "mean")
    return convert(operators.true_divide(total, count), target)


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


def cummax(x: Any, axis: int = 0, reverse: bool = False) -> array:
    """The largest element of each prefix along an axis; NaN from where there is one."""
    return _running(x, axis, reverse, "cummax")


def cummin(x: Any, axis: int = 0, reverse: bool = False) -> array:
    """The smallest element of each prefix along an axis; NaN from where there is one."""
    return _running(x, axis, reverse, "cummin")


def _running(x: Any, axis: int, reverse: bool, function: str) -> array:
    value = to_array(x, function)
    place = shaping.axis_of(axis, value.ndim, function)
    return emit(Scan, value, kind=function[3:] + "p" * value.core.is_float, axis=place, reverse=reverse)


def average(a: Any, axis: Any = None, weights: Any = None, keepdims: bool = False) -> array:
    """The mean along axes, or with weights the sum of a * weights divided by their sum."""
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    value = elementwise.floating(a, "average")
    weight = to_array(weights, "average")
    if weight.shape != value.shape:
        place = shaping.axis_of(axis, value.ndim, "average")
        weight = shaping.reshape(weight, tuple(size if d == place else 1 for d, size in enumerate(value.shape)))
        weight = to_shape(weight, value.shape, "average")
    total = sum(operators.multiply(value, weight), axis, keepdims=keepdims)
    return operators.true_divide(total, sum(convert(weight, value.core), axis, keepdims=keepdims))


def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> array:
    """The largest element less the smallest along axes."""
    return operators.subtract(max(a, axis, keepdims), min(a, axis, keepdims))


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
    value = operators.without_bool(to_array(x, "softmax"))
    weights = elementwise.exp(operators.subtract(value, max(value, axis, keepdims=True)))
    return operators.true_divide(weights, sum(weights, axis, keepdims=True))


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> array:
    """log(sum(exp(x))) along axes, about the maximum."""
    value = elementwise.floating(x, "logsumexp")
    top = max(value, axis, keepdims=True)
    top = operators.select(elementwise.isfinite(top), top, known_scalar(0.0, value.core))
    total = elementwise.log(sum(elementwise.exp(operators.subtract(value, top)), axis, keepdims=keepdims))
    return operators.add(total, top if keepdims else shaping.reshape(top, total.shape))
