"""Field reports as they show in Triton's IR: each test bears the report's id. tests/ltl has the same from source."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs
from loom_core.importers.ttir.errors import UnsupportedOperation
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import elementwise, module, run

RNG = np.random.default_rng(23)
BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
PRODUCT = """
%r = tt.make_range {{end = 256 : i32, start = 0 : i32}} : tensor<256xi32>
%i = tt.reshape %r : tensor<256xi32> -> tensor<16x16xi32>
%as = tt.splat %a : !tt.ptr<{type}> -> tensor<16x16x!tt.ptr<{type}>>
%ap = tt.addptr %as, %i : tensor<16x16x!tt.ptr<{type}>>, tensor<16x16xi32>
%av = tt.load %ap : tensor<16x16x!tt.ptr<{type}>>
%bs = tt.splat %b : !tt.ptr<{type}> -> tensor<16x16x!tt.ptr<{type}>>
%bp = tt.addptr %bs, %i : tensor<16x16x!tt.ptr<{type}>>, tensor<16x16xi32>
%bv = tt.load %bp : tensor<16x16x!tt.ptr<{type}>>
%zero = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
%d = tt.dot %av, %bv, %zero{precision} : tensor<16x16x{type}> * tensor<16x16x{type}> -> tensor<16x16xf32>
%os = tt.splat %o : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
%op = tt.addptr %os, %i : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
tt.store %op, %d : tensor<16x16x!tt.ptr<f32>>
"""


def product(a: Any, b: Any, type: str, precision: str = "") -> Any:
    out = np.zeros((16, 16), np.float32)
    text = module(
        PRODUCT.format(type=type, precision=precision), f"%a: !tt.ptr<{type}>, %b: !tt.ptr<{type}>, %o: !tt.ptr<f32>"
    )
    run(text, a, b, out)
    return out


@pytest.mark.report("P01")
def test_p01_products_of_small_bf16_integers_are_exact() -> None:
    a, b = (RNG.integers(-2, 3, (16, 16)).astype(BF16) for _ in range(2))
    assert np.array_equal(product(a, b, "bf16"), a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.report("P02")
@pytest.mark.parametrize(
    ("line", "reference"),
    [
        ("%r = arith.addf %v0, %v1 : tensor<8xbf16>", lambda a, b: a + b),
        ("%r = arith.mulf %v0, %v1 : tensor<8xbf16>", lambda a, b: a * b),
        ("%r = arith.negf %v0 : tensor<8xbf16>", lambda a, b: -a),
        ("%r = math.fma %v0, %v1, %v0 : tensor<8xbf16>", lambda a, b: a.astype(np.float64) * b + a),
        ("%c = arith.cmpf olt, %v0, %v1 : tensor<8xbf16>\n%r = arith.uitofp %c : tensor<8xi1> to tensor<8xbf16>",
         lambda a, b: a < b),
    ],
)  # fmt: skip
def test_p02_bf16_computes_in_float32_and_rounds_once(line: str, reference: Any) -> None:
    a = np.array([2.5, -5, 1.0078125, 3e38, -0.0, 1e-40, 255, 7], np.float32).astype(BF16)
    b = np.array([2.0, -2, 1.0078125, 2.0, 0.0, 3e-39, 1.5, np.nan], np.float32).astype(BF16)
    out = np.zeros(8, BF16)
    run(elementwise(line, "bf16 bf16", "bf16"), a.copy(), b.copy(), out)
    with np.errstate(all="ignore"):
        wanted = np.asarray(reference(a.astype(np.float32), b.astype(np.float32))).astype(BF16)
    assert np.array_equal(out.astype(np.float32), wanted.astype(np.float32), equal_nan=True)
    assert np.array_equal(np.signbit(out), np.signbit(wanted)) or "negf" not in line


@pytest.mark.report("P27")
def test_p27_bf16_products_round_to_nearest_even() -> None:
    a, b = (RNG.standard_normal(1 << 14).astype(BF16) for _ in range(2))
    out = np.zeros(1 << 14, BF16)
    run(elementwise(f"%r = arith.mulf %v0, %v1 : tensor<{1 << 14}xbf16>", "bf16 bf16", "bf16", 1 << 14), a, b, out)
    wide = a.astype(np.float32) * b.astype(np.float32)
    assert out.tobytes() == wide.astype(BF16).tobytes()
    assert out.tobytes() != (wide.view(np.uint32) >> 16).astype(np.uint16).tobytes()


@pytest.mark.report("P03")
def test_p03_fp8_casts_round_once_to_even() -> None:
    x = np.array([126.24, 1.0625, np.nan, 1.5 * 2.0**-10, 20.0, 447.0, -3.3, 0.0], np.float32)
    out = np.zeros(8, E4M3)
    run(
        elementwise("%r = tt.fp_to_fp %v0, rounding = rtne : tensor<8xf32> -> tensor<8xf8E4M3FN>", "f32", "f8E4M3FN"),
        x,
        out,
    )
    assert np.array_equal(out.astype(np.float32), x.astype(E4M3).astype(np.float32), equal_nan=True)
    assert out[0] == 128 and out[1] == 1.0 and np.isnan(out[2].astype(np.float32)) and out[3] == 2.0**-9


@pytest.mark.report("P87")
@pytest.mark.parametrize(("type", "dtype", "most"), [("f8E4M3FN", E4M3, 448.0), ("f8E5M2", E5M2, 57344.0)])
def test_p87_fp8_casts_saturate(type: str, dtype: Any, most: float) -> None:
    x = np.array([most, most * 1.03, most * 1.2, most * 2, np.inf, -np.inf, np.nan, -most * 4], np.float32)
    out = np.zeros(8, dtype)
    run(elementwise(f"%r = tt.fp_to_fp %v0, rounding = rtne : tensor<8xf32> -> tensor<8x{type}>", "f32", type), x, out)
    assert out.astype(np.float32).tolist()[:6] == [most, most, most, most, most, -most]
    assert np.isnan(out[6].astype(np.float32)) and out[7] == -most


@pytest.mark.report("P05")
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_p05_float_to_integer_saturates_and_nan_is_zero(bits: int) -> None:
    x = np.array([np.inf, 510, -200, np.nan, -np.inf, 1e20, 2.9, -2.9], np.float32)
    for name, signed in (("fptosi", True), ("fptoui", False)):
        dtype = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
        out = np.zeros(8, f"i{bits // 8}")
        run(elementwise(f"%r = arith.{name} %v0 : tensor<8xf32> to tensor<8xi{bits}>", "f32", f"i{bits}"), x, out)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        wanted = [0 if np.isnan(v) else int(min(max(np.trunc(v), low), high)) for v in x.astype(np.float64)]
        assert out.view(dtype).tolist() == wanted


def fold(function: str, axis: str = "axis = 0 : i32") -> str:
    return f"""
    %m = "tt.reduce"(%v0) <{{{axis}}}> ({{
    ^bb0(%a: f32, %b: f32):
      %s = {function} %a, %b : f32
      tt.reduce.return %s : f32
    }}) : (tensor<8xf32>) -> f32
    %r = tt.splat %m : f32 -> tensor<8xf32>
    """


@pytest.mark.report("P07")
@pytest.mark.parametrize("where", [0, 3, 7])
def test_p07_reductions_skip_nan_unless_it_is_to_propagate(where: int) -> None:
    x = np.array([6, 8, 1, 3, 5, 2, 7, 4], np.float32)
    x[where] = np.nan
    for function, wanted in (
        ("arith.maxnumf", np.nanmax(x)), ("arith.minnumf", np.nanmin(x)), ("arith.maximumf", np.nan),
        ("arith.minimumf", np.nan),
    ):  # fmt: skip
        out = np.zeros(8, np.float32)
        run(elementwise(fold(function), "f32", "f32"), x.copy(), out)
        assert np.array_equal(out, np.full(8, wanted, np.float32), equal_nan=True), function


@pytest.mark.report("P13")
@pytest.mark.parametrize("axis", [0, 1])
def test_p13_only_the_listed_axis_is_bounded(axis: int) -> None:
    """With another order than that of rows, as Triton 3.6 writes it."""
    body = f"""
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %zero = arith.constant 0 : i32
    %rows = arith.constant 3 : i64
    %columns = arith.constant 6 : i64
    %step = arith.constant 9 : i64
    %unit = arith.constant 1 : i64
    %four = arith.constant 4 : i64
    %eight = arith.constant 8 : i64
    %p = tt.make_tensor_ptr %x, [%rows, %columns], [%step, %unit], [%one, %two] {{order = array<i32: 0, 1>}} : <tensor<4x8xi32>>
    %q = tt.make_tensor_ptr %o, [%four, %eight], [%eight, %unit], [%zero, %zero] {{order = array<i32: 1, 0>}} : <tensor<4x8xi32>>
    %v = tt.load %p {{boundaryCheck = array<i32: {axis}>}} : !tt.ptr<tensor<4x8xi32>>
    tt.store %q, %v : !tt.ptr<tensor<4x8xi32>>
    """  # noqa: E501
    x, out = np.arange(1, 101, dtype=np.int32), np.zeros((4, 8), np.int32)
    run(module(body, "%x: !tt.ptr<i32>, %o: !tt.ptr<i32>"), x, out)
    row, column = np.arange(1, 5)[:, None], np.arange(2, 10)[None, :]
    inside = (row < 3) if axis == 0 else (column < 6)
    assert np.array_equal(out, np.where(inside, x[row * 9 + column], 0))


MASKED = """
%n = arith.constant dense<5> : tensor<8xi32>
%m = arith.cmpi slt, %o, %n : tensor<8xi32>
%r = tt.load %a0, %m : tensor<8x!tt.ptr<i32>>
"""


@pytest.mark.report("P14")
def test_p14_masked_elements_without_other_are_zero() -> None:
    out = np.full(8, 9, np.int32)
    run(
        elementwise(MASKED, "i32", "i32").replace("%v0 = tt.load %a0 : tensor<8x!tt.ptr<i32>>", ""),
        np.full(8, 3, np.int32),
        out,
    )
    assert out.tolist() == [3] * 5 + [0] * 3


@pytest.mark.report("P16")
def test_p16_masked_elements_touch_no_memory() -> None:
    """Addresses before an array are not touched where the mask does not hold, and are found where it does."""
    far = """
    %big = arith.constant dense<100000> : tensor<8xi32>
    %i = arith.subi %o, %big : tensor<8xi32>
    %q = tt.addptr %s0, %i : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %none = arith.constant dense<false> : tensor<8xi1>
    %r = tt.load %q{} : tensor<8x!tt.ptr<i32>>
    """
    x, out = np.ones(8, np.int32), np.full(8, 9, np.int32)
    run(elementwise(far.format(", %none"), "i32", "i32"), x, out)
    assert out.tolist() == [0] * 8
    with pytest.raises(LoomError, match="touches bytes -400000"):
        ImportedKernel(elementwise(far.format(""), "i32", "i32"))[(1,)](x, out)


@pytest.mark.report("P23")
def test_p23_offsets_of_32_bits_wrap() -> None:
    body = """
    %pid = arith.constant 319 : i32
    %stride = arith.constant 7864320 : i32
    %w = arith.muli %pid, %stride : i32
    %l = arith.extsi %w : i32 to i64
    tt.store %p, %l : !tt.ptr<i64>
    """
    out = np.zeros(1, np.int64)
    run(module(body, "%p: !tt.ptr<i64>"), out)
    assert out[0] == -1786249216


@pytest.mark.report("P24")
@pytest.mark.parametrize("mask", ["", ", %m"])
def test_p24_atomic_loads_and_stores_copy(mask: str) -> None:
    flags = ", tensor<8xi1>" if mask else ""
    body = f"""
    %n = arith.constant dense<3> : tensor<8xi32>
    %m = arith.cmpi sge, %o, %n : tensor<8xi32>
    %x = tt.atomic_load acquire, gpu, %a0{mask} : (tensor<8x!tt.ptr<i32>>{flags}) -> tensor<8xi32>
    tt.atomic_store release, gpu, %a1, %x{mask} : tensor<8x!tt.ptr<i32>>
    """
    text = elementwise(body, "i32", "i32").replace("tt.store %a1, %r : tensor<8x!tt.ptr<i32>>", "")
    out = np.zeros(8, np.int32)
    run(text, np.arange(1, 9, dtype=np.int32), out)
    assert out.tolist() == ([0, 0, 0, 4, 5, 6, 7, 8] if mask else list(range(1, 9)))


@pytest.mark.report("P26")
def test_p26_input_precisions_are_honoured() -> None:
    a, b = (RNG.standard_normal((16, 16)).astype(np.float32) for _ in range(2))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    errors = {}
    for precision in ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"):
        out = product(a, b, "f32", f", inputPrecision = {precision}")
        errors[precision] = float(np.abs(out - exact).max())
    assert errors["ieee"] < 2e-6 and errors["tf32x3"] < 1e-5 and errors["bf16x6"] < 2e-6
    assert 1e-4 < errors["tf32"] < 2e-2 and errors["tf32x3"] < errors["bf16x3"] < errors["tf32"]


@pytest.mark.report("P35")
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_p35_unsigned_shifts_are_logical(bits: int) -> None:
    x = RNG.integers(0, 1 << bits, 1 << 10, np.uint64).astype(f"u{bits // 8}")
    size = x.size
    body = f"%c = arith.constant dense<5> : tensor<{size}xi{bits}>\n%r = arith.shrui %v0, %c : tensor<{size}xi{bits}>"
    out = np.zeros(size, x.dtype)
    run(elementwise(body, f"i{bits}", f"i{bits}", size), x.copy(), out)
    assert out.tolist() == (x >> 5).tolist()


@pytest.mark.report("P40")
def test_p40_layouts_are_ignored_and_unknown_operations_named() -> None:
    """A product through shared memory and an unknown operation; tests/importers/ttir/test_ttgir.py has more."""
    head = """#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
