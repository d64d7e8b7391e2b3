"""The demo: its results, how long it takes, and how much it compiles."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MOST_ENGINES = 15


def _demo(cache: Path) -> str:
    environment = {**os.environ, "LOOM_CACHE_DIR": str(cache)}
    ran = subprocess.run(
        [sys.executable, "examples/demo.py"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def _printed_commands(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("  ") and "loomc" in line]


def _engines(cache: Path) -> list[str]:
    return sorted(path.name.rsplit("-", 1)[0] for path in (cache / "engines").glob("*.engine"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, list[str]]:
    """What the demo prints, the cache that it has filled, and with which engines."""
    cache = tmp_path_factory.mktemp("cache")
    return _demo(cache), cache, _engines(cache)


def test_printed_commands_work(demo: tuple[str, Path, list[str]]) -> None:
    text, cache, _ = demo
    commands = _printed_commands(text)
    assert sum(" profile " in command for command in commands) == 3
    assert any(" explain " in command for command in commands)
    environment = {**os.environ, "LOOM_CACHE_DIR": str(cache)}
    for command in commands:
        ran = subprocess.run(
            shlex.split(command), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stderr == ""
        if " profile " in command:
            assert "bound by" in ran.stdout


def test_the_readme_shows_commands_that_the_demo_prints(demo: tuple[str, Path, list[str]]) -> None:
    printed = {command.partition(" build/")[2] for command in _printed_commands(demo[0])}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = [line.partition(" build/")[2] for line in readme.splitlines() if line.startswith(".venv/bin/loomc")]
    assert shown
    assert set(shown) <= printed


def test_an_empty_cache_fills_with_few_engines(demo: tuple[str, Path, list[str]]) -> None:
    text, cache, engines = demo
    assert "softmax" in text and "wrong" not in text
    assert len(engines) <= MOST_ENGINES, engines
    before = _engines(cache), list((cache / "objects").rglob("*.loom"))
    _demo(cache)
    assert (_engines(cache), list((cache / "objects").rglob("*.loom"))) == before
