"""docs/formats.md: the formats described from their tables, each with an example that the encoder works out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from loom_core.formats.decode import decode
from loom_core.formats.encode import encode
from loom_core.formats.layout import LEAST_GROUP, PART_ALIGNMENT
from loom_core.formats.table import FORMATS, WeightFormat
from loom_core.isa.codes import LANE_BYTES, CodeFormat

_INTRODUCTION: Final = f"""\
# Weight formats

<!-- Written by `./run golden` from loom_core/formats; edit that. -->

A matrix of weights [rows, columns] has a row for each output channel; the columns are the k of a product. An encoded
matrix has up to three parts, in this order, each at the next multiple of {PART_ALIGNMENT} bytes with zeros between:

1. **codes**: a string of bytes for each row, the strings one after the other. A string is padded with zero bits to a
   multiple of {LANE_BYTES} bytes (a *lane*). The formats `bf16`, `fp8_e4m3` and `fp8_e5m2` have plain elements here,
   rows following each other without padding, and no other parts.
2. **tables**: fp16 values, a table's entries in the order of their codes, tables by row and then by group. A table
   belongs to the whole tensor, to a row, or to a group of a row (*table scope*).
3. **scales**, optional: an fp16 for each row and group, by row and then by group.

A *group* is a run of weights of a row, the first of which is a multiple of the group size: a power of two from
{LEAST_GROUP}, or 0, which makes each row one group. The last group of a row may be shorter.

Everything is little-endian: lower bytes first, and in a byte the first code in the lowest bits.

**Values.** The value of a code is an integer, or an entry of its table; with scales it is multiplied by the scale of
its group. As float32 that is exact: 11 bits times 11 bits, far from both ends of the exponent. Without scales integers
may also enter integer products as they are (`decodei`). There are no zero points: a quantisation with an offset a group
takes a table a group.

**Reading and writing.** The machine decodes with `decodef` and `decodei` (docs/isa.md) and looks at nothing but the
bits of the codes it needs: any bytes have a meaning. Files are stricter: padding must be zero, a byte of digits at most
242, a lane the sign extension of its byte; what differs is damage, LOOM-O305.

**Encoding** is the same on every host:

* Elements of a type: rounded to nearest even; a finite weight beyond the largest is LOOM-O304, or the largest where
  `saturate` is given.
* Integers without scales: weights that are not such integers are LOOM-O304.
* Scales: the largest magnitude of the group over the largest integer of the format (over 1 for tables), for one bit and
  for digits the mean magnitude, in float64 from left to right; rounded to fp16. A scale that fp16 cannot hold is
  LOOM-O303. Weights are divided by the rounded scale in float64, rounded to nearest even, and limited to the format's
  integers; one bit is the sign, +1 for zeros.
* Tables: given, or fitted to the (divided) weights. If a table can hold every fp16 that occurs it does, ascending, the
  last one repeated. Else its entries start from the quantiles (i + 1/2) / entries and move to the mean of the values
  nearest to them, at most 25 times, and are rounded to fp16. A weight takes the nearest entry, of two equally near the
  lower, of equal entries the first.
