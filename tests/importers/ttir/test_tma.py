"""Copies by tensor descriptors and their barriers in TTGIR, as Triton makes it for Hopper and Blackwell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loom_core.base.knobs import knobs
from loom_core.importers.ttir.errors import UnsupportedOperation
from ltl.host_descriptor import TensorDescriptor
from ltl.imported import ImportedKernel
from tests.importers.ttir.modules import module, run
from tests.importers.ttir.upstream import module_text

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")
pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
RNG = np.random.default_rng(11)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [ROWS, DEPTH])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [DEPTH, COLUMNS])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [ROWS, COLUMNS])
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for k in range(0, K, DEPTH):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(tl.float16))


@pytest.mark.parametrize(("capability", "instruction"), [(90, "warp_group_dot"), (100, "tc_gen5_mma")])
def test_a_pipelined_product_with_descriptors_in_memory(capability: int, instruction: str) -> None:
    """Three buffers, barriers with phases, asynchronous products, predicated copies that run ahead."""
    signature = {**dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16"), **dict.fromkeys("MNK", "i32")}
    constants = {"ROWS": 64, "COLUMNS": 32, "DEPTH": 32}
    text = module_text(product, signature, constants, stages=("ttir", "ttgir"), capability=capability)
    for name in ("tensormap_create", "wait_barrier", "async_tma_copy_global_to_local", instruction):
        assert f"ttng.{name}" in text
    m, n, k = 80, 48, 72
    a, b = (RNG.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float16)
    run(text, a, b, c, m, n, k, grid=(2, 2))
    assert np.array_equal(c, (a.astype(float) @ b.astype(float)).astype(np.float16))
    assert "gather" not in ImportedKernel(text).compile().manifest["commands"]


@triton.jit
def attention(q_at, k_at, v_at, out, S, scale, ROWS: tl.constexpr, COLUMNS: tl.constexpr, D: tl.constexpr):
    row, column, d = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS), tl.arange(0, D)
    q = tl.load(q_at + row[:, None] * D + d[None, :])
    total, sums = tl.zeros((ROWS, D), tl.float32), tl.zeros((ROWS,), tl.float32)
    largest = tl.full((ROWS,), -1e30, tl.float32)
    for s in range(0, S, COLUMNS):
        k = tl.load(k_at + (s + column)[None, :] * D + d[:, None])
        v = tl.load(v_at + (s + column)[:, None] * D + d[None, :])
        x = tl.dot(q, k) * scale
        new = tl.maximum(largest, tl.max(x, 1))
        p, factor = tl.exp2(x - new[:, None]), tl.exp2(largest - new)
        sums = sums * factor + tl.sum(p, 1)
        total = tl.dot(p.to(tl.float16), v, total * factor[:, None])
        largest = new
    tl.store(out + row[:, None] * D + d[None, :], (total / sums[:, None]).to(tl.float16))


def test_attention_of_three_generations() -> None:
    """Asynchronous copies, products of warps and of warp groups, tensor memory: all the bits of the source."""
    s, d = 128, 64
    q, k, v = (RNG.standard_normal((s, d)).astype(np.float16) for _ in range(3))
    signature = {**dict.fromkeys(("q_at", "k_at", "v_at", "out"), "*fp16"), "S": "i32", "scale": "fp32"}
    constants = {"ROWS": 64, "COLUMNS": 64, "D": d}
    results = []
    for capability, stages in ((90, ()), (80, ("ttir", "ttgir")), (90, ("ttir", "ttgir")), (100, ("ttir", "ttgir"))):
        text = module_text(attention, signature, constants, stages=stages, capability=capability)
        out = np.zeros((s, d), np.float16)
        with knobs.override(interpret=True):
            ImportedKernel(text)[(s // 64,)](q, k, v, out, s, 0.18)
        results.append(out.tobytes())
    assert len(set(results)) == 1
    scores = np.exp2(0.18 * (q.astype(float) @ k.astype(float).T))
    exact = scores @ v.astype(float) / scores.sum(1, keepdims=True)
    assert np.abs(np.frombuffer(results[0], np.float16).reshape(s, d) - exact).max() < 2e-3


@triton.jit
def picked_rows(source, rows, target):
    row = tl.load(rows + tl.arange(0, 32))
    values = source.gather(row, 0)
    target.scatter(values, row, 0)


@triton.jit
def added(source, target):
    target.atomic_add([0, 0], source.load([0, 0]))


def host(array: Any, block: tuple[int, int]) -> list[Any]:
    """A descriptor as Triton's TTGIR takes it: itself, its sizes, its steps."""
    columns = array.shape[1]
    return [TensorDescriptor(array, array.shape, (columns, 1), block), *array.shape, columns, 1]


