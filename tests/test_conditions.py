"""Kernels under hard conditions: interrupted, without a cache, called from many threads and after a fork."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loom.triton.language as ltl
from loom_core.base.knobs import knobs

ROOT = Path(__file__).resolve().parents[1]

KERNEL = """\
import numpy as np
import loom.triton.language as ltl

@ltl.jit
def scale(x, out, n, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(out + at, ltl.load(x + at, mask=at < n) * 2, mask=at < n)

x = np.arange(1000, dtype=np.float32)
out = np.zeros_like(x)
scale[(4,)](x, out, 1000, BLOCK=256)
assert np.array_equal(out, 2 * x)
"""

ENDLESS = """\
import numpy as np
import loom.triton.language as ltl

@ltl.jit
def work(x, out, n, BLOCK: ltl.constexpr):
    at = ltl.arange(0, BLOCK)
    total = ltl.zeros((BLOCK,), ltl.float32)
    for i in range(n):
        total += ltl.exp(ltl.load(x + at))
    ltl.store(out + at, total)

x, out = np.zeros(1024, np.float32), np.zeros(1024, np.float32)
work[(1,)](x, out, 10, BLOCK=1024)
print("begins", flush=True)
try:
    work[(1 << 20,)](x, out, 1 << 30, BLOCK=1024)
except KeyboardInterrupt:
    work[(1,)](x, out, 10, BLOCK=1024)
    assert (out == 10).all()
    print("stopped", flush=True)
"""


def run_file(path: Path, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own; kernels need a file for their source."""
    path.write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-W", "always", str(path)], capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
    )  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="signals of other systems")
def test_ctrl_c_stops_a_long_run_and_the_next_one_is_right(tmp_path: Path) -> None:
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        # A slice is milliseconds; what is allowed here is a machine with other work.
        assert process.communicate(timeout=20)[0] == "stopped\n"
    assert process.returncode == 0


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache folder with the engines there are and no objects; broken caches of engines: tests/sim/test_jit.py."""
    folder = tmp_path / "cache"
    engines = knobs.cache_dir / "engines"
    engines.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    (folder / "engines").symlink_to(engines)
    return folder


def test_a_folder_of_objects_that_cannot_be_made_is_one_warning(cache: Path, tmp_path: Path) -> None:
    (cache / "objects").write_text("")
    done = run_file(tmp_path / "kernel.py", KERNEL, LOOM_CACHE_DIR=str(cache))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("LOOM-C201") == 1 and done.stderr.count("LoomWarning") == 1


def test_a_full_disk_is_a_warning_and_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    pytest.importorskip("resource")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))\n"
    done = run_file(tmp_path / "kernel.py", limit + KERNEL, LOOM_CACHE_DIR=str(cache))
    assert done.returncode == 0, done.stderr
    assert "LOOM-C201" in done.stderr and "File too large" in done.stderr
    assert (cache / "objects").is_dir() and not [path for path in (cache / "objects").rglob("*") if path.is_file()]


@ltl.jit
def polynomial(x: Any, out: Any, n: Any, DEGREE: ltl.constexpr, BLOCK: ltl.constexpr) -> None:
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    value = ltl.load(x + at, mask=at < n)
    total = ltl.zeros((BLOCK,), ltl.float32)
    for _ in ltl.static_range(DEGREE):
        total = total * value + 1
    ltl.store(out + at, total, mask=at < n)


def expected(x: np.ndarray, degree: int) -> np.ndarray:
    total = np.zeros_like(x)
    for _ in range(degree):
        total = total * x + 1
    return total


def test_eight_threads_compile_and_run_the_same_and_different_kernels() -> None:
    failures: list[str] = []
    gate = threading.Barrier(8)

    def work(number: int) -> None:
        random = np.random.default_rng(number)
        gate.wait()
        for turn in range(12):
            degree = 1 + (number * turn) % 5  # the same variant in several threads, first calls at the same time
            x = random.standard_normal(500 + 100 * number, dtype=np.float32)
            out = np.full_like(x, np.nan)
            polynomial[(-(-len(x) // 128),)](x, out, len(x), DEGREE=degree, BLOCK=128)
            if out.tobytes() != expected(x, degree).tobytes():
                failures.append(f"thread {number}, turn {turn}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_after_a_fork_old_and_new_kernels_are_right() -> None:
    x = np.linspace(-1, 1, 1000, dtype=np.float32)
    out = np.zeros_like(x)
    polynomial[(8,)](x, out, 1000, DEGREE=2, BLOCK=128)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            right = True
            for degree in (2, 7):  # compiled before, and not
                polynomial[(8,)](x, out, 1000, DEGREE=degree, BLOCK=128)
                right &= out.tobytes() == expected(x, degree).tobytes()
            code = 0 if right else 2
        finally:
            os._exit(code)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")
