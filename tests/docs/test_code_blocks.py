"""Every code block of the documents runs and prints what stands behind it; every command in them exists."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from loom_core.tools.loomc import main as loomc
from tests.docs.pages import PAGES, ROOT, blocks_of, run_page, with_outputs

_ARRAYS = "import numpy as np\nimport loom\nimport loom.triton.language as ltl\n"
BEFORE = {
    "architecture": _ARRAYS,
    "language": _ARRAYS + "x, y = np.zeros((2, 5000), np.float32)\nn = 5000\n",
    "palladium": "import numpy as np\nx, y = np.ones((2, 1024, 1024), np.float32)\n",
    "replay": _ARRAYS + "import loom.triton\nmodel, x = lambda x: None, None\n",
}
"""What the text of a page takes for granted: its imports and arrays."""
NEEDS = {"replay": ("triton",), "triton": ("triton", "torch"), "testing": ("hypothesis",)}
"""Packages without which the code of a page cannot run."""
PYTHON = [page for page in PAGES if any(block.language == "python" for block in blocks_of(page))]


@pytest.mark.golden
@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.stem)
def test_code_runs_and_shows_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for package in NEEDS.get(page.stem, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    shown = run_page(page, BEFORE.get(page.stem, ""), tmp_path)
    if request.config.getoption("--update-golden"):
        text = with_outputs(page.read_text(encoding="utf-8"), shown)
        page.write_text(text, encoding="utf-8", newline="\n")
        return
    for old, new in shown:
        assert new.text == old.text, f"{page.name} shows another output; if that is meant: ./run golden"


def test_the_pages_of_a_stranger_have_code() -> None:
    assert {"README", "tour", "triton", "pallas", "tools", "language", "testing"} <= {page.stem for page in PYTHON}


_COMMAND = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?(\./run|loomc|loom-format|tlc|python -m) (\S+)", re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        inline = "\n".join(re.findall(r"`([^`\n]+)`", text))
        shell = "\n".join(block.text for block in blocks_of(page) if block.language in ("", "console"))
        found |= {match.groups() for match in _COMMAND.finditer(f"{shell}\n{inline}")}
    return sorted(found)


def test_every_command_exists() -> None:
    found = commands()
    assert ("./run", "demo") in found and ("loomc", "explain") in found
    usage = subprocess.run([sys.executable, str(ROOT / "run"), "--help"], capture_output=True, text=True).stdout
    jobs = re.findall(r"^  (\w+) ", usage, re.MULTILINE)
    for program, word in found:
        if program == "./run":
            assert word in jobs or word == "JOB", word
        elif program == "loomc":
            assert word in loomc.commands or word.startswith("-"), word
        elif program == "python -m":
            assert find_spec(word) is not None, word


_LINK = re.compile(r"(?<!\\)\[[^\[\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def links_of(page: Path) -> list[str]:
    """What a page links to in this tree, as it is written."""
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    return [link for link in _LINK.findall(text) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for link in links_of(page):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            wrong.append(link)
    assert wrong == []


def anchors_of(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_leads_to_every_page() -> None:
    linked = set(links_of(ROOT / "docs" / "index.md"))
    assert {page.name for page in PAGES if page.parent.name == "docs"} - {"index.md"} <= linked
