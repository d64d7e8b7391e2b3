"""Functions of jax.numpy and jax.lax that only move elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from loom_core.base import dtype as core
from palladium import elementwise, operators, promotion, shaping, staging
from palladium.errors import Refused, WrongShape, fail
from palladium.reductions import sum as total
from palladium.shaping import axis_of, concatenate, item
from palladium.values import array, as_shape, common_shape, convert, known_scalar, to_array, to_shape


def _along(place: int, part: Any) -> tuple[Any, ...]:
    return (*(slice(None),) * place, part)


def moveaxis(a: Any, source: Any, destination: Any) -> array:
    """Dimensions moved to other places; the rest keep their order."""
    value = to_array(a, "moveaxis")
    given = [one if isinstance(one, (tuple, list)) else (one,) for one in (source, destination)]
    mine, theirs = ([axis_of(axis, value.ndim, "moveaxis") for axis in axes] for axes in given)
    order = [d for d in range(value.ndim) if d not in mine]
    for target, axis in sorted(zip(theirs, mine, strict=True)):
        order.insert(target, axis)
    return shaping.transpose(value, order)


def rollaxis(a: Any, axis: int, start: int = 0) -> array:
    """One dimension moved in front of another."""
    value = to_array(a, "rollaxis")
    place = axis_of(axis, value.ndim, "rollaxis")
    target = start + value.ndim if start < 0 else start
    return moveaxis(value, place, target - 1 if place < target else target)


def matrix_transpose(x: Any) -> array:
    """The last two dimensions exchanged."""
    return shaping.swapaxes(x, -1, -2)


def flip(m: Any, axis: Any = None) -> array:
    """The elements in reversed order along axes (all if None)."""
    value = to_array(m, "flip")
    given = range(value.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    places = [axis_of(one, value.ndim, "flip") for one in given]
    return item(value, tuple(slice(None, None, -1) if d in places else slice(None) for d in range(value.ndim)))


def fliplr(m: Any) -> array:
    """Columns in reversed order."""
    return flip(m, 1)


def flipud(m: Any) -> array:
    """Rows in reversed order."""
    return flip(m, 0)


def rev(operand: Any, dimensions: Sequence[int]) -> array:
    """The elements in reversed order along dimensions (lax.rev)."""
    return flip(operand, tuple(dimensions))


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> array:
    """Turned by k right angles in the plane of two dimensions."""
    value = to_array(m, "rot90")
    first, second = (axis_of(axis, value.ndim, "rot90") for axis in axes)
    turns = k % 4
    if turns == 2:
        return flip(value, (first, second))
    if turns == 1:
        return shaping.swapaxes(flip(value, second), first, second)
    return flip(shaping.swapaxes(value, first, second), second) if turns == 3 else value


def roll(a: Any, shift: Any, axis: Any = None) -> array:
    """The elements moved by `shift`, the last ones to the front; along no axis, of all in order."""
    value = to_array(a, "roll")
    if axis is None:
        return shaping.reshape(roll(shaping.ravel(value), shift, 0), value.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    for one, by in zip(axes, shifts, strict=True):
        value = _rolled(value, by, axis_of(one, value.ndim, "roll"))
    return value


def _rolled(value: array, shift: Any, place: int) -> array:
    size = value.shape[place]
    by = to_array(shift, "roll")
    if by.known is None:
        back = operators.remainder(operators.negative(convert(by, core.i32)), size)
        return staging.dynamic_slice_in_dim(concatenate([value, value], place), back, size, place)
    move = int(by.known) % size
    if not move:
        return value
    return concatenate(
        [item(value, _along(place, slice(-move, None))), item(value, _along(place, slice(None, -move)))], place
    )


def repeat(a: Any, repeats: int, axis: int | None = None, *, total_repeat_length: int | None = None) -> array:
    """Each element `repeats` times, along an axis or of all in order."""
    value = to_array(a, "repeat")
    flat = shaping.ravel(value) if axis is None else value
    place = axis_of(0 if axis is None else axis, flat.ndim, "repeat")
    if not isinstance(repeats, int):
        fail(Refused, what="repeat by several counts", reason="the size has to be known", instead="give one int")
    if total_repeat_length not in (None, flat.shape[place] * repeats):
        fail(WrongShape, function="repeat", problem=f"{flat.shape[place] * repeats} is not {total_repeat_length}")
    sizes = list(flat.shape)
    spread = to_shape(shaping.expand_dims(flat, place + 1), (*sizes[: place + 1], repeats, *sizes[place + 1 :]))
    sizes[place] *= repeats
    return shaping.reshape(spread, tuple(sizes))


def tile(A: Any, reps: Any) -> array:
    """The whole tile so many times behind itself along each dimension."""
    value = to_array(A, "tile")
    counts = as_shape(reps, "tile")
    rank = max(value.ndim, len(counts))
    sizes, counts = (1,) * (rank - value.ndim) + value.shape, (1,) * (rank - len(counts)) + counts
    pairs = [number for pair in zip((1,) * rank, sizes, strict=True) for number in pair]
    wanted = [number for pair in zip(counts, sizes, strict=True) for number in pair]
    spread = to_shape(shaping.reshape(value, tuple(pairs)), tuple(wanted))
    return shaping.reshape(spread, tuple(a * b for a, b in zip(counts, sizes, strict=True)))


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> array:
    """lax.pad: (before, behind, between) of each dimension; a negative number cuts."""
    value = to_array(operand, "pad")
    fill = convert(to_array(padding_value, "pad"), value.core)
    if len(padding_config) != value.ndim:
        fail(WrongShape, function="pad", problem=f"{len(padding_config)} paddings for {value.ndim} dimensions")
    for d, (before, behind, between) in enumerate(padding_config):
        if between:
            value = _spread(value, fill, d, between)
        cut = slice(max(-before, 0), value.shape[d] - max(-behind, 0))
        value = item(value, _along(d, cut))
        parts = []
        for count, place in ((before, 0), (0, 1), (behind, 2)):
            if place == 1:
                parts.append(value)
            elif count > 0:
                parts.append(to_shape(fill, (*value.shape[:d], count, *value.shape[d + 1 :])))
        value = concatenate(parts, d)
    return value


def _spread(value: array, fill: array, d: int, between: int) -> array:
    size = value.shape[d]
    column = shaping.expand_dims(value, d + 1)
    gap = to_shape(fill, (*value.shape[: d + 1], between, *value.shape[d + 1 :]))
    joined = concatenate([column, gap], d + 1)
    flat = shaping.reshape(joined, (*value.shape[:d], size * (between + 1), *value.shape[d + 1 :]))
    return item(flat, _along(d, slice(0, size + (size - 1) * between)))


def numpy_pad(array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> array:
    """jnp.pad with a constant, the nearest element ("edge"), or around the end ("wrap")."""
    value = to_array(array, "pad")
    pairs = _pairs(pad_width, value.ndim)
    if mode == "constant":
        return pad(value, constant_values, [(a, b, 0) for a, b in pairs])
    if mode not in ("edge", "wrap"):
        fail(Refused, what=f"pad with mode {mode!r}", reason="three modes are there", instead="constant, edge or wrap")
    for d, (before, behind) in enumerate(pairs):
        size = value.shape[d]
        if mode == "wrap":
            fits = before <= size and behind <= size
            if not fits:
                fail(WrongShape, function="pad", problem=f"{(before, behind)} is more than the {size} elements")
        ends = {"edge": (slice(0, 1), slice(size - 1, size)), "wrap": (slice(size - before, size), slice(0, behind))}
        parts = [value]
        for count, part, front in ((before, ends[mode][0], True), (behind, ends[mode][1], False)):
            if count:
                piece = item(value, _along(d, part))
                more = repeat(piece, count, d) if mode == "edge" else piece
                parts = [more, *parts] if front else [*parts, more]
        value = concatenate(parts, d)
    return value


def _pairs(widths: Any, rank: int) -> list[tuple[int, int]]:
    """(before, behind) of each dimension, of one number, one pair, or a pair for each."""
    if isinstance(widths, int):
        return [(widths, widths)] * rank
    given = [(one, one) if isinstance(one, int) else tuple(one) for one in widths]
    if len(widths) == 2 and all(isinstance(one, int) for one in widths):
        return [(widths[0], widths[1])] * rank
    pairs = [(one[0], one[-1]) for one in given]
    return pairs * rank if len(pairs) == 1 else pairs


# ---- several tiles ---------------------------------------------------------------------------------------------------


def atleast_1d(x: Any) -> array:
    """x with at least one dimension."""
    value = to_array(x, "atleast_1d")
    return value if value.ndim else shaping.reshape(value, (1,))


def atleast_2d(x: Any) -> array:
    """x with at least two dimensions, new ones in front."""
    value = atleast_1d(x)
    return value if value.ndim > 1 else shaping.expand_dims(value, 0)


def atleast_3d(x: Any) -> array:
    """x with at least three dimensions: a row becomes (1, n, 1), a matrix (m, n, 1)."""
    value = atleast_1d(x)
    if value.ndim == 1:
        value = shaping.expand_dims(value, 0)
    return value if value.ndim > 2 else shaping.expand_dims(value, 2)


def hstack(tup: Sequence[Any]) -> array:
    """Tiles side by side: along the second dimension, rows along the first."""
    values = [atleast_1d(one) for one in tup]
    return concatenate(values, 0 if values[0].ndim == 1 else 1)


def vstack(tup: Sequence[Any]) -> array:
    """Tiles below each other, rows as matrices of one."""
    return concatenate([atleast_2d(one) for one in tup], 0)


def dstack(tup: Sequence[Any]) -> array:
    """Tiles behind each other along the third dimension."""
    return concatenate([atleast_3d(one) for one in tup], 2)


def column_stack(tup: Sequence[Any]) -> array:
    """Rows as the columns of a matrix; matrices side by side."""
    values = [to_array(one, "column_stack") for one in tup]
    return concatenate([one if one.ndim > 1 else shaping.reshape(one, (one.size, 1)) for one in values], 1)


def unstack(x: Any, *, axis: int = 0) -> tuple[array, ...]:
    """The parts of a dimension, without it."""
    value = to_array(x, "unstack")
    place = axis_of(axis, value.ndim, "unstack")
    return tuple(item(value, _along(place, i)) for i in range(value.shape[place]))


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[array]:
    """Parts along an axis that differ by at most one element, or parts at the given indices."""
    value = to_array(ary, "array_split")
    if not isinstance(indices_or_sections, int):
        return shaping.split(value, indices_or_sections, axis)
    size, count = value.shape[axis_of(axis, value.ndim, "array_split")], indices_or_sections
    small, more = divmod(size, count)
    ends, at = [], 0
    for i in range(count - 1):
        at += small + (i < more)
        ends.append(at)
    return shaping.split(value, ends, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[array]:
    """Parts along the second dimension, of a row along the first."""
    return shaping.split(ary, indices_or_sections, 0 if to_array(ary, "hsplit").ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[array]:
    """Parts along the first dimension."""
    return shaping.split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[array]:
    """Parts along the third dimension."""
    return shaping.split(ary, indices_or_sections, 2)


def lax_split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[array]:
    """Parts of the given sizes along an axis (lax.split)."""
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + size)
    value = to_array(operand, "split")
    place = axis_of(axis, value.ndim, "split")
    if ends[-1] != value.shape[place]:
        fail(WrongShape, function="split", problem=f"{tuple(sizes)} do not sum up to {value.shape[place]}")
    return [item(value, _along(place, slice(a, b))) for a, b in pairwise(ends)]


def broadcast_arrays(*args: Any) -> list[array]:
    """All repeated to their common shape."""
    values = [to_array(one, "broadcast_arrays") for one in args]
    shape = common_shape([value.shape for value in values], "broadcast_arrays")
    return [to_shape(value, shape) for value in values]


def meshgrid(*xi: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list[array]:
    """For rows of coordinates, tiles of the coordinates of all points of the grid."""
    rows = [to_array(one, "meshgrid") for one in xi]
    count = len(rows)
    places = list(range(count))
    if indexing == "xy" and count > 1:
        places[:2] = [1, 0]
    spread = [
        shaping.reshape(row, tuple(row.size if d == place else 1 for d in range(count)))
        for row, place in zip(rows, places, strict=True)
    ]
    return spread if sparse else broadcast_arrays(*spread)


# ---- diagonals -------------------------------------------------------------------------------------------------------


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = core.f32) -> array:
    """Ones on and below the k-th diagonal, zeros above."""
    return shaping.tril(shaping.ones((N, N if M is None else M), dtype), k)


def identity(n: int, dtype: Any = core.f32) -> array:
    """Ones on the diagonal, zeros elsewhere."""
    return shaping.eye(n, dtype=dtype)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> array:
    """The elements of the plane of two dimensions whose column is the row + offset, as the last dimension."""
    value = to_array(a, "diagonal")
    moved = moveaxis(value, (axis1, axis2), (-2 % value.ndim, -1 % value.ndim))
    *outer, rows, columns = moved.shape
    begin, size = max(-offset, 0), min(rows, columns - offset) - max(-offset, 0)
    if size < 1:
        fail(WrongShape, function="diagonal", problem=f"{(rows, columns)} has no diagonal {offset}")
    flat = shaping.reshape(moved, (*outer, rows * columns))
    first = begin * columns + begin + offset
    stop = first + (size - 1) * (columns + 1) + 1
    return item(flat, (..., slice(first, stop, columns + 1)))


def diag(v: Any, k: int = 0) -> array:
    """The k-th diagonal of a matrix, or the matrix with a row on its k-th diagonal."""
    value = to_array(v, "diag")
    if value.ndim == 2:
        return diagonal(value, k)
    if value.ndim != 1:
        fail(WrongShape, function="diag", problem=f"{value.shape} is no row and no matrix")
    size = value.size + abs(k)
    row, column = (shaping.broadcasted_iota(core.i32, (size, size), axis) for axis in (0, 1))
    spread = pad(value, 0, [(max(k, 0), max(-k, 0), 0)]) if k >= 0 else pad(value, 0, [(0, -k, 0)])
    on = operators.compare("eq", operators.add(row, k), column)
    return operators.select(on, to_shape(spread, (size, size)), known_scalar(0, value.core))


def diagflat(v: Any, k: int = 0) -> array:
    """The matrix with all elements of v on its k-th diagonal."""
    return diag(shaping.ravel(v), k)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> array:
    """The sum of a diagonal."""
    return total(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


# ---- rows of numbers -------------------------------------------------------------------------------------------------


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None) -> array:
    """`num` numbers from start to stop, with or without the last."""
    steps = num - 1 if endpoint else num
    low, high = (elementwise.floating(bound, "linspace") for bound in (start, stop))
    if num == 1:
        row = shaping.reshape(low, (1,))
    else:
        share = operators.true_divide(convert(shaping.arange(num), low.core), float(steps))
        row = operators.add(operators.multiply(low, operators.subtract(1.0, share)), operators.multiply(high, share))
        if endpoint:
            last = operators.compare("eq", shaping.arange(num), num - 1)
            row = operators.select(last, high, row)
    return row if dtype is None else convert(row, promotion.as_dtype(dtype))


def indices(dimensions: Sequence[int], dtype: Any = core.i32) -> array:
    """The index along each dimension, one after the other in a new dimension in front."""
    sizes = as_shape(dimensions, "indices")
    return shaping.stack([shaping.broadcasted_iota(dtype, sizes, d) for d in range(len(sizes))])
