"""Operations of TTIR against NumPy, interpreted and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from loom_core.base.knobs import knobs
from loom_core.importers.ttir.errors import UnsupportedOperation
from ltl.host_descriptor import TensorDescriptor
from ltl.imported import ImportedKernel
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


@pytest.mark.parametrize(("word", "reference"), [("umax", np.maximum), ("umin", np.minimum)])
def test_unsigned_atomics(word: str, reference: Reference) -> None:
    pointers = "tensor<8x!tt.ptr<i32>>"
    body = f"""
    %o = tt.make_range {{end = 8 : i32, start = 0 : i32}} : {T}
    %s = tt.splat %p : !tt.ptr<i32> -> {pointers}
    %a = tt.addptr %s, %o : {pointers}, {T}
    %t = tt.splat %q : !tt.ptr<i32> -> {pointers}
    %b = tt.addptr %t, %o : {pointers}, {T}
    %v = tt.load %b : {pointers}
    %old = tt.atomic_rmw {word}, acq_rel, gpu, %a, %v : ({pointers}, {T}) -> {T}
    tt.store %b, %old : {pointers}
    """
    memory, values = INTS.copy(), OTHERS.copy()
    run(module(body, "%p: !tt.ptr<i32>, %q: !tt.ptr<i32>"), memory, values)
    assert memory.tolist() == reference(unsigned(INTS), unsigned(OTHERS)).view(np.int32).tolist()
    assert values.tolist() == INTS.tolist()


def test_floats_in_memory_taken_as_integers() -> None:
    """What Triton makes of `atomic_max` of floats: a signed maximum of the bits of positive ones."""
    pointers, integers = "tensor<8x!tt.ptr<f32>>", "tensor<8x!tt.ptr<i32>>"
    body = f"""
    %i = tt.bitcast %a1 : {pointers} -> {integers}
    %bits = tt.bitcast %v0 : tensor<8xf32> -> {T}
    %r0 = tt.atomic_rmw max, relaxed, gpu, %i, %bits : ({integers}, {T}) -> {T}
    %r = tt.load %a1 : {pointers}
    """
    x, out = np.linspace(0, 3, 8, dtype=np.float32), np.full(8, 1.25, np.float32)
    run(elementwise(body, "f32", "f32"), x.copy(), out)
    assert out.tolist() == np.maximum(x, np.float32(1.25)).tolist()


def test_memory_of_floats_is_not_moved_as_integers() -> None:
    """A NaN would lose its bits."""
    body = """
    %i = tt.bitcast %a0 : tensor<8x!tt.ptr<f32>> -> tensor<8x!tt.ptr<i32>>
    %r = tt.load %i : tensor<8x!tt.ptr<i32>>
    """
    with pytest.raises(UnsupportedOperation, match="memory of f32 is accessed as i32"):
        ImportedKernel(elementwise(body, "f32", "i32"))


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def test_products_with_scales() -> None:
    """4-bit floats in pairs times 8-bit ones, each block of 32 with a scale."""
    rng = np.random.default_rng(5)
    packed = rng.integers(0, 256, (4, 32), np.uint8)
    scales = rng.integers(120, 134, (4, 2), np.uint8)
    b = (rng.integers(-8, 9, (64, 8)) / 2).astype(ml_dtypes.float8_e4m3fn)
    out = np.zeros((4, 8), np.float32)

    def load(name: str, rows: int, columns: int, type: str, result: str) -> str:
        tile = f"tensor<{rows}x{columns}x"
        return f"""
        %{name}r = tt.make_range {{end = {rows * columns} : i32, start = 0 : i32}} : tensor<{rows * columns}xi32>
        %{name}i = tt.reshape %{name}r : tensor<{rows * columns}xi32> -> {tile}i32>
        %{name}s = tt.splat %p{name} : !tt.ptr<{type}> -> {tile}!tt.ptr<{type}>>
        %{name}a = tt.addptr %{name}s, %{name}i : {tile}!tt.ptr<{type}>>, {tile}i32>
        %{result} = tt.load %{name}a : {tile}!tt.ptr<{type}>>
        """

    loads = load("a", 4, 32, "i8", "a") + load("s", 4, 2, "i8", "s") + load("b", 64, 8, "f8E4M3FN", "b")
    body = f"""{loads}{load("o", 4, 8, "f32", "c")}
    %d = tt.dot_scaled %a scale %s, %b, %c lhs = e2m1 rhs = e4m3 {{fastMath = false}} : tensor<4x32xi8>, tensor<4x2xi8> * tensor<64x8xf8E4M3FN> -> tensor<4x8xf32>
    tt.store %oa, %d : tensor<4x8x!tt.ptr<f32>>
    """  # noqa: E501
    parameters = "%pa: !tt.ptr<i8>, %ps: !tt.ptr<i8>, %pb: !tt.ptr<f8E4M3FN>, %po: !tt.ptr<f32>"
    run(module(body, parameters), packed, scales, b, out)
    a = np.stack([E2M1[packed & 15], E2M1[packed >> 4]], -1).reshape(4, 64)
    a *= np.repeat(2.0 ** (scales.astype(float) - 127), 32, axis=1)
    assert np.array_equal(out, (a @ b.astype(float)).astype(np.float32))


def test_rows_of_a_descriptor() -> None:
    """Rows that a tile names, also ones outside: read as 0, not written."""
    desc = "!tt.tensordesc<1x8xsi32>"
    body = f"""
    %o = tt.make_range {{end = 8 : i32, start = 0 : i32}} : {T}
    %s = tt.splat %rows : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %a = tt.addptr %s, %o : tensor<8x!tt.ptr<i32>>, {T}
    %x = tt.load %a : tensor<8x!tt.ptr<i32>>
    %two = arith.constant 2 : i32
    %v = tt.descriptor_gather %from[%x, %two] : ({desc}, {T}, i32) -> tensor<8x8xi32>
    tt.descriptor_scatter %to[%x, %two], %v : {desc}, {T}, i32, tensor<8x8xi32>
    """
    source, target = np.arange(1, 101, dtype=np.int32).reshape(10, 10), np.zeros((10, 10), np.int32)
    rows = np.array([3, 0, 9, 10, -1, 5, 4, 8], np.int32)
    copy = target.copy()
    text = module(body, f"%rows: !tt.ptr<i32>, %from: {desc}, %to: {desc}")
    kernel = ImportedKernel(text)
    for interpret, out in ((True, target), (False, copy)):
        ends = [TensorDescriptor(array, (10, 10), (10, 1), (1, 8)) for array in (source, out)]
        with knobs.override(interpret=interpret):
            kernel[(1,)](rows, *ends)
        wanted = np.zeros_like(out)
        inside = rows[(rows >= 0) & (rows < 10)]
        wanted[inside, 2:] = source[inside, 2:]
        assert np.array_equal(out, wanted)


def test_block_pointers() -> None:
    """Of which Triton's passes leave nothing: a block that is moved on, checked in one dimension, padded with NaN."""
    body = """
    %one = arith.constant 1 : i64
    %n = arith.extsi %columns : i32 to i64
    %zero = arith.constant 0 : i32
    %four = arith.constant 4 : i32
    %rows = arith.constant 3 : i64
    %p = tt.make_tensor_ptr %x, [%rows, %n], [%n, %one], [%i, %zero] {order = array<i32: 1, 0>} : <tensor<2x4xf32>>
    %q = tt.advance %p, [%zero, %four] : <tensor<2x4xf32>>
    %v = tt.load %q {boundaryCheck = array<i32: 1>, padding = 2 : i32} : !tt.ptr<tensor<2x4xf32>>
    %r = tt.make_tensor_ptr %out, [%rows, %n], [%n, %one], [%i, %zero] {order = array<i32: 1, 0>} : <tensor<2x4xf32>>
    tt.store %r, %v {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<2x4xf32>>
    """
    x, out = np.arange(18, dtype=np.float32).reshape(3, 6), np.zeros((3, 6), np.float32)
    run(module(body, "%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %columns: i32, %i: i32"), x, out, 6, 1)
    wanted = np.zeros_like(out)
    wanted[1:, :4] = np.nan
    wanted[1:, :2] = x[1:, 4:]
    assert np.array_equal(out, wanted, equal_nan=True)


