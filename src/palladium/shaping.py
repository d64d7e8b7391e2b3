"""Making tiles, and changing their shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from loom_core.base import dtype as core
from loom_core.ops.rearrange import Concat, Slice
from loom_core.ops.shape import ExpandDims, Iota, Reshape, Transpose
from loom_core.trace.context import current
from palladium import operators, promotion
from palladium.errors import NotStatic, WrongAxis, WrongIndex, WrongShape, fail
from palladium.hints import refuse_option
from palladium.values import array, as_shape, convert, emit, to_array, to_shape
from palladium.values import full as full_tile

# ---- making ----------------------------------------------------------------------------------------------------------


def full(shape: Any, fill_value: Any, dtype: Any = None) -> array:
    """A tile with `fill_value` in every element; of the value's dtype unless one is given."""
    value = to_array(fill_value, "full")
    if dtype is not None:
        value = convert(value, promotion.as_dtype(dtype))
    return array(to_shape(value, as_shape(shape, "full") if shape != () else (), "full").value)


def zeros(shape: Any, dtype: Any = core.f32) -> array:
    """A tile of zeros."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = core.f32) -> array:
    """A tile of ones."""
    return full(shape, 1, dtype)


def empty(shape: Any, dtype: Any = core.f32) -> array:
    """A tile of unspecified elements: zeros."""
    return zeros(shape, dtype)


def _like(x: Any, number: Any, dtype: Any, shape: Any) -> array:
    own = getattr(x, "core", None) or to_array(x, "full_like").core
    sizes = getattr(x, "shape", ()) if shape is None else shape
    return full(tuple(sizes), number, own if dtype is None else dtype)


def zeros_like(x: Any, dtype: Any = None, shape: Any = None) -> array:
    """Zeros in the shape and dtype of x, a tile or a ref."""
    return _like(x, 0, dtype, shape)


def ones_like(x: Any, dtype: Any = None, shape: Any = None) -> array:
    """Ones in the shape and dtype of x, a tile or a ref."""
    return _like(x, 1, dtype, shape)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> array:
    """`fill_value` in the shape and dtype of x, a tile or a ref."""
    return _like(x, fill_value, dtype, shape)


def empty_like(x: Any, dtype: Any = None, shape: Any = None) -> array:
    """Unspecified elements (zeros) in the shape and dtype of x."""
    return _like(x, 0, dtype, shape)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> array:
    """start, start + step, ... below stop; all known. int32 unless a dtype is given."""
    first, last = (0, start) if stop is None else (start, stop)
    jump = 1 if step is None else step
    try:
        numbers = range(first.__index__(), last.__index__(), jump.__index__())
    except (AttributeError, TypeError):
        fail(NotStatic, what="the bounds of arange", instead="they give the size of a tile: ints, known when compiling")
    if not numbers:
        fail(WrongShape, function="arange", problem=f"arange({first}, {last}, {jump}) has no elements")
    row = _iota(len(numbers))
    if jump != 1:
        row = operators.multiply(row, jump)
    if first:
        row = operators.add(row, first)
    return row if dtype is None else convert(row, promotion.as_dtype(dtype))


def _iota(size: int) -> array:
    return emit(Iota, start=0, end=size)


def iota(dtype: Any, size: int) -> array:
    """0, 1, ... size - 1 (lax.iota)."""
    return convert(_iota(as_shape(size, "iota")[0]), promotion.as_dtype(dtype))


def broadcasted_iota(dtype: Any, shape: Any, dimension: int) -> array:
    """The index along `dimension`, in a tile of `shape` (lax.broadcasted_iota)."""
    sizes = as_shape(shape, "broadcasted_iota")
    axis = axis_of(dimension, len(sizes), "broadcasted_iota")
    row = iota(dtype, sizes[axis])
    return to_shape(reshape(row, tuple(n if d == axis else 1 for d, n in enumerate(sizes))), sizes)


def eye(rows: int, columns: int | None = None, k: int = 0, dtype: Any = core.f32) -> array:
    """Ones on the k-th diagonal, zeros elsewhere."""
    shape = (rows, rows if columns is None else columns)
    row, column = (broadcasted_iota(core.i32, shape, axis) for axis in (0, 1))
    return convert(operators.compare("eq", operators.add(row, k), column), promotion.as_dtype(dtype))


def tril(x: Any, k: int = 0) -> array:
    """x where the column is at most the row + k, 0 elsewhere."""
    return _triangle(x, "ge", k)


def triu(x: Any, k: int = 0) -> array:
    """x where the column is at least the row + k, 0 elsewhere."""
    return _triangle(x, "le", k)


def _triangle(x: Any, predicate: str, k: int) -> array:
    value = to_array(x, "tril")
    rank = value.ndim
    row, column = (broadcasted_iota(core.i32, value.shape, axis) for axis in (rank - 2, rank - 1))
    inside = operators.compare(predicate, operators.add(row, k), column)
    return operators.select(inside, value, full_tile((), 0, value.core))


# ---- axes and shapes -------------------------------------------------------------------------------------------------


def axis_of(axis: Any, rank: int, function: str) -> int:
    """An axis counted from 0. WrongAxis where there is none."""
    if not isinstance(axis, int) or not -rank <= axis < rank:
        fail(WrongAxis, function=function, axis=axis, rank=rank)
    return axis % rank


def reshape(
    x: Any, *sizes: Any, shape: Any = None, new_sizes: Any = None, order: str = "C", dimensions: Any = None,
    copy: Any = None, out_sharding: Any = None,
) -> array:  # fmt: skip
    """The same elements in row-major order under another shape; one size may be -1."""
    refuse_option("reshape", "order", order, "C", "transpose the value")
    refuse_option("reshape", "dimensions", dimensions, instead="transpose the value")
    value = to_array(x, "reshape")
    given = sizes or (new_sizes if shape is None else shape)
    if given is None:
        fail(WrongShape, function="reshape", problem="no shape is given")
    given = given if isinstance(given, (tuple, list)) else (given,)
    sizes = tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else tuple(given)
    if sizes.count(-1) == 1:
        known = prod(size for size in sizes if size != -1)
        sizes = tuple(value.size // max(known, 1) if size == -1 else size for size in sizes)
    sizes = as_shape(sizes, "reshape") if sizes else ()
    if prod(sizes) != value.size:
        fail(WrongShape, function="reshape", problem=f"{value.size} elements do not fill shape {sizes}")
    if sizes == value.shape:
        return value
    return array(emit(Reshape, value, shape=sizes).value, weak=value.weak)


def ravel(x: Any) -> array:
    """All elements in row-major order, in one dimension."""
    value = to_array(x, "ravel")
    return reshape(value, (value.size,))


def transpose(x: Any, *axes: Any) -> array:
    """The dimensions in another order, by default reversed."""
    value = to_array(x, "transpose")
    given = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else (axes or None)
    order = tuple(reversed(range(value.ndim))) if given is None else tuple(
        axis_of(axis, value.ndim, "transpose") for axis in given
    )  # fmt: skip
    if sorted(order) != list(range(value.ndim)):
        fail(WrongShape, function="transpose", problem=f"{order} is no order of the {value.ndim} dimensions")
    return value if order == tuple(range(value.ndim)) else emit(Transpose, value, permutation=order)


def swapaxes(x: Any, axis1: int, axis2: int) -> array:
    """Two dimensions exchanged."""
    value = to_array(x, "swapaxes")
    first, second = (axis_of(axis, value.ndim, "swapaxes") for axis in (axis1, axis2))
    order = list(range(value.ndim))
    order[first], order[second] = second, first
    return transpose(value, order)


def expand_dims(x: Any, axis: Any) -> array:
    """Dimensions of size 1 added at `axis`."""
    value = to_array(x, "expand_dims")
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = value.ndim + len(axes)
    for place in sorted(axis_of(one, rank, "expand_dims") for one in axes):
        value = emit(ExpandDims, value, axis=place) if value.shape else reshape(value, (1,))
    return value


def squeeze(x: Any, axis: Any = None) -> array:
    """Dimensions of size 1 dropped: those at `axis`, or all."""
    value = to_array(x, "squeeze")
    if axis is None:
        dropped = {d for d, size in enumerate(value.shape) if size == 1}
    else:
        axes = axis if isinstance(axis, (tuple, list)) else (axis,)
        dropped = {axis_of(one, value.ndim, "squeeze") for one in axes}
    if any(value.shape[d] != 1 for d in dropped):
        fail(WrongShape, function="squeeze", problem=f"{value.shape} has another size than 1 at {sorted(dropped)}")
    return reshape(value, tuple(size for d, size in enumerate(value.shape) if d not in dropped))


def broadcast_to(x: Any, shape: Any) -> array:
    """x repeated to a shape that it broadcasts to."""
    return to_shape(to_array(x, "broadcast_to"), as_shape(shape, "broadcast_to"), "broadcast_to")


def broadcast_in_dim(x: Any, shape: Any, broadcast_dimensions: Sequence[int]) -> array:
    """Dimension d of x becomes dimension broadcast_dimensions[d] of a tile of `shape` (lax.broadcast_in_dim)."""
    value, sizes = to_array(x, "broadcast_in_dim"), as_shape(shape, "broadcast_in_dim")
    placed = [1] * len(sizes)
    for d, target in enumerate(broadcast_dimensions):
        placed[target] = value.shape[d]
    return to_shape(reshape(value, tuple(placed)), sizes, "broadcast_in_dim")


def concatenate(arrays: Sequence[Any], axis: int = 0) -> array:
    """Tiles behind each other along `axis`."""
    values = [to_array(part, "concatenate") for part in arrays]
    dtype, _ = promotion.result_dtype([(value.core, value.weak) for value in values], "concatenate")
    place = axis_of(axis, values[0].ndim, "concatenate")
    for value in values[1:]:
        sizes = list(value.shape)
        if len(sizes) != values[0].ndim or any(
            a != b for d, (a, b) in enumerate(zip(sizes, values[0].shape, strict=True)) if d != place
        ):
            fail(WrongShape, function="concatenate", problem=f"{values[0].shape} and {value.shape} do not fit")
    return emit_parts([convert(value, dtype) for value in values], place)


def emit_parts(values: list[array], axis: int) -> array:
    """A concatenation of tiles of one dtype."""
    if len(values) == 1:
        return values[0]
    return array(current().builder.create(Concat, [value.value for value in values], axis=axis))


def stack(arrays: Sequence[Any], axis: int = 0) -> array:
    """Tiles side by side in a new dimension."""
    values = [to_array(part, "stack") for part in arrays]
    place = axis_of(axis, values[0].ndim + 1, "stack")
    return concatenate([expand_dims(value, place) for value in values], place)


# ---- parts of a tile -------------------------------------------------------------------------------------------------


def item(x: array, index: Any) -> array:
    """x[index]: ints, slices, None and one `...`; scalars and tiles of integers are looked up at run time."""
    parts = _expanded(x, index if isinstance(index, tuple) else (index,))
    if any(isinstance(part, array) and part.known is None for part in parts):
        from palladium.staging import run_time_item

        return run_time_item(x, parts)
    remaining = iter(x.shape)
    picked: list[range] = []
    kept: list[int] = []
    added: list[int] = []
    for part in parts:
        if part is None:
            added.append(len(kept) + len(added))
            continue
        numbers = _picked(x, part, next(remaining))
        picked.append(numbers)
        if isinstance(part, slice):
            kept.append(len(numbers))
    if any(numbers != range(size) for numbers, size in zip(picked, x.shape, strict=True)):
        starts, steps = tuple(numbers.start for numbers in picked), tuple(numbers.step for numbers in picked)
        x = emit(Slice, x, starts=starts, steps=steps, shape=tuple(map(len, picked)))
    result = reshape(x, tuple(kept))
    if not result.shape:
        return reshape(result, (1,) * len(added))
    for place in added:
        result = emit(ExpandDims, result, axis=place)
    return result


def _expanded(x: array, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index with a part for every dimension, and None for new ones."""
    used = sum(part is not None and part is not Ellipsis for part in parts)
    dots = sum(part is Ellipsis for part in parts)
    if dots > 1 or used > x.ndim:
        problem = "it has two `...`" if dots > 1 else "it has too many parts"
        fail(WrongIndex, name="a tile", shape=x.shape, index=str(parts), problem=problem)
    if not dots:
        parts = (*parts, Ellipsis)
    at = next(i for i, part in enumerate(parts) if part is Ellipsis)
    return (*parts[:at], *([slice(None)] * (x.ndim - used)), *parts[at + 1 :])


