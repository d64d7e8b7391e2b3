"""`loom.testing.check_kernel`: finds seeded defects, shrinks them, and saves files that repeat them."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loom
import loom.triton.language as ltl
from loom import testing
from loom.experimental import palladium as lpl
from loom.testing import array, choice, like, number, output, size, stride, updated
from loom.testing.errors import BadDeclaration, KernelDiffers, ReferenceFails
from loom.testing.options import options
from loom.testing.reproduction import load_module

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "src"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's files go."""
    monkeypatch.setattr(options(), "folder", lambda: tmp_path / "repros")
    monkeypatch.setattr(options(), "saved", [])
    return tmp_path / "repros"


def wrong(kernel: Any, reference: Callable[..., Any], arguments: dict[str, Any], **more: Any) -> str:
    """What `check_kernel` says of a wrong kernel."""
    with pytest.raises(KernelDiffers) as caught:
        testing.check_kernel(kernel, reference, arguments, **more)
    return str(caught.value)


def run(arguments: list[str]) -> tuple[int, str]:
    """Python in a process of its own, elsewhere."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd="/", capture_output=True, text=True, check=False
    )
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def blocks(a: dict[str, Any]) -> tuple[int]:
    return (ltl.cdiv(a["n"], a["BLOCK"]),)


PLAIN = {"x": array("f32", "n"), "out": output("f32", "n"), "n": size("n"), "BLOCK": choice(4, 16)}


MATRIX = {
    "x": array("f32", "rows", "columns"), "out": output("f32", "rows", "columns"), "rows": size("rows"),
    "columns": size("columns"), "x_row": stride("x", 0), "x_column": stride("x", 1), "out_row": stride("out", 0),
    "BLOCK": lambda a: ltl.next_power_of_2(max(a["columns"], 1)),
}  # fmt: skip


# name: reference, arguments, more, what is said of the smallest launch
SEEDED: dict[str, tuple[Any, ...]] = {
    "no_mask": (lambda x: x * 2, PLAIN, {"grid": blocks}, ["LOOM-R210", "x = f32[1]\n", "n = 1\n"]),
    "no_mask_at_the_store": (lambda x: x + 1, PLAIN, {"grid": blocks}, ["LOOM-R210", "out = f32[1]\n", "n = 1\n"]),
    "wrong_stride": (
        lambda x: x, MATRIX, {"grid": lambda a: (a["rows"],)}, ["x = f32[1, 2], strides", "columns = 2\n"],
    ),
    "larger": (
        lambda x, y: np.where((x > y) | np.isnan(x), x, y), {**PLAIN, "y": array("f32", "n")}, {"grid": blocks},
        ["out[0] is 1.0, and nan is expected", "n = 1\n"],
    ),
    "reversed_in_place": (
        lambda x: x[::-1], {**PLAIN, "BLOCK": 2}, {"grid": 1, "in_place": [("x", "out")], "sizes": {"n": 16}},
        ["out[2] is 3.0, and 1.0 is expected", "out = f32[3], the same array as x\n", "n = 3\n"],
    ),
    "rounds_twice": (
        lambda x, y: x.astype(np.float32) * y.astype(np.float32),
        {"x": array("f16", "n"), "y": array("f16", "n"), "out": output(like("x"), "n"), "n": size("n"), "BLOCK": 8},
        {"grid": blocks}, ["n = 1\n", " is expected"],
    ),
}  # fmt: skip


class Searched:
    """The smallest wrong launch of each seeded defect: what is said of it, and its file."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "seeded_bugs.py"
        self.source.write_text((HERE / "seeded_bugs.py").read_text(encoding="utf-8"), encoding="utf-8")
        self.repros = folder / "repros"
        self.module = load_module(str(self.source), "seeded_bugs_in_a_file")
        self.said: dict[str, str] = {}
        self.paths: dict[str, Path] = {}

    def search(self, name: str) -> None:
        reference, arguments, more, _ = SEEDED[name]
        self.said[name] = wrong(getattr(self.module, name), reference, arguments, examples=40, **more)
        self.paths[name] = options().saved[-1]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searched]:
    with pytest.MonkeyPatch.context() as patch:
        found = Searched(tmp_path_factory.mktemp("seeded"))
        patch.setattr(options(), "folder", lambda: found.repros)
        patch.setattr(options(), "saved", [])
        for name in SEEDED:
            found.search(name)
        yield found


