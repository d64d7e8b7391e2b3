"""The weight formats: what `--dst-fmt` names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from loom_core.base import dtype as types
from loom_core.base.dtype import DType
from loom_core.base.location import UNKNOWN
from loom_core.formats.errors import UnknownFormat
from loom_core.isa.codes import CODE_FORMATS, CodeFormat

TableScope = Literal["tensor", "row", "group"]


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """One format: either elements of a type (`dtype`), or codes that the matrix unit's decoder reads (`codes`).

    `table_scope`: what a table belongs to unless said otherwise, for codes with a table.
    """

    name: str
    doc: str
    dtype: DType | None = None
    codes: CodeFormat | None = None
    table_scope: TableScope = "row"

    @property
    def has_table(self) -> bool:
        return self.codes is not None and self.codes.table

    @property
    def is_integer(self) -> bool:
        """Whether weights without scales are integers, which a product may take as such."""
        return self.codes is not None and not self.codes.table


def _coded(name: str, doc: str, table_scope: TableScope = "row") -> WeightFormat:
    return WeightFormat(name, doc, codes=CODE_FORMATS[name], table_scope=table_scope)


_ALL: Final = (
    WeightFormat("bf16", "bfloat16 elements", dtype=types.bf16),
    _coded("lut2b_fp16", "codes of 2 bits, each an index into a table of 4 fp16"),
    _coded("lut3b_fp16", "codes of 3 bits, each an index into a table of 8 fp16"),
    _coded("lut4b_fp16", "codes of 4 bits, each an index into a table of 16 fp16"),
    _coded("lut8_fp16", "codes of 8 bits, each an index into a table of 256 fp16", "tensor"),
    _coded("bin1_packed16", "one bit a weight, 16 in a lane: 0 is -1, 1 is +1"),
    _coded("packed_trit5", "base-3 digits, five in a byte: 0 is -1, 1 is 0, 2 is +1"),
    _coded("packed_trit5_fp16_lut3", "base-3 digits, five in a byte, each an index into a table of 3 fp16"),
    _coded("packed_int3", "two's complement integers of 3 bits, -4 to 3"),
    _coded("int8_in_16lane", "two's complement integers of 8 bits, each sign extended to a lane of its own"),
    _coded("int8_packed2", "two's complement integers of 8 bits, two in a lane"),
    _coded("int4_packed4", "two's complement integers of 4 bits, four in a lane"),
    WeightFormat("fp8_e4m3", "8-bit floats with 4 bits of exponent, without infinities", dtype=types.f8e4m3),
    WeightFormat("fp8_e5m2", "8-bit floats with 5 bits of exponent", dtype=types.f8e5m2),
)

FORMATS: Final[dict[str, WeightFormat]] = {row.name: row for row in _ALL}
"""Name -> format, in the order of the documentation."""


def weight_format(name: str) -> WeightFormat:
    """The format called `name`. Raises UnknownFormat (LOOM-O301)."""
    found = FORMATS.get(name)
    if found is None:
        raise UnknownFormat(UNKNOWN, name=repr(name), known=", ".join(FORMATS))
    return found
