"""The notebook: it runs from top to bottom, says what its text promises, and a browser shows its pictures."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from math import erf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loom_core.base.html import page
from tests.displays.markup import parsed, text_of

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "tour.ipynb"
WITH_PICTURES = (3, 4, 5, 9)
"""Which of the code cells show one."""
_MEASURE = """<script>
const seen = [...document.querySelectorAll("svg")].map(svg =>
    [...svg.querySelectorAll("rect, path, text")].filter(part => {
        const box = part.getBoundingClientRect(), style = getComputedStyle(part);
        return (box.width > 0 || box.height > 0) && style.visibility === "visible";
    }).length);
document.body.dataset.seen = JSON.stringify(seen);
</script>"""


class Output:
    """What one code cell has given: printed text, its value as text and HTML, an error."""

    def __init__(self, outputs: list[Any]) -> None:
        self.printed = "".join(out.text for out in outputs if out.output_type == "stream" and out.name == "stdout")
        values = [out.data for out in outputs if out.output_type in ("execute_result", "display_data")]
        self.value = "".join(data.get("text/plain", "") for data in values)
        self.html = "".join(data.get("text/html", "") for data in values)
        errors = ["\n".join(out.traceback) for out in outputs if out.output_type == "error"]
        self.error = re.sub("\033\\[[0-9;]*m", "", "".join(errors))


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Output]:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, 4)
    folder = tmp_path_factory.mktemp("tour")
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    client.execute(env={**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(folder)})
    return [Output(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]


def test_is_committed_as_text_and_ten_code_cells() -> None:
    code = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert len(code) == 10
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)


def test_kernel_ir_and_object(cells: list[Output]) -> None:
    assert cells[0].value == "<kernel softmax(x, out, columns, BLOCK: constexpr) at Cell In[1]:7>"
    assert float(cells[1].printed.rsplit(" ", 1)[1]) < 1e-6
    assert "reduce %value_1" in text_of(parsed(cells[2].html))
    assert "windows in SRAM" in text_of(parsed(cells[3].html))


def test_it_gets_faster_and_says_why(cells: list[Output]) -> None:
    before, after = (text_of(parsed(cells[i].html)) for i in (4, 5))
    assert "work on larger tiles" in before and "work on larger tiles" not in after
    found = re.fullmatch(r"(\S+) cycles before, (\S+) now: (\S+) times as fast\n", cells[5].printed)
    assert found is not None
    old, new = (int(found.group(i).replace(",", "")) for i in (1, 2))
    assert f"softmax {old:,} cycles" in before and f"softmax_rows {new:,} cycles" in after
    assert old / new > 5 and f"{old / new:.1f}" == found.group(3)


def test_the_race_is_found(cells: list[Output]) -> None:
    assert "Cell In[7]:7:5: error[LOOM-S205]: program (1, 0, 0) changes out[0]" in cells[6].error
    assert "    7 |     ltl.store(out + column, total + row, mask=inside)\n      |     ^^^^^" in cells[6].error


def test_the_mistake_is_explained(cells: list[Output]) -> None:
    assert "Cell In[8]:4:25: error[LOOM-F102]" in cells[7].error
    assert "hint: it takes float32 and float64" in cells[7].error


def test_the_triton_kernel_is_right(cells: list[Output]) -> None:
    x = np.random.default_rng(0).standard_normal((1024, 200), dtype=np.float32)[0, :4].astype(np.float64)
    shown = np.array(cells[8].printed.splitlines()[1].strip("[]").split(), np.float64)
    assert np.allclose(shown, [0.5 * value * (1 + erf(value / 2**0.5)) for value in x], atol=1e-6)
    assert cells[8].printed.startswith("chosen by modelled cycles: BLOCK: 1024")


def test_the_object_comes_back(cells: list[Output]) -> None:
    assert cells[9].value == cells[3].value
    assert not any(cells[i].error for i in range(10) if i not in (6, 7))


def test_a_browser_shows_the_pictures(cells: list[Output], tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on the PATH")
    pictures = [cells[i].html for i in WITH_PICTURES]
    assert all("<svg" in html for html in pictures)
    file = tmp_path / "tour.html"
    file.write_text(page("tour", "".join(pictures) + _MEASURE), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    ran = subprocess.run([*command, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=120)
    seen = re.search(r'data-seen="\[([\d,]+)\]"', ran.stdout)
    assert seen is not None, ran.stderr
    counts = [int(count) for count in seen.group(1).split(",")]
    assert len(counts) == sum(html.count("<svg") for html in pictures)
    assert min(counts) >= 1 and max(counts) > 20