@pytest.mark.parametrize("name", SEEDED)
def test_a_seeded_defect_is_found_and_shrunk(name: str, searched: Searched) -> None:
    text, smallest = searched.said[name], SEEDED[name][-1]
    assert [part for part in smallest if part not in text] == [], text
    assert text.endswith(f"this launch alone: {sys.executable} {searched.paths[name]}")


RUN_ALL = """
import contextlib, io, pathlib, runpy, sys
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try: runpy.run_path(str(path))
        except SystemExit as left: code = left.code
    print(path.stem.rpartition("_")[0], code, printed.getvalue().splitlines()[0])
"""


def test_saved_files_fail_until_the_kernel_is_mended(searched: Searched) -> None:
    program = ["-c", RUN_ALL, str(searched.repros)]
    _, text = run(program)
    assert len(text.splitlines()) == len(SEEDED)
    for line in text.splitlines():
        name, code, first = line.split(" ", 2)
        fault = searched.said[name].partition(" is wrong: ")[2].splitlines()[0]
        assert (code, fault in first) == ("1", True), line
    source = searched.source.read_text()
    for before, after in searched.module.MENDED.values():
        assert before in source
        source = source.replace(before, after)
    searched.source.write_text(source)
    _, text = run(program)
    assert {line.split(" ", 1)[1] for line in text.splitlines()} == {"0 nothing is wrong"}, text


# ---- kernels that are right ------------------------------------------------------------------------------------------


