"""`report` commands: what the host prints, and what it says of reports that no compiler makes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import loom_sim
from loom_core.isa.encoding import Reg, command
from loom_core.isa.machine import L1_MINI
from loom_sim.errors import BadReport
from tests.sim.harness import build, launch

PRINT: dict[str, Any] = {"kind": "print", "text": "value", "dtype": "i32", "shape": [2]}


def reporting(entry: Any, code: Any = 0, offset: Any = 64, program: Any = 0) -> Any:
    """Stores 7 and -1 at 64, reports, and stores 1 to the buffer."""
    commands = [
        command("sts", 0, 64, 7, flags={"log2_bytes": 2}),
        command("sts", 0, 68, -1, flags={"log2_bytes": 2}),
        command("report", code, offset, program),
        command("sts", 1, 0, 1, flags={"log2_bytes": 2}),
    ]
    return build(commands, buffers=1, manifest={"reports": [entry]})


def test_a_report_prints_and_the_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    obj = reporting(PRINT, Reg(10), Reg(11), Reg(12))
    registers = {0: 3, 1: 2, 2: 4, 10: 0, 11: 64, 12: 2 + 3 * (1 + 2 * 3)}
    (out,) = launch(obj, [np.zeros(1, np.int32)], registers)
    assert out[0] == 1
    assert capsys.readouterr().out == "pid (2, 1, 3) value: [ 7 -1]\n"


@pytest.mark.parametrize(
    ("entry", "code", "offset"),
    [
        (PRINT, 1, 64),
        (PRINT, -1, 64),
        (PRINT, 1 << 62, 64),
        (PRINT, 0, -4),
        (PRINT, 0, L1_MINI.sram_bytes - 4),
        (PRINT, 0, (1 << 63) - 1),
        ({**PRINT, "shape": [1 << 40]}, 0, 64),
        ({**PRINT, "shape": [-1]}, 0, 64),
        ({**PRINT, "shape": "many"}, 0, 64),
        ({**PRINT, "dtype": "i33"}, 0, 64),
        ({**PRINT, "dtype": None}, 0, 64),
        ({**PRINT, "kind": "format"}, 0, 64),
        ({**PRINT, "kind": "assert"}, 0, 64),
        ({"kind": "assert", "text": "no tile"}, 0, 64),
        ({}, 0, 64),
        (None, 0, 64),
    ],
)
def test_reports_that_do_not_fit(entry: Any, code: int, offset: int) -> None:
    with pytest.raises(BadReport, match="LOOM-S109"):
        launch(reporting(entry, code, offset), [np.zeros(1, np.int32)])


@pytest.mark.parametrize("reports", [None, 3, "text", {}])
def test_manifests_without_a_list_of_reports(reports: Any) -> None:
    obj = build([command("report", 0, 0, 0)], manifest={"reports": reports})
    with pytest.raises(BadReport):
        launch(obj)


def test_slices_and_reports_mix(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter comes back for both; nothing is done twice or left out."""
    monkeypatch.setattr("loom_sim.program._SLICE", 3)
    commands = list(itertools.chain.from_iterable(
        (command("sts", 0, 64, n, flags={"log2_bytes": 2}), command("report", 0, 64, 0)) for n in range(20)
    ))  # fmt: skip
    program = loom_sim.load(build(commands, manifest={"reports": [{**PRINT, "shape": []}]}))
    program.run([], {})
    assert capsys.readouterr().out.splitlines() == [f"pid (0, 0, 0) value: {n}" for n in range(20)]