def test_precisions_by_name() -> None:
    x = np.random.default_rng(2).standard_normal((4, 4)).astype(np.float32)
    tile, pointers = "tensor<4x4xf32>", "tensor<4x4x!tt.ptr<f32>>"
    results = []
    for precision in ("ieee", "tf32", "bf16x6"):
        body = f"""
        %r = tt.make_range {{end = 16 : i32, start = 0 : i32}} : tensor<16xi32>
        %i = tt.reshape %r : tensor<16xi32> -> tensor<4x4xi32>
        %s = tt.splat %p : !tt.ptr<f32> -> {pointers}
        %a = tt.addptr %s, %i : {pointers}, tensor<4x4xi32>
        %v = tt.load %a : {pointers}
        %z = arith.constant dense<0.0> : {tile}
        %d = tt.dot %v, %v, %z, inputPrecision = {precision} : {tile} * {tile} -> {tile}
        tt.store %a, %d : {pointers}
        """
        out = x.copy()
        run(module(body, "%p: !tt.ptr<f32>"), out)
        results.append(np.abs(out - x.astype(float) @ x.astype(float)).max())
    ieee, tf32, split = results
    assert ieee < 1e-6 and split < 1e-6 < tf32 < 1e-2


WHILES = {
    "the condition hands a pointer on": """
    %r:2 = scf.while (%i = %zero) : (i32) -> (!tt.ptr<i32>, i32) {
      %c = arith.cmpi slt, %i, %n : i32
      %q = tt.addptr %p, %i : !tt.ptr<i32>, i32
      scf.condition(%c) %q, %i : !tt.ptr<i32>, i32
    } do {
    ^bb0(%q: !tt.ptr<i32>, %i: i32):
      tt.store %q, %i : !tt.ptr<i32>
      %j = arith.addi %i, %one : i32
      scf.yield %j : i32
    }
    tt.store %r#0, %n : !tt.ptr<i32>
    """,
    "the body hands a pointer back": """
    %r = scf.while (%i = %zero, %q = %p) : (i32, !tt.ptr<i32>) -> (i32) {
      %c = arith.cmpi slt, %i, %n : i32
      tt.store %q, %i : !tt.ptr<i32>
      scf.condition(%c) %i : i32
    } do {
    ^bb0(%i: i32):
      %j = arith.addi %i, %one : i32
      %q = tt.addptr %p, %j : !tt.ptr<i32>, i32
      scf.yield %j, %q : i32, !tt.ptr<i32>
    }
    """,
}


@pytest.mark.parametrize("name", WHILES)
def test_a_while_whose_parts_hand_on_different_values(name: str) -> None:
    constants = "%zero = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n"
    out = np.full(8, 9, np.int32)
    run(module(constants + WHILES[name], "%p: !tt.ptr<i32>, %n: i32"), out, 5)
    assert out.tolist() == [0, 1, 2, 3, 4, 5, 9, 9]
