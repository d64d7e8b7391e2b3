"""Triton's own unit tests that are marked for its interpreter, run on Loom.

    git clone https://github.com/triton-lang/triton-cpu
    python tests/suites/triton_upstream.py triton-cpu/python/test --results 0.jsonl [--shard 0/16] [for pytest...]
    python -m tests.suites.triton_upstream --report *.jsonl [--write --note TEXT]

`--shard I/N` runs each N-th test from the I-th on, and `--results FILE` adds a line for each test that has run: a run
that was stopped goes on where it was, with `--again` also with those that failed. `--report` counts what the files
hold, and says why tests fail; `--write` keeps that in exhaustive/scores.json. The tests stay outside this repository.
Block pointers are in Triton up to 3.7: `unit/language/test_block_pointer.py` is run on that.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

FILES: Final = ("core", "standard", "random", "tuple", "tensor_descriptor", "subprocess", "frontend")
MOST_SECONDS: Final = 240
"""What one test may take."""
EXCEPTIONS: Final = {
    r"test_optimize_thread_locality|test_assume": "asks for the TTGIR of a GPU",
    r"test_abs_fp8\[in_dtype[034]\]|test_\w+\[.*float8e4b15|test_\w+\[.*float8e4b8": "a float type that Loom refuses",
    r"test_print\[device_print_pointer": "a pointer has no number that could be printed",
    r"test_reduce\[.*-None-True\]": "of an older Triton: 3.9 refuses to index a scalar",
    r"test_where\[1-\*int32\]": "loads pointers from memory, of which nothing says into which array they point",
    r"test_zero_strided_tensors|test_tensor_descriptor_batched_gemm": "asks torch for a CUDA device",
    r"test_mxfp8_mxfp4_matmul_tma\[.*8192": "not run to its end: a product of 8192³ takes more than four minutes",
    r"test_scaled_dot": "one element near 0 of 4,096 lies 1.2% from a product rounded in another order; 1% is allowed",
    r"test_reshape\[formats2\]": "LOOM-C105: a tile of nine dimensions",
}
"""What fails, by the tests' names, and why."""


class OnLoom:
    """Makes Loom the driver before tests are collected, picks the shard's tests and keeps their outcomes."""

    def __init__(self, shard: tuple[int, int], results: Path | None, seconds: float, again: bool) -> None:
        self._first, self._step = shard
        self._results = results
        self._until = time.monotonic() + seconds
        self._started = 0.0
        known = read_results([results] if results is not None and results.exists() else [])
        self._done = {result["test"] for result in known if not (again and result["outcome"] == "failed")}

    def pytest_configure(self) -> None:
        import loom.triton

        loom.triton.install()
        from triton import _internal_testing

        if not hasattr(_internal_testing, "is_cpu"):
            # The tests of triton-cpu ask for it; the kernels here are not compiled by that backend.
            _internal_testing.is_cpu = lambda: False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        for module in {item.module for item in items if item.module.__name__ == "test_subprocess"}:
            # Its scripts run by `python -m loom.triton`, and print in a form of their own, as in Triton's interpreter.
            module.is_interpreter = lambda: True
            module.subprocess = _Subprocess
        items[:] = [item for item in items[self._first :: self._step] if item.nodeid not in self._done]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, Any]:
        if time.monotonic() > self._until:
            item.session.shouldstop = "the time given is over"
        self._started = time.monotonic()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(MOST_SECONDS)
        try:
            return (yield)
        finally:
            signal.alarm(0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if self._results is None or not (report.when == "call" or (report.when == "setup" and not report.passed)):
            return
        result = {"test": report.nodeid, "outcome": report.outcome, "seconds": round(report.duration, 2)}
        if not report.passed:
            result["reason"] = _reason(report)
        with self._results.open("a") as file:
            file.write(json.dumps(result) + "\n")


class _Subprocess:
    """Runs scripts with Loom as Triton's driver."""

    @staticmethod
    def run(command: Sequence[str], **options: Any) -> Any:
        python, *rest = command
        return subprocess.run([python, "-m", "loom.triton", *rest], **options)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"a test took more than {MOST_SECONDS} s")


