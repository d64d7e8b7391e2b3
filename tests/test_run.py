"""The `run` script: its usage, and the choice of PyTorch's build. What it installs, the suite itself shows."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "run"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = SourceFileLoader("run_script", str(SCRIPT))
    specification = spec_from_loader("run_script", loader)
    assert specification is not None
    module = module_from_spec(specification)
    loader.exec_module(module)
    return module


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


def test_usage() -> None:
    helped, empty, wrong = run("--help"), run(), run("dance")
    assert (helped.returncode, empty.returncode, wrong.returncode) == (0, 2, 2)
    assert helped.stdout == empty.stdout
    assert wrong.stderr.startswith("run: there is no job called 'dance'\n")
    for job in ("demo", "test", "check", "bench", "golden"):
        assert f"\n  {job}" in helped.stdout


def test_jobs_and_levels_agree(script: ModuleType) -> None:
    assert script.LEVELS.keys() == script.INCLUDES.keys()
    assert {level for level, _, _ in script.JOBS.values()} <= script.LEVELS.keys()


def report(*names: str) -> bytes:
    return json.dumps({"install": [{"metadata": {"name": name}} for name in names]}).encode()


def test_pytorch_without_cuda_only(script: ModuleType) -> None:
    assert script.what_speaks_against(0, report("torch", "filelock"), b"") == ""
    assert script.what_speaks_against(0, report(), b"") == "", "it is installed"
    found = script.what_speaks_against(0, report("torch", "nvidia-nccl-cu13", "cuda-bindings"), b"")
    assert found == "the build that pip finds brings cuda-bindings, nvidia-nccl-cu13, ..."
    complaint = b"WARNING: x\nERROR: Cannot install torch==2.13.0\n"
    assert script.what_speaks_against(1, b"", complaint) == "ERROR: Cannot install torch==2.13.0"


def test_stamp_changes_with_what_is_installed(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("setup.cfg", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(script, "ROOT", str(tmp_path))
    before = script.fingerprint()
    assert script.fingerprint() == before
    (tmp_path / "constraints.txt").write_text("other")
    assert script.fingerprint() != before


def test_torn_stamp_means_none(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamp = tmp_path / "stamp.json"
    monkeypatch.setattr(script, "STAMP", str(stamp))
    for text in ("", "{", "[]"):
        stamp.write_text(text)
        assert script.read_stamp() == {}
    stamp.write_text('{"levels": ["core"]}')
    assert script.read_stamp() == {"levels": ["core"]}
