"""Windows, copies and tokens: the same bits by the interpreter and compiled, and what NumPy says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ltl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs
from loom_core.isa.describe import disassemble

PAGE = Path(__file__).resolve().parents[2] / "docs" / "language.md"


def both(kernel: ltl.JitFunction, *args: Any, grid: Any = (1,), out: int = 0, **kwargs: Any) -> Any:
    """Launch by the interpreter and compiled; both leave the same in argument `out`, which this gives."""
    outs = []
    for interpret in (True, False):
        arrays = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        with knobs.override(interpret=interpret):
            kernel[grid](*arrays, **kwargs)
        outs.append(arrays[out])
    assert outs[0].tobytes() == outs[1].tobytes(), f"interpreted {outs[0]}, compiled {outs[1]}"
    return outs[1]


# ---- the documented examples -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The kernels of the page's section, from its text."""
    section = PAGE.read_text(encoding="utf-8").split("## Windows, copies and engines")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    text = "\n\n".join(block.split("\nblur[")[0] for block in blocks)
    file = tmp_path_factory.mktemp("examples") / "windows.py"
    file.write_text(text)
    scope: dict[str, Any] = {"__name__": "windows"}
    exec(compile(text, str(file), "exec"), scope)
    return scope


@pytest.mark.parametrize("n", [1, 255, 256, 1000])
def test_stencil_of_the_documents(examples: dict[str, Any], n: int) -> None:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    framed = np.concatenate([np.zeros(1, np.float32), x, np.zeros(1, np.float32)])
    expected = (framed[:-2] + framed[1:-1] + framed[2:]) / np.float32(3)
    got = both(examples["blur"], x, np.zeros_like(x), n, grid=(ltl.cdiv(n, 256),), out=1, BLOCK=256)
    assert np.array_equal(got, expected)


def test_pipeline_of_the_documents(examples: dict[str, Any]) -> None:
    x = np.random.default_rng(3).integers(-9, 9, (7, 64)).astype(np.float32)
    assert both(examples["total"], x, np.zeros(1, np.float32), 7, out=1, BLOCK=64)[0] == x.sum()


# ---- windows ---------------------------------------------------------------------------------------------------------


@ltl.jit
def staged(y, x, rows, columns, M: ltl.constexpr, N: ltl.constexpr):
    """A block goes to a window by one command, is doubled there, and goes out by another, bounded on both ways."""
    source = ltl.make_tensor_descriptor(x, (rows, columns), (columns, 1), (M, N))
    target = ltl.make_tensor_descriptor(y, (rows, columns), (columns, 1), (M, N))
    at = (ltl.program_id(0) * M, ltl.program_id(1) * N)
    here = ltl.window((M, N), x.dtype.element_ty)
    ltl.copy(source.block(at), here).wait()
    value = ltl.load(here)
    ltl.store(here, value + value)
    ltl.copy(here, target.block(at)).wait()


@pytest.mark.parametrize("dtype", [np.float32, np.int8, ml_dtypes.bfloat16, np.int64])
def test_blocks_are_staged_in_windows(dtype: Any) -> None:
    x = (np.random.default_rng(4).standard_normal((7, 10)) * 20).astype(dtype)
    assert np.array_equal(both(staged, np.zeros_like(x), x, 7, 10, grid=(2, 3), M=4, N=4), x + x)


@ltl.jit
def unwritten(out, DTYPE: ltl.constexpr):
    ltl.store(out + ltl.arange(0, 4), ltl.load(ltl.window((4,), DTYPE)))


def test_windows_begin_as_poison() -> None:
    assert np.isnan(both(unwritten, np.zeros(4, np.float32), DTYPE=ltl.float32)).all()
    assert both(unwritten, np.zeros(4, np.int16), DTYPE=ltl.int16).tolist() == [-(1 << 15)] * 4
    assert both(unwritten, np.ones(4, bool), DTYPE=ltl.int1).tolist() == [False] * 4


@ltl.jit
def counted(out, x, n, BINS: ltl.constexpr, BLOCK: ltl.constexpr):
    """A histogram by atomics on a window, whose counts are then gathered in reverse."""
    counts = ltl.window((BINS,), ltl.int32)
    ltl.store(counts, ltl.zeros((BINS,), ltl.int32))
    for start in range(0, n, BLOCK):
        at = start + ltl.arange(0, BLOCK)
        ltl.atomic_add(counts.base + ltl.load(x + at, mask=at < n), 1, mask=at < n)
    bins = ltl.arange(0, BINS)
    backwards = ltl.load(x + bins) * 0 + (BINS - 1 - bins)
    ltl.store(out + bins, ltl.load(counts.base + backwards))


