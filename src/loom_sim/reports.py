"""`report` commands: the host prints the tile that a program shows it, or stops the run because of it.

The object's manifest has a list `reports`, one entry a place in the program: `kind` "print" or "assert", `text` (the
prefix or the message), for prints `hex`; `dtype` and `shape` of the tile, which lies row-major in SRAM, where there is
one.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from loom_core.base import dtype as dtypes
from loom_core.base.location import Location
from loom_core.base.reports import AssertionFailed, failed_assertion, print_value
from loom_sim.errors import BadReport


@dataclass(frozen=True)
class Report:
    """What a `report` command says: its operands, and where the program stands."""

    code: int
    offset: int
    program: int
    location: Location


def answer(report: Report, entries: Any, grid: tuple[int, int, int], sram: int, sram_bytes: int) -> None:
    """Do what the manifest's entry asks. AssertionFailed where it is an assertion; BadReport for what does not fit.

    sram: the address of `sram_bytes` bytes of SRAM.
    """
    try:
        entry = entries[report.code] if report.code >= 0 else entries[len(entries)]
        value = _tile(entry, report.offset, sram, sram_bytes)
        kind, text, in_hex = entry["kind"], str(entry["text"]), bool(entry.get("hex"))
    except (LookupError, TypeError, ValueError) as error:
        raise BadReport(report.location, code=report.code, reason=f"{type(error).__name__}: {error}") from None
    x, y = max(grid[0], 1), max(grid[1], 1)
    program = report.program % x, report.program // x % y, report.program // x // y
    if kind == "print":
        print_value(program, text, value, in_hex)
    elif kind == "assert" and value is not None and value.dtype == bool:
        raise AssertionFailed(report.location, **failed_assertion(program, text, value))
    else:
        raise BadReport(report.location, code=report.code, reason=f"its kind is {kind!r}")


def _tile(entry: Any, offset: int, sram: int, sram_bytes: int) -> npt.NDArray[Any] | None:
    if "dtype" not in entry:
        return None
    dtype, shape = dtypes.by_name(entry["dtype"]), tuple(int(size) for size in entry["shape"])
    size = prod(shape) * dtype.itemsize
    if min(shape, default=1) < 1 or not 0 <= offset <= sram_bytes - size:
        raise ValueError(f"bytes {offset} to {offset + size} of SRAM")
    data = np.frombuffer(ctypes.string_at(sram + offset, size), np.uint8)
    tile: npt.NDArray[Any] = data != 0 if dtype.kind == "bool" else data.view(dtype.numpy)
    return tile.reshape(shape)
