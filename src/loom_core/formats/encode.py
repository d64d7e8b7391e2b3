"""Numbers to encoded weights. Every choice is fixed, so that equal weights give equal bytes on every host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loom_core.base.location import UNKNOWN
from loom_core.formats.errors import NotRepresentable, UnsuitableOption, UnsuitableWeights
from loom_core.formats.fit import Doubles, fit_table, nearest_entries
from loom_core.formats.layout import Layout, layout
from loom_core.formats.strings import write_codes
from loom_core.formats.table import TableScope
from loom_core.formats.weights import EncodedWeights, Halves
from loom_core.isa.codes import CodeFormat

_LARGEST_HALF: Final = 65504.0


def encode(
    weights: ArrayLike,
    name: str,
    *,
    scaled: bool = False,
    group: int = 0,
    table: ArrayLike | None = None,
    table_scope: TableScope | None = None,
    saturate: bool = False,
) -> EncodedWeights:
    """A matrix [rows, columns] of numbers in the format called `name`.

    Elements of a type are rounded to nearest even; a finite weight beyond the type's largest is an error, or becomes
    that largest with `saturate`. Codes without scale hold weights exactly or not at all, if they are integers; codes
    with a table take the nearest entry. The table is `table` ([entries], or the shape that the layout says), or fitted
    to the weights. With `scaled` a row, or a group of it, is divided by its scale first: the largest magnitude over the
    largest integer (over 1 with a table), or the mean magnitude for one bit and for digits; then rounded to nearest
    even and limited.

    Raises LOOM-O301..O304.
    """
    numbers = _matrix(weights, name)
    place = layout(name, *numbers.shape, group=group, scaled=scaled, table_scope=table_scope)
    if table is not None and not place.format.has_table:
        raise UnsuitableOption(UNKNOWN, format=name, option="table", reason="is for formats with a table")
    if place.format.dtype is not None:
        return _encode_elements(numbers, place, saturate)
    _require_finite(numbers, place)
    codes = place.format.codes
    assert codes is not None
    scales = _scales(numbers, place, codes)
    quotients = _divided(numbers, place, scales)
    tables = np.zeros(place.table_shape, np.float16)
    if codes.table:
        tables = _tables(quotients, place, table)
        found = _nearest(quotients, place, tables)
    elif scaled:
        found = _rounded(quotients, codes)
    else:
        found = _exact(numbers, place, codes)
    return EncodedWeights(place, write_codes(found, codes), tables, scales)


def _matrix(weights: ArrayLike, name: str) -> Doubles:
    array = np.asarray(weights)
    if array.ndim != 2:
        raise UnsuitableWeights(UNKNOWN, format=name, reason=f"a matrix is needed, their shape is {list(array.shape)}")
    if array.dtype.kind in "biuf" or array.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"):
        with np.errstate(invalid="ignore"):  # signalling NaNs
            return array.astype(np.float64)
    raise UnsuitableWeights(UNKNOWN, format=name, reason=f"they are {array.dtype}, not numbers")


def _not_representable(numbers: Doubles, wrong: NDArray[np.bool_], place: Layout, reason: str) -> NotRepresentable:
    row, column = np.argwhere(wrong)[0].tolist()
    value = repr(float(numbers[row, column]))
    return NotRepresentable(UNKNOWN, format=place.format.name, value=value, row=row, column=column, reason=reason)


def _require_finite(numbers: Doubles, place: Layout) -> None:
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        raise _not_representable(numbers, wrong, place, "codes are of finite numbers")


def _encode_elements(numbers: Doubles, place: Layout, saturate: bool) -> EncodedWeights:
    dtype = place.format.dtype
    assert dtype is not None
    with np.errstate(all="ignore"):
        # Through float32: the types' own conversion from float64 goes that way too, rounding twice.
        elements = _round_to_odd32(numbers).astype(dtype.numpy)
    lost = np.isfinite(numbers) & ~np.isfinite(elements.astype(np.float32))
    lost |= np.isinf(numbers) & ~np.isinf(elements.astype(np.float32))
    if lost.any():
        if not saturate:
            raise _not_representable(numbers, lost, place, f"it is beyond the largest {dtype.name}")
        largest = _largest(dtype.numpy)
        elements = np.where(lost, np.where(numbers < 0, -largest, largest), elements).astype(dtype.numpy)
    codes = np.ascontiguousarray(elements).view(np.uint8).reshape(place.rows, place.row_bytes)
    return EncodedWeights(place, codes, np.zeros((0, 0, 0), np.float16), np.zeros((place.rows, 0), np.float16))


def _round_to_odd32(numbers: Doubles) -> NDArray[np.float32]:
    """float64 to float32, truncated, the last bit set if inexact: rounding that again is as rounding once."""
    near = numbers.astype(np.float32)
    away = np.isfinite(near) & (np.abs(near.astype(np.float64)) > np.abs(numbers))
    toward = np.where(away | (np.isinf(near) & np.isfinite(numbers)), np.nextafter(near, np.float32(0)), near)
    inexact = np.isfinite(numbers) & (toward.astype(np.float64) != numbers)
    return np.where(inexact, toward.view(np.int32) | 1, toward.view(np.int32)).view(np.float32)


def _largest(dtype: np.dtype[Any]) -> np.float32:
    """The largest finite number of a type of at most 16 bits."""
    values = np.arange(1 << 8 * dtype.itemsize).astype(f"u{dtype.itemsize}").view(dtype).astype(np.float32)
    return np.float32(values[np.isfinite(values)].max())


# ---- scales ----------------------------------------------------------------------------------------------------------


def _grouped(place: Layout) -> Iterator[tuple[int, slice]]:
    """Each group's number and its columns."""
    size = place.group or max(place.columns, 1)
    for number in range(place.groups):
        yield number, slice(number * size, min((number + 1) * size, place.columns))


