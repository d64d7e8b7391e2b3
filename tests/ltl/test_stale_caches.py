"""No launch meets an object that was made for something else: not in memory, not on disk, not with other processes."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ltl

SOURCES = Path(ltl.__file__).resolve().parents[1]

MODULE = """
import sys
import numpy as np
import ltl

LIMIT = 3
TABLE = (1, 2)
WIDTH = ltl.constexpr(4)


class Settings:
    scale = 5


@ltl.jit
def inner(x, factor=2):
    return x * factor


@ltl.jit
def helper(x):
    return inner(x) + LIMIT


def made(offset):
    @ltl.jit
    def kernel(out, x, extra: ltl.constexpr = 7, again=11):
        for i in ltl.static_range(WIDTH):
            ltl.store(out + i, helper(x) + TABLE[1] * Settings.scale + extra + again + offset)
    return kernel


out = np.zeros(8, np.int32)
made(100)[(1,)](out, 1)
print(out.sum())
"""

CHANGES = {
    "global": ("LIMIT = 3", "LIMIT = 4", 4),
    "tuple": ("TABLE = (1, 2)", "TABLE = (1, 3)", 20),
    "constexpr": ("WIDTH = ltl.constexpr(4)", "WIDTH = ltl.constexpr(5)", 133),
    "class attribute": ("scale = 5", "scale = 6", 8),
    "helper": ("inner(x) + LIMIT", "inner(x) - LIMIT", -24),
    "helper of a helper": ("x * factor", "x * factor * factor", 8),
    "default of a helper": ("factor=2", "factor=3", 4),
    "default constexpr": ("extra: ltl.constexpr = 7", "extra: ltl.constexpr = 8", 4),
    "default number": ("again=11", "again=12", 4),
    "closure": ("made(100)", "made(101)", 4),
    "kernel": ("+ again + offset", "- again + offset", -88),
}


def run(file: Path, cache: Path) -> int:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "LOOM_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, str(file)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.fixture(scope="module")
def filled_cache(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, int]:
    folder = tmp_path_factory.mktemp("stale")
    file = folder / "kernels.py"
    file.write_text(MODULE)
    first = run(file, folder / "cache")
    assert first == 4 * (2 + 3 + 10 + 7 + 11 + 100)
    return file, folder / "cache", first


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_between_processes_is_seen(filled_cache: tuple[Path, Path, int], what: str) -> None:
    """The file keeps its name, so that only what the kernel is made of can tell the objects apart."""
    file, cache, first = filled_cache
    before, after, difference = CHANGES[what]
    assert MODULE.count(before) == 1
    file.write_text(MODULE.replace(before, after))
    assert run(file, cache) == first + difference
    file.write_text(MODULE)
    assert run(file, cache) == first


def test_two_processes_at_once_on_an_empty_cache(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(MODULE)
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "LOOM_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(file)]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 0], outputs
    assert [out.strip() for out, _ in outputs] == [str(4 * 133)] * 2
    assert not list((tmp_path / "cache").rglob("*.tmp")), "temporary files were left"


# ---- in one process --------------------------------------------------------------------------------------------------

GLOBAL = 10
OUTSIDE = types.SimpleNamespace(value=1)
MODULE_LIKE = types.ModuleType("settings")
MODULE_LIKE.level = 3  # type: ignore[attr-defined]


class Options:
    step = 2


@ltl.jit
def twice(x):
    return x * 2


@ltl.jit
def thrice(x):
    return x * 3


CHOSEN = twice


@ltl.jit
def reader(out, x, K: ltl.constexpr):
    ltl.store(out, CHOSEN(x) + GLOBAL + Options.step + MODULE_LIKE.level + K)


def value(*args: Any, **kwargs: Any) -> int:
    out = np.zeros(1, np.int32)
    reader[(1,)](out, *args, **kwargs)
    return int(out[0])


STEPS: list[tuple[str, Callable[[pytest.MonkeyPatch], None], int]] = [
    ("a global", lambda patch: patch.setattr(sys.modules[__name__], "GLOBAL", 20), 10),
    ("a helper", lambda patch: patch.setattr(sys.modules[__name__], "CHOSEN", thrice), 5),
    ("a class", lambda patch: patch.setattr(Options, "step", 4), 2),
    ("a module", lambda patch: patch.setattr(MODULE_LIKE, "level", 4), 1),
]


@pytest.mark.parametrize(("what", "change", "difference"), STEPS, ids=[step[0] for step in STEPS])
def test_a_change_between_launches_is_seen(
    monkeypatch: pytest.MonkeyPatch, what: str, change: Callable[[pytest.MonkeyPatch], None], difference: int
) -> None:
    before = [value(5, K=1) for _ in range(3)]
    assert before == [10 + 10 + 2 + 3 + 1] * 3
    change(monkeypatch)
    assert [value(5, K=1) for _ in range(3)] == [before[0] + difference] * 3
    monkeypatch.undo()
    assert value(5, K=1) == before[0]


def test_constexprs_and_numbers_do_not_share() -> None:
    assert [value(5, K=k) for k in (1, 2, 1, True, 2)] == [26, 27, 26, 26, 27]
    assert [value(x, K=0) for x in (32, 1024, 1, 2, 32)] == [79, 2063, 17, 19, 79]


def test_what_cannot_be_watched_is_refused() -> None:
    """An object whose attributes may change unseen is no value of a kernel."""

    @ltl.jit
    def uses_object(out):
        ltl.store(out, OUTSIDE.value)

    with pytest.raises(Exception, match="LOOM-F014"):
        uses_object.lower("*i32")