def test_windows_are_reached_by_index() -> None:
    x = np.random.default_rng(5).integers(0, 8, 50).astype(np.int32)
    got = both(counted, np.zeros(8, np.int32), x, 50, BINS=8, BLOCK=16)
    assert got.tolist() == np.bincount(x, minlength=8)[::-1].tolist()


@ltl.jit
def windows_in_loops(out, x, n, N: ltl.constexpr):
    """A window of the loop's body is a new one each time; one from outside keeps what is in it."""
    kept = ltl.window((N,), ltl.int32)
    ltl.store(kept, ltl.zeros((N,), ltl.int32))
    i = ltl.arange(0, N)
    for row in range(n):
        new = ltl.window((N,), ltl.int32)
        if row % 2 == 0:
            ltl.store(new, ltl.load(x + row * N + i))
        ltl.store(kept, ltl.load(kept) + ltl.load(new))
    ltl.store(out + i, ltl.load(kept))


def test_windows_in_loops() -> None:
    x = np.arange(20, dtype=np.int32).reshape(5, 4)
    least = 2 * np.int64(-(1 << 31))
    assert (
        both(windows_in_loops, np.zeros(4, np.int32), x, 5, N=4).tolist()
        == (x[::2].sum(0) + least).astype(np.int32).tolist()
    )


# ---- copies ----------------------------------------------------------------------------------------------------------


@ltl.jit
def shifted(x, n, BY: ltl.constexpr, N: ltl.constexpr):
    """Source and target overlap."""
    row = ltl.make_tensor_descriptor(x, (n,), (1,), (N,))
    ltl.copy(row.block((0,)), row.block((BY,))).wait()


@pytest.mark.parametrize("by", [1, -1, 3])
def test_overlapping_copies_read_first(by: int) -> None:
    x = np.arange(10, dtype=np.float32)
    expected = x.copy()
    source = np.arange(10)
    source = source[(source + by >= 0) & (source + by < 10) & (source < 16)]
    expected[source + by] = x[source]
    assert both(shifted, x, 10, BY=by, N=16).tolist() == expected.tolist()


@ltl.jit
def between(out, x, a, b, N: ltl.constexpr):
    """From array to array, from window to window, and through a pointer that a loop moved."""
    first, second = ltl.window((N, N), ltl.float32), ltl.window((N + 2, N + 2), ltl.float32)
    ltl.store(second, ltl.zeros((N + 2, N + 2), ltl.float32))
    moved = ltl.make_block_ptr(x + a, (N, N), (N, 1), (0, 0), (N, N), (1, 0))
    for _ in range(b):
        moved = ltl.advance(moved, (0, 1))
    ltl.copy(ltl.make_block_ptr(x + a, (N, N), (N, 1), (0, 0), (N, N), (1, 0)), first).wait()
    ltl.copy(first, second.block((1, 1), (N, N))).wait()
    ltl.copy(moved, second.block((2, 1), (N, N))).wait()
    side = N + 2
    rows, columns = ltl.arange(0, side)[:, None], ltl.arange(0, side)[None, :]
    ltl.store(out + rows * side + columns, ltl.load(second))
    ltl.copy(
        ltl.make_block_ptr(x, (N, N), (N, 1), (1, 1), (2, 2), (1, 0)),
        ltl.make_block_ptr(out, (side, side), (side, 1), (0, 0), (2, 2), (1, 0)),
    ).wait()


def test_copies_of_every_kind() -> None:
    n, a, b = 4, 3, 2
    x = np.arange(1, 40, dtype=np.float32)
    block = x[a : a + n * n].reshape(n, n)
    expected = np.zeros((n + 2, n + 2), np.float32)
    expected[1:5, 1:5] = block
    expected[2:6, 1 : 1 + n - b] = block[:, b:]
    expected[:2, :2] = x[: n * n].reshape(n, n)[1:3, 1:3]
    assert np.array_equal(both(between, np.zeros((n + 2, n + 2), np.float32), x, a, b, N=n), expected)


def test_a_copy_is_one_command() -> None:
    obj = staged.compile("*fp32", "*fp32", 7, 10, M=4, N=4)
    assert obj.manifest["commands"]["copy"] == 5, "two copies, the window's poison, a load and a store of the window"
    assert obj.manifest["commands"]["program"] == 1
    assert any(entry["name"] == "here_base" for entry in obj.manifest["windows"])


