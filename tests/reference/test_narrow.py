"""Floats of 8 and 16 bits against NumPy and ml_dtypes: values, single rounding, saturation, truncation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from exhaustive.formats import every_value
from loom_core.base.dtype import by_name
from loom_core.reference.narrow import FORMATS, NARROW, fma, round_integers, round_to, widen


@pytest.mark.parametrize("name", FORMATS)
def test_every_pattern_is_worth_what_ml_dtypes_says(name: str) -> None:
    values = every_value(name)
    wide, expected = widen(values), values.astype(np.float32)
    assert np.array_equal(wide, expected, equal_nan=True)
    assert np.array_equal(np.signbit(wide) | np.isnan(wide), np.signbit(expected) | np.isnan(expected))
    assert set(wide.view(np.uint32)[np.isnan(wide)].tolist()) == {0x7FC00000}


@pytest.mark.parametrize("name", FORMATS)
def test_rounding_is_exact_nearest_even(name: str) -> None:
    """Against rational arithmetic on the neighbours, from f64 values that f32 cannot hold too."""
    form, dtype = FORMATS[name], by_name(name)
    patterns = np.arange(form.largest + 1, dtype=f"u{dtype.itemsize}")
    values = widen(patterns.view(dtype.numpy)).astype(np.float64)
    middles = (values[:-1] + values[1:]) / 2
    chosen = slice(None, None, max(1, len(middles) // 500))
    for x in (middles, np.nextafter(middles, 0), np.nextafter(middles, np.inf)):
        got = round_to(x[chosen], dtype)
        for value, low, high, pattern, result in zip(
            x[chosen], values[:-1][chosen], values[1:][chosen], patterns[:-1][chosen], got, strict=True
        ):
            below, above = Fraction(value) - Fraction(low), Fraction(high) - Fraction(value)
            up = above < below or (above == below and pattern % 2 == 1)
            assert int(result.view(patterns.dtype)) == pattern + up


def test_no_double_rounding() -> None:
    bf16, f16 = by_name("bf16"), by_name("f16")
    # Next to a tie by less than f32 has: by way of it the first would go to even, down.
    assert float(round_to(np.array([1 + 2.0**-8 + 2.0**-40]), bf16)[0]) == 1 + 2.0**-7
    assert float(round_to(np.array([1 + 2.0**-11 + 2.0**-40]), f16)[0]) == 1 + 2.0**-10
    assert float(round_integers(np.array([(1 << 24) + (1 << 16) + 1], np.int32), bf16)[0]) == (1 << 24) + (1 << 17)
    near_tie = (1 << 62) + (1 << 54) + 1
    assert float(round_integers(np.array([near_tie], np.int64), bf16)[0]) == (1 << 62) + (1 << 55)
    assert float(round_integers(np.array([-near_tie], np.int64), bf16)[0]) == -((1 << 62) + (1 << 55))
    one = np.ones(1, bf16.numpy)
    # 1.0078125 * 1.0078125 + tiny: the product is a tie, and only the addend says where to.
    a, tiny = round_to(np.array([1.5, 1.5]), bf16), round_to(np.array([2.0**-100, -(2.0**-100)]), bf16)
    tie = round_to(np.array([1 + 2.0**-7 + 2.0**-7]), bf16)
    assert fma(one, tie, tiny[:1]).astype(np.float32)[0] == tie.astype(np.float32)[0]
    product = fma(a, round_to(np.array([1 + 2.0**-7] * 2), bf16), tiny).astype(np.float32)
    assert product.tolist() == [1.5 + 2.0**-6, 1.5 + 2.0**-7]


def test_overflow_saturation_and_truncation() -> None:
    x = np.array([448.0, 463.9, 464.0, 480.0, 1e9, np.inf, -1e9, -np.inf, np.nan])
    e4m3, e5m2, f16 = by_name("f8e4m3"), by_name("f8e5m2"), by_name("f16")
    assert round_to(x, e4m3).view(np.uint8).tolist() == [0x7E, 0x7E, 0x7E, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F]
    saturated = round_to(x, e4m3, "saturate").view(np.uint8).tolist()
    assert saturated == [0x7E, 0x7E, 0x7E, 0x7E, 0x7E, 0x7E, 0xFE, 0xFE, 0x7F]
    x = np.array([57344.0, 61439.9, 61440.0, np.inf, -np.inf, np.nan])
    assert round_to(x, e5m2).view(np.uint8).tolist() == [0x7B, 0x7B, 0x7C, 0x7C, 0xFC, 0x7E]
    assert round_to(x, e5m2, "saturate").view(np.uint8).tolist() == [0x7B, 0x7B, 0x7B, 0x7B, 0xFB, 0x7E]
    x = np.array([65504.0, 70000.0, 1e300, -1e300, np.inf, 2.0**-25, 3 * 2.0**-25, -(2.0**-60)])
    assert round_to(x, f16, "truncate").view(np.uint16).tolist() == [
        0x7BFF, 0x7BFF, 0x7BFF, 0xFBFF, 0x7C00, 0, 1, 0x8000,
    ]  # fmt: skip


def test_functions_go_through_float32() -> None:
    x = every_value("f16")
    wide = x.astype(np.float32)
    with np.errstate(all="ignore"):
        expected = (wide * wide).astype(np.float16)
        got = NARROW["mul"](x, x)
    assert np.array_equal(got, expected, equal_nan=True)
    assert NARROW["lt"](x[:4], x[1:5]).dtype == np.bool_
    assert NARROW["frexp_exponent"](x[1000:1004]).dtype == np.int32
