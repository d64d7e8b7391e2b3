"""`python -m benchmarks [name ...] [--out FILE]`: run claims, show them against their bars, write JSON.

OpenBLAS, OpenMP and torch are held to one thread, launches to one core; a core type forced on OpenBLAS is lifted, so
that the opponent runs its best kernel for this CPU. Both are set before the libraries load, by starting again where
needed.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.result import Result

CLAIMS = (
    "gemm", "functions", "interpreter", "palladium", "movement", "launch", "compile", "interchange", "check", "minilm",
    "cycles", "cores",
)  # fmt: skip
SINGLE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "LOOM_CORES": "1"}
FORCED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
PACKAGES = ("numpy", "numba", "llvmlite", "torch", "triton", "jax")


def main() -> int:
    """Exit code 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(CLAIMS)}; all where none is given")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "latest.json")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in CLAIMS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(CLAIMS)}")
    _restart_in_clean_environment()
    results: dict[str, list[Result]] = {}
    for name in options.names or CLAIMS:
        print(f"== {name}", flush=True)
        results[name] = importlib.import_module(f"benchmarks.{name}").run()
        for result in results[name]:
            print(_line(result), flush=True)
    _write(options.out, results)
    return 0 if all(result.met for group in results.values() for result in group) else 1


def _restart_in_clean_environment() -> None:
    wanted = {**os.environ, **SINGLE_THREAD}
    for name in FORCED:
        wanted.pop(name, None)
    if wanted != dict(os.environ):
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]], wanted)


def _line(result: Result) -> str:
    bar = "reported" if result.bar is None else f"bar {result.sense} {result.bar:g}"
    mark = "-" if result.bar is None else ("ok" if result.met else "MISSED")
    return f"  {result.claim:<52} {result.figure:>10.3f} {result.unit:<4} {bar:<16} {mark}"


def _write(path: Path, results: dict[str, list[Result]]) -> None:
    """Merge into the file: claims that were not run keep their last figures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else {"claims": {}}
    for name, group in results.items():
        if not group:
            continue  # what cannot be measured here keeps its figures, too
        known["claims"][name] = [dataclasses.asdict(result) | {"met": result.met} for result in group]
    known["environment"] = {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "processor": _processor(),
        **{name: _version(name) for name in PACKAGES},
    }
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    print(f"written to {path}")


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


if __name__ == "__main__":
    sys.exit(main())
