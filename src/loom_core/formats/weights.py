"""An encoded matrix: its layout and the bytes of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loom_core.base.location import UNKNOWN
from loom_core.formats.errors import DamagedWeights
from loom_core.formats.layout import Layout
from loom_core.formats.strings import Bytes, read_codes, write_codes

Halves = NDArray[np.float16]


@dataclass(frozen=True, eq=False)
class EncodedWeights:
    """A matrix in one of the formats.

    codes   uint8 [rows, layout.row_bytes]: strings of codes, or elements
    tables  float16 layout.table_shape
    scales  float16 [rows, layout.groups], without scales [rows, 0]
    """

    layout: Layout
    codes: Bytes
    tables: Halves
    scales: Halves

    def to_bytes(self) -> bytes:
        """The parts where the layout says."""
        data = bytearray(self.layout.total_bytes)
        for part, offset in self._parts():
            data[offset : offset + part.nbytes] = np.ascontiguousarray(part).tobytes()
        return bytes(data)

    def _parts(self) -> tuple[tuple[NDArray[Any], int], ...]:
        places = self.layout.tables_offset, self.layout.scales_offset
        return (self.codes, 0), (self.tables.astype("<f2"), places[0]), (self.scales.astype("<f2"), places[1])

    @classmethod
    def from_bytes(cls, data: bytes, layout: Layout) -> EncodedWeights:
        """Inverse of `to_bytes`. Raises DamagedWeights (LOOM-O305) for anything that `to_bytes` would not write."""
        if len(data) != layout.total_bytes:
            raise _damaged(layout, "size", f"{len(data)} bytes where {layout.total_bytes} are needed")
        halves = "<f2"
        codes = _part(data, 0, (layout.rows, layout.row_bytes), "u1")
        tables = _part(data, layout.tables_offset, layout.table_shape, halves).astype(np.float16)
        scale_shape = layout.rows, layout.groups if layout.scaled else 0
        scales = _part(data, layout.scales_offset, scale_shape, halves).astype(np.float16)
        weights = cls(layout, codes, tables, scales)
        if weights.to_bytes() != data:
            raise _damaged(layout, "padding", "the bytes between the parts are not zero")
        _check_codes(weights)
        return weights


def _part(data: bytes, offset: int, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    return np.frombuffer(data, dtype, int(np.prod(shape, dtype=np.int64)), offset).reshape(shape)


def _damaged(layout: Layout, part: str, reason: str) -> DamagedWeights:
    return DamagedWeights(UNKNOWN, format=layout.format.name, part=part, reason=reason)


def _check_codes(weights: EncodedWeights) -> None:
    """Codes are those that their own values give: padding is zero, digits have one spelling, lanes are extended."""
    layout, codes = weights.layout, weights.layout.format.codes
    if codes is None:
        return
    again = write_codes(read_codes(weights.codes, layout.columns, codes), codes)
    wrong = np.argwhere(again != weights.codes)
    if len(wrong):
        row, byte = wrong[0].tolist()
        found, needed = weights.codes[row, byte], again[row, byte]
        reason = f"byte {byte} of row {row} is {found:#04x}, its codes are written {needed:#04x}"
        raise _damaged(layout, "codes", reason)
