"""What a kernel tells the user while it runs: printed values, and assertions that fail."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from loom_core.base.diagnostics import UserError

Program = tuple[int, int, int]


class AssertionFailed(UserError):
    code = "LOOM-R212"
    template = "device assertion failed{message} in program {program}{element}"
    hint = "the condition was false at run time"


def print_value(program: Program, prefix: str, value: npt.NDArray[Any] | None, in_hex: bool) -> None:
    """One line: `pid (0, 0, 0) prefix: value`, the elements of a tile in NumPy's form; without a value the prefix."""
    place = f"pid {program} {prefix}"
    if value is None:
        print(place, file=sys.stdout)
        return
    formatter: Any = {"int": hex} if in_hex and value.dtype.kind in "iu" else None
    print(f"{place}: {np.array2string(value, formatter=formatter)}", file=sys.stdout)


def failed_assertion(program: Program, message: str, condition: npt.NDArray[Any]) -> dict[str, Any]:
    """The fields of `AssertionFailed` for a condition of which an element is false."""
    index = tuple(int(i) for i in np.unravel_index(int(np.argmin(condition)), condition.shape))
    element = f", first for element {index}" if condition.shape else ""
    return {"message": f": {message}" if message else "", "program": program, "element": element}
