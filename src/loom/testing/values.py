"""Contents of arrays: plain numbers, random ones, and those at which arithmetic changes."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base.dtype import DType

Values = npt.NDArray[Any]
FILLS: Final = ("counting", "special", "random")
"""How an array is filled, the simplest first: 1, 2, 3, ...; the same with special values among them; from a seed."""
PLAIN: Final = FILLS[:2]
"""The fills that shrink to single values."""


@functools.cache
def special_values(dtype: DType) -> Values:
    """The values of a type at which something changes, the most telling first."""
    if dtype.is_bool:
        return np.array([True, False])
    if not dtype.is_float:
        low, high = dtype.min_value, dtype.max_value
        wanted = [high, low, 0, 1, -1, high - 1, low + 1, high // 2 + 1]
        return np.array(sorted({v for v in wanted if low <= v <= high}, key=wanted.index), object).astype(dtype.numpy)
    import ml_dtypes

    about: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    largest, least, normal, step = (
        float(v) for v in (about.max, about.smallest_subnormal, about.smallest_normal, about.eps)
    )
    ends = [np.nan, np.inf, -np.inf, -0.0, largest, -largest, least, -least, normal, normal - least, 0.0]
    return np.array([*ends, 1.0, 1.0 + step, 1.0 - step / 2, -1.0, 0.5, 1.5, 2.5], np.float64).astype(dtype.numpy)


def fill(dtype: DType, count: int, how: str, seed: int, low: float | None, high: float | None, special: bool) -> Values:
    """`count` values, of one of FILLS, within bounds where they are given."""
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return np.arange(count) % 2 == 0 if how == "counting" else rng.random(count) < 0.5
    if low is not None or high is not None:
        return _bounded(dtype, count, how, rng, low, high)
    if how != "random":
        return (np.arange(count) % _counted(dtype) + 1).astype(dtype.numpy)
    return _random(dtype, count, rng, special)


def _random(dtype: DType, count: int, rng: np.random.Generator, special: bool) -> Values:
    """Numbers of the size that programs have, with special ones among them in one case of four."""
    values: Values
    if dtype.is_float:
        scale = np.array([0.3, 2.0, 20.0])[rng.integers(0, 3, count)]
        values = (rng.standard_normal(count) * scale).astype(np.float32).astype(dtype.numpy)
    else:
        least, most = max(dtype.min_value, -40), min(dtype.max_value, 70)
        values = rng.integers(least, most, count, endpoint=True).astype(dtype.numpy)
    if special and rng.random() < 0.25:
        some = special_values(dtype)
        chosen = rng.random(count) < 0.2
        values[chosen] = some[rng.integers(0, len(some), int(chosen.sum()))]
    return values


def _counted(dtype: DType) -> int:
    """How far counting goes before it begins again: exact in every type, and small enough that sums are."""
    return 7 if dtype.bits <= 8 else 100


def _bounded(
    dtype: DType, count: int, how: str, rng: np.random.Generator, low: float | None, high: float | None
) -> Values:
    if dtype.is_float:
        least, most = -1e3 if low is None else low, 1e3 if high is None else high
        values = rng.uniform(least, most, count) if how != "counting" else np.linspace(least, most, max(count, 1))
        return np.clip(values[:count], least, most).astype(dtype.numpy)
    least = dtype.min_value if low is None else int(low)
    most = dtype.max_value if high is None else int(high)
    if count == 0 or least > most:
        return np.zeros(count, dtype.numpy)
    if how == "counting":
        offsets = [i % (most - least + 1) for i in range(count)]
    elif how == "random":
        offsets = [int(v) for v in rng.integers(0, most - least, count, np.uint64, endpoint=True)]
    else:
        offsets = [0 if v else most - least for v in rng.random(count) < 0.5]
    return np.array([least + offset for offset in offsets], object).astype(dtype.numpy)
