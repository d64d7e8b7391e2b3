"""Every SCE opcode that works element by element, against NumPy written from the rules of `isa.sce`."""

from __future__ import annotations

import ctypes
import platform
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from loom_core.isa.sce import ALL_SCE_OPS, SCE_OPS, SceOp
from loom_core.reference.arith import fma32
from loom_core.reference.elementary import REFERENCE_F32
from loom_sim.elements import build_element
from loom_sim.engines import element_address
from loom_sim.jit import ELEMENT_SIGNATURE, engine_assembly
from tests.sim.harness import Buffer

Array = NDArray[Any]

_DTYPES: dict[str, type[np.generic]] = {
    "f32": np.float32, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8, "u8": np.uint8,
    "bool": np.uint8, "64": np.int64, "32": np.int32, "16": np.int16, "8": np.int8,
}  # fmt: skip
_ELEMENTWISE = [op for op in ALL_SCE_OPS if not op.is_reduction]
_CALL = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def canonical(x: Array) -> Array:
    return np.where(np.isnan(x), np.uint32(0x7FC00000).view(np.float32), x)


def float_reference(op: SceOp, *args: Array) -> Array:
    """The machine's float32 functions; those of `elementary` have a reference of their own."""
    simple: dict[str, Callable[..., Any]] = {
        "mov": lambda x: x,
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "fma": fma32,
        **_COMPARE,
    }
    with np.errstate(all="ignore"):
        result = np.asarray(simple.get(op.function, REFERENCE_F32.get(op.function))(*args))  # type: ignore[misc]
    return canonical(result) if op.result == "f32" else result


def integer_reference(op: SceOp, *args: Array) -> Array:
    """Exact Python integers, wrapped at the end."""
    bits = args[-1].dtype.itemsize * 8
    unsigned = (1 << bits) - 1

    def divide(a: int, b: int) -> int:
        return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    scalar: dict[str, Callable[..., int]] = {
        "mov": lambda a: a,
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": divide,
        "rem": lambda a, b: a if b == 0 else a - b * divide(a, b),
        "min": min,
        "max": max,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "not": lambda a: ~a,
        "shl": lambda a, b: a << b if 0 <= b < bits else 0,
        "shr": lambda a, b: a >> b if 0 <= b < bits else a >> bits,
        "shru": lambda a, b: (a & unsigned) >> b if 0 <= b < bits else 0,
        "neg": lambda a: -a,
        "abs": abs,
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
        "ltu": lambda a, b: a & unsigned < b & unsigned,
        "leu": lambda a, b: a & unsigned <= b & unsigned,
        "select": lambda c, a, b: a if c else b,
    }
    values = [int(scalar[op.function](*row)) & unsigned for row in zip(*(arg.tolist() for arg in args), strict=True)]
    return np.array(values, np.uint64).astype(f"u{bits // 8}").view(f"i{bits // 8}").astype(_DTYPES[op.result])


def bool_reference(op: SceOp, *args: Array) -> Array:
    truth = [arg != 0 for arg in args]
    functions: dict[str, Callable[..., Any]] = {
        "mov": lambda a: a,
        "and": np.logical_and,
        "or": np.logical_or,
        "xor": np.logical_xor,
        "not": np.logical_not,
        "select": lambda c, a, b: np.where(c, a, b),
        "eq": np.equal,
    }
    return np.asarray(functions[op.function](*truth))


def cast_reference(op: SceOp, x: Array) -> Array:
    source, result = op.operands[0], op.result
    if source == "bool":
        x = (x != 0).astype(np.uint8)
    if result == "bool":
        return x != 0
    if source == "f32" and result != "f32":
        limits = np.iinfo(_DTYPES[result])
        exact = [0 if np.isnan(v) else min(max(v, limits.min), limits.max) for v in x.tolist()]
        return np.array([int(v) for v in exact], _DTYPES[result])
    return x.astype(_DTYPES[result])


def reference(op: SceOp, *args: Array) -> Array:
    if op.function == "cast":
        return cast_reference(op, *args)
    if op.operands[-1].isdigit():
        return args[0]
    family = {"f32": float_reference, "bool": bool_reference}.get(op.operands[-1], integer_reference)
    return family(op, *args)


def samples(name: str, count: int, seed: int) -> Array:
    """Values of an operand type: everyday ones, every special one, and every pair of special ones for two seeds."""
    rng = np.random.default_rng(seed)
    if name == "f32":
        patterns = rng.integers(0, 1 << 32, count, dtype=np.uint32)
        everyday = (rng.standard_normal(count) * 10).astype(np.float32).view(np.uint32)
        special = np.array(
            [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x4EFFFFFF, 0x4F000000, 0x5EFFFFFF, 0x5F000000, 0x42FE0000,
             0x42FF999A, 0x437F0000, 0x46FFFE00, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00001, 0x7FFFFFFF],
            np.uint32,
        )  # fmt: skip
        special = np.concatenate([special, special | np.uint32(1 << 31)])
        values = np.where(rng.random(count) < 0.5, everyday, patterns)
    else:
        dtype = np.dtype(_DTYPES[name])
        limits = np.iinfo(dtype)
        special = np.array([0, 1, 2, 3, limits.max, limits.min, limits.max - 1, limits.min + 1], dtype)
        if limits.min < 0:
            special = np.concatenate([special, np.array([-1, -2, 31, 32, 33], dtype)])
        small = rng.integers(max(-40, limits.min), 70, count).astype(dtype)
        wide = rng.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
        values = np.where(rng.random(count) < 0.5, small, wide)
        if name == "bool":
            values = np.where(rng.random(count) < 0.4, 0, values).astype(np.uint8)
    mixed = np.where(rng.random(count) < 0.3, special[rng.integers(0, len(special), count)], values)
    return mixed.view(np.float32) if name == "f32" else mixed.astype(_DTYPES[name])


