"""Casts: truncation, saturation, one rounding."""

from __future__ import annotations

import numpy as np
import pytest

from loom_core.base.dtype import ALL, i4, u4
from loom_core.reference.cast import cast

_EDGES = np.array(
    [0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.0, 127.9, 128.0, -128.9, -129.0, 255.9, 256.0, 32767.9, 32768.0, 2**31 - 128,
     2**31, -(2**31), -(2**31) - 256, 2**32, 2**63, -(2**63), 2**64, 3e38, np.inf, -np.inf, np.nan, 1e-45],
    np.float32,
)  # fmt: skip


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_float_to_integer_saturates(name: str) -> None:
    limits = np.iinfo(name)
    expected = [
        0 if np.isnan(x) else limits.max if x == np.inf else limits.min if x == -np.inf
        else min(max(int(x), limits.min), limits.max)
        for x in _EDGES
    ]  # fmt: skip
    got = cast(_EDGES, name)
    assert got.dtype == np.dtype(name)
    assert got.tolist() == expected


def test_integer_to_float_rounds_once() -> None:
    # Through float64 the first two would round twice.
    values = [(1 << 60) + (1 << 36) + 1, (1 << 62) + (1 << 38) - 1, (1 << 53) + 1, -(1 << 63), (1 << 63) - 1, 16777217]
    expected = [float.fromhex(text) for text in ("0x1.000002p60", "0x1p62", "0x1p53", "-0x1p63", "0x1p63", "0x1p24")]
    assert cast(np.array(values, np.int64), np.float32).tolist() == expected


def test_integers_wrap_and_anything_casts_to_bool() -> None:
    assert cast(np.array([300, -1, 128], np.int32), np.int8).tolist() == [44, -1, -128]
    assert cast(np.array([0.0, -0.0, 0.5, np.nan], np.float32), np.bool_).tolist() == [False, False, True, True]
    assert cast(np.array([True, False]), np.float32).tolist() == [1.0, 0.0]


def test_unknown_types_are_refused() -> None:
    with pytest.raises(TypeError):
        cast(np.zeros(1, np.complex64), np.float32)


def test_nibbles_wrap_and_saturate() -> None:
    integers = np.array([0, 7, 8, 15, 16, -1, -8, -9, 300], np.int32)
    assert cast(integers, i4).astype(np.int8).tolist() == [0, 7, -8, -1, 0, -1, -8, 7, -4]
    assert cast(integers, u4).astype(np.uint8).tolist() == [0, 7, 8, 15, 0, 15, 8, 7, 12]
    floats = np.array([0.9, 7.9, 8.0, -8.9, 1e9, -np.inf, np.nan], np.float32)
    assert cast(floats, i4).astype(np.int8).tolist() == [0, 7, 7, -8, 7, -8, 0]
    assert cast(floats, u4).astype(np.uint8).tolist() == [0, 7, 8, 0, 15, 0, 0]
    assert cast(cast(integers, i4), np.int64).tolist() == [0, 7, -8, -1, 0, -1, -8, 7, -4]


def test_every_pair_of_types_casts() -> None:
    for source in ALL:
        x = np.zeros(3, np.int8).astype(source.numpy)
        for target in ALL:
            assert cast(x, target).dtype == target.numpy


def test_floats_truncate_toward_zero() -> None:
    x = np.array([1 + 2.0**-25, -1 - 2.0**-25, 1e39, 2.0**-150, np.inf])
    expected = np.array([1.0, -1.0, np.finfo(np.float32).max, 0.0, np.inf], np.float32)
    assert cast(x, np.float32, "truncate").tolist() == expected.tolist()