#second = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
"""
    shared = "!ttg.memdesc<16x16xf16, #shared, #smem>"
    text = module(PRODUCT.format(type="f16", precision=""), "%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %o: !tt.ptr<f32>")
    through = f"""%am = ttg.local_alloc %av : (tensor<16x16xf16>) -> {shared}
%al = ttg.local_load %am : {shared} -> tensor<16x16xf16, #ttg.dot_op<{{opIdx = 0, parent = #mma, kWidth = 2}}>>
%bl = ttg.convert_layout %bv : tensor<16x16xf16> -> tensor<16x16xf16, #second>
%d = tt.dot %al, %bl, %zero"""
    a, b = (RNG.integers(-2, 3, (16, 16)).astype(np.float16) for _ in range(2))
    out = np.zeros((16, 16), np.float32)
    run(head + text.replace("%d = tt.dot %av, %bv, %zero", through), a, b, out)
    assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    unknown = head + text.replace("%d = tt.dot", "ttg.unheard_of %av : tensor<16x16xf16, #mma>\n%d = tt.dot")
    line = unknown.split("\n").index("ttg.unheard_of %av : tensor<16x16xf16, #mma>") + 1
    with pytest.raises(UnsupportedOperation, match=r"ttg\.unheard_of cannot be imported") as caught:
        ImportedKernel(unknown, "attention.ttgir")
    assert (caught.value.location.file, caught.value.location.line) == ("attention.ttgir", line)


@pytest.mark.report("P06")
def test_p06_a_while_that_starts_false_runs_zero_times() -> None:
    body = """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %r = scf.while (%i = %zero) : (i32) -> i32 {
      %c = arith.cmpi slt, %i, %n : i32
      scf.condition(%c) %i : i32
    } do {
    ^bb0(%i: i32):
      %j = arith.addi %i, %one : i32
      scf.yield %j : i32
    }
    tt.store %p, %r : !tt.ptr<i32>
    """
    for n in (0, 5):
        out = np.full(1, 9, np.int32)
        run(module(body, "%p: !tt.ptr<i32>, %n: i32"), out, n)
        assert out[0] == n


@pytest.mark.report("P10")
@pytest.mark.parametrize("block", [8, 32])
def test_p10_cumulative_sums_in_a_loop_with_a_masked_tail(block: int) -> None:
    t = f"tensor<{block}xi32>"
    body = f"""
    %zero = arith.constant 0 : i32
    %step = arith.constant {block} : i32
    %o = tt.make_range {{end = {block} : i32, start = 0 : i32}} : {t}
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<{block}x!tt.ptr<i32>>
    %ns = tt.splat %n : i32 -> {t}
    %none = arith.constant dense<0> : {t}
    %ones = arith.constant dense<1> : {t}
    %end = scf.for %i = %zero to %n step %step iter_args(%before = %zero) -> (i32) : i32 {{
      %is = tt.splat %i : i32 -> {t}
      %at = arith.addi %is, %o : {t}
      %m = arith.cmpi slt, %at, %ns : {t}
      %x = arith.select %m, %ones, %none : tensor<{block}xi1>, {t}
      %c = "tt.scan"(%x) <{{axis = 0 : i32, reverse = false}}> ({{
      ^bb0(%a: i32, %b: i32):
        %s = arith.addi %a, %b : i32
        tt.scan.return %s : i32
      }}) : ({t}) -> {t}
      %bs = tt.splat %before : i32 -> {t}
      %v = arith.addi %c, %bs : {t}
      %q = tt.addptr %ps, %at : tensor<{block}x!tt.ptr<i32>>, {t}
      tt.store %q, %v, %m : tensor<{block}x!tt.ptr<i32>>
      %sum = "tt.reduce"(%x) <{{axis = 0 : i32}}> ({{
      ^bb0(%a: i32, %b: i32):
        %s = arith.addi %a, %b : i32
        tt.reduce.return %s : i32
      }}) : ({t}) -> i32
      %next = arith.addi %before, %sum : i32
      scf.yield %next : i32
    }}
    """
    out = np.zeros(21, np.int32)
    with knobs.override(verify="each"):
        run(module(body, "%p: !tt.ptr<i32>, %n: i32"), out, 20)
    assert out.tolist() == [*range(1, 21), 0]
