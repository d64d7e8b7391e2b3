"""Triton source files: what lowers, why not, and the same in LTL."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from loom_core.base.knobs import knobs
from loom_core.tools.assumed import pointer_parameters
from loom_core.tools.loomc import main
from ltl.migration import migrate
from ltl.source import load_source

SOURCE = '''\
"""Kernels of a user."""
import torch
import triton  # the package
import triton.language as tl
from triton.language.extra import libdevice
from missing_package import helper, unused

WIDTH = tl.constexpr(4)


@triton.jit
def activation(x):
    # tl.exp in a comment stays
    return x * tl.sigmoid(x) + libdevice.tanh(x)


@triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def forward(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, activation(x) + WIDTH, mask=mask)


@triton.jit
def lookup(table, indices, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(indices + i, mask=i < n, other=0)
    tl.store(out + i, tl.load(table + row * 4), mask=i < n)


@triton.jit
def assembly(x, out):
    tl.store(out, tl.inline_asm_elementwise("mov", "=r,r", [tl.load(x)], tl.int32, True, 1))


@triton.jit
def foreign(x):
    tl.store(x, helper(tl.load(x)))


def launch(x):
    out = torch.empty_like(x)
    forward[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    triton.testing.assert_close(out, out)
    raise RuntimeError("not run")


launch(1 / 0)
'''


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(SOURCE.splitlines(), 1) if text in line)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(SOURCE)
    return path


def loomc(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_report_of_each_kernel(source: Path) -> None:
    done = loomc("migrate-triton", source, "--json")
    assert done.exit_code == 1
    report = json.loads(done.output)
    kernels = {entry["kernel"]: entry for entry in report["kernels"]}
    assert list(kernels) == ["forward", "lookup", "assembly", "foreign"], "activation is called by another"
    forward = kernels["forward"]
    assert forward["status"] == "lowered" and forward["same_program"] and forward["line"] == line_of("def forward")
    assert forward["assumed"] == {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "64"}
    assert kernels["lookup"]["status"] in ("lowered", "traced") and kernels["lookup"]["same_program"]
    assert kernels["lookup"]["assumed"]["indices"] == "*i64"
    (problem,) = kernels["assembly"]["problems"]
    assert kernels["assembly"]["status"] == "refused"
    line = line_of("tl.inline_asm")
    column = SOURCE.splitlines()[line - 1].index("tl.inline_asm") + 1
    assert (problem["code"], problem["line"], problem["column"]) == ("LOOM-F114", line, column)
    codes = [problem["code"] for problem in kernels["foreign"]["problems"]]
    assert codes == ["LOOM-F004", "LOOM-K114"]
    assert "missing_package" in kernels["foreign"]["problems"][1]["message"]
    assert report["not_migrated"] == [{"name": "triton.testing", "line": line_of("triton.testing")}]


def test_text_of_the_report(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "migrated.py"
    done = loomc("migrate-triton", source, "--out", out)
    assert done.exit_code == 1
    assert "refused  assembly  (x=*fp32, out=*fp32)" in done.output
    assert "error[LOOM-F114]: ltl.inline_asm_elementwise is not part of LTL" in done.output
    assert f"line {line_of('triton.testing')}: triton.testing has no counterpart and stays" in done.output
    assert out.read_text() == migrate(SOURCE).text


def test_assumptions_can_be_given(source: Path) -> None:
    done = loomc(
        "migrate-triton", source, "--json", "--arg", "forward.x_ptr=*bf16", "--arg", "n=i64", "--const", "BLOCK=8"
    )
    kernels = {entry["kernel"]: entry for entry in json.loads(done.output)["kernels"]}
    assert kernels["forward"]["assumed"] == {"x_ptr": "*bf16", "out_ptr": "*fp32", "n": "i64", "BLOCK": "8"}
    assert kernels["forward"]["status"] == "refused", "sigmoid takes no bfloat16"
    assert kernels["lookup"]["assumed"]["BLOCK"] == "8"


def test_exit_code_where_all_lower(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("import triton\nimport triton.language as tl\n\n@triton.jit\ndef f(x):\n    tl.store(x, 1.0)\n")
    done = loomc("migrate-triton", path)
    assert done.exit_code == 0
    assert done.output.endswith("import loom.triton.language as ltl\n\n@ltl.jit\ndef f(x):\n    ltl.store(x, 1.0)\n")


@pytest.mark.parametrize(("text", "message"), [("def f(:\n", "LOOM-K113"), ("x = 1\n", "no function is decorated")])
def test_what_is_no_triton_source(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    done = loomc("migrate-triton", path)
    assert done.exit_code == 2 and message in done.stderr


def test_absent_file_and_bad_options(tmp_path: Path, source: Path) -> None:
    assert loomc("migrate-triton", tmp_path / "none.py").exit_code == 2
    assert loomc("migrate-triton", source, "--arg", "x").exit_code == 2


def test_migrated_text_keeps_everything_else() -> None:
    text = migrate(SOURCE).text
    assert ast.parse(text)
    assert "import loom.triton.language as ltl  # the package" in text
    assert "# tl.exp in a comment stays" in text
    assert "from ltl.extra import libdevice" in text
    assert "import triton.language" not in text and "tl.load(" in text
    assert '@ltl.autotune(configs=[ltl.Config({"BLOCK": 64})], key=["n"])' in text
    assert '(ltl.cdiv(x.numel(), meta["BLOCK"]),)' in text
    assert "triton.testing.assert_close(out, out)" in text


def test_a_module_with_a_name_ltl_keeps_its_own() -> None:
    text = migrate("import triton\nfrom triton import language as lang\nltl = 3\nx = lang.constexpr(ltl)\n").text
    assert text == "import loom.triton.language as lang\nltl = 3\nx = lang.constexpr(ltl)\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import triton.language as tl", "import loom.triton.language as ltl"),
        (
            "from triton import jit, language as tl, cdiv",
            "import loom.triton.language as ltl; from ltl import jit, cdiv",
        ),
        ("from triton.language import load as ld", "from loom.triton.language import load as ld"),
        ("import torch._inductor.runtime.triton_helpers as h", "import ltl.inductor as h"),
        ("from torch._inductor.runtime import triton_helpers", "from ltl import inductor as triton_helpers"),
        ("from torch._inductor.runtime.triton_helpers import libdevice", "from ltl.inductor import libdevice"),
        (
            "from triton.tools.tensor_descriptor import TensorDescriptor",
            "from ltl.host_descriptor import TensorDescriptor",
        ),
        ("import os, triton", "import os; import loom.triton.language as ltl"),
        ("import torch", "import torch"),
    ],
)
def test_imports(line: str, expected: str) -> None:
    assert migrate(line + "\n").text == expected + "\n"


def test_the_migrated_kernel_gives_the_same_bits() -> None:
    cut = SOURCE[: SOURCE.index("def launch")]
    for line in ("from missing_package import helper, unused\n", "import torch\n"):
        cut = cut.replace(line, "")
    x = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    outs = []
    for text in (cut, migrate(cut).text):
        out = np.zeros(100, np.float32)
        with knobs.override(interpret=True):
            load_source(text)["forward"][(2,)](x, out, 100)
        outs.append(out)
    assert np.array_equal(*outs) and outs[0].any()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("tl.load(x + n)", {"x"}),
        ("p = x + n * m\n    p += m\n    tl.store(p, 1)", {"x"}),
        ("x += n\n    tl.load(x)", {"x"}),
        ("tl.load(n + x_ptr)", {"x_ptr"}),
        ("b = tl.make_block_ptr(x, (n,), (1,), (0,), (4,), (0,))\n    tl.load(b)", {"x"}),
        ("tl.store(tl.multiple_of(x, 16) + n, 1)", {"x"}),
        ("write(n, x)", {"x"}),
        ("tl.load(tl.where(n > 0, x, x_ptr))", {"x_ptr"}),
        ("write(value=n, pointer=x + m)", {"x"}),
        ("m.to(x.dtype.element_ty)", {"x"}),
    ],
)
def test_pointers_are_found_by_their_use(body: str, expected: set[str]) -> None:
    text = f"""
