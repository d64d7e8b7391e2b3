"""`loom.triton.testing`, and programs of Triton where it is not installed."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ltl
from ltl import testing

SOURCE = Path(ltl.__file__).parents[1]


@ltl.jit
def double(x, n, BLOCK: ltl.constexpr):
    i = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(x + i, ltl.load(x + i, mask=i < n) * 2, mask=i < n)


def test_benchmarks_are_modelled() -> None:
    x = np.ones(4096, np.float32)
    times = [testing.do_bench(partial(double[(n // 64,)], x, n, BLOCK=64)) for n in (1024, 1024, 4096)]
    assert 0 < times[0] == times[1] < times[2] < 1
    assert x[0] == 2**3, "each runs once"
    assert (
        testing.do_bench(lambda: double[(1,)](x, 64, BLOCK=64), quantiles=[0.5, 0.2])
        == [testing.do_bench(lambda: double[(1,)](x, 64, BLOCK=64))] * 2
    )
    assert testing.do_bench(lambda: None) > 0, "the host's time where nothing is launched"
    with pytest.raises(ValueError, match="return_mode"):
        testing.do_bench(lambda: None, return_mode="best")


def test_assert_close() -> None:
    testing.assert_close([1.0, np.nan], np.array([1.005, np.nan]))
    testing.assert_close(1.0, 1.05, rtol=lambda dtype: 0.1)
    with pytest.raises(AssertionError, match="the sums"):
        testing.assert_close([1.0, 2.0], [1.0, 2.1], err_msg="the sums")


def test_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @testing.perf_report(
        testing.Benchmark(["n", "m"], [1, (2, 3)], "kind", ["a", "b"], ["A", "B"], "times", {"scale": 10}, ylabel="ms")
    )
    def measure(n: int, m: int, kind: str, scale: int, offset: int) -> Any:
        value = float(n * scale + m + offset)
        return value if kind == "a" else (value / 2, 0.0, 0.0)

    assert measure.run(print_data=True, save_path=str(tmp_path), offset=100) is None
    assert capsys.readouterr().out.splitlines() == [
        "times:", "n  m  A (ms)  B (ms)", "1  1     111    55.5", "2  3     123    61.5",
    ]  # fmt: skip
    assert (tmp_path / "times.csv").read_text().splitlines()[1] == "1,1,111.0,55.5"
    with pytest.raises(ValueError, match="has 1 values for n, m"):
        testing.Benchmark(["n", "m"], [(1,)], "kind", [], [], "", {}).rows(measure.fn, {})


PROGRAM = """
import sys
import numpy as np
{imports}

@triton.autotune([triton.Config({{"BLOCK": size}}) for size in (16, 64)], key=["n"])
@triton.heuristics({{"EVEN": lambda given: given["n"] % given["BLOCK"] == 0}})
@triton.jit
def add(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = None if EVEN else i < n
    tl.store(y + i, libdevice.tanh(tl.load(x + i, mask=mask)), mask=mask)

def run():
    add[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, 100)

if __name__ == "__main__":
    x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
    run()
    triton.testing.assert_close(y, np.tanh(np.ones(100)))
    assert triton.testing.do_bench(run) < 0.1
    assert triton.next_power_of_2(100) == 128
    print(sys.argv[1:])
    sys.exit(7)
"""
OWN = (
    "import loom.triton as triton\nimport loom.triton.language as tl\nfrom loom.triton.language.extra import libdevice"
)
UPSTREAM = """\
import triton
import triton.language as tl
import triton.testing
import triton.language.extra.libdevice as libdevice
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor
"""
WITHOUT = "import sys, runpy\nsys.modules['triton'] = None\nsys.argv = sys.argv[1:]\n"


@pytest.mark.parametrize(("imports", "start"), [
    (OWN, "runpy.run_path(sys.argv[0], run_name='__main__')"),
    (UPSTREAM, "sys.argv = ['loom.triton', *sys.argv]\nrunpy.run_module('loom.triton', run_name='__main__')"),
], ids=["loom.triton", "triton's own names"])  # fmt: skip
def test_programs_run_where_triton_is_not_installed(imports: str, start: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(imports=imports), encoding="utf-8")
    path = f"sys.path.insert(0, {str(SOURCE)!r})\n"
    command = [sys.executable, "-c", WITHOUT + path + start, str(script), "a", "b"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "['a', 'b']\n", "")


def test_a_script_that_fails_shows_its_own_lines(tmp_path: Path) -> None:
    script = tmp_path / "failing.py"
    script.write_text("def fail():\n    raise KeyError('mine')\n\nfail()\n", encoding="utf-8")
    code = WITHOUT + f"sys.path.insert(0, {str(SOURCE)!r})\nsys.argv = ['x', *sys.argv]\n"
    code += "runpy.run_module('loom.triton', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File") and "<string>" not in line]
    assert [line.split(", ")[1:] for line in frames if str(script) in line] == [
        ["line 4", "in <module>"], ["line 2", "in fail"],
    ]  # fmt: skip
    missing = subprocess.run([sys.executable, "-m", "loom.triton", "nowhere.py"], capture_output=True, text=True,
                             check=False, env={"PYTHONPATH": str(SOURCE)})  # fmt: skip
    assert (missing.returncode, missing.stderr) == (2, "there is no script nowhere.py\n")
