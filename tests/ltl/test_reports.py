"""What kernels tell the user while they run: the same lines and errors by the interpreter, compiled and traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ltl
from loom_core.base.diagnostics import LoomError
from loom_core.base.knobs import knobs

Run = Callable[..., list[str]]


@pytest.fixture(params=["interpreter", "compiled", "traced"])
def run(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Run:
    """Launches a kernel and gives the lines that it printed."""

    def launch(kernel: ltl.JitFunction, *args: Any, grid: Any = (1,), **kwargs: Any) -> list[str]:
        capsys.readouterr()
        if request.param == "traced":
            kernel.trace(*args, grid=grid, **kwargs)
        else:
            with knobs.override(interpret=request.param == "interpreter"):
                kernel[grid](*args, **kwargs)
        return capsys.readouterr().out.splitlines()

    return launch


@ltl.jit
def shown(x, N: ltl.constexpr):
    v = ltl.load(x + ltl.arange(0, N))
    ltl.device_print("values", v, ltl.program_id(0))
    ltl.device_print("hex", v, hex=True)
    ltl.device_print("alone")


def test_device_print(run: Run) -> None:
    lines = run(shown, np.array([1, 255], np.int32), N=2, grid=(1, 2))
    first = [
        "pid (0, 0, 0) values: [  1 255]",
        "pid (0, 0, 0) values: 0",
        "pid (0, 0, 0) hex: [0x1 0xff]",
        "pid (0, 0, 0) alone",
    ]
    assert lines == [*first, *(line.replace("(0, 0, 0)", "(0, 1, 0)") for line in first)]


@ltl.jit
def everything(out, x, n, scale, N: ltl.constexpr):
    """Views, index tiles, constants, scalars of each kind; between stores, in a loop and in a branch."""
    i = ltl.arange(0, N)
    for row in range(n):
        v = ltl.load(x + row * N + i)
        ltl.store(out + i, v)
        ltl.device_print("stored", ltl.load(out + i))
        ltl.store(out + i, v + v)
        ltl.device_print("stored", ltl.load(out + i))
        if row == 1:
            print("row", row, v[None, :], ltl.sum(v.to(ltl.float32), 0), i + row, ltl.full((2, 2), 3, ltl.int8))
    print("end", scale, scale > 1, n)
    print(i[:, None] < 2)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16, np.uint8, np.int64])
def test_values_are_those_of_the_moment(run: Run, dtype: Any) -> None:
    x = np.arange(6).astype(dtype)
    lines = run(everything, np.zeros(3, dtype), x, 2, 1.5, N=3)
    expected: list[tuple[str, Any]] = [
        ("stored", x[:3]), ("stored", x[:3] * 2), ("stored", x[3:]), ("stored", x[3:] * 2),
        ("row", np.int32(1)), ("row", x[None, 3:]), ("row", np.float32(12)), ("row", np.array([1, 2, 3])),
        ("row", np.full((2, 2), 3)), ("end", np.float32(1.5)), ("end", np.True_), ("end", np.int32(2)),
        ("", np.array([[True], [True], [False]])),
    ]  # fmt: skip
    text = "\n".join(f"pid (0, 0, 0) {prefix}: {np.array2string(value)}" for prefix, value in expected)
    assert lines == text.splitlines()


def test_print_of_static_values_is_for_the_one_who_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    @ltl.jit
    def kernel(x, N: ltl.constexpr):
        print(N)
        print("shape", (N, 2))
        print("text", N, sep="-")

    kernel.lower("*fp32", N=4)
    assert capsys.readouterr().out.splitlines() == ["4", "shape (4, 2)", "text-4"]


@ltl.jit
def checked(out, x, n, N: ltl.constexpr):
    i = ltl.arange(0, N)
    v = ltl.load(x + i)
    ltl.store(out + ltl.program_id(0), 1)
    ltl.device_assert(v > 0, "not positive", mask=i < n)
    ltl.store(out + ltl.program_id(0), 2)
    ltl.device_assert(n != 3)
    ltl.store(out + ltl.program_id(0), 3)


def test_device_assert_is_checked_on_demand(run: Run) -> None:
    x, out = np.array([3, 2, -1, 5], np.int32), np.zeros(2, np.int32)
    run(checked, out, x, 4, N=4, grid=(2,))
    assert out.tolist() == [3, 3]


@pytest.mark.parametrize("interpret", [True, False])
def test_failed_assertions(interpret: bool) -> None:
    x = np.array([3, 2, -1, 5], np.int32)

    def left(n: int) -> tuple[list[int], str]:
        out = np.zeros(3, np.int32)
        with knobs.override(interpret=interpret), pytest.raises(LoomError) as caught:
            checked[(3,)](out, x, n, N=4, debug=True)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "LOOM-R212" and diagnostic.location.file == __file__
        return out.tolist(), diagnostic.message

    out = np.zeros(2, np.int32)
    with knobs.override(interpret=interpret):
        checked[(2,)](out, x, 2, N=4, debug=True)
    assert out.tolist() == [3, 3]
    message = "device assertion failed: not positive in program (0, 0, 0), first for element (2,)"
    assert left(4) == ([1, 0, 0], message)
    x[2] = 1
    assert left(3) == ([2, 0, 0], "device assertion failed in program (0, 0, 0)")


@ltl.jit
def guarded(out, x, places, n, N: ltl.constexpr):
    """What stands behind an assertion happens only where it holds."""
    i = ltl.arange(0, N)
    place = ltl.load(places + i)
    ltl.device_assert(place < n, "no such place")
    ltl.store(out + i, ltl.load(x + place))


@pytest.mark.parametrize("interpret", [True, False])
def test_assertions_come_before_what_they_guard(interpret: bool) -> None:
    x, places = np.zeros(4, np.float32), np.array([0, 3, 1 << 20, 1], np.int32)
    with knobs.override(interpret=interpret), pytest.raises(LoomError, match="no such place"):
        guarded[(1,)](np.zeros(4, np.float32), x, places, 4, N=4, debug=True)


def test_the_program_that_failed_is_named() -> None:
    @ltl.jit
    def kernel(out):
        place = (ltl.program_id(2) * ltl.num_programs(1) + ltl.program_id(1)) * ltl.num_programs(0)
        ltl.device_assert(place + ltl.program_id(0) < 17, "here")
        ltl.store(out, 1)

    with pytest.raises(LoomError, match=r"here in program \(2, 1, 2\)"):
        kernel[(3, 2, 4)](np.zeros(1, np.int32), debug=True)


def test_pointers_are_not_printed() -> None:
    @ltl.jit
    def kernel(x):
        ltl.device_print("x", x)

    with pytest.raises(LoomError, match="LOOM-F102"):
        kernel.lower("*fp32")
