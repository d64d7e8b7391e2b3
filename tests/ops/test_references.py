"""Every elementwise operation has a meaning on every element type that it takes; narrow floats round once."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import loom_core.ops
from loom_core.base.dtype import ALL, DType, bf16, bool_, f8e4m3, f8e5m2, f16, f32, f64, i32, i64
from loom_core.ir.block import Block
from loom_core.ir.op import REGISTRY, Op
from loom_core.ir.types import TileType
from loom_core.ops.elementwise import Bitcast, Cast, Compare, Elementwise, Select
from loom_core.ops.formats import canonical_nan, convert, round_float, widen
from loom_core.ops.special import CastTowardZero, Ldexp, RoundMantissa

DTYPES = [dtype for dtype in ALL if dtype.bits != 4]
FLOATS = [f16, bf16, f8e4m3, f8e5m2]
FAMILIES = [kind for kind in REGISTRY.values() if issubclass(kind, Elementwise)]


def values(dtype: DType) -> Any:
    if dtype.is_bool:
        return np.array([True, False, True, True])
    numbers = [0.5, 1.0, 2.5, 0.25] if dtype.is_float else [3, 1, 100, 0]
    return np.array(numbers).astype(dtype.numpy)


def attributes(kind: type[Op]) -> dict[str, Any]:
    return {Compare: {"predicate": "lt"}, RoundMantissa: {"bits": 10}, CastTowardZero: {"dtype": f16}}.get(kind, {})


def cases() -> list[Any]:
    found = []
    for kind in FAMILIES:
        for dtype in DTYPES:
            taken = dtype.kind in kind.allowed
            if kind is RoundMantissa:
                taken = dtype is f32
            if kind is CastTowardZero:
                taken = dtype in (f32, f64)
            if taken:
                found.append(pytest.param(kind, dtype, id=f"{kind.name}-{dtype.name}"))
    return found


@pytest.mark.parametrize(("kind", "dtype"), cases())
def test_reference_gives_the_type_that_is_inferred(kind: type[Any], dtype: DType) -> None:
    types = [TileType(dtype, (4,))] * len(kind.operand_fields)
    if kind is Ldexp:
        types[1] = TileType(i32, (4,))
    block = Block(tuple(types))
    op = kind(block.arguments, attributes(kind))
    assert op.verify() is None
    arrays = [values(type.dtype) for type in types]
    (inferred,) = op.infer()
    result = op.ref(*arrays)
    assert result.shape == (4,) and result.dtype == inferred.dtype.numpy


@pytest.mark.parametrize("source", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("target", DTYPES, ids=lambda dtype: dtype.name)
def test_casts_between_all_types(source: DType, target: DType) -> None:
    block = Block((TileType(source, (4,)),))
    op: Any = Cast(block.arguments, {"dtype": target})
    result = op.ref(values(source))
    assert result.dtype == target.numpy
    if source.is_float == target.is_float and not target.is_bool:
        back = convert(result, source)
        assert np.array_equal(back, values(source)) or target.bits < source.bits or source.kind != target.kind


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_select_moves_any_type(dtype: DType) -> None:
    tile = TileType(dtype, (4,))
    block = Block((tile.with_element(bool_), tile, tile))
    op: Any = Select(block.arguments)
    flag = np.array([True, False, True, False])
    assert np.array_equal(
        op.ref(flag, values(dtype), values(dtype)[::-1]), np.where(flag, values(dtype), values(dtype)[::-1])
    )


def test_bitcasts_make_nan_canonical() -> None:
    block = Block((TileType(f16, (2,)),))
    op: Any = Bitcast(block.arguments, {"dtype": loom_core.base.dtype.i16})
    odd = np.array([0x7E01, 0x3C00], np.uint16).view(np.float16)
    assert op.ref(odd).tolist() == [0x7E00, 0x3C00]


# ---- formats ---------------------------------------------------------------------------------------------------------

PRECISION = {f16: (11, -14), bf16: (8, -126), f8e4m3: (4, -6), f8e5m2: (3, -14)}


def exactly_rounded(value: float, dtype: DType) -> float:
    """To nearest even by rational arithmetic; beyond the largest finite value that value."""
    if not np.isfinite(value) or value == 0:
        return value
    bits, least = PRECISION[dtype]
    exponent = max(int(np.frexp(abs(value))[1]) - 1, least)
    step = Fraction(2) ** (exponent - bits + 1)
    quotient = abs(Fraction(value)) / step
    whole, rest = divmod(quotient, 1)
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    return float((whole + up) * step) * (1 if value > 0 else -1)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_float64_rounds_once(dtype: DType) -> None:
    """Also where float32 in between would round to a tie."""
    generator = np.random.default_rng(0)
    bits, least = PRECISION[dtype]
    ties = 1 + 2.0**-bits + np.array([0, 2.0**-40, -(2.0**-40)])
    small = 2.0 ** (least - bits) * (1 + np.array([0, 2.0**-30, -(2.0**-30), 2]))
    x = np.concatenate([generator.standard_normal(300) * 2.0 ** generator.integers(-8, 8, 300), ties, -ties, small])
    got = round_float(x, dtype).astype(np.float64)
    assert got.tolist() == [exactly_rounded(float(v), dtype) for v in x]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_large_integers_round_once(dtype: DType) -> None:
    if dtype is not bf16:
        x = np.array([1, 3, 17, -5], np.int64)
    else:
        x = np.array([2**62 + 2**54 + 1, 2**62 + 2**54, -(2**62) - 2**54 - 1, 257, 2**63 - 1], np.int64)
    got = convert(x, dtype).astype(np.float64)
    bits, _ = PRECISION[dtype]
    for value, rounded in zip(x.tolist(), got, strict=True):
        shift = max(abs(value).bit_length() - bits, 0)
        low, rest = abs(value) >> shift, abs(value) & ((1 << shift) - 1)
        half = 1 << (shift - 1) if shift else 1
        low += rest > half or (shift > 0 and rest == half and low % 2 == 1)
        assert rounded == float(low << shift) * (1 if value > 0 else -1)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_towards_zero_never_grows(dtype: DType) -> None:
    x = np.random.default_rng(1).standard_normal(500).astype(np.float32)
    got = round_float(x, dtype, toward_zero=True)
    wide = widen(got)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    above = widen((got.view(unsigned) + unsigned.type(1)).view(dtype.numpy))
    assert (np.abs(wide) <= np.abs(x)).all() and (np.abs(above) > np.abs(x)).all()


def test_overflow_saturates_or_not() -> None:
    x = np.array([1e9, -np.inf, np.nan], np.float32)
    assert widen(round_float(x, f8e4m3)).tolist()[:2] == [448, -448]
    assert np.isnan(widen(round_float(x, f8e4m3, saturate=False))).all()
    assert widen(round_float(x, f8e5m2, saturate=False)).tolist()[:2] == [np.inf, -np.inf]
    assert round_float(x, f8e5m2)[2].view(np.uint8) == canonical_nan(f8e5m2).view(np.uint8)


def test_tf32_rounds_to_even() -> None:
    block = Block((TileType(f32, (5,)),))
    op: Any = RoundMantissa(block.arguments, {"bits": 10})
    x = np.array(
        [1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-20, np.inf, np.finfo(np.float32).max], np.float32
    )
    assert op.ref(x).tolist() == [1, 1 + 2.0**-9, 1 + 2.0**-10, np.inf, np.inf]


@pytest.mark.parametrize("dtype", [f16, bf16], ids=lambda dtype: dtype.name)
def test_narrow_fma_rounds_once(dtype: DType) -> None:
    generator = np.random.default_rng(3)
    a, b, c = (generator.standard_normal(400).astype(dtype.numpy) for _ in range(3))
    c[:100] = -(widen(a[:100]) * widen(b[:100])).astype(dtype.numpy)
    kind = REGISTRY["fma"]
    op: Any = kind(Block((TileType(dtype, (400,)),) * 3).arguments)
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    bits, least = PRECISION[dtype]
    expected = []
    for value in exact:
        if value == 0:
            expected.append(0.0)
            continue
        exponent = max(int(np.frexp(float(abs(value)))[1]) - 1, least)
        step = Fraction(2) ** (exponent - bits + 1)
        whole, rest = divmod(abs(value) / step, 1)
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
        expected.append(float((whole + up) * step) * (1 if value > 0 else -1))
    assert op.ref(a, b, c).astype(np.float64).tolist() == expected


def test_integers_of_64_bits_multiply_high() -> None:
    kind = REGISTRY["mulhi"]
    op: Any = kind(Block((TileType(i64, (2,)),) * 2).arguments)
    x = np.array([-(2**63), 2**62], np.int64)
    assert op.ref(x, x).tolist() == [int(v) * int(v) >> 64 for v in x]
