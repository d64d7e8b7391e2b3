"""Arithmetic of the IR's integer types on Python numbers, against the references of the operations."""

from __future__ import annotations

import numpy as np
import pytest

from loom_core.base.dtype import ALL, DType, i32
from loom_core.ops.references import divide, floor_divide, remainder
from loom_core.passes import integers

WIDE = [dtype for dtype in ALL if not dtype.is_float and (dtype.bits >= 8 or dtype.is_bool)]
NUMBERS = (0, 1, -1, 2, 7, -7, 127, 128, 255, 256, -129, 65536, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 63) - 1)


@pytest.mark.parametrize("dtype", WIDE, ids=repr)
def test_wrapping_is_numpys(dtype: DType) -> None:
    for number in NUMBERS:
        assert integers.wrap(number, dtype) == int(np.asarray(number, np.int64).astype(dtype.numpy))


def test_division_is_the_references() -> None:
    small = np.array([n for n in NUMBERS if -(1 << 31) <= n < 1 << 31], np.int32)
    for a in small:
        for b in small:
            pair = np.array([a]), np.array([b])
            with np.errstate(all="ignore"):
                expected = [int(f(*pair).astype(np.int32)[0]) for f in (divide, floor_divide, remainder)]
            rules = (integers.truncated_quotient, integers.floor_quotient, integers.remainder)
            assert [integers.wrap(rule(int(a), int(b)), i32) for rule in rules] == expected, (a, b)
