"""Parts of tiles at run-time indices: a tile has no addresses, so it goes through a window of SRAM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loom_core.base import dtype as core
from loom_core.ops.rearrange import Gather
from palladium import elementwise, operators, refs, shaping
from palladium.errors import Refused, WrongShape, fail
from palladium.trace import kernel_trace
from palladium.values import array, as_shape, convert, emit, known_scalar, to_array, to_shape
from palladium.views import Ref, Slice, whole_ref


def staged(value: array) -> Ref:
    """A window with the elements of a tile."""
    ref = whole_ref(refs.window("staged", value.shape, value.core))
    refs.store(ref, ..., value)
    return ref


def _starts(value: array, indices: Sequence[Any], sizes: Sequence[int], function: str) -> list[Any]:
    """Begins of a part, negative ones counted from the end, moved so that all of it is inside."""
    if len(indices) != value.ndim or len(sizes) != value.ndim:
        fail(WrongShape, function=function, problem=f"{len(indices)} indices for {value.ndim} dimensions")
    found = []
    for size, part, index in zip(value.shape, sizes, indices, strict=True):
        if part > size:
            fail(WrongShape, function=function, problem=f"a part of {part} elements of {size}")
        found.append(_inside(index, size, size - part, function))
    return found


def _inside(index: Any, size: int, last: int, function: str) -> array:
    start = refs.require_scalar(index, function)
    start = convert(start, core.i32) if start.core.is_integer else start
    if start.known is not None:
        number = int(start.known)
        return known_scalar(min(max(number + size if number < 0 else number, 0), last), core.i32)
    wrapped = operators.select(operators.compare("lt", start, 0), operators.add(start, size), start)
    clamped = elementwise.clamp(0, wrapped, last)
    clamped.interval = (0, last)
    return clamped


def dynamic_slice(operand: Any, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> array:
    """The part of a tile that begins at run-time indices, moved inside where it would reach over an end."""
    value, sizes = to_array(operand, "dynamic_slice"), as_shape(slice_sizes, "dynamic_slice")
    starts = _starts(value, start_indices, sizes, "dynamic_slice")
    if all(start.known is not None for start in starts):
        parts = [slice(int(a.known), int(a.known) + n) for a, n in zip(starts, sizes, strict=True)]
        return shaping.item(value, tuple(parts))
    return refs.load(staged(value), tuple(Slice(a, n) for a, n in zip(starts, sizes, strict=True)))


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> array:
    """`slice_size` indices of one dimension from a run-time one."""
    value = to_array(operand, "dynamic_slice_in_dim")
    place = shaping.axis_of(axis, value.ndim, "dynamic_slice_in_dim")
    starts: list[Any] = [0] * value.ndim
    sizes = list(value.shape)
    starts[place], sizes[place] = start_index, slice_size
    return dynamic_slice(value, starts, sizes)


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> array:
    """One index of a dimension, known at run time."""
    part = dynamic_slice_in_dim(operand, index, 1, axis)
    return part if keepdims else shaping.squeeze(part, axis)


def dynamic_update_slice(operand: Any, update: Any, start_indices: Sequence[Any]) -> array:
    """A tile with the part at run-time indices replaced."""
    value = to_array(operand, "dynamic_update_slice")
    part = to_array(update, "dynamic_update_slice")
    starts = _starts(value, start_indices, part.shape, "dynamic_update_slice")
    ref = staged(value)
    refs.store(ref, tuple(Slice(a, n) for a, n in zip(starts, part.shape, strict=True)), part)
    return refs.load(ref)


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> array:
    """A tile with indices of one dimension replaced, from a run-time one."""
    value = to_array(operand, "dynamic_update_slice_in_dim")
    place = shaping.axis_of(axis, value.ndim, "dynamic_update_slice_in_dim")
    return dynamic_update_slice(value, update, [start_index if d == place else 0 for d in range(value.ndim)])


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> array:
    """A tile with one index of a dimension replaced."""
    value, part = (to_array(one, "dynamic_update_index_in_dim") for one in (operand, update))
    if part.ndim < value.ndim:
        part = shaping.expand_dims(part, axis)
    return dynamic_update_slice_in_dim(value, part, index, axis)


def run_time_item(value: array, parts: Sequence[Any]) -> array:
    """value[parts], of which some are run-time scalars or tiles of integers; outside they are the nearest index."""
    index: list[Any] = []
    sizes = iter(value.shape)
    for part in parts:
        if part is None:
            fail(Refused, what="None beside a run-time index", reason="it is not there", instead="use expand_dims()")
        size = next(sizes)
        if isinstance(part, array) and not part.shape:
            part = _inside(part, size, size - 1, "an index")
        elif isinstance(part, array):
            part = within(part, size)
        index.append(part)
    return refs.load(staged(value), tuple(index))


def within(index: Any, size: int) -> array:
    """A tile of indices, negative ones counted from the end, others outside the nearest."""
    number = convert(to_array(index, "an index"), core.i32)
    wrapped = operators.select(operators.compare("lt", number, 0), operators.add(number, size), number)
    return elementwise.clamp(0, wrapped, size - 1)


def take(a: Any, indices: Any, axis: int | None = None, mode: str | None = None) -> array:
    """The elements at indices along an axis (of all in order if None); outside, poison, or with "clip" the nearest."""
    kernel_trace("take")
    value, index = to_array(a, "take"), to_array(indices, "take")
    flat = shaping.ravel(value) if axis is None else value
    place = shaping.axis_of(0 if axis is None else axis, flat.ndim, "take")
    moved = shaping.transpose(flat, [place, *(d for d in range(flat.ndim) if d != place)])
    number = convert(index, core.i32)
    if mode == "wrap":
        number = operators.remainder(number, moved.shape[0])
    elif mode == "clip":
        number = elementwise.clamp(0, number, moved.shape[0] - 1)
    else:
        number = operators.select(operators.compare("lt", number, 0), operators.add(number, moved.shape[0]), number)
    found = refs.load(staged(moved), number)
    # The dimensions of the indices come first; they belong where the axis was.
    rank, rest = index.ndim, moved.ndim - 1
    order = [*range(rank, rank + place), *range(rank), *range(rank + place, rank + rest)]
    return shaping.transpose(found, order)


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1, mode: str | None = None) -> array:
    """Element i along an axis is the one at indices[i]; the other dimensions are the same."""
    value, index = to_array(arr, "take_along_axis"), to_array(indices, "take_along_axis")
    if axis is None:
        value, axis = shaping.ravel(value), 0
    place = shaping.axis_of(axis, value.ndim, "take_along_axis")
    if index.ndim != value.ndim:
        fail(WrongShape, function="take_along_axis", problem=f"ranks {value.ndim} and {index.ndim} differ")
    number = convert(index, core.i32)
    number = operators.select(operators.compare("lt", number, 0), operators.add(number, value.shape[place]), number)
    if mode == "clip":
        number = elementwise.clamp(0, number, value.shape[place] - 1)
    sizes = [value.shape[d] if d == place else max(value.shape[d], index.shape[d]) for d in range(value.ndim)]
    value = to_shape(value, tuple(sizes), "take_along_axis")
    sizes[place] = number.shape[place]
    number = to_shape(number, tuple(sizes), "take_along_axis")
    below, above = operators.compare("lt", number, 0), operators.compare("ge", number, value.shape[place])
    outside = operators.logical("or", below, above)
    found = look_up(value, number, place)
    return operators.select(outside, known_scalar(value.core.poison, value.core), found)


def look_up(source: array, index: array, axis: int) -> array:
    """Element i along an axis is source's at index[i], 0 where that is outside."""
    if source.core.is_bool:
        return convert(look_up(convert(source, core.u8), index, axis), core.bool_)
    return emit(Gather, source, index, axis=axis)
