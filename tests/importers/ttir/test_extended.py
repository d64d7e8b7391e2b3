"""Operations that are several of ours, and forms that only some versions of Triton write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from loom_core.importers.ttir.errors import UnsupportedOperation, WrongOperands
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import elementwise, module, run

A = np.array([7, -7, 7, -7, 0, 2**31 - 1, -(2**31), 1 << 20, -1, 5], np.int32)
B = np.array([2, 2, -2, -2, 3, 65537, 3, -(1 << 14), 1, -1], np.int32)
T, FLAGS = "tensor<10xi32>", "tensor<10xi1>"
TO_INTEGERS = f"%r = arith.extui %{{}} : {FLAGS} to {T}"
WIDE_A, WIDE_B = A.astype(np.int64), B.astype(np.int64)
UNSIGNED_A, UNSIGNED_B = (x.view(np.uint32).astype(np.uint64) for x in (A, B))
INTEGERS: dict[str, tuple[str, Any]] = {
    "ceildivsi": (f"%r = arith.ceildivsi %v0, %v1 : {T}", -(-WIDE_A // WIDE_B)),
    "ceildivui": (f"%r = arith.ceildivui %v0, %v1 : {T}", (UNSIGNED_A + UNSIGNED_B - 1) // UNSIGNED_B),
    "mulsi_extended": (f"%l, %r = arith.mulsi_extended %v0, %v1 : {T}", WIDE_A * WIDE_B >> 32),
    "mului_extended": (f"%l, %r = arith.mului_extended %v0, %v1 : {T}", UNSIGNED_A * UNSIGNED_B >> np.uint64(32)),
    "the lower half": (f"%r, %h = arith.mului_extended %v0, %v1 : {T}", WIDE_A * WIDE_B),
    "addui_extended": (f"%s, %more = arith.addui_extended %v0, %v1 : {T}, {FLAGS}\n{TO_INTEGERS.format('more')}",
                       UNSIGNED_A + UNSIGNED_B > 0xFFFFFFFF),
    "subui_extended": (f"%s, %less = arith.subui_extended %v0, %v1 : {T}, {FLAGS}\n{TO_INTEGERS.format('less')}",
                       UNSIGNED_A < UNSIGNED_B),
    "cttz": (f"%r = math.cttz %v0 : {T}", [(int(x) & -int(x)).bit_length() - 1 if x else 32 for x in A]),
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    body, wanted = INTEGERS[name]
    out = np.zeros(10, np.int32)
    run(elementwise(body, "i32 i32", "i32", size=10), A.copy(), B.copy(), out)
    assert out.tolist() == np.asarray(wanted).astype(np.int64).astype(np.int32).tolist()


F = np.array([0.0, -0.0, 1e-40, -1e-45, 1.1754944e-38, 2.5, -np.inf, np.inf, np.nan, -3e38], np.float32)
LEAST = np.finfo(np.float32).tiny
CLASSES: dict[str, Callable[[Any], Any]] = {
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "isnormal": lambda x: np.isfinite(x) & (np.abs(x) >= LEAST),
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_classes_of_floats(name: str) -> None:
    body = f"%c = math.{name} %v0 : tensor<10xf32>\n%r = arith.extui %c : tensor<10xi1> to {T}"
    out = np.zeros(10, np.int32)
    run(elementwise(body, "f32", "i32", size=10), F.copy(), out)
    assert out.astype(bool).tolist() == CLASSES[name](F).tolist()


def test_subnormals_flushed() -> None:
    out = np.zeros(10, np.float32)
    run(elementwise("%r = arith.flush_denormals %v0 : tensor<10xf32>", "f32", "f32", size=10), F.copy(), out)
    wanted = np.where(np.abs(F) < LEAST, np.copysign(np.float32(0), F), F)
    assert out.view(np.uint32).tolist() == wanted.view(np.uint32).tolist()


def test_sine_and_cosine_of_one_operation() -> None:
    out = np.zeros(10, np.float32)
    body = "%s, %c = math.sincos %v0 : tensor<10xf32>\n%r = arith.addf %s, %c : tensor<10xf32>"
    x = np.linspace(-3, 3, 10, dtype=np.float32)
    run(elementwise(body, "f32", "f32", size=10), x.copy(), out)
    assert np.abs(out - (np.sin(x.astype(float)) + np.cos(x.astype(float)))).max() < 3e-7


def test_pairs_of_small_floats() -> None:
    """ttg.fp4_to_fp along a dimension, against ml_dtypes."""
    packed = np.arange(256, dtype=np.uint8).reshape(16, 16)
    body = """
    %m = tt.reshape %v0 : tensor<256xi8> -> tensor<16x16xi8>
    %f = ttg.fp4_to_fp %m {axis = 0 : i32} : tensor<16x16xi8> -> tensor<32x16xbf16>
    %flat = tt.reshape %f : tensor<32x16xbf16> -> tensor<512xbf16>
    %o2 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %q = tt.splat %p1 : !tt.ptr<bf16> -> tensor<512x!tt.ptr<bf16>>
    %w = tt.addptr %q, %o2 : tensor<512x!tt.ptr<bf16>>, tensor<512xi32>
    tt.store %w, %flat : tensor<512x!tt.ptr<bf16>>
    %r = arith.constant dense<0.0> : tensor<256xbf16>
    """
    text = elementwise(body, "i8", "bf16", size=256).replace("tt.store %a1, %r : tensor<256x!tt.ptr<bf16>>", "")
    out = np.zeros(512, ml_dtypes.bfloat16)
    run(text, packed, out)
    halves = np.stack([packed & 15, packed >> 4], 1).reshape(32, 16)
    assert (
        out.astype(np.float32).tolist() == halves.view(ml_dtypes.float4_e2m1fn).astype(np.float32).reshape(-1).tolist()
    )


def test_a_function_at_neighbouring_elements() -> None:
    body = f"""
    %q:2 = "tt.map_elementwise"(%v0, %v1) <{{pack = 2 : i32}}> ({{
    ^bb0(%x0: i32, %x1: i32, %y0: i32, %y1: i32):
      %s = arith.addi %x0, %y1 : i32
      %t = arith.subi %x1, %y0 : i32
      %c = arith.cmpi slt, %s, %t : i32
      cf.cond_br %c, ^bb1, ^bb2
    ^bb1:
      tt.map_elementwise.return %s, %t, %x0, %x1 : i32, i32, i32, i32
    ^bb2:
      tt.map_elementwise.return %t, %s, %y0, %y1 : i32, i32, i32, i32
    }}) : ({T}, {T}) -> ({T}, {T})
    %k = arith.constant dense<3> : {T}
    %u = arith.muli %q#0, %k : {T}
    %r = arith.addi %u, %q#1 : {T}
    """
    out = np.zeros(10, np.int32)
    run(elementwise(body, "i32 i32", "i32", size=10), A.copy(), B.copy(), out)
    with np.errstate(over="ignore"):
        s, t = A[::2] + B[1::2], A[1::2] - B[::2]
        first = np.where(s < t, [s, t], [t, s]).T.reshape(-1)
        second = np.where(s < t, [A[::2], A[1::2]], [B[::2], B[1::2]]).T.reshape(-1)
        assert out.tolist() == (first * 3 + second).tolist()


def test_atomic_loads_stores_and_polls() -> None:
    body = """
    %two = arith.constant dense<2> : tensor<10xi32>
    %m = arith.cmpi sgt, %v0, %two : tensor<10xi32>
    %x = tt.atomic_load acquire, gpu, %a0, %m : (tensor<10x!tt.ptr<i32>>, tensor<10xi1>) -> tensor<10xi32>
    tt.atomic_store release, gpu, %a1, %x, %m : tensor<10x!tt.ptr<i32>>
    %five = arith.constant 5 : i32
    %long = arith.constant 100 : i64
    %there = tt.atomic_poll acquire, gpu, %p0, %five timeout %long : !tt.ptr<i32>, i32 -> i1
    %n = arith.extui %there : i1 to i32
    %r = tt.splat %n : i32 -> tensor<10xi32>
    """
    text = elementwise(body, "i32", "i32", size=10).replace("tt.store %a1, %r", "tt.store %a1, %r, %low")
    text = text.replace("tt.store %a1", "%low = arith.cmpi sle, %v0, %two : tensor<10xi32>\ntt.store %a1")
    x, out = np.arange(5, -5, -1, dtype=np.int32), np.full(10, 9, np.int32)
    run(text, x, out)
    assert out.tolist() == [5, 4, 3, *[1] * 7]


def test_an_address_that_becomes_a_pointer_again() -> None:
    body = """
    %n = tt.ptr_to_int %p0 : !tt.ptr<f32> -> i64
    %q = tt.int_to_ptr %n : i64 -> !tt.ptr<i32>
    %one = arith.constant 1 : i32
    %old = tt.atomic_rmw max, relaxed, gpu, %q, %one : (!tt.ptr<i32>, i32) -> i32
    %r = arith.addf %v0, %v0 : tensor<8xf32>
    """
    x, out = np.zeros(8, np.float32), np.zeros(8, np.float32)
    run(elementwise(body, "f32", "f32"), x, out)
    assert x.view(np.int32)[0] == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("%n = tt.ptr_to_int %p : !tt.ptr<i32> -> i64\n%m = arith.addi %n, %n : i64", "computes with an address"),
        ("%c = arith.constant 64 : i64\n%q = tt.int_to_ptr %c : i64 -> !tt.ptr<f32>", "which array it points into"),
        (
            "%n = tt.ptr_to_int %p : !tt.ptr<i32> -> i64\n%q = tt.int_to_ptr %n : i64 -> !tt.ptr<i8>",
            "taken as one to i8",
        ),
    ],
)
def test_addresses_are_no_numbers(line: str, reason: str) -> None:
    with pytest.raises(UnsupportedOperation, match=reason) as caught:
        ImportedKernel(module(line, "%p: !tt.ptr<i32>"))
    assert caught.value.location.line == 4


def test_values_of_several_parts_where_numbers_are_needed() -> None:
    with pytest.raises(WrongOperands, match="does not take a tensor descriptor"):
        ImportedKernel(module("%r = arith.addi %d, %d : i32", "%d: !tt.tensordesc<4x8xf32>"))


def test_index_switch_and_checks() -> None:
    body = """
    %i = arith.index_cast %n : i32 to index
    %x:2 = scf.index_switch %i -> i32, i32
    case 2 {
      %a = arith.constant 20 : i32
      scf.yield %a, %n : i32, i32
    }
    case 5 {
      %b = arith.constant 50 : i32
      scf.yield %n, %b : i32, i32
    }
    default {
      scf.yield %n, %n : i32, i32
    }
    %y = scf.execute_region -> i32 {
      %t = arith.cmpi slt, %x#0, %x#1 : i32
      cf.cond_br %t, ^less, ^more
    ^less:
      scf.yield %x#0 : i32
    ^more:
      %z = arith.subi %x#0, %x#1 : i32
      scf.yield %z : i32
    }
    %true = arith.constant true
    cf.assert %true, "never"
    tt.grid_dependency_wait
    tt.store %p, %y : !tt.ptr<i32>
    """
    for n, wanted in ((2, 18), (5, 5), (7, 0)):
        out = np.zeros(1, np.int32)
        run(module(body, "%p: !tt.ptr<i32>, %n: i32"), out, n)
        assert out[0] == wanted


def test_print_with_its_values_behind_the_colon(capfd: pytest.CaptureFixture[str]) -> None:
    body = """
    tt.print " x: " {hex = false, isSigned = array<i32: 1>} : %v0 : tensor<8xi32>
    %r = arith.addi %v0, %v0 : tensor<8xi32>
    """
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    ImportedKernel(elementwise(body, "i32", "i32"))[(1,)](x, out)
    assert "x" in capfd.readouterr().out and out.tolist() == (2 * x).tolist()
