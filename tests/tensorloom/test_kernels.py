"""Kernels: the plan of the launcher, and runs on the simulator against torch."""

from __future__ import annotations

import pytest

from tensorloom.kernels import LaunchPlan, launch_plan
from tests.tensorloom.programs import checked, launched, problems, python

torch = pytest.importorskip("torch")

ADD = """
@kernel def add(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    let offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    let keep = offs < n
    let a = tl.load(x_ptr + offs, mask=keep)
    let b = tl.load(y_ptr + offs, mask=keep)
    tl.store(z_ptr + offs, a + b, mask=keep)
"""
SCALE = """
@kernel
def scale(x_ptr, alpha, n, BLOCK: constexpr):
    let offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    let p = x_ptr + offs
    tl.store(p, alpha * tl.load(p, mask=offs < n), mask=offs < n)
"""
TWO = """
@kernel def two(alpha, x_ptr, n, low_ptr, high_ptr, BLOCK: tl.constexpr):
    let offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    let keep = n > offs
    let a = tl.load(x_ptr + offs, mask=keep)
    if alpha > 0.0:
        a = a * alpha
    tl.store(low_ptr + offs, tl.minimum(a, 0.0), mask=keep)
    tl.store(high_ptr + offs, tl.maximum(a, 0.0), mask=keep)
"""
FILL = """
@kernel def fill(x_ptr, value, n, BLOCK: tl.constexpr):
    let offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, value, mask=offs < n)
"""
ROWS = """
@kernel def rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    let row = tl.program_id(0)
    let i = tl.arange(0, BLOCK)
    let v = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(v, axis=0))
"""
HELPED = """
@kernel def twice(a):
    return a * 2.0

@kernel def use(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    let offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    let total = tl.load(x_ptr + offs, mask=offs < n)
    for i in range(3):
        total = total |> twice
    tl.store(y_ptr + offs, total, mask=offs < n)
"""
SAME_NAMES = """
@kernel def f(x_ptr, x, n, B: tl.constexpr):
    let offs = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) * x, mask=offs < n)
"""


def plan(text: str, name: str) -> LaunchPlan:
    return launch_plan(checked(text).require().unit.kernels[name])


def test_results_are_what_is_only_stored_to() -> None:
    found = plan(ADD, "add")
    assert (found.inputs, found.constants, found.results, found.size, found.block) == (
        ("x", "y"),
        ("BLOCK",),
        ("z",),
        "n",
        "BLOCK",
    )


def test_other_scalars_stay_in_order() -> None:
    found = plan(TWO, "two")
    assert (found.inputs, found.results, found.size) == (("alpha", "x"), ("low", "high"), "n")


def test_loaded_and_stored_is_in_place() -> None:
    found = plan(SCALE, "scale")
    assert (found.inputs, found.in_place, found.results, found.allocated) == (("x", "alpha"), ("x",), ("x",), ())


def test_nothing_to_allocate_like() -> None:
    found = plan(FILL, "fill")
    assert (found.inputs, found.in_place) == (("x", "value"), ("x",))


def test_masks_of_one_program_are_no_size() -> None:
    found = plan(ROWS, "rows")
    assert (found.inputs, found.size) == (("x", "n"), "")


def test_names_that_would_collide_keep_their_suffix() -> None:
    assert plan(SAME_NAMES, "f").inputs == ("x_ptr", "x")


def test_the_block_may_be_a_number() -> None:
    text = ADD.replace("BLOCK", "256").replace(", 256: tl.constexpr", "")
    assert (plan(text, "add").block, plan(text, "add").constants) == ("256", ())
    assert "def add_launcher(x, y):" in python(text)
    assert "triton.cdiv(n, 256)" in python(text)


@pytest.mark.parametrize("size", [1, 1000, 4096])
def test_runs(size: int) -> None:
    x, y = torch.randn(size), torch.randn(size)
    assert torch.equal(launched(ADD)["add_launcher"](x, y, BLOCK=512), x + y)
    assert torch.equal(launched(ADD)["add_launcher"](x, y), x + y)


def test_runs_with_scalars_in_place_and_in_two_results() -> None:
    x = torch.randn(300)
    expected = 2.5 * x
    given = x.clone()
    result = launched(SCALE)["scale_launcher"](given, 2.5, BLOCK=128)
    assert result is given
    assert torch.equal(result, expected)
    low, high = launched(TWO)["two_launcher"](2.0, x, BLOCK=128)
    assert torch.equal(low, (2 * x).clamp(max=0))
    assert torch.equal(high, (2 * x).clamp(min=0))
    assert torch.equal(launched(FILL)["fill_launcher"](torch.zeros(5), 3.0, BLOCK=8), torch.full((5,), 3.0))


def test_runs_with_a_grid_where_there_is_no_size() -> None:
    x = torch.randn(6, 50)
    out = launched(ROWS)["rows_launcher"](x, 50, BLOCK=64, grid=(6,))
    assert torch.allclose(out.flatten()[:6], x.sum(1), atol=1e-5)


def test_runs_with_helpers_loops_and_pipes() -> None:
    x = torch.randn(100)
    assert torch.equal(launched(HELPED)["use_launcher"](x, BLOCK=32), 8 * x)


def test_non_contiguous_inputs() -> None:
    x = torch.randn(8, 6).T
    assert torch.equal(launched(ADD)["add_launcher"](x, x, BLOCK=16), x + x)


def test_the_text_chooses_triton_on_a_gpu() -> None:
    text = python(ADD)
    assert "import triton.language as tl" in text
    assert "import loom.triton.language as tl" in text
    assert "@triton.jit\ndef add(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):" in text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("let k = 2\n" + ADD.replace("a + b", "a + k"), "T501"),
        (ADD.replace("a + b", "a + c"), "T201"),
        (ADD + "let z = add_launcher(zeros(3))\n", "T301"),
        (ADD + "let z = add_launcher(zeros(3), zeros(3), SIZE=3)\n", "T301"),
        ("@kernel def f(x_ptr, x_ptr):\n    pass\n", "T108"),
        ("@kernel def f(x_ptr: int):\n    pass\n", "T101"),
    ],
)
def test_errors(text: str, code: str) -> None:
    assert code in [found for found, _ in problems(text)]


def test_shapes_go_through_launchers() -> None:
    assert checked(ADD + "let z = add_launcher(zeros(3, 4), ones(3, 4))\n").values["z"].shape == (3, 4)