@ltl.jit
def on_a_queue(out, x, QUEUE: ltl.constexpr):
    place = ltl.window((8,), ltl.float32)
    ltl.copy(ltl.make_tensor_descriptor(x, (8,), (1,), (8,)).block((0,)), place, queue=QUEUE).wait()
    ltl.store(out + ltl.arange(0, 8), ltl.load(place))


@pytest.mark.parametrize("queue", [0, 3])
def test_a_copy_runs_on_the_queue_that_it_names(queue: int) -> None:
    x = np.arange(8, dtype=np.float32)
    assert np.array_equal(both(on_a_queue, np.zeros(8, np.float32), x, QUEUE=queue), x)
    lines = disassemble(on_a_queue.compile("*fp32", "*fp32", queue)).splitlines()
    assert [line.split("dma", 1)[1][0] for line in lines if "copy src=hbm2" in line] == [str(queue)]
    with pytest.raises(LoomError, match=r"LOOM-C108.*queue 4, and machine l1 has 4"):
        on_a_queue.compile("*fp32", "*fp32", 4)


@ltl.jit
def carried(out, x, n, N: ltl.constexpr):
    place = ltl.window((N,), ltl.float32)
    source = ltl.make_tensor_descriptor(x, (n * N,), (1,), (N,))
    token = ltl.copy(source.block((0,)), place)
    for row in range(1, n):
        if row % 2 == 1:
            token.wait()
            token = ltl.copy(source.block((row * N,)), place)
    token.wait()
    ltl.store(out + ltl.arange(0, N), ltl.load(place))


def test_tokens_are_carried() -> None:
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    assert both(carried, np.zeros(4, np.float32), x, 5, N=4).tolist() == x[3].tolist()


# ---- mistakes --------------------------------------------------------------------------------------------------------


def shapes_differ(x: Any) -> None:
    ltl.copy(ltl.window((4,), ltl.float32), ltl.window((8,), ltl.float32))


def dtypes_differ(x: Any) -> None:
    ltl.copy(ltl.window((4,), ltl.float32), ltl.window((4,), ltl.int32))


def descriptor(x: Any) -> None:
    ltl.copy(ltl.make_tensor_descriptor(x, (4,), (1,), (4,)), ltl.window((4,), ltl.float32))


def plain_pointer(x: Any) -> None:
    ltl.copy(x, ltl.window((4,), ltl.float32))


def no_dimension(x: Any) -> None:
    ltl.window((), ltl.float32)


def no_dtype(x: Any) -> None:
    ltl.window((4,), "floats")


def run_time_shape(x: Any) -> None:
    ltl.window((ltl.program_id(0),), ltl.float32)


def queue_of_no_command(x: Any) -> None:
    first = ltl.window((4,), ltl.float32)
    ltl.copy(first, first, queue=1)


def rank_of_block(x: Any) -> None:
    ltl.window((4, 4), ltl.float32).block((0, 0), (4,))


MISTAKES = {
    shapes_differ: "LOOM-F101", dtypes_differ: "LOOM-F102", descriptor: "LOOM-F105", plain_pointer: "LOOM-F105",
    no_dimension: "LOOM-F104", no_dtype: "LOOM-F102", run_time_shape: "LOOM-F011", rank_of_block: "LOOM-F104",
    queue_of_no_command: "LOOM-F114",
}  # fmt: skip


@pytest.mark.parametrize("function", MISTAKES, ids=lambda function: function.__name__)
def test_mistakes(function: Any) -> None:
    with pytest.raises(LoomError) as caught:
        ltl.jit(function).lower("*fp32")
    (diagnostic,) = caught.value.diagnostics
    lines, first = inspect.getsourcelines(function)
    assert diagnostic.code == MISTAKES[function] and diagnostic.hint
    assert first < diagnostic.location.line <= first + len(lines)


def test_what_is_outside_a_window_is_not_touched() -> None:
    @ltl.jit
    def kernel(out):
        place = ltl.window((4,), ltl.float32)
        ltl.store(out, ltl.load(place.base + (1 << 28)))

    for interpret, code in ((True, "LOOM-R210"), (False, "LOOM-S101")):
        with knobs.override(interpret=interpret), pytest.raises(LoomError, match=code):
            kernel[(1,)](np.zeros(1, np.float32))