@ltl.jit
def add(x, y, out, n, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    inside = at < n
    ltl.store(out + at, ltl.load(x + at, mask=inside) + ltl.load(y + at, mask=inside), mask=inside)


@ltl.jit
def copy(x, out, rows, columns, x_row, x_column, out_row, out_column, BLOCK: ltl.constexpr):
    row, column = ltl.program_id(0), ltl.arange(0, BLOCK)
    value = ltl.load(x + row * x_row + column * x_column, mask=column < columns)
    ltl.store(out + row * out_row + column * out_column, value, mask=column < columns)


@ltl.jit
def take(table, index, out, n, scale, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    value = ltl.load(table + ltl.load(index + at, mask=at < n, other=0), mask=at < n)
    ltl.store(out + at, value * scale, mask=at < n)


@ltl.jit
def accumulate(total, x, n, BLOCK: ltl.constexpr):
    at = ltl.arange(0, BLOCK)
    ltl.atomic_add(total, ltl.sum(ltl.load(x + at, mask=at < n, other=0), axis=0))


def sum_of_rows(x: Any) -> Any:
    """A Palladium kernel for arrays of any size."""

    @lpl.kernel(out_shape=lpl.ShapeDtypeStruct((x.shape[0],), np.int32))
    def run(x_ref, out_ref):
        out_ref[...] = lpl.sum(x_ref[...], axis=1)

    return run(x)


def into(total: Any, x: Any) -> None:
    total += x.sum()


ANY = ("f32", "bf16", "f16", "f64", "f8e5m2", "i32", "i8", "u16", "i64", "u64", "bool")


@pytest.mark.parametrize(
    ("kernel", "reference", "arguments", "more"),
    [
        (
            add, np.add, {"x": array(("f32", "i32", "f16"), "n"), "y": array(like("x"), "n"),
            "out": output(like("x"), "n"), "n": size("n"), "BLOCK": choice(4, 16)},
            {"grid": blocks, "in_place": [("x", "out"), ("y", "out")]},
        ),
        (
            copy, lambda x: x, {"x": array(ANY, "rows", "columns"), "out": output(like("x"), "rows", "columns"),
            "rows": size("rows"), "columns": size("columns"), "x_row": stride("x", 0), "x_column": stride("x", 1),
            "out_row": stride("out", 0), "out_column": stride("out", 1),
            "BLOCK": lambda a: ltl.next_power_of_2(max(a["columns"], 1))}, {"grid": lambda a: (a["rows"],)},
        ),
        (
            take, lambda table, index, scale: table[index] * np.float32(scale),
            {"table": array("f32", "m"), "index": array("i32", "n", low=0, high=lambda a: a["m"] - 1),
            "out": output("f32", "n"), "n": size("n"), "scale": number("f32"), "BLOCK": 8}, {"grid": blocks},
        ),
        (
            accumulate, into, {"total": updated("i32"), "x": array("i32", "n", low=-5, high=5), "n": size("n"),
            "BLOCK": 32}, {"grid": 1, "sizes": {"n": 32}},
        ),
        (
            sum_of_rows, lambda x: x.sum(axis=1, dtype=np.int32), {"x": array("i32", "m", "n", low=-9, high=9)},
            {"sizes": {"m": (1, 9), "n": (1, 40)}},
        ),
    ],
    ids=["add", "copy", "take", "accumulate", "sum_of_rows"],
)  # fmt: skip
def test_right_kernels(kernel: Any, reference: Any, arguments: dict[str, Any], more: dict[str, Any]) -> None:
    testing.check_kernel(kernel, reference, arguments, examples=30, **more)
    assert options().saved == []


def test_triton_kernels_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    from triton.runtime.driver import driver

    import loom.triton
    from tests.testing import triton_kernels

    before = driver._active
    loom.triton.install()
    try:
        arguments = {"x": array(("f32", "bf16"), "n"), "out": output(like("x"), "n"), "n": size("n"), "BLOCK": 16}
        testing.check_kernel(triton_kernels.double, lambda x: x + x, arguments, grid=blocks, examples=15)
        text = wrong(triton_kernels.double_without_mask, lambda x: x + x, arguments, grid=blocks, examples=15)
        driver.set_active(before)
        (path,) = options().saved
        with pytest.raises(SystemExit, match="1"):
            runpy.run_path(str(path))
    finally:
        driver.set_active(before)
    assert "LOOM-R210" in text and "tl.load(x + at)" in text


def test_palladium_kernels_name_what_differs() -> None:
    text = wrong(
        sum_of_rows, lambda x: x.sum(axis=1, dtype=np.int32) + (x[:, 0] == -9),
        {"x": array("i32", "m", "n", low=-9, high=9)}, sizes={"m": (1, 9), "n": (1, 40)},
    )  # fmt: skip
    assert "the result[0] is -9, and -8 is expected" in text
    assert "x = i32[1, 1]" in text
    (path,) = options().saved
    assert "sum_of_rows(x)" not in path.read_text() and "return kernel(x)" in path.read_text()
    with pytest.raises(SystemExit, match="1"):
        runpy.run_path(str(path))


# ---- what is asked wrongly -------------------------------------------------------------------------------------------


def test_a_reference_that_fails_is_named() -> None:
    def first(x: Any) -> Any:
        return x + x[0]

    with pytest.raises(ReferenceFails, match=r"IndexError.* for n = 0") as caught:
        testing.check_kernel(add, first, {**PLAIN, "y": array("f32", "n")}, grid=blocks)
    assert "sizes=dict(n=(1, 100))" in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "more", "problem"),
    [
        ({"s": stride("x", 0), "x": array("f32", "n")}, {}, "s speaks of the array x, which is not among"),
        ({"x": array(like("y"), "n")}, {}, "x speaks of the array y"),
        ({"x": array("f32", "n")}, {"in_place": [("x", "z")]}, "in_place names z, which is no array"),
        ({"x": array("f32", "n")}, {"sizes": {"m": 4}}, "no argument has the size m"),
        ({"out": output("f32", "n")}, {}, "the reference gives 2 arrays, and 1 are written: out"),
    ],
)  # fmt: skip
def test_wrong_declarations(arguments: dict[str, Any], more: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadDeclaration, match=re.escape(problem)):
        testing.check_kernel(add, lambda **_: (1, 2), arguments, grid=1, **more)


def test_unknown_element_types() -> None:
    with pytest.raises(TypeError, match="float31"):
        array("float31", "n")


# ---- the search ------------------------------------------------------------------------------------------------------


def test_the_same_launches_each_time() -> None:
    def launches(seed: int) -> list[Any]:
        found = []

        def kernel(x: Any, n: int) -> Any:
            found.append((x.shape, x.strides, x.tobytes(), n))
            return x

        testing.check_kernel(kernel, lambda x: x, {"x": array("f32", "n"), "n": size("n")}, examples=20, seed=seed)
        return found

    first = launches(3)
    assert len(first) >= 20
    assert launches(3) == first
    assert launches(4) != first


