"""Kernels, IR, objects and traces as a REPL and a notebook show them."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

import numpy as np
import pytest

import loom
import loom.triton.language as ltl
from loom.experimental import palladium as lpl
from loom_sim.profile_view import coverage, tick_step
from tests.displays.markup import parsed, text_of
from tests.test_layering import executed_on_import, imported_modules, module_name, python_files, read


@ltl.jit
def scale(x, y, n, factor, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(y + at, ltl.exp(ltl.load(x + at, mask=at < n) * factor), mask=at < n)


@pytest.fixture(scope="module")
def arrays() -> tuple[Any, ...]:
    return np.zeros(5000, np.float32), np.zeros(5000, np.float32)


@pytest.fixture(scope="module")
def compiled(arrays: tuple[Any, ...]) -> loom.LoomObject:
    return scale.compile(*arrays, 5000, 0.5, BLOCK=256)


@pytest.fixture(scope="module")
def trace(arrays: tuple[Any, ...]) -> Any:
    return scale.trace(*arrays, 5000, 0.5, BLOCK=256, grid=(20,))


def test_a_kernel(arrays: tuple[Any, ...]) -> None:
    @ltl.jit
    def fresh(x, BLOCK: ltl.constexpr):  # type: ignore[no-untyped-def]
        ltl.store(x + ltl.arange(0, BLOCK), 1)

    line = fresh.traced.source.first_line
    assert repr(fresh) == f"<kernel fresh(x, BLOCK: constexpr) at test_displays.py:{line}>"
    assert "not compiled yet" in text_of(parsed(fresh._repr_html_()))
    fresh[(1,)](arrays[0], BLOCK=8)
    fresh[(1,)](np.zeros(8, np.int32), BLOCK=8)
    assert repr(fresh).endswith(", 2 variants>")
    rows = [[text_of(cell) for cell in row.iter("td")] for row in parsed(fresh._repr_html_()).iter("tr")][1:]
    assert [row[:3] for row in rows] == [["*f32", "8", "l1"], ["*i32", "8", "l1"]]


def test_a_tuned_kernel() -> None:
    tuned = ltl.autotune([ltl.Config({"BLOCK": 8})], key=[])(scale)
    assert repr(tuned) == f"<tuned {scale!r}>" and tuned._repr_html_() == scale._repr_html_()


def test_a_palladium_kernel() -> None:
    kernel = lpl.kernel(lambda x_ref, o_ref: o_ref.__setitem__(..., -x_ref[...]), out_shape=np.zeros(8, np.float32))
    assert repr(kernel).startswith("<kernel kernel(x_ref, o_ref) at test_displays.py:")
    kernel(np.zeros(8, np.float32))
    assert repr(kernel).endswith(", 1 variant>")
    assert "f32[8]" in text_of(parsed(kernel._repr_html_()))


def test_ir(arrays: tuple[Any, ...]) -> None:
    function = scale.lower(*arrays, 5000, 0.5, BLOCK=256)
    assert repr(function).startswith("<func @scale(%x: ptr<f32>, %y: ptr<f32>, %n: i32, %factor: f32), ")
    tree = parsed(function._repr_html_())
    (shown,) = tree.iter("pre")
    assert text_of(shown) == str(function), "colours change no character"
    kinds = {kind: {text_of(span) for span in shown.iter("span") if span.get("class") == kind} for kind in
             ("name", "word", "type", "note")}  # fmt: skip
    assert "%factor" in kinds["name"] and "@scale" in kinds["name"]
    assert {"func", "program_id", "exp", "store", "return"} <= kinds["word"]
    assert {"ptr<f32>", "tile<256xf32>", "i32"} <= kinds["type"]
    assert '"lt"' in kinds["note"]


def test_an_object(compiled: loom.LoomObject) -> None:
    shown = "<object scale(x: *f32, y: *f32, n: i32, factor: f32) for l1: "
    assert repr(compiled).startswith(shown)
    text = text_of(parsed(compiled._repr_html_()))
    for part in ("for machine l1", "in register 3", "written", "DMA0", "SCE", "windows in SRAM", "sections: commands"):
        assert part in text


@pytest.mark.parametrize(
    "windows",
    [[{"name": "<script>", "offset": 0, "bytes": 64, "slots": 3}], [{"name": "a"}], [{"name": "a", "offset": -1,
     "bytes": "x"}], ["<b>"], [{"name": 1, "offset": 0, "bytes": 0}] * 40],
)  # fmt: skip
def test_an_object_may_hold_anything(compiled: loom.LoomObject, windows: Any) -> None:
    manifest = {"kernel": "<script>alert(1)</script>", "windows": windows}
    commands = np.full(4, 2**64 - 1, np.uint64)
    for changed in (
        dataclasses.replace(compiled, manifest=manifest),
        dataclasses.replace(compiled, manifest=manifest, commands=commands),
    ):
        shown = changed._repr_html_()
        parsed(shown)
        assert "<script" not in shown


def test_a_trace(trace: Any) -> None:
    assert repr(trace).startswith("<Trace on l1: ")
    assert repr(trace.profile).startswith(f"<Profile of scale on l1: {trace.cycles:,} cycles; bound by ")
    tree = parsed(trace._repr_html_())
    text = text_of(tree)
    assert f"scale {trace.cycles:,} cycles" in text and trace.profile.verdict.text in text
    queues = [name for name, use in trace.queues.items() if use.commands]
    rows = [text_of(row) for row in tree.iter("tr")]
    assert all(any(row.startswith(name) for row in rows) for name in queues)
    assert rows_drawn(tree) == [name for name in queues if name != "ACP"] * trace.cores
    assert "test_displays.py:" in text


def traced_on(cores: int, arrays: tuple[Any, ...]) -> Any:
    with loom.cores(cores):
        return scale.trace(*arrays, 5000, 0.5, BLOCK=256, grid=(20,))


def rows_drawn(tree: Any) -> list[str]:
    """Labels of the rows of a timeline."""
    return [text_of(next(group.iter("text"))) for group in tree.iter("g") if group.find("title") is not None]


def test_a_trace_of_several_cores(arrays: tuple[Any, ...]) -> None:
    two, one = traced_on(2, arrays), traced_on(1, arrays)
    assert two.cores == 2
    tree = parsed(two._repr_html_())
    assert len(rows_drawn(tree)) == 2 * len(rows_drawn(parsed(one._repr_html_())))
    assert "on 2 cores of l1" in text_of(tree) and "core 1" in text_of(tree)
    shares = [text_of(row.findall("td")[3]) for row in tree.iter("tr") if row.findall("td")][
        : len(rows_drawn(tree)) // 2
    ]
    assert (
        shares == [f"{two.busy_fraction(name):.1%}" for name, use in two.queues.items() if use.commands][: len(shares)]
    )


def test_a_long_trace_says_what_its_picture_covers(arrays: tuple[Any, ...]) -> None:
    trace = traced_on(1, arrays)
    short = dataclasses.replace(trace, events=trace.events[:7])
    assert f"the first 7 of {trace.events_total} commands" in text_of(parsed(short._repr_html_()))
    empty = dataclasses.replace(trace, events=trace.events[:0], events_total=0)
    assert "no engine was given a command" in text_of(parsed(empty._repr_html_()))


def test_traces_of_a_block(arrays: tuple[Any, ...]) -> None:
    with loom.profile() as traces:
        scale[(20,)](*arrays, 5000, 0.5, BLOCK=256)
        scale[(10,)](*arrays, 2560, 0.5, BLOCK=256)
    assert text_of(parsed(traces._repr_html_())).count("cycles (") == 2


def test_a_picture_stays_small_however_long_the_run() -> None:
    x, y = (np.zeros(2_000_000, np.float32) for _ in range(2))
    long = scale.trace(x, y, x.size, 0.5, BLOCK=256, grid=(7813,))
    assert len(long.events) == 10_000 * long.cores
    assert len(long._repr_html_()) < 60_000


def test_coverage_is_the_share_of_each_piece() -> None:
    rng = np.random.default_rng(0)
    for end, columns in ((1000, 100), (997, 13), (40, 40)):
        borders = np.sort(rng.choice(end + 1, 2 * min(end // 10, 30), replace=False))
        starts, ends = borders[::2], borders[1::2]
        covered = np.zeros(end * columns)  # each cycle in as many parts as there are pieces
        for start, stop in zip(starts, ends, strict=True):
            covered[start * columns : stop * columns] = 1
        assert np.allclose(coverage(starts, ends, end, columns), covered.reshape(columns, end).mean(1))


def test_ticks_are_round_and_few() -> None:
    assert [tick_step(end) for end in (1, 8, 9, 80, 1105, 1_004_312)] == [1, 1, 2, 10, 200, 200_000]


def test_html_is_imported_when_something_is_shown() -> None:
    views = ("loom_core.base.html", "loom_core.kernel_view", "loom_core.objfile.view", "loom_core.ir.highlight",
             "loom_sim.profile_view")  # fmt: skip
    for path in python_files():
        name = module_name(path)
        text = path.read_text(encoding="utf-8")
        if name in views or name == "loom_core.tools.visualize" or not any(view in text for view in views):
            continue
        tree = ast.Module(list(executed_on_import(read(path))), [])
        imported = {found for _, found in imported_modules(tree, name, path.name == "__init__.py")}
        assert not imported & set(views), name