def _scales(numbers: Doubles, place: Layout, codes: CodeFormat) -> Halves:
    scales = np.zeros((place.rows, place.groups if place.scaled else 0), np.float64)
    if not place.scaled:
        return scales.astype(np.float16)
    by_mean = codes.entries <= 3 and not codes.table
    for number, columns in _grouped(place):
        part = np.abs(numbers[:, columns])
        if part.shape[1] == 0:
            continue
        if by_mean:
            # Added one after the other: the same rounding on every host.
            scales[:, number] = np.cumsum(part, axis=1)[:, -1] / part.shape[1]
        else:
            scales[:, number] = part.max(axis=1) / (1 if codes.table else codes.integers[-1])
    with np.errstate(over="ignore"):
        rounded = scales.astype(np.float16)
    lost = (rounded == 0) & (scales != 0) | np.isinf(rounded)
    if lost.any():
        row, number = np.argwhere(lost)[0].tolist()
        reason = f"the scale {float(scales[row, number])!r} of row {row}, group {number} is outside the range of fp16"
        raise UnsuitableWeights(UNKNOWN, format=place.format.name, reason=reason)
    return rounded


def _divided(numbers: Doubles, place: Layout, scales: Halves) -> Doubles:
    if not place.scaled:
        return numbers
    result = np.zeros_like(numbers)
    for number, columns in _grouped(place):
        scale = scales[:, number, None].astype(np.float64)
        result[:, columns] = numbers[:, columns] / np.where(scale == 0, 1, scale)
    return result


# ---- codes -----------------------------------------------------------------------------------------------------------


def _code_of(integers: Doubles, codes: CodeFormat) -> NDArray[np.uint8]:
    values = integers.astype(np.int64)
    return ((((values + codes.minus) >> codes.shift) ^ codes.flip) & 0xFF).astype(np.uint8)


def _rounded(quotients: Doubles, codes: CodeFormat) -> NDArray[np.uint8]:
    allowed = codes.integers
    if allowed.step == 2:  # one bit: the sign, +1 for zeros
        return _code_of(np.where(quotients < 0, -1.0, 1.0), codes)
    return _code_of(np.clip(np.rint(quotients), allowed[0], allowed[-1]), codes)


def _exact(numbers: Doubles, place: Layout, codes: CodeFormat) -> NDArray[np.uint8]:
    allowed = codes.integers
    wrong = ~np.isin(numbers, np.array(allowed, np.float64))
    if wrong.any():
        values = "-1 and 1" if allowed.step == 2 else f"the integers from {allowed[0]} to {allowed[-1]}"
        raise _not_representable(numbers, wrong, place, f"without scales it holds {values}")
    return _code_of(numbers, codes)


# ---- tables ----------------------------------------------------------------------------------------------------------


def _tables(quotients: Doubles, place: Layout, given: ArrayLike | None) -> Halves:
    if given is not None:
        return _given_tables(place, given)
    _require_range(quotients, place)
    tables = np.zeros(place.table_shape, np.float16)
    for row, group, part in _parts_with_tables(quotients, place):
        tables[row, group] = fit_table(np.ravel(part), place.entries)
    return tables


def _given_tables(place: Layout, given: ArrayLike) -> Halves:
    array = np.asarray(given)
    with np.errstate(over="ignore"):
        halves = array.astype(np.float16)
    name = place.format.name
    if array.shape != (place.entries,) and array.shape != place.table_shape:
        reason = f"has shape {list(array.shape)} where {[place.entries]} or {list(place.table_shape)} is needed"
        raise UnsuitableOption(UNKNOWN, format=name, option="table", reason=reason)
    if not np.isfinite(halves).all():
        raise UnsuitableOption(UNKNOWN, format=name, option="table", reason="has entries that are no finite fp16")
    return np.array(np.broadcast_to(halves, place.table_shape))


def _require_range(quotients: Doubles, place: Layout) -> None:
    wrong = np.abs(quotients) > _LARGEST_HALF
    if wrong.any():
        raise _not_representable(quotients, wrong, place, "it is beyond the largest fp16; use scales")


def _nearest(quotients: Doubles, place: Layout, tables: Halves) -> NDArray[np.uint8]:
    codes = np.zeros(quotients.shape, np.uint8)
    for (row, group, part), (_, _, target) in zip(
        _parts_with_tables(quotients, place), _parts_with_tables(codes, place), strict=True
    ):
        target[...] = nearest_entries(part, tables[row, group])
    return codes


def _parts_with_tables(matrix: NDArray[Any], place: Layout) -> Iterator[tuple[int, int, NDArray[Any]]]:
    """(row, group) of each table, and a view of the elements that it is for."""
    rows, groups, _ = place.table_shape
    for row in range(rows):
        of_rows = matrix if place.table_scope == "tensor" else matrix[row : row + 1]
        if groups == 1 and place.table_scope != "group":
            yield row, 0, of_rows
        else:
            for number, columns in _grouped(place):
                yield row, number, of_rows[:, columns]