def _picked(x: array, part: Any, size: int) -> range:
    """The indices of one dimension that a part of an index picks."""
    if isinstance(part, slice):
        numbers = range(size)[part]
        if not numbers:
            fail(WrongIndex, name="a tile", shape=x.shape, index=str(part), problem="a slice is empty")
        return numbers
    try:
        number: int = part.__index__()
    except (AttributeError, TypeError):
        fail(WrongIndex, name="a tile", shape=x.shape, index=str(part), problem="it is no index")
    if not -size <= number < size:
        fail(WrongIndex, name="a tile", shape=x.shape, index=str(part), problem="it is out of range")
    return range(number % size, number % size + 1)


def split(x: Any, parts: Any, axis: int = 0) -> list[array]:
    """Equal parts along `axis`, or parts at the given indices."""
    value = to_array(x, "split")
    place = axis_of(axis, value.ndim, "split")
    size = value.shape[place]
    if isinstance(parts, int):
        if size % parts:
            fail(WrongShape, function="split", problem=f"{size} elements do not part into {parts}")
        ends = [size // parts * (i + 1) for i in range(parts)]
    else:
        ends = [*parts, size]
    before: tuple[Any, ...] = (slice(None),) * place
    return [item(value, (*before, slice(a, b))) for a, b in zip([0, *ends], ends, strict=False)]


def slice_in_dim(x: Any, start: int, limit: int, stride: int = 1, axis: int = 0) -> array:
    """Elements start, start + stride, ... below limit of one dimension (lax.slice_in_dim)."""
    value = to_array(x, "slice_in_dim")
    return item(value, (*((slice(None),) * axis_of(axis, value.ndim, "slice_in_dim")), slice(start, limit, stride)))