def test_rows_that_a_tile_names() -> None:
    signature = {"source": "tensordesc<fp16[1, 64]>", "rows": "*i32", "target": "tensordesc<fp16[1, 64]>"}
    text = module_text(picked_rows, signature, {}, stages=("ttir", "ttgir"), capability=100)
    assert "async_tma_gather" in text and "async_tma_scatter" in text
    x = RNG.integers(-3, 4, (40, 70)).astype(np.float16)
    rows, out = (RNG.permutation(44)[:32] - 2).astype(np.int32), np.zeros_like(x)
    ImportedKernel(text)[(1,)](*host(x, (1, 64)), rows, *host(out, (1, 64)))
    wanted = np.zeros_like(x)
    inside = rows[(rows >= 0) & (rows < 40)]
    wanted[inside, :64] = x[inside, :64]
    assert np.array_equal(out, wanted)


def test_a_block_added_to_memory() -> None:
    block = "tensordesc<fp16[32, 64]>"
    text = module_text(added, {"source": block, "target": block}, {}, stages=("ttir", "ttgir"))
    assert "async_tma_reduce" in text
    x, out = RNG.integers(-3, 4, (20, 70)).astype(np.float16), np.ones((20, 70), np.float16)
    ImportedKernel(text)[(1,)](*host(x, (32, 64)), *host(out, (32, 64)))
    wanted = np.ones_like(out)
    wanted[:, :64] += x[:, :64]
    assert np.array_equal(out, wanted)


ALIASES = "#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"
ALLOCATE = "%s{} = ttg.global_scratch_alloc {{alignment = 128 : i32, nbytes = 128 : i32}} : !tt.ptr<i8>"
CREATE = """ttng.tensormap_create %s, %p, [%c32, %c16], [%n, %n], [%bytes], [%one, %{step}] \
{{elem_type = 7 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32}} \
: (!tt.ptr<i8>, !tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()"""
TAKE = "%d = ttng.reinterpret_tensor_descriptor %s : !tt.ptr<i8> to !tt.tensordesc<16x{columns}xf32, #shared>"
HEAD = """%c32 = arith.constant 32 : i32
%c16 = arith.constant 16 : i32
%one = arith.constant 1 : i32
%bytes = arith.constant 128 : i64
%true = arith.constant true
"""
WRITTEN, TAKEN = CREATE.format(step="one"), TAKE.format(columns=32)
OWN = ALLOCATE.format("")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (f"scf.if %true {{\n{OWN}\n}}", "outside of loops, branches"),
        (f"{OWN}\nscf.if %true {{\n{WRITTEN}\n}}", "written once, outside of loops"),
        (f"{OWN}\n{WRITTEN}\n{WRITTEN}", "written once"),
        (f"{OWN}\n{TAKEN}", "no descriptor was written there before"),
        (f"{OWN}\n{WRITTEN}\n{TAKE.format(columns=64)}", r"is taken as !tt.tensordesc<16x64xf32>"),
        (f"{OWN}\n{CREATE.format(step='c16')}", "do not lie beside each other"),
        (WRITTEN.replace("%s", "%p"), "only known in own memory"),
    ],
)
def test_descriptors_that_could_change_are_refused(lines: str, reason: str) -> None:
    with pytest.raises(UnsupportedOperation, match=reason):
        ImportedKernel(ALIASES + module(HEAD + lines, "%p: !tt.ptr<f32>, %n: i32"))
