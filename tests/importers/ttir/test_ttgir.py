"""TTGIR: layouts mean nothing, shared memory and copies have a sequential meaning, all else is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from loom_core.importers.ttir.errors import TritonIrError, UnsupportedOperation, UnsupportedType
from loom_core.tools.refusals import read_refusals
from loom_core.tools.replay import find_folders, replay
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import CORPUS, module, run

FOLDERS = find_folders([CORPUS / "features", CORPUS / "inductor"])
REFUSED = read_refusals(CORPUS / "refusals_ttgir.txt")
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
    assert result.verdict == "passed" or result.code == REFUSED.get(folder.name), result.text + result.details


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
        ("ttng.wait_barrier %i0 : i32", "NVIDIA"),
        ("ttg.warp_specialize(%i0) : (i32) -> ()", "different code"),
        ("amdg.buffer_load %i0 : i32", "AMD"),
        ("%z = ttg.global_scratch_alloc {nbytes = 8 : i32} : !tt.ptr<i8>", "written? to memory|writes to memory"),
        ("%z = ttg.local_gather %i0 : i32", "copies and layouts"),
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
    assert line.replace("%z = ", "").split("(")[0].split()[0] in found.message
    assert found.hint


def test_layouts_that_are_not_known_are_refused() -> None:
    text = "#t = #ttng.tensor_memory_encoding<blockM = 128>\n" + module("%a = tt.nothing : tensor<8xf32, #t>")
    with pytest.raises(UnsupportedType, match="tensor_memory_encoding"):
        ImportedKernel(text)
    with pytest.raises(TritonIrError, match="layout #absent is not defined"):
        ImportedKernel(module("%a = tt.nothing : tensor<8xf32, #absent>"))
