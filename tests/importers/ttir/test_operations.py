"""Operations of TTIR against NumPy, interpreted and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.importers.ttir.modules import elementwise, module, run

INTS = np.array([0, 1, -1, 7, -8, 2**31 - 1, -(2**31), 123456789], np.int32)
OTHERS = np.array([3, -1, 5, -3, 2, 31, 1, 65537], np.int32)
FLOATS = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 3e-39], np.float32)
MORE = np.array([-0.0, 1.0, 1.5, np.nan, 2.0, -np.inf, np.nan, -1e38], np.float32)
T = "tensor<8xi32>"
Reference = Callable[..., Any]


def unsigned(x: Any) -> Any:
    return x.view(np.uint32)


BINARY: dict[str, tuple[str, Reference]] = {
    "addi": ("arith.addi", lambda a, b: a + b),
    "muli with flags": ("arith.muli", lambda a, b: a * b),
    "divui": ("arith.divui", lambda a, b: unsigned(a) // unsigned(b)),
    "remui": ("arith.remui", lambda a, b: unsigned(a) % unsigned(b)),
    "shrui": ("arith.shrui", lambda a, b: np.where(unsigned(b) < 32, unsigned(a) >> (unsigned(b) & 31), 0)),
    "minui": ("arith.minui", lambda a, b: np.minimum(unsigned(a), unsigned(b))),
    "maxsi": ("arith.maxsi", np.maximum),
    "mulhiui": ("tt.mulhiui", lambda a, b: unsigned(a).astype(np.uint64) * unsigned(b).astype(np.uint64) >> 32),
}


@pytest.mark.parametrize("name", BINARY)
def test_integers(name: str) -> None:
    operation, reference = BINARY[name]
    flags = " overflow<nsw, nuw>" if "flags" in name else ""
    out = np.zeros(8, np.int32)
    run(elementwise(f"%r = {operation} %v0, %v1{flags} : {T}", "i32 i32", "i32"), INTS.copy(), OTHERS.copy(), out)
    with np.errstate(all="ignore"):
        assert out.tolist() == np.asarray(reference(INTS, OTHERS)).astype(np.int32).tolist()


PREDICATES: dict[str, Reference] = {
    "slt": np.less, "sge": np.greater_equal, "ne": np.not_equal,
    "ult": lambda a, b: unsigned(a) < unsigned(b), "uge": lambda a, b: unsigned(a) >= unsigned(b),
}  # fmt: skip


@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparisons_of_integers(predicate: str) -> None:
    body = f"%c = arith.cmpi {predicate}, %v0, %v1 : {T}\n%r = arith.extui %c : tensor<8xi1> to {T}"
    out = np.zeros(8, np.int32)
    run(elementwise(body, "i32 i32", "i32"), INTS.copy(), OTHERS.copy(), out)
    assert out.tolist() == PREDICATES[predicate](INTS, OTHERS).astype(np.int32).tolist()


FLOAT_PREDICATES: dict[str, Reference] = {
    "oeq": lambda a, b, n: (a == b) & ~n, "one": lambda a, b, n: (a != b) & ~n, "olt": lambda a, b, n: (a < b) & ~n,
    "ult": lambda a, b, n: (a < b) | n, "uge": lambda a, b, n: (a >= b) | n, "ueq": lambda a, b, n: (a == b) | n,
    "une": lambda a, b, n: (a != b) | n, "ord": lambda a, b, n: ~n, "uno": lambda a, b, n: n,
}  # fmt: skip


@pytest.mark.parametrize("predicate", FLOAT_PREDICATES)
def test_comparisons_of_floats(predicate: str) -> None:
    body = f"%c = arith.cmpf {predicate}, %v0, %v1 : tensor<8xf32>\n%r = arith.extui %c : tensor<8xi1> to {T}"
    out = np.zeros(8, np.int32)
    run(elementwise(body, "f32 f32", "i32"), FLOATS.copy(), MORE.copy(), out)
    wanted = FLOAT_PREDICATES[predicate](FLOATS, MORE, np.isnan(FLOATS) | np.isnan(MORE))
    assert out.tolist() == wanted.astype(np.int32).tolist()


def test_truth_values_as_numbers() -> None:
    """As a signed number true is -1, and so it is smaller than false."""
    body = f"""
    %z = arith.constant dense<0> : {T}
    %a = arith.cmpi slt, %v0, %z : {T}
    %b = arith.cmpi slt, %v1, %z : {T}
    %less = arith.cmpi slt, %a, %b : tensor<8xi1>
    %lowest = arith.minsi %a, %b : tensor<8xi1>
    %sum = arith.addi %a, %b : tensor<8xi1>
    %n = arith.extsi %less : tensor<8xi1> to {T}
    %m = arith.sitofp %lowest : tensor<8xi1> to tensor<8xf32>
    %k = arith.fptosi %m : tensor<8xf32> to {T}
    %u = arith.extui %sum : tensor<8xi1> to {T}
    %h = arith.constant dense<100> : {T}
    %t = arith.muli %n, %h : {T}
    %w = arith.muli %t, %h : {T}
    %x = arith.muli %k, %h : {T}
    %y = arith.addi %w, %x : {T}
    %r = arith.addi %y, %u : {T}
    """
    out = np.zeros(8, np.int32)
    run(elementwise(body, "i32 i32", "i32"), INTS.copy(), OTHERS.copy(), out)
    a, b = INTS < 0, OTHERS < 0
    assert out.tolist() == (-10000 * (a & ~b) - 100 * (a | b) + (a ^ b)).tolist()


CASTS: dict[str, tuple[str, Any, str, Any, Reference]] = {
    "extui i8": ("arith.extui", np.array([-1, 0, 127, -128, 1, 2, 3, -2], np.int8), "i32", np.int32,
                 lambda x: x.view(np.uint8)),
    "trunci i1": ("arith.trunci", INTS, "i1", np.bool_, lambda x: x & 1),
    "uitofp": ("arith.uitofp", INTS, "f32", np.float32, unsigned),
    "fptoui": ("arith.fptoui", np.array([0, 1.9, 3e9, 4e9, 2.5, 7, 1e5, 8], np.float32), "i32", np.uint32, np.trunc),
    "truncf bf16": ("arith.truncf", FLOATS, "bf16", ml_dtypes.bfloat16, lambda x: x),
    "fp_to_fp f8": ("tt.fp_to_fp", np.arange(8, dtype=np.float32), "f8E5M2", ml_dtypes.float8_e5m2, lambda x: x),
    "bitcast": ("tt.bitcast", FLOATS, "i32", np.int32, lambda x: np.where(np.isnan(x), 0x7FC00000, x.view(np.int32))),
}  # fmt: skip
NAMES = {"int8": "i8", "int32": "i32", "float32": "f32"}


@pytest.mark.parametrize("name", CASTS)
def test_conversions(name: str) -> None:
    operation, x, target, dtype, reference = CASTS[name]
    source, word = NAMES[x.dtype.name], "->" if operation.startswith("tt.") else "to"
    rounding = ", rounding = rtne" if operation == "tt.fp_to_fp" else ""
    body = f"%r = {operation} %v0{rounding} : tensor<8x{source}> {word} tensor<8x{target}>"
    out = np.zeros(8, dtype)
    run(elementwise(body, source, target), x.copy(), out)
    with np.errstate(all="ignore"):
        wanted = np.asarray(reference(x)).astype(dtype)
    assert np.array_equal(out.view(f"u{out.itemsize}"), wanted.view(f"u{out.itemsize}")), (out, wanted)


def test_truth_values_in_memory_are_bytes() -> None:
    """Whatever is not 0 is true."""
    x, out = np.array([0, 1, 2, 255, 0, 128, 1, 0], np.uint8), np.zeros(8, np.bool_)
    body = "%t = arith.constant dense<true> : tensor<8xi1>\n%r = arith.xori %v0, %t : tensor<8xi1>"
    run(elementwise(body, "i1", "i1"), x, out)
    assert out.tolist() == (x == 0).tolist()


def test_constants_by_their_bits() -> None:
    body = """
    %i = arith.constant dense<0xFF800000> : tensor<8xf32>
    %n = arith.constant dense<0x7FC00000> : tensor<8xf32>
    %c = arith.cmpf oeq, %v0, %v0 : tensor<8xf32>
    %r = arith.select %c, %i, %n : tensor<8xi1>, tensor<8xf32>
    """
    out = np.zeros(8, np.float32)
    run(elementwise(body, "f32", "f32"), FLOATS.copy(), out)
    assert np.array_equal(out, np.where(np.isnan(FLOATS), np.nan, -np.inf), equal_nan=True)


def test_scalars_of_high_products() -> None:
    body = """
    %a = arith.constant 65537 : i32
    %m = tt.mulhiui %n, %a : i32
    tt.store %p, %m : !tt.ptr<i32>
    """
    out = np.zeros(1, np.int32)
    run(module(body, "%p: !tt.ptr<i32>, %n: i32"), out, -5)
    assert out[0] == ((-5 & 0xFFFFFFFF) * 65537) >> 32


OLD = """
    %i = arith.constant 0 : i32
    %o = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
    %s = tt.splat %x : (!tt.ptr<f32, 1>) -> tensor<8x!tt.ptr<f32, 1>>
    %p = tt.addptr %s, %o : tensor<8x!tt.ptr<f32, 1>>, tensor<8xi32>
    %c = arith.cmpi "slt", %o, %o : tensor<8xi32>
    %m = arith.constant dense<true> : tensor<8xi1>
    %z = arith.constant dense<0.0> : tensor<8xf32>
    %v = tt.load %p, %m, %z {cache = 1 : i32, evict = 3 : i32, isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>} : tensor<8x!tt.ptr<f32>>
    %w = tt.load %p cacheModifier = ca evictionPolicy = evict_first {isVolatile = true} : tensor<8x!tt.ptr<f32>>
    %u = tt.load %p {cachePolicy = #tt.cache_policy<cache = ca, evict = evict_last>} : tensor<8x!tt.ptr<f32>>
    %t = arith.addf %v, %w fastmath<fast> : tensor<8xf32>
    %r = arith.addf %t, %u {fastmath = #arith.fastmath<none>} : tensor<8xf32>
    tt.store %p, %r {cache = 1 : i32, evict = 1 : i32} : tensor<8x!tt.ptr<f32>>
"""  # noqa: E501


def test_spellings_of_other_versions() -> None:
    x = np.arange(8, dtype=np.float32)
    run(module(OLD, "%x: !tt.ptr<f32, 1>"), x)
    assert x.tolist() == (3 * np.arange(8, dtype=np.float32)).tolist()
