"""Device memory as the interpreter sees it: byte buffers, and tiles of pointers into one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from loom_core.base.diagnostics import UserError
from loom_core.base.dtype import DType
from loom_core.base.location import Location

Array = npt.NDArray[Any]


class OutOfBounds(UserError):
    """An access outside a buffer."""

    code = "LOOM-R210"
    template = "{what} reaches {buffer}[{index}], which has {extent}"
    hint = "check the mask, the strides and the grid against the array's size"


@dataclass(eq=False)
class Buffer:
    """Bytes of one argument; `origin` is the position of the byte that the pointer names."""

    name: str
    data: npt.NDArray[np.uint8]
    origin: int = 0

    def positions(self, offsets: Array, there: Array, dtype: DType, location: Location, what: str) -> Array:
        """Byte positions in `data`, one row of `dtype.itemsize` for each of the `offsets` that are `there`; checked."""
        start = offsets[there].astype(np.int64) + self.origin
        bad = (start < 0) | (start + dtype.itemsize > len(self.data))
        if bad.any():
            first, size = int(np.argmax(bad)), dtype.itemsize
            low, high = -(self.origin // size), (len(self.data) - self.origin) // size
            extent = f"elements {low} to {high - 1}" if low < high else "no elements"
            element = tuple(int(i) for i in np.argwhere(there)[first])
            notes = [f"element {element} of the tile"] if element else []
            index = (int(start[first]) - self.origin) // size
            raise OutOfBounds(location, notes=notes, what=what, index=index, buffer=self.name, extent=extent)
        return start[:, None] + np.arange(dtype.itemsize)


@dataclass(frozen=True)
class Pointer:
    """A tile of pointers into `buffer`: `offsets` are bytes, int64, in the tile's shape.

    Where they point into several buffers, `others` are the further ones, and `which` says of each element where it
    points: 0 into `buffer`, 1 into the first of the others, and so on.
    """

    buffer: Buffer
    offsets: Array
    others: tuple[Buffer, ...] = ()
    which: Array | None = None

    def moved(self, offsets: Array) -> Pointer:
        """The same buffers at other offsets."""
        return replace(self, offsets=offsets)

    def rearranged(self, view: Callable[[Array], Array]) -> Pointer:
        """The elements in another arrangement."""
        return replace(self, offsets=view(self.offsets), which=None if self.which is None else view(self.which))

    def parts(self, mask: Array) -> Iterator[tuple[Buffer, Array]]:
        """Each buffer, and where `mask` holds and elements point into it."""
        if self.which is None:
            yield self.buffer, mask
            return
        for number, buffer in enumerate((self.buffer, *self.others)):
            yield buffer, mask & (self.which == number)


def choose(condition: Array, first: Pointer, second: Pointer) -> Pointer:
    """`first` where the condition holds, else `second`."""
    offsets = np.where(condition, first.offsets, second.offsets)
    if first.buffer is second.buffer and first.which is None and second.which is None:
        return first.moved(offsets)
    buffers = {id(buffer): buffer for side in (first, second) for buffer in (side.buffer, *side.others)}
    numbers = {key: number for number, key in enumerate(buffers)}
    sides = []
    for side in (first, second):
        known = np.array([numbers[id(buffer)] for buffer in (side.buffer, *side.others)])
        sides.append(known[np.zeros(side.offsets.shape, np.int64) if side.which is None else side.which])
    one, *others = buffers.values()
    return Pointer(one, offsets, tuple(others), np.where(condition, *sides))


def read(pointer: Pointer, mask: Array, fill: Array, dtype: DType, location: Location) -> Array:
    """Elements where `mask` holds, `fill` elsewhere; all of the tile's shape."""
    out = np.array(np.broadcast_to(fill, pointer.offsets.shape), dtype=dtype.numpy)
    for buffer, there in pointer.parts(mask):
        rows = buffer.positions(pointer.offsets, there, dtype, location, "load")
        raw = np.ascontiguousarray(buffer.data[rows])
        out[there] = raw[:, 0] != 0 if dtype.is_bool else raw.view(dtype.numpy)[:, 0]
    return out


def write(pointer: Pointer, mask: Array, value: Array, dtype: DType, location: Location) -> None:
    """Store elements where `mask` holds, in row-major order (the last of equal addresses stays)."""
    for buffer, there in pointer.parts(mask):
        rows = buffer.positions(pointer.offsets, there, dtype, location, "store")
        data = np.ascontiguousarray(value[there], dtype=dtype.numpy).reshape(-1, 1).view(np.uint8)
        buffer.data[rows] = data.reshape(rows.shape)