def _reason(report: Any) -> str:
    """The line of a report that says why."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[-1])
    lines = [line for line in report.longreprtext.splitlines() if line.startswith("E  ")]
    coded = [line for line in lines if "LOOM-" in line]
    return (coded or lines or [""])[0].removeprefix("E").strip()[:300]


# ---- the report ------------------------------------------------------------------------------------------------------


def read_results(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """The last outcome of each test that the files know."""
    found = {}
    for file in files:
        for line in file.read_text().splitlines():
            result = json.loads(line)
            found[result["test"]] = result
    return iter(found.values())


def score(results: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Numbers of outcomes by file of tests, and the names of those that fail by reason."""
    counts: dict[str, Counter[str]] = {}
    failures: dict[str, list[str]] = {}
    for result in results:
        file, name = result["test"].split("::", 1)
        counts.setdefault(Path(file).stem, Counter())[result["outcome"]] += 1
        if result["outcome"] == "failed":
            known = [why for pattern, why in EXCEPTIONS.items() if re.match(pattern, name)]
            failures.setdefault(known[0] if known else f"unexplained: {result['reason']}", []).append(name)
    files = {name: dict(sorted(count.items())) for name, count in sorted(counts.items())}
    return {"files": files, "failures": {why: sorted(names) for why, names in sorted(failures.items())}}


def report(files: Sequence[Path], write: bool, note: str) -> int:
    """Print the score, and keep it with a note; the number of reasons that are not known."""
    found = {**score(read_results(files)), "note": note}
    for name, count in found["files"].items():
        print(f"{name:28} " + ", ".join(f"{number} {what}" for what, number in count.items()))
    total = sum((Counter(count) for count in found["files"].values()), Counter[str]())
    ran = total["passed"] + total["failed"]
    print(f"{total['passed']} of {ran} pass ({total['passed'] / max(1, ran):.2%}), {total['skipped']} skip themselves")
    for why, names in found["failures"].items():
        print(f"{len(names)} {why}: {names[0]}")
    if write:
        from exhaustive.scores import record

        record("Triton's unit tests", f"Triton {importlib.metadata.version('triton')}", found)
    return sum(why.startswith("unexplained") for why in found["failures"])


def _shard(text: str) -> tuple[int, int]:
    first, step = map(int, text.split("/"))
    if not 0 <= first < step:
        raise argparse.ArgumentTypeError(f"{text}: I/N with 0 <= I < N")
    return first, step


def main() -> int:
    """Pytest's exit code, or 1 where a report has a failure without a reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="the folder python/test of a checkout")
    parser.add_argument("--shard", type=_shard, default=(0, 1), metavar="I/N", help="each N-th test, from the I-th on")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep outcomes in FILE, and go on from there")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--again", action="store_true", help="also what failed before")
    parser.add_argument("--write", action="store_true", help="keep the report in exhaustive/scores.json")
    parser.add_argument("--note", default="", help="what the report is of, kept with it")
    parser.add_argument("--report", type=Path, nargs="+", metavar="FILE", help="count the outcomes of files")
    known, rest = parser.parse_known_args()
    if known.report:
        return int(report(known.report, known.write, known.note) > 0)
    if known.folder is None:
        parser.error("the folder of the tests is missing")
    plugin = OnLoom(known.shard, known.results and known.results.resolve(), known.seconds, known.again)
    os.chdir(known.folder)
    sys.path.insert(0, str(Path("unit/language").resolve()))
    files = [] if any(".py" in name for name in rest) else [f"unit/language/test_{name}.py" for name in FILES]
    options = ["--confcutdir=.", "-c", os.devnull, "--rootdir=.", "-m", "interpreter", "--device", "cpu", "-q"]
    return int(pytest.main([*options, "--tb=short", *files, *rest], plugins=[plugin]))


if __name__ == "__main__":
    sys.exit(main())
