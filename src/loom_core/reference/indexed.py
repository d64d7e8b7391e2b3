"""Access to memory at an address of its own for each element: gather, scatter, and read-modify-write in program order.

Memory is a 1-D uint8 array; `offsets` are the bytes at which elements begin, int64, of any shape; the other arrays have
that shape. Where `mask` is false memory is not touched. Elements are taken in row-major order. Every element that is
touched must lie inside memory: IndexError otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Offsets: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_] | None
Combine: TypeAlias = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


def _positions(memory: Bytes, offsets: Offsets, mask: Mask, size: int) -> list[tuple[tuple[int, ...], slice]]:
    """(index in the tile, bytes in memory) of the elements that are touched."""
    found = []
    for index in np.ndindex(offsets.shape):
        if mask is not None and not mask[index]:
            continue
        start = int(offsets[index])
        if not 0 <= start <= memory.size - size:
            raise IndexError(f"element {index} lies at byte {start} of {memory.size}")
        found.append((index, slice(start, start + size)))
    return found


def gather(
    memory: Bytes, offsets: Offsets, dtype: DTypeLike, mask: Mask = None, fill: NDArray[Any] | None = None
) -> NDArray[Any]:
    """The elements at `offsets`; `fill` (a tile or one value, 0 if absent) where the mask is false."""
    result = np.zeros(offsets.shape, dtype)
    if fill is not None:
        result[...] = fill
    for index, place in _positions(memory, offsets, mask, result.itemsize):
        result[index] = memory[place].view(result.dtype)[0]
    return result


def scatter(memory: Bytes, offsets: Offsets, values: NDArray[Any], mask: Mask = None) -> Bytes:
    """Memory after `values` were stored at `offsets`: of several at one address the last stays."""
    after = memory.copy()
    for index, place in _positions(memory, offsets, mask, values.itemsize):
        after[place] = np.frombuffer(values[index].tobytes(), np.uint8)
    return after


def scatter_reduce(
    memory: Bytes, offsets: Offsets, values: NDArray[Any], combine: Combine | None, mask: Mask = None
) -> tuple[Bytes, NDArray[Any]]:
    """(memory, old elements) after memory = combine(memory, value), one after the other; None exchanges.

    Old elements are 0 where the mask is false.
    """
    after, old = memory.copy(), np.zeros_like(values)
    for index, place in _positions(memory, offsets, mask, values.itemsize):
        before = after[place].view(values.dtype).copy()
        value = values[index].reshape(1)
        old[index] = before[0]
        with np.errstate(all="ignore"):
            result = value if combine is None else np.asarray(combine(before, value), values.dtype)
        after[place] = np.frombuffer(result.tobytes(), np.uint8)
    return after, old


def compare_swap(
    memory: Bytes, offsets: Offsets, expected: NDArray[Any], values: NDArray[Any], mask: Mask = None
) -> tuple[Bytes, NDArray[Any]]:
    """(memory, old elements) after each value was stored where memory held the bits of the expected element.

    Old elements are 0 where the mask is false.
    """
    after, old = memory.copy(), np.zeros_like(values)
    for index, place in _positions(memory, offsets, mask, values.itemsize):
        old[index] = after[place].view(values.dtype)[0]
        if after[place].tobytes() == expected[index].tobytes():
            after[place] = np.frombuffer(values[index].tobytes(), np.uint8)
    return after, old
