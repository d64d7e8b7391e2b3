"""Loads `kernels.py` in one of the languages that it is written in."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any


def kernels_in(language: ModuleType, jit: Any) -> ModuleType:
    """`kernels.py` with `tl` and `jit` taken from `language`."""
    path = Path(__file__).with_name("kernels.py")
    spec = importlib.util.spec_from_file_location(f"benchmarks.kernels.{language.__name__}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(tl=language, jit=jit)
    spec.loader.exec_module(module)
    return module
