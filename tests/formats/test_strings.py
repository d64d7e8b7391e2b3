"""Strings of codes: every code at every place, padding, and what readers make of any bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom_core.formats.strings import read_codes, write_codes
from loom_core.isa.codes import ALL_CODE_FORMATS, CODE_FORMATS, CodeFormat

every_format = pytest.mark.parametrize("code_format", ALL_CODE_FORMATS, ids=lambda row: row.name)


def bit_string(codes: list[int], code_format: CodeFormat) -> bytes:
    """The definition: a number in which code k stands `bits` k bits up; or five digits a byte."""
    size = code_format.row_bytes(len(codes))
    if code_format.bits == 0:
        padded = codes + [0] * (-len(codes) % 5)
        units = [sum(digit * 3**i for i, digit in enumerate(padded[at : at + 5])) for at in range(0, len(padded), 5)]
        return bytes(units).ljust(size, b"\0")
    if code_format.bits == 16:
        codes = [code_format.integer(code) % 65536 for code in codes]
    number = sum(code << (code_format.bits * k) for k, code in enumerate(codes))
    return number.to_bytes(size, "little")


@every_format
def test_every_code_at_every_place(code_format: CodeFormat) -> None:
    columns = 33
    codes = (np.arange(code_format.entries * columns).reshape(-1, columns) * 7 % code_format.entries).astype(np.uint8)
    codes[:, ::3] = np.arange(code_format.entries)[:, None]
    string = write_codes(codes, code_format)
    assert [row.tobytes() for row in string] == [bit_string(row.tolist(), code_format) for row in codes]
    np.testing.assert_array_equal(read_codes(string, columns, code_format), codes)


@every_format
@pytest.mark.parametrize("columns", [0, 1, 2, 4, 5, 7, 8, 9, 15, 16, 17, 40, 41])
def test_lengths(code_format: CodeFormat, columns: int) -> None:
    codes = np.random.default_rng(columns).integers(0, code_format.entries, (3, columns)).astype(np.uint8)
    string = write_codes(codes, code_format)
    assert string.shape == (3, code_format.row_bytes(columns))
    assert string.shape[1] % 2 == 0
    assert [row.tobytes() for row in string] == [bit_string(row.tolist(), code_format) for row in codes]
    np.testing.assert_array_equal(read_codes(string, columns, code_format), codes)


@every_format
@given(data=st.binary(min_size=48, max_size=48))
def test_any_bytes_are_codes(code_format: CodeFormat, data: bytes) -> None:
    string = np.frombuffer(data, np.uint8).reshape(1, 48)
    columns = 48 * code_format.unit_codes // code_format.unit_bytes
    codes = read_codes(string, columns, code_format)
    assert codes.shape == (1, columns)
    assert (codes < code_format.entries).all()
    again = write_codes(codes, code_format)
    np.testing.assert_array_equal(read_codes(again, columns, code_format), codes)


def test_bytes_of_digits_count_modulo_243() -> None:
    trits = CODE_FORMATS["packed_trit5"]
    every = np.arange(256, dtype=np.uint8).reshape(256, 1).repeat(2, axis=1)
    np.testing.assert_array_equal(read_codes(every, 10, trits), read_codes(every % 243, 10, trits))


@pytest.mark.parametrize(
    ("name", "integers"),
    [
        ("packed_trit5", [-1, 0, 1]),
        ("bin1_packed16", [-1, 1]),
        ("packed_int3", list(range(-4, 4))),
        ("int4_packed4", list(range(-8, 8))),
        ("int8_packed2", list(range(-128, 128))),
        ("int8_in_16lane", list(range(-128, 128))),
    ],
)
def test_integers_of_formats(name: str, integers: list[int]) -> None:
    row = CODE_FORMATS[name]
    assert list(row.integers) == sorted(map(row.integer, range(row.entries))) == integers
    two_complement = row.bits > 1
    if two_complement:
        assert all(row.integer(code) % row.entries == code for code in range(row.entries))


def test_numbers_are_stable() -> None:
    assert [row.name for row in ALL_CODE_FORMATS] == [
        "lut2b_fp16",
        "lut3b_fp16",
        "lut4b_fp16",
        "lut8_fp16",
        "packed_trit5_fp16_lut3",
        "packed_trit5",
        "bin1_packed16",
        "packed_int3",
        "int4_packed4",
        "int8_packed2",
        "int8_in_16lane",
    ]
    assert [row.number for row in ALL_CODE_FORMATS] == list(range(11))
