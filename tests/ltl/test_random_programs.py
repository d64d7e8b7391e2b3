"""Random LTL kernels: references, simulator, sanitizer, strict validation agree; `./run exhaustive kernels` has more.

A failure shows the smallest program that fails, as text.
"""

from __future__ import annotations

import re
from typing import Any

import hypothesis
import numpy as np
import pytest

from exhaustive import kernels, scores
from loom_core.ops import elementwise
from tests.ltl.program_runs import faults, kernel_of
from tests.ltl.random_programs import Program, programs

SETTINGS = hypothesis.settings(
    max_examples=25, derandomize=True, database=None, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int) -> None:
    @hypothesis.seed(seed)
    @hypothesis.settings(SETTINGS, derandomize=False)
    @hypothesis.given(programs(statements=2))
    def check(program: Program) -> None:
        found = faults(program)
        assert not found, f"{found[0]}\n{program}"

    check()


ADDITION = """\
@ltl.jit
def kernel(out_i32, x_i32, n):
    at = ltl.arange(0, 8)
    ltl.store(out_i32 + at, ltl.load(x_i32 + at) + n)
"""


def test_faults_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(ADDITION, ("out_i32", "x_i32"), 3, 1, 1)
    assert faults(program) == []
    again = Program(ADDITION.replace("n)\n", "n, mask=at > 2)\n").replace(" + at))", " + at, mask=at > 1))"),
                    program.buffers, 3, 1, 1)  # fmt: skip
    assert faults(again) == []
    (missing,) = faults(Program(ADDITION.replace("+ at)", "+ at, mask=at > 9)"), program.buffers, 3, 1, 1))
    assert "LOOM-R213" in missing
    (outside,) = faults(Program(ADDITION.replace("x_i32 + at", "x_i32 + 5000 + at"), program.buffers, 3, 1, 1))
    assert "LOOM-R210" in outside
    monkeypatch.setattr(elementwise.Add, "ref", staticmethod(lambda a, b: np.subtract(a, b)))
    (wrong,) = faults(program)
    assert re.match(r"out_i32\[0\] is -?\d+, by the references -?\d+; 8 differ", wrong)


def test_programs_are_of_many_kinds() -> None:
    texts: list[str] = []

    @hypothesis.settings(SETTINGS, derandomize=False, max_examples=60, phases=[hypothesis.Phase.generate])
    @hypothesis.given(programs())
    def collect(program: Program) -> None:
        texts.append(program.text)

    for seed in range(8):
        hypothesis.seed(seed)(collect)()
    text = "\n".join(texts)
    wanted = [
        "for ", "while ", "if ", "else:", "ltl.dot(", "ltl.sum(", "ltl.argmax(", "ltl.cumsum(", "ltl.sort(", "mask=",
        "ltl.gather(", "ltl.make_block_ptr(", "ltl.atomic_add(", "ltl.associative_scan(", "ltl.histogram(",
        "ltl.trans(", "ltl.reshape(", "ltl.where(", "bitcast=True", "ltl.static_range", "x_f8e4m3", "x_bf16", "x_u64",
        "x_bool", "x_i8", "(0, 130)",
    ]  # fmt: skip
    assert [name for name in wanted if name not in text] == []


def test_the_same_programs_each_time() -> None:
    def digest() -> Any:
        found = kernels.Found()
        kernels.search(5, found, examples=3)
        return sorted(found.kernels)

    first = digest()
    assert first == digest()
    assert len(first) > 1


def test_a_full_run_is_recorded() -> None:
    (score,) = scores.recorded()["kernels"].values()
    assert score["kernels"] >= kernels.KERNELS
    assert score["wrong"] == 0


def test_a_program_is_a_kernel() -> None:
    kernel = kernel_of(Program(ADDITION, ("out_i32", "x_i32"), 3, 1, 1))
    out, x = np.zeros(8, np.int32), np.arange(8, dtype=np.int32)
    kernel[(1,)](out, x, 4)
    assert out.tolist() == list(range(4, 12))
