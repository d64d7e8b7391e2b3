"""Encoded weights as bytes: where the parts lie, and that damage is seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loom_core.formats import FORMATS, EncodedWeights, decode, encode, layout
from loom_core.formats.errors import DamagedWeights
from loom_core.formats.manual import formats_markdown
from loom_core.isa.machine import round_up


def sample(name: str, columns: int = 21) -> EncodedWeights:
    numbers = np.arange(3 * columns).reshape(3, columns)
    values = ((numbers * 7 % 11) - 5.0) / 4
    options: dict[str, Any] = {} if FORMATS[name].codes is None else {"scaled": True, "group": 16}
    return encode(values, name, **options)


@pytest.mark.parametrize("name", FORMATS)
def test_parts_lie_where_the_layout_says(name: str) -> None:
    weights = sample(name)
    place, data = weights.layout, weights.to_bytes()
    assert len(data) == place.total_bytes == round_up(place.total_bytes, 64)
    assert data[: place.codes_bytes] == weights.codes.tobytes()
    assert place.codes_bytes == 3 * place.row_bytes
    # Each table and scale by its strides, as the machine finds it.
    for row in range(3):
        for group in range(place.groups):
            if place.entries:
                at = place.tables_offset + row * place.table_row_stride + group * place.table_group_stride
                table = np.frombuffer(data, "<f2", place.entries, at)
                shared = [
                    index if size > 1 else 0 for index, size in zip((row, group), weights.tables.shape, strict=False)
                ]
                np.testing.assert_array_equal(table, weights.tables[tuple(shared)])
            if place.scaled:
                scale = np.frombuffer(data, "<f2", 1, place.scales_offset + row * place.scale_row_stride + 2 * group)
                assert scale[0] == weights.scales[row, group]
    again = EncodedWeights.from_bytes(data, place)
    assert again.to_bytes() == data
    np.testing.assert_array_equal(decode(again), decode(weights))


@pytest.mark.parametrize("name", FORMATS)
def test_damage_is_seen_or_gives_other_weights(name: str) -> None:
    weights = sample(name)
    data = weights.to_bytes()
    for bit in range(0, 8 * len(data), 3):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            other = EncodedWeights.from_bytes(bytes(flipped), weights.layout)
        except DamagedWeights:
            continue
        assert other.to_bytes() == bytes(flipped)  # no bit without a meaning
    for wrong in (data[:-1], data + b"\0", b""):
        with pytest.raises(DamagedWeights, match="bytes where"):
            EncodedWeights.from_bytes(wrong, weights.layout)


@pytest.mark.parametrize(
    ("name", "at", "text"),
    [
        ("int4_packed4", 10, "byte 10 of row 0"),  # 21 codes end in byte 10, its upper half is padding
        ("packed_trit5", 0, "0xff"),
        ("int8_in_16lane", 1, "byte 1 of row 0"),
    ],
)
def test_codes_have_one_spelling(name: str, at: int, text: str) -> None:
    weights = sample(name)
    data = bytearray(weights.to_bytes())
    data[at] = 0xFF if data[at] != 0xFF else 0x0F
    with pytest.raises(DamagedWeights, match=text):
        EncodedWeights.from_bytes(bytes(data), weights.layout)


def test_bytes_between_the_parts_are_zero() -> None:
    weights = sample("lut2b_fp16")
    data = bytearray(weights.to_bytes())
    data[weights.layout.tables_offset - 1] = 1
    with pytest.raises(DamagedWeights, match="between the parts"):
        EncodedWeights.from_bytes(bytes(data), weights.layout)


def test_sizes() -> None:
    place = layout("lut4b_fp16", 4096, 4096)
    assert (place.row_bytes, place.tables_bytes, place.scales_bytes) == (2048, 4096 * 32, 0)
    place = layout("int4_packed4", 64, 100, scaled=True, group=32)
    assert (place.groups, place.row_bytes, place.scales_offset, place.total_bytes) == (4, 50, 3200, 3200 + 512)
    place = layout("packed_trit5", 1, 11)
    assert (place.row_bytes, place.total_bytes) == (4, 64)


def test_every_format_of_the_command_line_is_there() -> None:
    names = (
        "bf16, lut2b_fp16, lut3b_fp16, lut4b_fp16, lut8_fp16, bin1_packed16, packed_trit5, packed_trit5_fp16_lut3, "
        "packed_int3, int8_in_16lane, int8_packed2, int4_packed4, fp8_e4m3, fp8_e5m2"
    )
    assert list(FORMATS) == names.split(", ")


def test_manual_describes_every_format() -> None:
    text = formats_markdown()
    for name in FORMATS:
        assert f"\n## {name}\n" in text
        assert f"| `{name}` |" in text
    assert max(map(len, text.splitlines())) < 250
