"""Element engines on arrays, and comparison bit by bit."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from exhaustive.inputs import result_type
from loom_core.base.dtype import by_name
from loom_core.isa.sce import SceOp
from loom_sim.engines import element_address

Array = NDArray[Any]

CALL: Final = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)


def run_element(op: SceOp, arguments: Sequence[Array]) -> Array:
    """The engine of an opcode that works element by element on arrays of one length."""
    arrays = [np.ascontiguousarray(argument) for argument in arguments]
    result = np.zeros(len(arrays[0]), by_name(result_type(op)).numpy)
    addresses = [array.ctypes.data for array in arrays] + [0] * (3 - len(arrays))
    CALL(element_address(op))(result.ctypes.data, *addresses, len(result))
    return result


def run_rows(op: SceOp, rows: Array, reverse: bool = False) -> Array:
    """The engine of a reduction, a place of extremes or a scan on the rows of a matrix, at most 4096 elements each."""
    matrix = np.ascontiguousarray(rows)
    result = np.zeros(matrix.shape if op.is_scan else matrix.shape[0], by_name(op.result).numpy)
    row = -matrix.shape[1] if reverse else matrix.shape[1]
    CALL(element_address(op))(result.ctypes.data, matrix.ctypes.data, 0, row, matrix.shape[0])
    return result


def differences(got: Array, expected: Array) -> NDArray[np.intp]:
    """Indices of the elements whose bits differ; TypeError if the types do."""
    if got.dtype != expected.dtype:
        raise TypeError(f"{got.dtype} instead of {expected.dtype}")
    unsigned = np.dtype(f"u{got.dtype.itemsize}")
    return np.flatnonzero(np.ascontiguousarray(got).view(unsigned) != np.ascontiguousarray(expected).view(unsigned))
