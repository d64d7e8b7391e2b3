"""Errors in the cells of a notebook: IPython shows the cell, its line, a caret, and the user's frames alone."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from loom_core.base.cells import shown_file

CELLS = [
    """\
import numpy as np
import loom
import loom.triton.language as ltl
from loom.experimental import palladium as lpl

@ltl.jit
def write(x, BLOCK: ltl.constexpr):
    at = ltl.arange(0, BLOCK)
    ltl.store(x + at, ltl.load(x + at) + 1)
""",
    "write[(1,)](np.zeros(8, np.float32), BLOCK=16)",
    """\
@ltl.jit
def wrong(x, BLOCK: ltl.constexpr):
    at = ltl.arange(0, BLOCK)
    ltl.store(x + at, ltl.exp(at))

def call():
    wrong[(1,)](np.zeros(8, np.float32), BLOCK=8)

call()
""",
    """\
@lpl.kernel(out_shape=lpl.ShapeDtypeStruct((8,), lpl.float32))
def bad(x_ref, o_ref):
    o_ref[...] = lpl.dot(x_ref[...], 3, 4)

bad(np.zeros(8, np.float32))
""",
    "with loom.profile() as traces:\n    write[(1,)](np.zeros(8, np.float32), BLOCK=8)\nprint(traces[0].profile.lines)",
]
SCRIPT = """
import contextlib, io, json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
shown = []
for cell in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        shell.run_cell(cell, store_history=True)
    shown.append(out.getvalue())
json.dump(shown, sys.stdout)
"""


@pytest.fixture(scope="module")
def shown() -> list[str]:
    pytest.importorskip("IPython")
    ran = subprocess.run([sys.executable, "-c", SCRIPT], input=json.dumps(CELLS), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found: list[str] = json.loads(ran.stdout)
    assert not found[0]
    return found


def test_a_fault_of_a_run(shown: list[str]) -> None:
    assert "Cell In[1]:9:23: error[LOOM-S101]" in shown[1]
    assert "\n    9 |     ltl.store(x + at, ltl.load(x + at) + 1)\n      |" + " " * 23 + "^" * 20 in shown[1]


def test_an_error_of_tracing(shown: list[str]) -> None:
    assert "Cell In[3]:4:23: error[LOOM-F102]: exp does not take" in shown[2]
    assert "call()" in shown[2] and "wrong[(1,)]" in shown[2], "the user's own frames"


def test_an_error_of_palladium(shown: list[str]) -> None:
    assert "Cell In[4]:3:18: error[LOOM-F021]: dot" in shown[3]


@pytest.mark.parametrize("cell", [1, 2, 3])
def test_no_frame_of_ours_is_shown(shown: list[str], cell: int) -> None:
    frames = [line for line in shown[cell].splitlines() if line.startswith(("File", "Cell"))]
    assert frames and not [frame for frame in frames if frame.startswith("File")]


def test_lines_of_a_profile(shown: list[str]) -> None:
    assert "source='Cell In[1]:9'" in shown[4]


def test_files_keep_their_names_outside_of_notebooks() -> None:
    assert shown_file("kernel.py") == "kernel.py"