@triton.jit
def write(value, pointer):
    tl.store(pointer, value)
    write(value, pointer)

@triton.jit
def f(x, x_ptr, n, m):
    {body}
"""
    found = pointer_parameters(load_source(text)["f"])
    assert found - {"x_ptr"} | (expected & {"x_ptr"}) == expected


PACKAGED = """
import triton
import triton.language as tl
from package.math import twice
from .tuning import OPTIONS, cached
from ..absent import nothing
from . import extension, other


@cached(tl)
@triton.heuristics({"EVEN": lambda args: False})
@triton.autotune(configs=[triton.Config({"BLOCK": 8})], key=[], **OPTIONS)
@triton.jit
def kernel(x, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    p = x + tl.arange(0, BLOCK)
    tl.store(p, twice(tl.load(p)))


@cached
@triton.jit
def counted(x):
    tl.store(x, 1)


@triton.jit
def softened(self, limit):
    return extension.softened(tl.log(self), limit)
"""


AND_MORE = "which is to be migrated too"


def test_files_of_the_package_are_read_for_what_kernels_need(tmp_path: Path) -> None:
    """Whether they can be imported or not; decorators of others are passed over."""
    package = tmp_path / "package"
    (package / "kernels").mkdir(parents=True)
    (package / "__init__.py").write_text("from .math import twice\nraise RuntimeError('not run')\n")
    (package / "math.py").write_text(
        "import triton\nimport torch_of_others\nfrom .numbers_ import TWO\n\n"
        "@triton.jit\ndef twice(x):\n    return x * TWO\n"
    )
    (package / "numbers_.py").write_text("import triton.language as tl\nTWO = tl.constexpr(2)\n")
    (package / "kernels" / "__init__.py").write_text("")
    (package / "kernels" / "tuning.py").write_text(
        "import torch_of_others\nOPTIONS = torch_of_others.options\ndef cached(function):\n    return None\n"
    )
    (package / "kernels" / "extension.py").write_text(
        "import triton\n\n@triton.jit\ndef softened(x, limit):\n    return triton.language.minimum(x, limit) * x\n"
    )
    path = package / "kernels" / "scale.py"
    path.write_text(PACKAGED)
    done = loomc("migrate-triton", path, "--json")
    assert done.exit_code == 0, done.output
    kernel, counted, softened = kernels = json.loads(done.output)["kernels"]
    assert all(each["status"] == "lowered" and each["same_program"] for each in kernels)
    assert kernel["assumed"] == {"x": "*fp32", "BLOCK": "32", "EVEN": "False"}
    assert kernel["notes"] == [
        "without @cached(tl): it is None",
        "without @triton.autotune(configs=[triton.Config({'BLOCK': 8})], key=[], **OPTIONS): NameError: "
        "name 'OPTIONS' is not defined",
        f"twice is read from {package / 'math.py'}, {AND_MORE}",
    ]
    assert counted["notes"] == ["without @cached: it makes something else of the kernel"]
    assert softened["assumed"] == {"self": "fp32", "limit": "i32"}, "a function that returns values is called"
    assert softened["notes"] == [f"extension is read from {package / 'kernels' / 'extension.py'}, {AND_MORE}"]
    text = loomc("migrate-triton", path).output
    assert "\n         twice is read from" in text


GUESSED = """\
import triton
import triton.language as tl


@triton.jit
def scattered(x_ptr, y_ptr, map_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    place = tl.load(map_ptr + i, mask=i < n, other=0)
    row = place - 1
    tl.store(y_ptr + row * 2, tl.load(x_ptr + i))


@triton.jit
def by_mode(x_ptr, y_ptr, MODE: tl.constexpr, LEVEL: tl.constexpr):
    x = tl.load(x_ptr)
    if MODE == "double":
        y = x * 2
    elif MODE in ("half", "third"):
        y = x / 2
    if LEVEL == 3:
        z = y + 1
    tl.store(y_ptr, z)


@triton.jit
def described(source, target, k):
    target.store([k, 0], source.load([k, 0]) * 2)
"""


def test_more_that_the_text_tells(tmp_path: Path) -> None:
    """What feeds addresses is an integer; constants are among those that they are compared with."""
    file = tmp_path / "kernels.py"
    file.write_text(GUESSED)
    report = json.loads(loomc("migrate-triton", file, "--json").output)
    scattered, by_mode, described = report["kernels"]
    assert scattered["status"] == by_mode["status"] == "lowered"
    assert (scattered["assumed"]["map_ptr"], scattered["assumed"]["x_ptr"]) == ("*i64", "*fp32")
    assert (by_mode["assumed"]["MODE"], by_mode["assumed"]["LEVEL"]) == ("double", "3")
    assert described["status"] == "refused"
    assert described["notes"] == [
        "tensor descriptors, of blocks that the source does not show: source, target; "
        'say --arg source="tensordesc<fp16[64, 32]>"'
    ]
    given = [f"--arg={name}=tensordesc<fp16[16, 32]>" for name in ("source", "target")]
    done = loomc("migrate-triton", file, "--json", *given)
    assert [kernel["status"] for kernel in json.loads(done.output)["kernels"]] == ["lowered"] * 3
    assert done.exit_code == 0
