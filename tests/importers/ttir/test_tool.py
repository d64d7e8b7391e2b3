"""`loomc import-ttir`."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result

from loom_core.tools.loomc import main
from tests.importers.ttir.modules import CORPUS


def loomc(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_an_object_that_runs(tmp_path: Path) -> None:
    source, inputs, outputs = tmp_path / "vadd.ttir", tmp_path / "in.npz", tmp_path / "out.npz"
    shutil.copy(CORPUS / "features" / "feat_vadd__00" / "kernel.ttir", source)
    made = loomc("import-ttir", source)
    assert made.exit_code == 0, made.output
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    np.savez(inputs, allow_pickle=False, x=x, y=y, z=np.zeros(1000, np.float32))
    ran = loomc(
        "run", tmp_path / "vadd.loom", "--inputs", inputs, "--arg", "n=1000", "--grid", "4", "--outputs", outputs
    )
    assert ran.exit_code == 0, ran.output
    assert np.load(outputs)["z"].tolist()[:256] == (x + y).tolist()[:256]


def test_the_tile_ir() -> None:
    shown = loomc("import-ttir", "--ir", CORPUS / "features" / "feat_vadd__00" / "kernel.ttir")
    assert shown.exit_code == 0
    assert shown.output.startswith("func @vadd(")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.ttir"
    wrong.write_text("module {", encoding="utf-8")
    found = loomc("import-ttir", wrong)
    assert found.exit_code == 1
    assert "LOOM-F301" in found.output and "wrong.ttir:1" in found.output
    assert loomc("import-ttir", tmp_path / "absent.ttir").exit_code == 2
