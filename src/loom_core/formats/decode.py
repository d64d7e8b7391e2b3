"""Encoded weights to numbers, as the matrix unit decodes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loom_core.base.location import UNKNOWN
from loom_core.formats.errors import UnsuitableOption
from loom_core.formats.strings import read_codes
from loom_core.formats.weights import EncodedWeights


def decode(weights: EncodedWeights) -> NDArray[np.float32]:
    """The weights, float32 [rows, columns], exactly: an fp16 or an integer, times the fp16 scale where there is one."""
    layout = weights.layout
    if layout.format.dtype is not None:
        elements = np.ascontiguousarray(weights.codes).view(layout.format.dtype.numpy)
        return elements.reshape(layout.rows, layout.columns).astype(np.float32)
    codes = _codes(weights)
    if layout.table_scope is None:
        values = _integers(weights, codes).astype(np.float32)
    else:
        values = _entries(weights, codes).astype(np.float32)
    if not layout.scaled:
        return values
    with np.errstate(invalid="ignore"):
        return values * weights.scales.astype(np.float32)[:, _group_of_columns(weights)]


def decode_integers(weights: EncodedWeights) -> NDArray[np.int8]:
    """The integers, int8 [rows, columns], of weights without table; scales are left aside.

    Raises UnsuitableOption (LOOM-O302) for a format of other values.
    """
    if not weights.layout.format.is_integer:
        name = weights.layout.format.name
        raise UnsuitableOption(UNKNOWN, format=name, option="decode_integers", reason="needs a format of integers")
    return _integers(weights, _codes(weights))


def _codes(weights: EncodedWeights) -> NDArray[np.uint8]:
    code_format = weights.layout.format.codes
    assert code_format is not None
    return read_codes(weights.codes, weights.layout.columns, code_format)


def _integers(weights: EncodedWeights, codes: NDArray[np.uint8]) -> NDArray[np.int8]:
    code_format = weights.layout.format.codes
    assert code_format is not None
    values = np.array([code_format.integer(code) for code in range(code_format.entries)], np.int8)
    return values[codes]


def _entries(weights: EncodedWeights, codes: NDArray[np.uint8]) -> NDArray[np.float16]:
    layout = weights.layout
    tables = np.broadcast_to(weights.tables, (layout.rows, layout.groups, layout.entries))
    return np.asarray(tables[np.arange(layout.rows)[:, None], _group_of_columns(weights), codes])


def _group_of_columns(weights: EncodedWeights) -> NDArray[np.int64]:
    layout = weights.layout
    columns = np.arange(layout.columns)
    return columns // layout.group if layout.group else np.zeros_like(columns)
