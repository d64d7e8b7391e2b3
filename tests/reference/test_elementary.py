"""Exact references against Python's own exact functions, and values that a reader can check by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from loom_core.reference.elementary import REFERENCE_F32


def _pairs(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Pairs of finite floats of all sizes and pairs of small integers, halves among them."""
    rng = np.random.default_rng(1)
    wild = rng.integers(0, 1 << 32, (2, count), dtype=np.uint64).astype(np.uint32).view(np.float32)
    tame = (rng.integers(-40, 41, (2, count)) / 2).astype(np.float32)
    both = np.concatenate([wild, tame], axis=1)
    return both[:, np.isfinite(both).all(axis=0) & (both[1] != 0)]


@pytest.mark.parametrize(("name", "exact"), [("fmod", math.fmod), ("remainder", math.remainder)])
def test_remainders_are_exact(name: str, exact: Callable[[float, float], float]) -> None:
    x, y = _pairs(20_000)
    expected = np.array([exact(float(a), float(b)) for a, b in zip(x, y, strict=True)])
    assert REFERENCE_F32[name](x, y).astype(np.float64).tobytes() == expected.tobytes()


def test_exponents_split_and_join() -> None:
    x, y = _pairs(20_000)
    values = np.concatenate([x, y])
    fraction, exponent = REFERENCE_F32["frexp_fraction"](values), REFERENCE_F32["frexp_exponent"](values)
    expected = [math.frexp(float(value)) for value in values]
    assert fraction.tolist() == [pair[0] for pair in expected]
    assert exponent.tolist() == [pair[1] for pair in expected]
    assert REFERENCE_F32["ldexp"](fraction, exponent).tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("exp", (0.0,), 1.0),
        ("exp", (-np.inf,), 0.0),
        ("exp2", (-149.0,), 2.0**-149),
        ("exp2", (10.0,), 1024.0),
        ("log2", (2.0**-149,), -149.0),
        ("log", (-1.0,), np.nan),
        ("log1p", (-1.0,), -np.inf),
        ("tanh", (-20.0,), -1.0),
        ("sigmoid", (-np.inf,), 0.0),
        ("erf", (np.inf,), 1.0),
        ("erfc", (-np.inf,), 2.0),
        ("gelu", (-np.inf,), -0.0),
        ("sin", (np.inf,), np.nan),
        ("cos", (0.0,), 1.0),
        ("acos", (1.0,), 0.0),
        ("atan2", (0.0, -0.0), np.float32(np.pi)),
        ("atan2", (-0.0, 1.0), -0.0),
        ("round", (-2.5,), -3.0),
        ("rint", (-2.5,), -2.0),
        ("round", (0.49999997,), 0.0),
        ("pow", (np.nan, 0.0), 1.0),
        ("pow", (1.0, np.nan), 1.0),
        ("pow", (-8.0, 3.0), -512.0),
        ("pow", (-8.0, 0.5), np.nan),
        ("pow", (-0.0, -3.0), -np.inf),
        ("pow", (-1.0, np.inf), 1.0),
        ("cbrt", (-27.0,), -3.0),
        ("hypot", (np.inf, np.nan), np.inf),
        ("hypot", (3e38, 3e38), np.inf),
        ("hypot", (3e-40, -4e-40), np.float32(5e-40)),
        ("lgamma", (-2.0,), np.inf),
        ("lgamma", (4.0,), np.float32(math.log(6.0))),
        ("digamma", (-0.0,), np.inf),
        ("nextafter", (0.0, -1.0), -(2.0**-149)),
        ("nextafter", (2.0**-149, 0.0), 0.0),
        ("fmod", (-6.0, 3.0), -0.0),
        ("remainder", (5.0, 2.0), 1.0),
        ("remainder", (3.0, 2.0), -1.0),
        ("copysign", (np.nan, -1.0), np.nan),
    ],
)
def test_known_values(name: str, arguments: tuple[float, ...], expected: float) -> None:
    got = REFERENCE_F32[name](*(np.float32(argument) for argument in arguments))
    assert got.dtype == np.float32
    assert got.view(np.uint32) == np.float32(expected).view(np.uint32)


def test_long_and_shaped_arrays_go_through_in_blocks() -> None:
    x = np.random.default_rng(2).standard_normal((50, 7, 113)).astype(np.float32)
    whole = REFERENCE_F32["exp"](x)
    assert whole.shape == x.shape
    assert whole[49].tobytes() == REFERENCE_F32["exp"](x[49]).tobytes()
    assert REFERENCE_F32["atan2"](x, np.float32(2)).shape == x.shape
