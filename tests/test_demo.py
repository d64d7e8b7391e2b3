"""The demo: its results, how long it takes, and how much it compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_ENGINES = 15


def _demo(cache: Path) -> str:
    environment = {**os.environ, "LOOM_CACHE_DIR": str(cache)}
    ran = subprocess.run(
        [sys.executable, "examples/demo.py"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_an_empty_cache_fills_with_few_engines(tmp_path: Path) -> None:
    text = _demo(tmp_path)
    assert "softmax" in text and "wrong" not in text
    engines = sorted(path.name.rsplit("-", 1)[0] for path in (tmp_path / "engines").glob("*.engine"))
    assert len(engines) <= MOST_ENGINES, engines
    objects = list((tmp_path / "objects").rglob("*.loom"))
    _demo(tmp_path)
    assert sorted(path.name.rsplit("-", 1)[0] for path in (tmp_path / "engines").glob("*.engine")) == engines
    assert list((tmp_path / "objects").rglob("*.loom")) == objects
