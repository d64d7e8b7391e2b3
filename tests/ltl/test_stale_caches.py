"""No launch meets an object that was made for something else: not in memory, not on disk, not with other processes."""

from __future__ import annotations

import json
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
from loom_core.base.knobs import knobs

SOURCES = Path(ltl.__file__).resolve().parents[1]

MODULE = """
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


@ltl.jit
def chosen(x):
    return x * 1000


HELPERS = (("inner", inner), ("chosen", chosen))


def made(offset):
    @ltl.jit
    def kernel(out, x, NAME: ltl.constexpr, extra: ltl.constexpr = 7, again=11):
        for i in ltl.static_range(WIDTH):
            ltl.store(out + i, helper(x) + TABLE[1] * Settings.scale + extra + again + offset)
        for name, function in HELPERS:
            if name == NAME:
                ltl.store(out + 7, function(x))
    return kernel


out = np.zeros(8, np.int32)
made(100)[(1,)](out, 2, NAME="chosen")
TOTAL = int(out.sum())
"""

CHANGES = {
    "global": ("LIMIT = 3", "LIMIT = 4", 4),
    "tuple": ("TABLE = (1, 2)", "TABLE = (1, 3)", 20),
    "constexpr": ("WIDTH = ltl.constexpr(4)", "WIDTH = ltl.constexpr(5)", 135),
    "class attribute": ("scale = 5", "scale = 6", 8),
    "helper": ("inner(x) + LIMIT", "inner(x) - LIMIT", -24),
    "helper of a helper": ("x * factor", "x * factor * factor", 16),
    "helper chosen by a string": ("x * 1000", "x * 2000", 2000),
    "default of a helper": ("factor=2", "factor=3", 8),
    "default constexpr": ("extra: ltl.constexpr = 7", "extra: ltl.constexpr = 8", 4),
    "default number": ("again=11", "again=12", 4),
    "closure": ("made(100)", "made(101)", 4),
    "kernel": ("+ again + offset", "- again + offset", -88),
}

# Runs versions of one file, whose texts it reads as JSON, one after the other.
RUN_VERSIONS = """
import json, os, pathlib, runpy, sys

file = pathlib.Path(sys.argv[1])
for number, text in enumerate(json.load(sys.stdin)):
    file.write_text(text)
    os.utime(file, (number, number))
    print(runpy.run_path(str(file))["TOTAL"])
"""


class Folder:
    """A file of kernels and a cache of objects; compiled engines are shared with this process."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "kernels.py"
        self.objects = folder / "cache" / "objects"
        self.objects.parent.mkdir()
        engines = knobs.cache_dir / "engines"
        engines.mkdir(parents=True, exist_ok=True)
        (folder / "cache" / "engines").symlink_to(engines, target_is_directory=True)
        self.environment = {**os.environ, "PYTHONPATH": str(SOURCES), "LOOM_CACHE_DIR": str(folder / "cache")}

    def start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", RUN_VERSIONS, str(self.file)]
        return subprocess.Popen(
            command, env=self.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def finish(self, process: subprocess.Popen[str], versions: list[str]) -> list[int]:
        out, err = process.communicate(json.dumps(versions))
        assert process.returncode == 0, err
        return [int(line) for line in out.split()]

    def cached(self) -> set[str]:
        return {path.name for path in self.objects.rglob("*") if path.is_file()}


FIRST = 4 * (4 + 3 + 10 + 7 + 11 + 100) + 2000


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Two processes at once on an empty cache."""
    folder = Folder(tmp_path_factory.mktemp("stale"))
    running = [folder.start() for _ in range(2)]
    assert [folder.finish(process, [MODULE]) for process in running] == [[FIRST]] * 2
    return folder


@pytest.fixture(scope="module")
def totals(filled: Folder) -> dict[str, int]:
    """Another process: every changed file, with the first before, between and after them."""
    versions = [MODULE]
    for before, after, _ in CHANGES.values():
        assert MODULE.count(before) == 1
        versions += [MODULE.replace(before, after), MODULE]
    found = filled.finish(filled.start(), versions)
    assert found[::2] == [FIRST] * (len(CHANGES) + 1), "what was restored is not what was there"
    return dict(zip(CHANGES, found[1::2], strict=True))


def test_two_processes_at_once_on_an_empty_cache(filled: Folder) -> None:
    """Both wrote one object, whole."""
    (name,) = filled.cached()
    assert name.endswith(".loom"), "temporary files were left"


@pytest.mark.report("P30")
@pytest.mark.parametrize("what", CHANGES)
def test_a_change_between_processes_is_seen(totals: dict[str, int], what: str) -> None:
    """The file keeps its name, so that only what the kernel is made of can tell the objects apart."""
    assert totals[what] == FIRST + CHANGES[what][2]


def test_what_did_not_change_is_not_compiled_again(filled: Folder, totals: dict[str, int]) -> None:
    """One object for each change, but for the number that is an argument of the object."""
    assert len(filled.cached()) == 1 + len(totals) - 1


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
