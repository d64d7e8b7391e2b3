"""Device memory as the interpreter sees it: byte buffers, and tiles of pointers into one of them."""

from __future__ import annotations

from dataclasses import dataclass
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
    template = "{what} reaches byte {offset} of {buffer}, which has bytes {low} to {high}"
    hint = "check the mask, the strides and the grid against the array's size"


@dataclass(eq=False)
class Buffer:
    """Bytes of one argument; `origin` is the position of the byte that the pointer names."""

    name: str
    data: npt.NDArray[np.uint8]
    origin: int = 0

    def positions(self, offsets: Array, dtype: DType, location: Location, what: str) -> Array:
        """Byte positions in `data`, one row of `dtype.itemsize` per element of the 1-D `offsets`; checked."""
        start = offsets.astype(np.int64) + self.origin
        bad = (start < 0) | (start + dtype.itemsize > len(self.data))
        if bad.any():
            raise OutOfBounds(
                location,
                what=what,
                offset=int(offsets[bad][0]),
                buffer=self.name,
                low=-self.origin,
                high=len(self.data) - self.origin,
            )
        return start[:, None] + np.arange(dtype.itemsize)


@dataclass(frozen=True)
class Pointer:
    """A tile of pointers into `buffer`: `offsets` are bytes, int64, in the tile's shape."""

    buffer: Buffer
    offsets: Array

    def moved(self, offsets: Array) -> Pointer:
        return Pointer(self.buffer, offsets)


def read(pointer: Pointer, mask: Array, fill: Array, dtype: DType, location: Location) -> Array:
    """Elements where `mask` holds, `fill` elsewhere; all of the tile's shape."""
    out = np.array(np.broadcast_to(fill, pointer.offsets.shape), dtype=dtype.numpy)
    rows = pointer.buffer.positions(pointer.offsets[mask], dtype, location, "load")
    raw = np.ascontiguousarray(pointer.buffer.data[rows])
    out[mask] = raw[:, 0] != 0 if dtype.is_bool else raw.view(dtype.numpy)[:, 0]
    return out


def write(pointer: Pointer, mask: Array, value: Array, dtype: DType, location: Location) -> None:
    """Store elements where `mask` holds, in row-major order (the last of equal addresses stays)."""
    rows = pointer.buffer.positions(pointer.offsets[mask], dtype, location, "store")
    data = np.ascontiguousarray(value[mask], dtype=dtype.numpy).reshape(-1, 1).view(np.uint8)
    pointer.buffer.data[rows] = data.reshape(rows.shape)