"""


@dataclass(frozen=True)
class _Example:
    """One row of weights and the options of its encoding."""

    weights: tuple[float, ...]
    options: tuple[tuple[str, Any], ...] = ()


_QUARTERS: Final = (-1.5, -0.25, 0.75, 0.0, -0.25, 2.0, 0.75, -1.5, 0.0, 2.0)
_EIGHTHS: Final = (-1.0, -0.125, 0.875, 0.0, -0.375, 0.5, 0.25, -0.5, 0.875, -1.0)
_TRITS: Final = (1, -1, 0, 0, 1, 1, 1, -1)

_EXAMPLES: Final = {
    "bf16": _Example((1.0, -2.5, 0.1)),
    "lut2b_fp16": _Example((-1.5, 0.25, 4.0, 0.25, -1.5, 1.0, 4.0, 1.0, 0.25)),
    "lut3b_fp16": _Example(_QUARTERS),
    "lut4b_fp16": _Example(_EIGHTHS),
    "lut8_fp16": _Example((3.0, -3.0, 0.5), (("table", tuple(i / 64 - 2 for i in range(256))), ("scaled", True))),
    "bin1_packed16": _Example((0.5, -1.5, 1.0, 1.0, -0.5, 1.5, -1.0, -1.0, 1.0, 0.5), (("scaled", True),)),
    "packed_trit5": _Example(_TRITS),
    "packed_trit5_fp16_lut3": _Example((0.5, -0.75, 0.125, 0.125, 0.5, 0.5, 0.5, -0.75)),
    "packed_int3": _Example((-4, 3, -1, 0, 2, 1, -3, -2, 3, -4)),
    "int8_in_16lane": _Example((-128, 127, -1)),
    "int8_packed2": _Example((-128, 127, -1)),
    "int4_packed4": _Example((0.875, -1.0, 0.25, 0.0, -0.375), (("scaled", True),)),
    "fp8_e4m3": _Example((1.0, -448.0, 0.013)),
    "fp8_e5m2": _Example((1.0, -448.0, 0.013)),
}


def formats_markdown() -> str:
    """The whole of docs/formats.md."""
    lines = [_INTRODUCTION, "## All formats", "", *_overview(), ""]
    for row in FORMATS.values():
        lines += [f"## {row.name}", "", *_description(row), "", *_example(row), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def _overview() -> list[str]:
    head = ("format", "number", "bits a weight", "shortest whole run", "values", "table scope", "command")
    return _table(head, map(_overview_row, FORMATS.values()))


def _overview_row(row: WeightFormat) -> Sequence[object]:
    if row.codes is None:
        assert row.dtype is not None
        size = row.dtype.itemsize
        return f"`{row.name}`", "", 8 * size, f"1 in {size} B", row.dtype.name, "", f"`packf` of {row.dtype.name}"
    codes = row.codes
    bits = 8 * codes.unit_bytes / codes.unit_codes
    common = math.gcd(codes.unit_codes, codes.unit_bytes)
    run = f"{codes.unit_codes // common} in {codes.unit_bytes // common} B"
    if codes.table:
        return f"`{row.name}`", codes.number, f"{bits:g}", run, f"{codes.entries} fp16", row.table_scope, "`decodef`"
    values = codes.integers
    text = ", ".join(map(str, values)) if len(values) <= 3 else f"{values[0]} to {values[-1]}"
    return f"`{row.name}`", codes.number, f"{bits:g}", run, text, "", "`decodef`, `decodei`"


def _description(row: WeightFormat) -> list[str]:
    lines = [row.doc[0].upper() + row.doc[1:] + "."]
    if row.codes is not None:
        lines += ["", *_code_layout(row.codes)]
        if not row.codes.table:
            lines.append(f"Value of a code: {_value_rule(row.codes)}.")
    elif row.dtype is not None and row.dtype.bits == 8:
        lines += ["", _float_layout(row.dtype.mantissa)]
    return lines


def _float_layout(mantissa: int) -> str:
    exponent = 7 - mantissa
    bias = (1 << (exponent - 1)) - 1
    special = "All ones but the sign is NaN."
    if exponent == 5:
        special = "The largest exponent is infinity and NaN, as in IEEE 754."
    fields = f"bits {mantissa}-6 the exponent with bias {bias}, bits 0-{mantissa - 1} the mantissa"
    return f"Bit 7 is the sign, {fields}. {special}"


def _code_layout(codes: CodeFormat) -> list[str]:
    if codes.bits == 0:
        digits = " + ".join(f"{codes.entries**i}·d{i}" if i else "d0" for i in range(codes.unit_codes))
        return [
            f"Weights 5i to 5i + 4 of a row are the digits d0 to d4 of byte i, which is {digits}.",
            "Digits behind the end of a row are 0. A machine takes a byte modulo 243.",
        ]
    first = f"Code k of a row is bits {codes.bits}k to {codes.bits}k + {codes.bits - 1} of its string"
    if codes.bits == 1:
        first = "Code k of a row is bit k of its string"
    if codes.bits == 16:
        return ["Code k of a row is lane k of its string, bytes 2k and 2k + 1. A machine looks at byte 2k only."]
    if 16 % codes.bits:
        return [f"{first}: eight codes in {codes.unit_bytes} bytes. Codes cross bytes and lanes."]
    return [f"{first}. A lane holds {16 // codes.bits}."]


def _value_rule(codes: CodeFormat) -> str:
    if codes.shift:
        return f"{1 << codes.shift}·code - {codes.minus}"
    if codes.flip:
        of_what = " of the low byte" if codes.bits == 16 else ""
        return f"two's complement, (code xor {codes.flip}) - {codes.minus}{of_what}"
    return f"code - {codes.minus}"


def _example(row: WeightFormat) -> list[str]:
    example = _EXAMPLES[row.name]
    options: dict[str, Any] = dict(example.options)
    weights = encode([list(example.weights)], row.name, **options)
    shown = [("weights", _numbers(example.weights))]
    if "table" in options:
        shown.append(("given", "table[i] = i / 64 - 2, scaled"))
    elif options:
        shown.append(("given", ", ".join(options)))
    shown.append(("codes", _bytes(weights.codes)))
    if weights.tables.size:
        entries = [float(entry) for entry in weights.tables.ravel()]
        shown.append(("table", _numbers(entries[:16]) + (" ..." if len(entries) > 16 else "")))
        shown.append(("", _bytes(weights.tables.ravel()[:16].view(np.uint8)) + (" ..." if len(entries) > 16 else "")))
    if weights.scales.size:
        shown.append(("scale", f"{float(weights.scales[0, 0])!r}: {_bytes(weights.scales.view(np.uint8))}"))
    shown.append(("decoded", _numbers(decode(weights)[0].tolist())))
    return ["```", *(f"{name:8} {text}" for name, text in shown), "```"]


def _numbers(values: Iterable[float]) -> str:
    return " ".join(f"{value:g}" for value in values)


def _bytes(values: Any) -> str:
    return np.ascontiguousarray(values).tobytes().hex(" ")
