"""Wall time of two simulated cores against one, on two idle CPUs. Where other work runs, nothing is measured."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import examples.matmul as products
import examples.softmax as rows
import loom
from benchmarks.measure import compare
from benchmarks.result import Result

BAR = 1.7
CORES = 2
PAIRS = 9
PROGRAMS = 8
MOST_BUSY = 0.05
"""The part of the CPUs' time that other work may take."""
LOOK_SECONDS = 1.0


def run() -> list[Result]:
    """Time of one core as a multiple of that of two."""
    reason = _obstacle()
    if reason:
        print(f"  not measured: {reason}", flush=True)
        return []
    return [
        _claim("two cores against one, matmul fp32 n=2048", _product(2048)),
        _claim("two cores against one, softmax 4096 x 4096", _softmax(4096)),
    ]


def _claim(name: str, launch: Callable[[], None]) -> Result:
    def on(count: int) -> Callable[[], None]:
        def call() -> None:
            with loom.cores(count):
                launch()

        return call

    measured = compare(on(CORES), on(1), PAIRS, time.perf_counter)
    detail = {"two_ms": measured.ours * 1e3, "one_ms": measured.theirs * 1e3}
    return Result(name, measured.ratio, BAR, detail=detail)


def _product(n: int) -> Callable[[], None]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    bias, out = rng.standard_normal(n, dtype=np.float32), np.empty((n, n), np.float32)
    grid, blocks = (n // 256, n // 256), {"BM": 256, "BN": 256, "BK": 128}
    return lambda: products.linear_gelu[grid](a, b, bias, out, n, n, n, n, 1, n, 1, n, 1, **blocks)


def _softmax(n: int) -> Callable[[], None]:
    x = np.random.default_rng(0).standard_normal((n, n), dtype=np.float32)
    out = np.empty_like(x)
    return lambda: rows.softmax_rows[PROGRAMS,](x, out, n, n, n, n, BLOCK=n)


# ---- is the machine idle? ----


def _obstacle() -> str:
    """Why two cores cannot be measured here, in words; "" where they can."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cpus < CORES:
        return f"this process has {cpus} CPU"
    busy = _busy_part()
    if busy is None:
        return "this system does not say how busy its CPUs are"
    return f"other work takes {busy:.0%} of the CPUs" if busy > MOST_BUSY else ""


def _busy_part() -> float | None:
    """The part of all CPUs' time that is not idle while this process sleeps."""
    before = _cpu_times()
    time.sleep(LOOK_SECONDS)
    after = _cpu_times()
    if before is None or after is None:
        return None
    total = sum(after) - sum(before)
    idle = sum(after[3:5]) - sum(before[3:5])
    return 1 - idle / total if total else None


def _cpu_times() -> list[int] | None:
    """Linux' counters of all CPUs: user, nice, system, idle, waiting for devices, ..."""
    statistics = Path("/proc/stat")
    if not statistics.exists():
        return None
    return [int(field) for field in statistics.read_text().splitlines()[0].split()[1:]]
