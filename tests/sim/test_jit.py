"""The engine cache: what is compiled, what is loaded, and what happens when the cache is wrong or cannot be used."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loom_core.base.diagnostics import LoomWarning
from loom_core.base.knobs import knobs
from loom_sim import jit, stamps

_ROOT = Path(__file__).resolve().parents[2]
_Engine = Callable[[int, int], int]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """An empty cache, and no memory of engines that the process has."""
    known = dict(jit._addresses)
    jit._addresses.clear()
    try:
        with knobs.override(cache_dir=tmp_path):
            yield tmp_path / "engines"
    finally:
        jit._addresses.update(known)


def plus(amount: int) -> Callable[[], _Engine]:
    def build() -> _Engine:
        def engine(a: int, b: int) -> int:
            return a + b + amount

        return engine

    return build


def call(name: str, build: Callable[[], _Engine]) -> int:
    address = jit.engine_address(name, build)
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)(10, 20))


def forget() -> None:
    """As a new process would see it, but for the code that is loaded."""
    jit._addresses.clear()
    jit.stats.clear()


def never() -> _Engine:
    raise AssertionError("the cache has this engine")


def test_an_engine_is_compiled_once_and_loaded_after(cache: Path) -> None:
    forget()
    assert call("plus1", plus(1)) == 31
    assert call("plus1", never) == 31
    assert jit.stats.compiled == ["plus1"]
    forget()
    assert call("plus1", never) == 31
    assert (jit.stats.compiled, jit.stats.loaded) == ([], ["plus1"])
    assert len(list(cache.iterdir())) == 1


def test_closures_of_one_function_are_kept_apart_by_name(cache: Path) -> None:
    assert [call(f"plus{n}", plus(n)) for n in (2, 3, 4)] == [32, 33, 34]
    forget()
    assert [call(f"plus{n}", never) for n in (4, 2, 3)] == [34, 32, 33]


def test_other_sources_or_another_cpu_make_another_engine(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("plus5", plus(5))
    forget()
    monkeypatch.setattr(jit, "source_stamp", lambda home: "edited")
    call("plus5", plus(5))
    assert jit.stats.compiled == ["plus5"]
    codegen = type(jit.registry.cpu_target.target_context.codegen())
    monkeypatch.setattr(codegen, "magic_tuple", lambda self: ("triple", "other-cpu", ""))
    forget()
    call("plus5", plus(5))
    assert jit.stats.compiled == ["plus5"]
    assert len(list(cache.iterdir())) == 3


def test_an_edit_while_the_process_runs_stores_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edited = {name: content + b" " for name, content in stamps._sources().items()}
    monkeypatch.setattr(stamps, "_sources", lambda: edited)
    assert call("plus9", plus(9)) == 39
    assert not list(cache.iterdir())


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty"])
def test_damaged_files_are_noticed_and_replaced(cache: Path, damage: str) -> None:
    call("plus6", plus(6))
    (path,) = cache.iterdir()
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 4
    path.write_bytes({"truncate": content[:-1], "flip": content, "empty": b""}[damage])
    forget()
    with pytest.warns(LoomWarning, match=r"LOOM-S002.*damaged"):
        assert call("plus6", plus(6)) == 36
    forget()
    assert call("plus6", never) == 36


def test_a_cache_that_cannot_be_written_warns_once(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    with knobs.override(cache_dir=blocker / "below"):
        with pytest.warns(LoomWarning, match="LOOM-S001") as caught:
            assert call("plus7", plus(7)) == 37
            assert call("plus8", plus(8)) == 38
        assert len(caught) == 1


def test_a_cache_that_fills_up_warns_and_goes_on(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jit.os, "replace", full)
    with pytest.warns(LoomWarning, match="No space left"):
        assert call("plus9", plus(9)) == 39
    assert list(cache.iterdir()) == []


def test_old_engines_leave(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_FILES_KEPT", 2)
    for n in range(4):
        call(f"kept{n}", plus(n))
        for age, path in enumerate(sorted(cache.iterdir(), reverse=True)):
            os.utime(path, (1e9 - age, 1e9 - age))
    assert sorted(path.name[:5] for path in cache.iterdir()) == ["kept2", "kept3"]


def test_stored_engines_can_be_flushed(cache: Path) -> None:
    call("plus1", plus(1))
    call("plus10", plus(10))
    jit.EngineCache("plus1", cache, "").flush()
    assert [path.name.split("-")[0] for path in cache.iterdir()] == ["plus10"]


def test_numba_settings_are_left_alone(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import config

    def settings() -> dict[str, object]:
        # Numba itself follows its environment variables.
        return {name: value for name, value in vars(config).items() if name.isupper() and name != "CACHE_DIR"}

    before = settings()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache / "elsewhere"))
    call("plus11", plus(11))
    assert settings() == before
    assert not (cache / "elsewhere").exists()


_PROCESS = """
import ctypes, sys
from loom_sim import jit, stamps

def build(n):
    def make():
        def engine(a, b):
            return a + b + n
        return engine
    return make

call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
order = list(map(int, sys.argv[1].split(",")))
print(",".join(str(call(jit.engine_address(f"shared{n}", build(n)))(1, 2)) for n in order), len(jit.stats.compiled))
"""


def start(cache_dir: Path, order: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(_ROOT / "src"), "LOOM_CACHE_DIR": str(cache_dir)}
    return subprocess.Popen(
        [sys.executable, "-c", _PROCESS, order],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_share_a_cache(tmp_path: Path) -> None:
    running = [start(tmp_path, order) for order in ("1,2,3,4", "4,3,2,1", "2,4,1,3")]
    for process, expected in zip(running, ("4,5,6,7", "7,6,5,4", "5,7,4,6"), strict=True):
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert output.split()[0] == expected
    # Each was compiled by whoever came first; a later process compiles nothing, in whatever order it asks.
    output, errors = start(tmp_path, "3,1,4,2").communicate(timeout=120)
    assert output.split() == ["6,4,7,5", "0"], errors


def test_subroutines_compile_into_their_callers(cache: Path) -> None:
    @jit.subroutine("int64(int64, int64)")
    def twice_plus(a: int, b: int) -> int:
        return 2 * a + b

    @jit.subroutine("UniTuple(int64, 2)(int64)", inline=True)
    def both(a: int) -> tuple[int, int]:
        return a, twice_plus(a, 1)

    def build() -> _Engine:
        def engine(a: int, b: int) -> int:
            first, second = both(a)
            return first + second + twice_plus(b, 0)

        return engine

    assert call("calls", build) == 10 + 21 + 40


def test_no_warning_in_ordinary_use(cache: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call("plus12", plus(12)) == 42
        forget()
        assert call("plus12", never) == 42
