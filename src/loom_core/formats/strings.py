"""Codes to strings of bytes and back, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loom_core.isa.codes import CodeFormat

Bytes = NDArray[np.uint8]


def write_codes(codes: Bytes, code_format: CodeFormat) -> Bytes:
    """Strings [rows, row_bytes] of codes [rows, columns], each below the format's `entries`."""
    rows, columns = codes.shape
    if code_format.bits == 0:
        used = _write_digits(codes, code_format)
    elif code_format.bits == 16:
        # Lanes hold the integer, sign extended.
        values = (codes.astype(np.int16) ^ code_format.flip) - code_format.minus
        used = np.ascontiguousarray(values, "<i2").view(np.uint8).reshape(rows, 2 * columns)
    else:
        bits = np.unpackbits(codes[:, :, None], axis=2, count=code_format.bits, bitorder="little")
        used = np.packbits(bits.reshape(rows, columns * code_format.bits), axis=1, bitorder="little")
    string = np.zeros((rows, code_format.row_bytes(columns)), np.uint8)
    string[:, : used.shape[1]] = used
    return string


def read_codes(string: Bytes, columns: int, code_format: CodeFormat) -> Bytes:
    """Codes [rows, columns] of strings, as the machine reads them: bits that are not codes do not matter."""
    rows = string.shape[0]
    if code_format.bits == 0:
        return np.array(_read_digits(string, code_format)[:, :columns])
    if code_format.bits == 16:
        return np.array(string[:, : 2 * columns : 2])
    bits = np.unpackbits(string, axis=1, count=columns * code_format.bits, bitorder="little")
    return np.array(np.packbits(bits.reshape(rows, columns, code_format.bits), axis=2, bitorder="little")[:, :, 0])


def _powers(code_format: CodeFormat) -> NDArray[np.int64]:
    return code_format.entries ** np.arange(code_format.unit_codes)


def _write_digits(codes: Bytes, code_format: CodeFormat) -> Bytes:
    rows, columns = codes.shape
    units = -(-columns // code_format.unit_codes)
    padded = np.zeros((rows, units * code_format.unit_codes), np.uint8)
    padded[:, :columns] = codes
    return np.asarray(padded.reshape(rows, units, code_format.unit_codes) @ _powers(code_format)).astype(np.uint8)


def _read_digits(string: Bytes, code_format: CodeFormat) -> Bytes:
    digits = string[:, :, None] // _powers(code_format) % code_format.entries
    return digits.astype(np.uint8).reshape(string.shape[0], string.shape[1] * code_format.unit_codes)
