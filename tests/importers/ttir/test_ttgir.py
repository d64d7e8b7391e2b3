"""TTGIR: layouts mean nothing, shared memory and copies have a sequential meaning, all else is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from loom_core.importers.ttir.errors import TritonIrError, UnsupportedOperation, UnsupportedType
from loom_core.tools.replay import find_folders, replay
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import CORPUS, module, run

FOLDERS = find_folders([CORPUS / "features", CORPUS / "inductor"])
ALIASES = """#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
"""
TILE, POINTERS = "tensor<8xf32, #blocked>", "tensor<8x!tt.ptr<f32>, #blocked>"
BUFFERS, BUFFER = "!ttg.memdesc<2x8xf32, #shared, #smem, mutable>", "!ttg.memdesc<8xf32, #shared, #smem, mutable>"
ADDRESSES = f"""
%o = tt.make_range {{end = 8 : i32, start = 0 : i32}} : tensor<8xi32, #blocked>
%xs = tt.splat %x : !tt.ptr<f32> -> {POINTERS}
%xp = tt.addptr %xs, %o : {POINTERS}, tensor<8xi32, #blocked>
%ys = tt.splat %y : !tt.ptr<f32> -> {POINTERS}
%yp = tt.addptr %ys, %o : {POINTERS}, tensor<8xi32, #blocked>
%i0 = arith.constant 0 : i32
%i1 = arith.constant 1 : i32
"""


def kernel(body: str) -> str:
    """A module in which `%xp` and `%yp` point to 8 elements of `%x` and `%y`."""
    return ALIASES + module(ADDRESSES + body, "%x: !tt.ptr<f32>, %y: !tt.ptr<f32>")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_recorded_launch_by_the_interpreter(folder: Path) -> None:
    result = replay(folder, form="ttgir", interpret=True)
    assert result.verdict == "passed", result.text + result.details


@pytest.mark.parametrize("name", ["feat_dot_bf16_acc__00", "mm_bf16__00", "rope__00", "red_argmin_outer__00"])
def test_recorded_launch_compiled(name: str) -> None:
    """Shared memory of several buffers, copies that run ahead, conversions of layouts."""
    (folder,) = (folder for folder in FOLDERS if folder.name == name)
    result = replay(folder, form="ttgir")
    assert result.verdict == "passed", result.text + result.details


COPIES = f"""
%all = ttg.local_alloc : () -> {BUFFERS}
%b0 = ttg.memdesc_index %all[%i0] : {BUFFERS} -> {BUFFER}
%b1 = ttg.memdesc_index %all[%i1] : {BUFFERS} -> {BUFFER}
%four = arith.constant dense<4> : tensor<8xi32, #blocked>
%low = arith.cmpi slt, %o, %four : tensor<8xi32, #blocked>
%nine = arith.constant dense<9.0> : {TILE}
%c0 = ttg.async_copy_global_to_local %xp, %b0 : {POINTERS} -> <8xf32, #shared, #smem, mutable>
%g0 = ttg.async_commit_group tokens %c0
%c1 = ttg.async_copy_global_to_local %xp, %b1 mask %low other %nine : {POINTERS} -> <8xf32, #shared, #smem, mutable>
%g1 = ttg.async_commit_group tokens %c1
%w = ttg.async_wait %g0, %g1 {{num = 0 : i32}}
%v0 = ttg.local_load %b0 token %w : {BUFFER} -> {TILE}
%v1 = ttg.local_load %b1 token %w : {BUFFER} -> {TILE}
ttg.local_dealloc %all : {BUFFERS}
%s = arith.addf %v0, %v1 : {TILE}
%c = ttg.convert_layout %s : {TILE} -> tensor<8xf32, #ttg.slice<{{dim = 0, parent = #blocked}}>>
tt.store %yp, %c : {POINTERS}
"""


def test_copies_and_buffers() -> None:
    x, y = np.arange(1, 9, dtype=np.float32), np.zeros(8, np.float32)
    run(kernel(COPIES), x, y)
    assert y.tolist() == (x + np.where(np.arange(8) < 4, x, 9)).tolist()


def test_stores_and_transposed_loads() -> None:
    memory = "!ttg.memdesc<2x4xf32, #shared, #smem, mutable>"
    turned = "!ttg.memdesc<4x2xf32, #shared, #smem, mutable>"
    body = f"""
    %v = tt.load %xp : {POINTERS}
    %m = tt.reshape %v : {TILE} -> tensor<2x4xf32, #blocked>
    %b = ttg.local_alloc : () -> {memory}
    ttg.local_store %m, %b : tensor<2x4xf32, #blocked> -> {memory}
    %t = ttg.memdesc_trans %b {{order = array<i32: 1, 0>}} : {memory} -> {turned}
    %r = ttg.local_load %t : {turned} -> tensor<4x2xf32, #blocked>
    %f = tt.reshape %r : tensor<4x2xf32, #blocked> -> {TILE}
    tt.store %yp, %f : {POINTERS}
    """
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    run(kernel(body), x, y)
    assert y.tolist() == x.reshape(2, 4).T.reshape(-1).tolist()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("ttng.arrive_barrier %i0, 1 : i32", "warps that run different code"),
        ("ttg.warp_specialize(%i0) : (i32) -> ()", "different code"),
        ("ttng.tc_gen5_mma_scaled %i0, %i0, %i0, %i0, %i0 : i32", "tensor memory"),
        ("amdg.buffer_load_to_local %i0 : i32", "AMD"),
        ("ttng.unheard %i0 : i32", "NVIDIA"),
        ("ttg.unheard %i0 : i32", "copies and layouts"),
        ('%z = tt.elementwise_inline_asm "nop" {constraints = "=r,r"} %i0 : i32 -> i32', "code of a GPU"),
        ("%z = ttg.local_alloc {unheard} : () -> " + BUFFERS, "does not know its attribute unheard"),
    ],
)
def test_what_has_no_sequential_meaning_is_refused(line: str, reason: str) -> None:
    """Report P40: the operation, its line and the reason."""
    text = kernel(line)
    number = text.split("\n").index(line) + 1
    with pytest.raises(UnsupportedOperation, match=reason) as caught:
        ImportedKernel(text, "kernel.ttgir")
    found = caught.value.diagnostics[0]
    assert (found.location.file, found.location.line) == ("kernel.ttgir", number)
    assert line.removeprefix("%z = ").split("(")[0].split()[0] in found.message
    assert found.hint


def test_layouts_that_are_not_known_are_refused() -> None:
    text = "#t = #ttng.tensor_memory_scales_encoding<>\n" + module("%a = tt.nothing : tensor<8xf32, #t>")
    with pytest.raises(UnsupportedType, match="tensor_memory_scales_encoding"):
        ImportedKernel(text)
    with pytest.raises(TritonIrError, match="layout #absent is not defined"):
        ImportedKernel(module("%a = tt.nothing : tensor<8xf32, #absent>"))


@pytest.mark.parametrize(
    "layout",
    [
        "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>",
        "#ttg.slice<{dim = 1, parent = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1]}>}>",
        "#ttg.slice<{dim = 0, parent = #ttg.dot_op<{opIdx = 1, parent = #blocked, kWidth = 2}>}>",
        "#ttg.slice<{dim = 0, parent = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8]}>}>",
        "#ttg.slice<{dim = 0, parent = #ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [2, 2]}>}>",
        "#ttg.linear<{register = [[1]], lane = [[2], [4]], warp = [], block = []}>",
    ],
)
def test_layouts_of_registers_mean_nothing(layout: str) -> None:
    body = f"""
    %v = tt.load %xp : {POINTERS}
    %c = ttg.convert_layout %v : {TILE} -> tensor<8xf32, {layout}>
    %d = arith.addf %c, %c : tensor<8xf32, {layout}>
    %e = ttg.convert_layout %d : tensor<8xf32, {layout}> -> {TILE}
    tt.store %yp, %e : {POINTERS}
    """
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    kernel_ = ImportedKernel(kernel(body))
    assert [op.name for op in kernel_.function.walk() if op.name in ("load", "add", "store", "cast", "gather")] == [
        "load", "add", "store",
    ]  # fmt: skip
    run(kernel(body), x, y)
    assert y.tolist() == (2 * x).tolist()


@pytest.mark.parametrize(
    "layout",
    [
        "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>",
        "#ttg.padded_shared<[128:+4] {order = [1, 0], shape = [2, 4]}>",
        "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 0]]}, alignment = 16>",
        "#ttg.amd_rotating_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>",
    ],
)
def test_parts_and_shapes_of_shared_memory(layout: str) -> None:
    """Under any layout of it: a part, another shape, elements that a tile names."""
    integers, floats = "tensor<2x4xi32, #blocked>", "tensor<2x4xf32, #blocked>"

    def memory(shape: str) -> str:
        return f"!ttg.memdesc<{shape}xf32, {layout}, #smem, mutable>"

    body = f"""
    %v = tt.load %xp : {POINTERS}
    %m = tt.reshape %v : {TILE} -> tensor<2x4xf32, #blocked>
    %b = ttg.local_alloc %m : (tensor<2x4xf32, #blocked>) -> {memory("2x4")}
    %p = ttg.memdesc_subslice %b[0, 2] : {memory("2x4")} -> {memory("2x2")}
    %n = tt.reshape %o : tensor<8xi32, #blocked> -> tensor<2x4xi32, #blocked>
    %four = arith.constant dense<3> : tensor<2x4xi32, #blocked>
    %back = arith.subi %four, %n : tensor<2x4xi32, #blocked>
    %mask = arith.andi %back, %four : tensor<2x4xi32, #blocked>
    %mask2 = arith.andi %n, %four : {integers}
    %g = ttg.local_gather %b[%mask] {{axis = 1 : i32}} : {memory("2x4")}, {integers} -> {floats}
    ttg.local_scatter %g, %b[%mask2] {{axis = 1 : i32}} : {floats}, {integers}, {memory("2x4")}
    %a = ttg.local_load %p : {memory("2x2")} -> tensor<2x2xf32, #blocked>
    %s = "tt.reduce"(%a) <{{axis = 1 : i32}}> ({{
    ^bb0(%q: f32, %w: f32):
      %z = arith.mulf %q, %w : f32
      tt.reduce.return %z : f32
    }}) : (tensor<2x2xf32, #blocked>) -> tensor<2xf32, #blocked>
    %f = ttg.memdesc_reshape %b : {memory("2x4")} -> {memory("8")}
    %t = ttg.local_load %f : {memory("8")} -> {TILE}
    %h = ttg.local_alloc %s : (tensor<2xf32, #blocked>) -> {memory("2")}
    %one = arith.constant dense<1> : tensor<8xi32, #blocked>
    %low = arith.andi %o, %one : tensor<8xi32, #blocked>
    %u = ttg.local_gather %h[%low] {{axis = 0 : i32}} : {memory("2")}, tensor<8xi32, #blocked> -> {TILE}
    %r = arith.addf %t, %u : {TILE}
    tt.store %yp, %r : {POINTERS}
    """
    x, y = np.arange(1, 9, dtype=np.float32), np.zeros(8, np.float32)
    run(kernel(body), x, y)
    turned = x.reshape(2, 4)[:, ::-1]
    products = turned[:, 2] * turned[:, 3]
    assert y.tolist() == (turned.reshape(-1) + np.tile(products, 4)).tolist()


def test_shared_memory_taken_as_another_type_is_refused() -> None:
    line = f"%z = ttg.memdesc_reinterpret %b : {BUFFER} -> !ttg.memdesc<8xi32, #shared, #smem, mutable>"
    with pytest.raises(UnsupportedOperation, match=r"f32, shape .* is taken as i32"):
        ImportedKernel(kernel(f"%b = ttg.local_alloc : () -> {BUFFER}\n{line}"))


def test_accesses_of_amd_gpus() -> None:
    """One pointer and a tile of offsets, as Triton writes it for gfx942."""
    body = f"""
    %five = arith.constant dense<5> : tensor<8xi32, #blocked>
    %m = arith.cmpi slt, %o, %five : tensor<8xi32, #blocked>
    %one = arith.constant dense<1.0> : {TILE}
    %a = amdg.buffer_load %x[%o], %m, %one : !tt.ptr<f32> -> {TILE}
    %b = amdg.buffer_load %y[%o] {{amd.pipeliner_part = "prologue"}} : !tt.ptr<f32> -> {TILE}
    rocdl.s.setprio 1
    %c = arith.addf %a, %b : {TILE}
    %d = amdg.in_thread_transpose %c : {TILE} -> {TILE}
    amdg.buffer_store %d, %x[%o], %m : !tt.ptr<f32> -> {TILE}
    rocdl.sched.barrier none
    %e = amdg.buffer_atomic_rmw fadd, acq_rel, gpu, %d, %y[%o], %m : !tt.ptr<f32> -> {TILE}
    """
    x, y = np.arange(8, dtype=np.float32), np.full(8, 10, np.float32)
    run(kernel(body), x, y)
    assert x.tolist() == [10, 11, 12, 13, 14, 5, 6, 7]
    assert y.tolist() == [20, 21, 22, 23, 24, 10, 10, 10]
