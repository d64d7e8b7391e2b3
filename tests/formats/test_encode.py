"""Encoders and decoders: round trips, the rules of docs/formats.md one by one, errors."""

from __future__ import annotations

import hashlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from loom_core.base.diagnostics import LoomError
from loom_core.formats import FORMATS, decode, decode_integers, encode
from loom_core.formats.errors import NotRepresentable, UnknownFormat, UnsuitableOption, UnsuitableWeights
from loom_core.formats.fit import fit_table, nearest_entries
from loom_core.isa.codes import CODE_FORMATS

INTEGERS = [row.name for row in FORMATS.values() if row.is_integer]
TABLES = [row.name for row in FORMATS.values() if row.has_table]
ELEMENTS = {"bf16": ml_dtypes.bfloat16, "fp8_e4m3": ml_dtypes.float8_e4m3fn, "fp8_e5m2": ml_dtypes.float8_e5m2}


def normal(rows: int, columns: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


# ---- elements --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ELEMENTS)
def test_every_element_survives(name: str) -> None:
    kind = np.dtype(ELEMENTS[name])
    patterns = np.arange(1 << 8 * kind.itemsize).astype(f"u{kind.itemsize}")
    values = patterns.view(kind).astype(np.float32).reshape(16, -1)
    weights = encode(values, name)
    decoded = decode(weights)
    np.testing.assert_array_equal(np.isnan(decoded), np.isnan(values))
    finite = ~np.isnan(values)
    np.testing.assert_array_equal(decoded[finite].view(np.uint32), values[finite].view(np.uint32))
    back = weights.codes.view(patterns.dtype).reshape(values.shape)
    np.testing.assert_array_equal(back[finite], patterns.reshape(values.shape)[finite])


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_round_once(name: str) -> None:
    kind = ELEMENTS[name]
    values = normal(40, 50, 1)
    np.testing.assert_array_equal(decode(encode(values, name)), values.astype(kind).astype(np.float32))
    # Halfway between 1 and the next element, and a little more than float32 can say.
    mantissa = {"bf16": 7, "fp8_e4m3": 3, "fp8_e5m2": 2}[name]
    half = 2.0 ** -(mantissa + 1)
    got = decode(encode([[1 + half, 1 + half + 2.0**-40, 1 + 3 * half, 1 + 3 * half - 2.0**-40]], name))
    assert got.tolist() == [[1, 1 + 2 * half, 1 + 4 * half, 1 + 2 * half]]


@pytest.mark.parametrize(("name", "largest"), [("bf16", 3.3895314e38), ("fp8_e4m3", 448.0), ("fp8_e5m2", 57344.0)])
def test_too_large_elements(name: str, largest: float) -> None:
    assert decode(encode([[largest, -largest]], name)).tolist() == [[np.float32(largest), np.float32(-largest)]]
    for beyond in (largest * 1.1, -1e300):
        with pytest.raises(NotRepresentable, match="row 0, column 1"):
            encode([[1.0, beyond]], name)
        got = decode(encode([[1.0, beyond]], name, saturate=True))
        assert got.tolist() == [[1.0, float(np.float32(largest)) * (1 if beyond > 0 else -1)]]
    if name == "fp8_e4m3":
        with pytest.raises(NotRepresentable):
            encode([[np.inf]], name)
    else:
        assert decode(encode([[np.inf, -np.inf]], name)).tolist() == [[np.inf, -np.inf]]


# ---- integers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INTEGERS)
def test_every_integer_survives(name: str) -> None:
    values = np.array(CODE_FORMATS[name].integers)
    matrix = np.stack([np.roll(values, shift) for shift in range(5)])
    for kind in (np.float32, np.int8, np.int64):
        weights = encode(matrix.astype(kind), name)
        assert decode(weights).dtype == np.float32
        np.testing.assert_array_equal(decode(weights), matrix)
        np.testing.assert_array_equal(decode_integers(weights), matrix)


@pytest.mark.parametrize("name", INTEGERS)
def test_other_integers_are_refused(name: str) -> None:
    values = CODE_FORMATS[name].integers
    for wrong in (values[0] - 1, values[-1] + 1, 0.5):
        with pytest.raises(NotRepresentable, match="row 1, column 0"):
            encode([[values[0]], [wrong]], name)
    for wrong in (np.nan, np.inf):
        with pytest.raises(NotRepresentable, match="finite"):
            encode([[1.0, wrong]], name)


@pytest.mark.parametrize("name", ["packed_int3", "int4_packed4", "int8_packed2", "int8_in_16lane"])
@pytest.mark.parametrize("group", [0, 16, 32])
def test_scaled_integers(name: str, group: int) -> None:
    values = normal(7, 75, 2)
    weights = encode(values, name, scaled=True, group=group)
    largest = CODE_FORMATS[name].integers[-1]
    size = group or 75
    for row in range(7):
        for number in range(-(-75 // size)):
            part = values[row, number * size : (number + 1) * size].astype(np.float64)
            scale = np.float16(np.abs(part).max() / largest)
            assert weights.scales[row, number] == scale
            expected = np.clip(np.rint(part / np.float64(scale)), -largest - 1, largest)
            np.testing.assert_array_equal(decode_integers(weights)[row, number * size : (number + 1) * size], expected)
            exact = expected * np.float64(scale)
            np.testing.assert_array_equal(decode(weights)[row, number * size : (number + 1) * size], exact)


def test_one_bit_and_digits_scale_by_the_mean() -> None:
    values = np.array([[1.0, -2.0, 0.0, -0.0, 3.0, -0.5]])
    bits = encode(values, "bin1_packed16", scaled=True)
    scale = np.float16(6.5 / 6)
    assert bits.scales.item() == scale
    assert decode_integers(bits).tolist() == [[1, -1, 1, 1, 1, -1]]
    trits = encode(values, "packed_trit5", scaled=True)
    assert trits.scales.item() == scale
    assert decode_integers(trits).tolist() == [[1, -1, 0, 0, 1, 0]]


def test_groups_of_zeros() -> None:
    weights = encode(np.zeros((2, 20)), "int4_packed4", scaled=True, group=16)
    assert not weights.scales.any()
    assert decode(weights).tolist() == np.zeros((2, 20)).tolist()


@pytest.mark.parametrize("largest", [1e-7, 1e6])
def test_scales_that_fp16_cannot_hold(largest: float) -> None:
    with pytest.raises(UnsuitableWeights, match=r"scale .* of row 1, group 0"):
        encode([[1.0, 0.5], [0.0, largest]], "int4_packed4", scaled=True)


# ---- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("scope", ["tensor", "row", "group"])
def test_few_values_survive(name: str, scope: Any) -> None:
    entries = CODE_FORMATS[name].entries
    rng = np.random.default_rng(3)
    values = rng.standard_normal(entries).astype(np.float16)
    matrix = values[rng.integers(0, entries, (4, 70))].astype(np.float32)
    group = 32 if scope == "group" else 0
    weights = encode(matrix, name, table_scope=scope, group=group)
    assert weights.tables.shape == {"tensor": (1, 1), "row": (4, 1), "group": (4, 3)}[scope] + (entries,)
    np.testing.assert_array_equal(decode(weights), matrix)
    assert (np.diff(weights.tables.astype(np.float32), axis=-1) >= 0).all()


@pytest.mark.parametrize("name", TABLES)
def test_every_code_of_a_given_table(name: str) -> None:
    entries = CODE_FORMATS[name].entries
    table = np.random.default_rng(1).permutation(entries).astype(np.float16) - 1
    matrix = table.astype(np.float64)[None, :].repeat(2, axis=0)
    weights = encode(matrix, name, table=table)
    np.testing.assert_array_equal(decode(weights), matrix)
    np.testing.assert_array_equal(weights.tables.reshape(-1, entries)[0], table)


def test_nearest_entry() -> None:
    table = np.array([1.0, -1.0, 3.0, 1.0], np.float16)
    values = np.array([-5.0, -0.1, 0.0, 0.1, 1.9, 2.0, 2.1, 9.0])
    assert nearest_entries(values, table).tolist() == [1, 1, 1, 0, 0, 0, 2, 2]


def test_fitted_tables_are_no_worse_than_even_ones() -> None:
    values = normal(1, 4096, 4)
    for name, entries in (("lut2b_fp16", 4), ("lut3b_fp16", 8), ("lut4b_fp16", 16)):
        error = np.abs(decode(encode(values, name)) - values).mean()
        even = np.linspace(values.min(), values.max(), entries)
        assert error < 0.8 * np.abs(decode(encode(values, name, table=even)) - values).mean()
        assert len(np.unique(encode(values, name).tables)) == entries


def test_fitting_is_a_fixed_point_of_means() -> None:
    values = np.sort(np.concatenate([np.full(100, 1.0) + np.arange(100) / 1e4, np.full(50, 9.0) + np.arange(50) / 1e3]))
    low, high = fit_table(values, 2)
    assert (low, high) == (np.float16(values[:100].mean()), np.float16(values[100:].mean()))


def test_scaled_tables() -> None:
    values = normal(3, 64, 5) * np.array([[1e-3], [1.0], [1e3]], np.float32)
    weights = encode(values, "lut4b_fp16", scaled=True, group=32, table_scope="tensor")
    largest = np.abs(values.reshape(3, 2, 32)).max(axis=2)
    np.testing.assert_array_equal(weights.scales, largest.astype(np.float16))
    assert np.abs(decode(weights) / values - 1).mean() < 0.5


def test_values_beyond_fp16_need_scales() -> None:
    with pytest.raises(NotRepresentable, match="use scales"):
        encode([[1.0, 1e6]], "lut8_fp16")


EXPECTED_DIGEST = "f389bc02dbf3e08af5121e8f1c3e4d22cb8a99b9f9f4279d84890064fa56a3e0"

# ---- all formats -----------------------------------------------------------------------------------------------------

MATRICES = hnp.arrays(
    np.float32,
    st.tuples(st.integers(0, 6), st.integers(0, 70)),
    elements=st.floats(-100, 100, width=32, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-3),
)


@settings(max_examples=60, deadline=None)
@given(values=MATRICES, name=st.sampled_from([*FORMATS]), group=st.sampled_from([0, 16]))
def test_decoded_weights_encode_to_themselves(values: Any, name: str, group: int) -> None:
    coded = FORMATS[name].codes is not None
    options: dict[str, Any] = {"scaled": True, "group": group} if coded else {}
    weights = encode(values, name, **options)
    decoded = decode(weights)
    assert decoded.shape == values.shape
    assert encode(values, name, **options).to_bytes() == weights.to_bytes()
    if FORMATS[name].has_table:
        again = encode(decoded, name, table_scope="group", group=16)
        if not options["scaled"] or group == 16:
            np.testing.assert_array_equal(decode(again).astype(np.float16), decoded.astype(np.float16))
    elif not coded:
        assert encode(decoded, name).to_bytes() == weights.to_bytes()


def test_bytes_are_the_same_everywhere() -> None:
    """A digest over all formats: a change of any rule, or a host that rounds otherwise, shows here."""
    digest = hashlib.sha256()
    # Exact in every arithmetic, irregular enough to meet ties and unequal groups.
    numbers = np.arange(5 * 77, dtype=np.int64).reshape(5, 77)
    values = ((numbers * 7919 % 1009 - 504) / 256 * (1 + numbers % 3)).astype(np.float32)
    for name, row in FORMATS.items():
        digest.update(encode(values, name).to_bytes() if row.codes is None or row.has_table else b"")
        if row.codes is not None:
            for group in (0, 32):
                digest.update(encode(values, name, scaled=True, group=group).to_bytes())
    assert digest.hexdigest() == EXPECTED_DIGEST


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: encode([[1.0]], "int5"), UnknownFormat, "int4_packed4"),
        (lambda: encode([1.0], "bf16"), UnsuitableWeights, "a matrix is needed"),
        (lambda: encode([["x"]], "bf16"), UnsuitableWeights, "not numbers"),
        (lambda: encode([[1j]], "bf16"), UnsuitableWeights, "not numbers"),
        (lambda: encode([[1.0]], "bf16", scaled=True), UnsuitableOption, "formats of codes"),
        (lambda: encode([[1.0]], "fp8_e4m3", group=32), UnsuitableOption, "formats of codes"),
        (lambda: encode([[1.0]], "int4_packed4", scaled=True, group=24), UnsuitableOption, "power of two"),
        (lambda: encode([[1.0]], "int4_packed4", scaled=True, group=8), UnsuitableOption, "power of two"),
        (lambda: encode([[1.0]], "int4_packed4", group=32), UnsuitableOption, "neither scales nor tables"),
        (lambda: encode([[1.0]], "int4_packed4", table=[1.0]), UnsuitableOption, "with a table"),
        (lambda: encode([[1.0]], "int4_packed4", table_scope="row"), UnsuitableOption, "needs a table"),
        (lambda: encode([[1.0]], "lut2b_fp16", table=[1.0]), UnsuitableOption, r"shape \[1\]"),
        (lambda: encode([[1.0]], "lut2b_fp16", table=[1.0, 2.0, 3.0, np.nan]), UnsuitableOption, "finite fp16"),
        (lambda: encode([[1.0]], "lut2b_fp16", table=[1.0, 2.0, 3.0, 7e4]), UnsuitableOption, "finite fp16"),
        (lambda: encode([[1.0]], "lut2b_fp16", table_scope="column"), UnsuitableOption, "none of"),  # type: ignore[arg-type]
        (lambda: decode_integers(encode([[1.0]], "bf16")), UnsuitableOption, "integers"),
    ],
)
def test_errors(call: Any, error: type[LoomError], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