def test_what_launches_are_like() -> None:
    seen = []

    def kernel(x: Any, y: Any, n: int) -> Any:
        seen.append((x, y, n))
        return x

    arguments = {"x": array("f32", "m", "n"), "y": array("f32", "m", "n"), "n": size("n")}
    testing.check_kernel(kernel, lambda x: x, arguments, examples=300)
    values = np.concatenate([x.reshape(-1) for x, _, _ in seen])
    assert {0, 1, 2, 7, 16, 17} <= {n for _, _, n in seen}
    assert np.isnan(values).any() and np.isinf(values).any() and (np.signbit(values) & (values == 0)).any()
    assert ((values != 0) & (np.abs(values) < np.finfo(np.float32).tiny)).any()
    assert (np.abs(values) == np.finfo(np.float32).max).any()
    large = [(x, y) for x, y, _ in seen if min(x.shape) > 1]
    assert any(abs(x.strides[0]) < abs(x.strides[1]) for x, _ in large), "transposed"
    assert any(x.strides[1] > 4 for x, _ in large), "with steps"
    assert any(min(x.strides) < 0 for x, _ in large), "backwards"
    assert any(0 in x.strides for x, _ in large), "broadcast"
    assert any(x.ctypes.data % 16 for x, _ in large), "not aligned"
    assert any(x.ctypes.data == y.ctypes.data for x, y in large), "the same array"
    assert any(x.ctypes.data != y.ctypes.data and np.may_share_memory(x, y) for x, y in large), "overlapping"


def test_what_belongs_to_no_output_must_stay() -> None:
    def kernel(x: Any) -> Any:
        x[...] = 0
        return x

    assert "elements that belong to no output are written" in wrong(kernel, lambda x: x * 0, {"x": array("i32", "n")})


def test_a_kernel_without_a_name_gets_no_file() -> None:
    text = wrong(lambda x: x, lambda x: x + 1, {"x": array("i32", "n")})
    assert "has no name in a module" in text
    assert options().saved == []


def test_tolerance() -> None:
    def near(x: Any) -> Any:
        return np.nextafter(x, np.float32(np.inf))

    arguments = {"x": array("f32", "n")}
    assert "(1 ulp away)" in wrong(near, lambda x: x, arguments)
    testing.check_kernel(near, lambda x: x, {"x": array("f32", "n", low=1, high=8)}, ulp=1)
    testing.check_kernel(near, lambda x: x, {"x": array("f32", "n", low=1, high=8)}, rtol=2e-7)
    assert "ulp away" in wrong(near, lambda x: x, {"x": array("f32", "n", low=1, high=8)}, rtol=2e-8)


# ---- pytest ----------------------------------------------------------------------------------------------------------

SUITE = """
from loom.testing import array, check_kernel

def half(x):
    return x // 2

def test_half():
    check_kernel(half, lambda x: x >> 1, {"x": array("i32", "n")})

def test_wrong():
    check_kernel(half, lambda x: x / 2, {"x": array("i32", "n")})
"""


def test_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_half.py").write_text(SUITE)
    command = ["-m", "pytest", "-p", "loom.testing.plugin", "-q", "--rootdir", str(tmp_path), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def pytest_run(*more: str) -> str:
        done = subprocess.run(
            [sys.executable, *command, *more],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stdout

    text = pytest_run()
    (saved,) = (tmp_path / ".pytest_cache" / "d" / "loom-repros").iterdir()
    assert f"python {saved}" in text and "--loom-seed 0 makes the same launches" in text
    text = pytest_run("--loom-repros", "found", "--loom-seed", "5", "--loom-examples", "30")
    (saved,) = (tmp_path / "found").iterdir()
    assert f"python {saved}" in text and "--loom-seed 5" in text
    assert "the result[0] is -1, and 0 is expected" in text


def test_the_plugin_is_declared_and_light() -> None:
    declared = (SOURCES.parent / "setup.cfg").read_text(encoding="utf-8")
    assert "pytest11 =\n    loom = loom.testing.plugin" in declared
    program = "import sys, loom.testing.plugin, loom.testing.options; print(*sys.modules)"
    _, output = run(["-c", program])
    assert not set(output.split()) & {"numpy", "hypothesis", "numba", "loom_core.base.knobs"}


def test_hypothesis_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "loom.testing.strategies", raising=False)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(loom.LoomError, match=r"pip install .*hypothesis"):
        testing.check_kernel(add, np.add, {"x": array("f32", "n")}, grid=1)


def test_the_page(tmp_path: Path) -> None:
    page = (SOURCES.parent / "docs" / "testing.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "test_add.py"
    path.write_text(code)
    with pytest.raises(KernelDiffers) as caught:
        load_module(str(path), "test_add_of_the_page").test_add()
    shown = page.partition("says:\n\n```\n")[2].partition("\n```")[0].splitlines()
    said = str(caught.value).replace(str(tmp_path) + os.sep, "").splitlines()
    assert [line for line in shown[:-1] if line not in said] == []
