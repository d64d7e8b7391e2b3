"""Coded weights: the formats that the decoder of the matrix unit reads.

A row of weights (an output channel) is a string of codes, k ascending; what a code means is a value of a table in
memory (`table`) or an integer. docs/formats.md describes the formats from this table, `loom_core.formats` writes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LANE_BYTES: Final = 2
"""A row of codes is padded with zero bits to a multiple of this."""


@dataclass(frozen=True, slots=True)
class CodeFormat:
    """One format of codes.

    number        what the `format` flag of the decoding commands holds
    bits          of a code, its bits being consecutive in the row's little-endian bit string; 0 for base-3 digits
    unit_codes    the shortest run of codes that begins and ends at a byte (codes of equal size: eight)
    unit_bytes    its bytes
    entries       codes that there are
    table         whether a code is an index into a table of fp16 values; else it is the integer
                  ((code ^ flip) << shift) - minus
    """

    number: int
    name: str
    bits: int
    unit_codes: int
    unit_bytes: int
    entries: int
    table: bool
    flip: int = 0
    shift: int = 0
    minus: int = 0

    def integer(self, code: int) -> int:
        """The value of a code of a format without table."""
        return ((code ^ self.flip) << self.shift) - self.minus

    @property
    def integers(self) -> range:
        """The values of a format without table, from the least."""
        values = sorted(map(self.integer, range(self.entries)))
        return range(values[0], values[-1] + 1, values[1] - values[0])

    def row_bytes(self, columns: int) -> int:
        """Bytes of a row of codes, padding included."""
        used = -(-columns * self.unit_bytes // self.unit_codes)
        return -(-used // LANE_BYTES) * LANE_BYTES


def _table_codes(number: int, name: str, bits: int) -> CodeFormat:
    return CodeFormat(number, name, bits, 8, bits, 1 << bits, True)


def _signed(number: int, name: str, bits: int) -> CodeFormat:
    sign = 1 << (bits - 1)
    return CodeFormat(number, name, bits, 8, bits, 1 << bits, False, flip=sign, minus=sign)


ALL_CODE_FORMATS: Final = (
    _table_codes(0, "lut2b_fp16", 2),
    _table_codes(1, "lut3b_fp16", 3),
    _table_codes(2, "lut4b_fp16", 4),
    _table_codes(3, "lut8_fp16", 8),
    CodeFormat(4, "packed_trit5_fp16_lut3", 0, 5, 1, 3, True),
    CodeFormat(5, "packed_trit5", 0, 5, 1, 3, False, minus=1),
    CodeFormat(6, "bin1_packed16", 1, 8, 1, 2, False, shift=1, minus=1),
    _signed(7, "packed_int3", 3),
    _signed(8, "int4_packed4", 4),
    _signed(9, "int8_packed2", 8),
    # A byte in a lane of its own: the upper half of a code is not looked at.
    CodeFormat(10, "int8_in_16lane", 16, 8, 16, 256, False, flip=128, minus=128),
)
"""All formats in the order of their numbers, those with a table first."""

CODE_FORMATS: Final = {row.name: row for row in ALL_CODE_FORMATS}
FIRST_INTEGER_FORMAT: Final = next(row.number for row in ALL_CODE_FORMATS if not row.table)

# The columns of the table as plain tuples, for compiled code.
UNIT_CODES: Final = tuple(row.unit_codes for row in ALL_CODE_FORMATS)
UNIT_BYTES: Final = tuple(row.unit_bytes for row in ALL_CODE_FORMATS)
CODE_BITS: Final = tuple(row.bits for row in ALL_CODE_FORMATS)
ENTRIES: Final = tuple(row.entries for row in ALL_CODE_FORMATS)
FLIP: Final = tuple(row.flip for row in ALL_CODE_FORMATS)
SHIFT: Final = tuple(row.shift for row in ALL_CODE_FORMATS)
MINUS: Final = tuple(row.minus for row in ALL_CODE_FORMATS)
