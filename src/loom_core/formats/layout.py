"""Where the parts of an encoded matrix lie: codes, tables, scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loom_core.base.location import UNKNOWN
from loom_core.formats.errors import UnsuitableOption, UnsuitableWeights
from loom_core.formats.table import TableScope, WeightFormat, weight_format

PART_ALIGNMENT: Final = 64
"""Each part begins at a multiple of this many bytes; what lies between parts is zero."""

HALF_BYTES: Final = 2  # of a table's entry and of a scale
LEAST_GROUP: Final = 16


@dataclass(frozen=True)
class Layout:
    """Shape and options of an encoded matrix, and with them the place of every byte.

    rows, columns  of the matrix; codes run along a row
    group          weights of a row that share a scale (and a table, if `table_scope` is "group"); 0: all of a row.
                   A power of two from 16; the last group of a row may be shorter
    scaled         whether there is a scale for each row and group
    table_scope    what has a table of its own; None for formats without table
    """

    format: WeightFormat
    rows: int
    columns: int
    group: int = 0
    scaled: bool = False
    table_scope: TableScope | None = None

    @property
    def groups(self) -> int:
        """Groups of a row."""
        return -(-self.columns // self.group) if self.group else 1

    @property
    def row_bytes(self) -> int:
        """Bytes from a row of codes (or elements) to the next."""
        if self.format.dtype is not None:
            return self.columns * self.format.dtype.itemsize
        assert self.format.codes is not None
        return self.format.codes.row_bytes(self.columns)

    @property
    def entries(self) -> int:
        """Entries of a table, 0 for formats without."""
        return self.format.codes.entries if self.format.codes is not None and self.format.codes.table else 0

    @property
    def table_shape(self) -> tuple[int, int, int]:
        """(rows, groups, entries): rows and groups that have tables of their own, 1 where they share."""
        if self.table_scope is None:
            return 0, 0, 0
        rows = 1 if self.table_scope == "tensor" else self.rows
        return rows, self.groups if self.table_scope == "group" else 1, self.entries

    @property
    def table_row_stride(self) -> int:
        """Bytes from the tables of a row to those of the next: 0 where rows share."""
        return 0 if self.table_scope == "tensor" else self.table_shape[1] * self.entries * HALF_BYTES

    @property
    def table_group_stride(self) -> int:
        """Bytes from the table of a group to that of the next: 0 where groups share."""
        return self.entries * HALF_BYTES if self.table_scope == "group" else 0

    @property
    def scale_row_stride(self) -> int:
        """Bytes from the scales of a row to those of the next."""
        return self.groups * HALF_BYTES if self.scaled else 0

    @property
    def codes_bytes(self) -> int:
        return self.rows * self.row_bytes

    @property
    def tables_offset(self) -> int:
        return _aligned(self.codes_bytes)

    @property
    def tables_bytes(self) -> int:
        rows, groups, entries = self.table_shape
        return rows * groups * entries * HALF_BYTES

    @property
    def scales_offset(self) -> int:
        return _aligned(self.tables_offset + self.tables_bytes)

    @property
    def scales_bytes(self) -> int:
        return self.rows * self.scale_row_stride

    @property
    def total_bytes(self) -> int:
        """Bytes of all parts, rounded up to the alignment."""
        return _aligned(self.scales_offset + self.scales_bytes)


def _aligned(size: int) -> int:
    return -(-size // PART_ALIGNMENT) * PART_ALIGNMENT


def layout(
    name: str,
    rows: int,
    columns: int,
    *,
    group: int = 0,
    scaled: bool = False,
    table_scope: TableScope | None = None,
) -> Layout:
    """The layout of a matrix in the format called `name`; without a table scope, the format's own.

    Raises UnknownFormat, UnsuitableOption for an option that the format does not take, UnsuitableWeights for a
    negative shape.
    """
    found = weight_format(name)
    if rows < 0 or columns < 0:
        raise UnsuitableWeights(UNKNOWN, format=name, reason=f"their shape is [{rows}, {columns}]")
    if found.dtype is not None and (group or scaled):
        option = f"group = {group}" if group else "scaled"
        raise UnsuitableOption(UNKNOWN, format=name, option=option, reason="is for formats of codes")
    if group and (group < LEAST_GROUP or group & (group - 1)):
        reason = f"is neither 0 nor a power of two from {LEAST_GROUP}"
        raise UnsuitableOption(UNKNOWN, format=name, option=f"group = {group}", reason=reason)
    if table_scope is not None and not found.has_table:
        raise UnsuitableOption(UNKNOWN, format=name, option=f"table_scope = {table_scope!r}", reason="needs a table")
    scope = (table_scope or found.table_scope) if found.has_table else None
    if scope not in (None, "tensor", "row", "group"):
        reason = "is none of 'tensor', 'row', 'group'"
        raise UnsuitableOption(UNKNOWN, format=name, option=f"table_scope = {scope!r}", reason=reason)
    if group and not scaled and scope != "group":
        raise UnsuitableOption(UNKNOWN, format=name, option=f"group = {group}", reason="has neither scales nor tables")
    return Layout(found, rows, columns, group, scaled, scope)
