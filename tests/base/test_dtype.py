"""The table of element types against NumPy and ml_dtypes."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest

from loom_core.base import dtype as dt


@pytest.mark.parametrize("dtype", dt.ALL, ids=str)
def test_round_trips(dtype: dt.DType) -> None:
    assert dt.by_name(dtype.name) is dtype
    assert dt.from_numpy(dtype.numpy) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert dtype.itemsize == dtype.numpy.itemsize


@pytest.mark.parametrize("dtype", [d for d in dt.ALL if d.is_integer], ids=str)
def test_integer_limits(dtype: dt.DType) -> None:
    limits = ml_dtypes.iinfo(dtype.numpy)
    assert (dtype.min_value, dtype.max_value, dtype.bits) == (int(limits.min), int(limits.max), limits.bits)
    assert dtype.is_signed == (dtype.min_value < 0)


@pytest.mark.parametrize("dtype", [d for d in dt.ALL if d.is_float], ids=str)
def test_float_widths(dtype: dt.DType) -> None:
    info = ml_dtypes.finfo(dtype.numpy)
    assert (dtype.bits, dtype.mantissa) == (info.bits, info.nmant)
    with pytest.raises(ValueError, match=f"{dtype.name} is not an integer type"):
        _ = dtype.max_value


def test_bool_is_no_integer() -> None:
    assert dt.bool_.is_bool
    assert not dt.bool_.is_integer
    assert (dt.bool_.min_value, dt.bool_.max_value) == (0, 1)


@pytest.mark.parametrize("foreign", [np.complex64, "U3", np.dtype(">f4"), np.dtype([("a", "f4")]), object])
def test_foreign_types_are_refused(foreign: object) -> None:
    with pytest.raises(TypeError, match="has no Loom element type"):
        dt.from_numpy(foreign)


def test_unknown_name() -> None:
    with pytest.raises(KeyError, match="no element type is called 'f33'"):
        dt.by_name("f33")
