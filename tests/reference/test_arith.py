"""The emulated fused multiply-add against rational arithmetic; minima and maxima against their rules."""

from __future__ import annotations

import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from loom_core.reference import arith

floats32 = st.floats(width=32, allow_nan=True)
floats64 = st.floats(width=64, allow_nan=True)

_NAN32 = 0x7FC00000


def pattern(x: Any) -> int:
    return int(np.float32(x).view(np.uint32))


def exact_fma(a: float, b: float, c: float, to_float: Callable[[Fraction], float]) -> float:
    """a * b + c by rational arithmetic, for finite values; zeros by IEEE's rule of signs."""
    value = Fraction(a) * Fraction(b) + Fraction(c)
    if value == 0:
        product_sign = np.copysign(1.0, a) * np.copysign(1.0, b)
        both_negative = product_sign < 0 and np.copysign(1.0, c) < 0 and Fraction(a) * Fraction(b) == 0
        return -0.0 if both_negative else 0.0
    return to_float(value)


def round_to_float32(value: Fraction) -> float:
    """The nearest float32, ties to even, from an exact rational number."""
    magnitude, sign = abs(value), -1.0 if value < 0 else 1.0
    exponent = max(magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - 1, -126) - 23
    while magnitude >= Fraction(2) ** (exponent + 24):
        exponent += 1
    scaled = magnitude / Fraction(2) ** exponent
    integer = round(scaled)  # ties to even
    if integer * Fraction(2) ** exponent >= Fraction(2) ** 128:
        return sign * np.inf
    return sign * float(integer * Fraction(2) ** exponent)


def round_to_float64(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


@settings(max_examples=1500, deadline=None)
@given(floats32, floats32, floats32)
def test_fma32_is_one_rounding(a: float, b: float, c: float) -> None:
    got = arith.fma32(a, b, c)
    if np.isfinite([a, b, c]).all():
        assert pattern(got) == pattern(exact_fma(a, b, c, round_to_float32))
    else:
        with np.errstate(all="ignore"):
            plain = np.float64(a) * np.float64(b) + np.float64(c)
        assert pattern(got) == (_NAN32 if np.isnan(plain) else pattern(plain))


def cancelling_triples(count: int) -> list[NDArray[np.float64]]:
    """Triples whose sum cancels or nearly ties: c is about -a * b, scaled so that it ends near a rounding point."""
    rng = np.random.default_rng(7)
    a = rng.integers(1 << 23, 1 << 24, count).astype(np.float64) * 2.0 ** rng.integers(-60, 20, count)
    b = rng.integers(1 << 23, 1 << 24, count).astype(np.float64) * 2.0 ** rng.integers(-60, 20, count)
    c = -(a * b).astype(np.float32).astype(np.float64) * 2.0 ** rng.integers(-26, 27, count)
    return [x.astype(np.float32).astype(np.float64) for x in (a, b, c)]


def test_fma32_where_bits_cancel() -> None:
    a, b, c = cancelling_triples(3000)
    got = arith.fma32(a, b, c)
    for index in range(a.size):
        expected = exact_fma(float(a[index]), float(b[index]), float(c[index]), round_to_float32)
        assert pattern(got[index]) == pattern(expected)


@settings(max_examples=1500, deadline=None)
@given(floats64, floats64, floats64)
def test_fma64_is_one_rounding(a: float, b: float, c: float) -> None:
    got = float(arith.fma64(a, b, c))
    if np.isfinite([a, b, c]).all():
        assert struct.pack("<d", got) == struct.pack("<d", exact_fma(a, b, c, round_to_float64))
    else:
        with np.errstate(all="ignore"):
            # A product that overflows is still finite beside an infinite addend.
            product = 0.0 if np.isfinite([a, b]).all() else np.float64(a) * np.float64(b)
            plain = float(product + np.float64(c))
        assert (np.isnan(got) and np.isnan(plain)) or got == plain


def test_fma64_where_bits_cancel() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.uniform(1, 2, (2, 3000))
    c = -(a * b) * 2.0 ** rng.integers(-55, 56, 3000)
    got = arith.fma64(a, b, c)
    for index in range(a.size):
        assert got[index] == exact_fma(float(a[index]), float(b[index]), float(c[index]), round_to_float64)


def test_nan_results_are_canonical() -> None:
    negative_nan = np.uint32(0xFFC12345).view(np.float32)
    results = [
        arith.add32(np.inf, -np.inf),
        arith.mul32(0.0, np.float32(np.inf)),
        arith.div32(0.0, 0.0),
        arith.sqrt32(-1.0),
        arith.neg32(negative_nan),
        arith.abs32(negative_nan),
        arith.floor32(negative_nan),
        arith.select32(True, negative_nan, 0.0),
        arith.min32(negative_nan, negative_nan),
        arith.maxp32(1.0, negative_nan),
        arith.fma32(negative_nan, 1.0, 1.0),
    ]
    assert [pattern(result) for result in results] == [_NAN32] * len(results)
    assert int(arith.fma64(np.inf, 0.0, 1.0).view(np.uint64)) == 0x7FF8000000000000


@pytest.mark.parametrize(
    ("function", "x", "y", "expected"),
    [
        (arith.min32, 0.0, -0.0, -0.0),
        (arith.min32, -0.0, 0.0, -0.0),
        (arith.max32, -0.0, 0.0, 0.0),
        (arith.max32, 0.0, -0.0, 0.0),
        (arith.min32, np.nan, 2.0, 2.0),
        (arith.max32, 2.0, np.nan, 2.0),
        (arith.max32, -np.inf, np.nan, -np.inf),
        (arith.minp32, np.nan, 2.0, np.nan),
        (arith.maxp32, 2.0, np.nan, np.nan),
        (arith.minp32, 0.0, -0.0, -0.0),
        (arith.maxp32, -0.0, 0.0, 0.0),
        (arith.min32, -3.0, -2.0, -3.0),
        (arith.max32, -3.0, -2.0, -2.0),
    ],
)
def test_extremes(function: Callable[..., Any], x: float, y: float, expected: float) -> None:
    assert pattern(function(x, y)) == pattern(expected)


def test_float64_is_refused_where_float32_is_meant() -> None:
    with pytest.raises(TypeError):
        arith.add32(np.zeros(2, np.float64), 1.0)
