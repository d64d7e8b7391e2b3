"""Triton's own unit tests that are marked for its interpreter, run on Loom.

    git clone https://github.com/triton-lang/triton-cpu
    python tests/suites/triton_upstream.py triton-cpu/python/test [--every N] [pytest's arguments...]

The tests stay outside this repository. `--every N` runs each N-th test. The score is docs/triton.md's.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import pytest

FILES = ("core", "standard", "random", "tuple", "tensor_descriptor")


class OnLoom:
    """Makes Loom the driver before tests are collected, and picks each N-th test."""

    def __init__(self, every: int) -> None:
        self._every = every

    def pytest_configure(self) -> None:
        from triton import _internal_testing

        import loom.triton

        if not hasattr(_internal_testing, "is_cpu"):
            # The tests of triton-cpu ask for it; the kernels here are not compiled by that backend.
            _internal_testing.is_cpu = lambda: False
        loom.triton.install()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = items[:: self._every]


def main() -> int:
    """Pytest's exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder python/test of a checkout")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run each N-th test")
    known, rest = parser.parse_known_args()
    os.chdir(known.folder)
    sys.path.insert(0, str(Path("unit/language").resolve()))
    files = [] if any(name.endswith(".py") for name in rest) else [f"unit/language/test_{name}.py" for name in FILES]
    options = ["--confcutdir=.", "-c", os.devnull, "--rootdir=.", "-m", "interpreter", "--device", "cpu", "-q"]
    return int(pytest.main([*options, *files, *rest], plugins=[OnLoom(known.every)]))


if __name__ == "__main__":
    sys.exit(main())
