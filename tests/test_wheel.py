"""A built wheel works away from the source tree."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("loom", "ltl", "libloom", "loom_core", "loom_sim", "tensorloom")

PROGRAM = """
import numpy as np
import loom, loom.triton.language as ltl
from pathlib import Path

@ltl.jit
def double(x, n, BLOCK: ltl.constexpr):
    offset = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(x + offset, ltl.load(x + offset, mask=offset < n) * 2, mask=offset < n)

x = np.arange(100, dtype=np.float32)
double[(4,)](x, 100, BLOCK=32)
assert (x == 2 * np.arange(100)).all()
print(Path(loom.__file__).parents[1])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True, timeout=300)
    (built,) = folder.glob("*.whl")
    return built


def test_holds_all_packages_with_their_type_marker(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for package in PACKAGES:
        assert f"{package}/__init__.py" in names
        assert f"{package}/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "examples/", "benchmarks/"))]


def test_runs_a_kernel_outside_the_tree(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(command, check=True, timeout=300)
    script = tmp_path / "kernel.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(target), "LOOM_CACHE_DIR": str(tmp_path / "cache")}
    ran = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    assert Path(ran.stdout.strip()) == target