def run_engine(op: SceOp, args: Sequence[Array], in_place: int | None = None) -> Array:
    """Result of the native engine; with `in_place` it is written over that operand."""
    count = len(args[0])
    buffers = [Buffer(arg) for arg in args]
    result = Buffer(np.zeros(count, _DTYPES[op.result])) if in_place is None else buffers[in_place]
    addresses = [buffer.array.ctypes.data for buffer in buffers] + [0] * (3 - len(args))
    _CALL(element_address(op))(result.array.ctypes.data, *addresses, count)
    for buffer in (*buffers, result):
        buffer.check_guards()
    for number, (buffer, arg) in enumerate(zip(buffers, args, strict=True)):
        if number != in_place:
            assert buffer.array.tobytes() == arg.tobytes(), "an operand was changed"
    return result.array.copy()


def same_bits(got: Array, expected: Array) -> None:
    expected = np.asarray(expected).astype(got.dtype)
    different = got.view(f"u{got.itemsize}") != expected.view(f"u{got.itemsize}")
    assert not different.any(), (
        f"at {np.flatnonzero(different)[:5]}: {got[different][:5]}, not {expected[different][:5]}"
    )


@pytest.mark.parametrize("op", _ELEMENTWISE, ids=lambda op: op.mnemonic)
def test_matches_the_reference(op: SceOp) -> None:
    for count in (0, 1, 7, 33, 2500):
        args = [samples(name, count, 3 * count + i) for i, name in enumerate(op.operands)]
        same_bits(run_engine(op, args), reference(op, *args))


_IN_PLACE = [(op, i) for op in _ELEMENTWISE for i, name in enumerate(op.operands) if name == op.result]


@pytest.mark.parametrize(("op", "number"), _IN_PLACE, ids=lambda value: getattr(value, "mnemonic", str(value)))
def test_may_be_written_over_an_operand(op: SceOp, number: int) -> None:
    args = [samples(name, 1000, i) for i, name in enumerate(op.operands)]
    same_bits(run_engine(op, args, in_place=number), reference(op, *args))


def test_nan_from_any_source_is_canonical() -> None:
    infinity = np.full(100, np.inf, np.float32)
    zero = np.zeros(100, np.float32)
    negative = np.full(100, -4.0, np.float32)
    payload = np.full(100, 0xFFA00001, np.uint32).view(np.float32)
    cases: list[tuple[str, list[Array]]] = [
        ("sub.f32", [infinity, infinity]),
        ("mul.f32", [infinity, zero]),
        ("div.f32", [zero, zero]),
        ("fma.f32", [infinity, zero, zero]),
        ("sqrt.f32", [negative]),
        ("log.f32", [negative]),
        ("mov.f32", [payload]),
        ("neg.f32", [payload]),
        ("abs.f32", [payload]),
        ("select.f32", [np.ones(100, np.uint8), payload, zero]),
    ]
    for mnemonic, args in cases:
        assert set(run_engine(SCE_OPS[mnemonic], args).view(np.uint32).tolist()) == {0x7FC00000}, mnemonic


def test_plain_moves_keep_every_bit() -> None:
    payload = np.full(100, 0xFFA00001, np.uint32).view(np.int32)
    assert run_engine(SCE_OPS["mov.32"], [payload]).tobytes() == payload.tobytes()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="looks for x86 vector registers")
@pytest.mark.parametrize(
    "mnemonic",
    ["add.f32", "fma.f32", "exp.f32", "sin.f32", "max.f32", "lt.f32", "select.f32", "div.f32", "add.i32", "mul.i32",
     "div.i32", "shru.i32", "add.i64", "cast.f32.i32", "cast.f32.u8", "cast.i32.f32", "cast.bool.f32", "and.bool",
     "mov.16"],
)  # fmt: skip
def test_loops_are_vectorised(mnemonic: str) -> None:
    op = SCE_OPS[mnemonic]
    text = engine_assembly(mnemonic, lambda: build_element(op), ELEMENT_SIGNATURE)
    assert len(re.findall(r"%[xyz]mm", text)) > 4
    stores = re.findall(r"\n\s*v?p?movd?q?[ua]?p?s?\w*\s+%[xyz]mm\d+, [^%\n]*\(", text)
    assert stores, "no vector is stored"
