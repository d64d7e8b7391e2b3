"""Seeded bugs as data: what `loom.check()` must find, with its code, in which line.

Classes that a language cannot express, and why:

    Palladium   reads of what is uninitialised    scratch and outputs begin as poison by rule; nan=True finds what it
                                                  leaves
    Palladium   programs that meet                grid points run in order; `dimension_semantics` is checked when called
    Palladium   masked elements                   there is no load without a value for the rest
    all         waits, windows                    the compiler's: what is wrong with them is done to objects
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

BLOCK = 16


@dataclass(frozen=True)
class Seed:
    """One kernel of `kernels.py`: arguments by name (arrays are made anew), grid, the code of what must be found.

    `options`: of `loom.check`; `fresh`: arguments that are declared uninitialised.
    """

    kernel: str
    code: str
    arguments: Callable[[], list[Any]]
    grid: int = 1
    block: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    fresh: tuple[int, ...] = ()


def floats(count: int = BLOCK) -> np.ndarray:
    return np.arange(count, dtype=np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


SEEDS = (
    Seed("load_without_mask", "LOOM-R210", lambda: [floats(20), floats(32), 20], grid=2),
    Seed("store_past_the_end", "LOOM-R210", lambda: [floats(32), floats(32), 32], grid=2),
    Seed("sum_of_masked", "LOOM-R213", lambda: [floats(), floats(1), 11]),
    Seed("largest_of_masked", "LOOM-R213", lambda: [-1 - floats(), floats(1), 11]),
    Seed("sum_into_scratch", "LOOM-S202", lambda: [floats(), floats(), floats()], fresh=(1,)),
    Seed("half_written", "LOOM-S202", lambda: [floats(), floats(), floats()], fresh=(1,)),
    Seed("neighbour_in_place", "LOOM-S204", lambda: [floats(64)], grid=4),
    Seed("blocks_that_overlap", "LOOM-S205", lambda: [floats(), floats(64)], grid=4),
    Seed("lock_that_stays", "LOOM-S208", lambda: [ints(0), ints(0, 0)], grid=2, block=False),
    Seed("wait_for_a_later_program", "LOOM-S208", lambda: [ints(0), ints(0, 0)], grid=2, block=False),
    Seed("row_stride_wraps", "LOOM-R214", lambda: [floats(), floats(), 1 << 30], grid=5),
    Seed("index_wraps", "LOOM-R214", lambda: [floats(), ints(*range(15), 65536), floats()]),
    Seed("division_by_zero", "LOOM-R217", lambda: [floats(), floats()], options={"nan": True}),
    Seed("variance_below_zero", "LOOM-R217", lambda: [floats(), floats()], options={"nan": True}),
    Seed("loads_for_nothing", "LOOM-R215", lambda: [floats(32), floats()]),
    Seed("multiplies_for_nothing", "LOOM-R215", lambda: [floats(256), floats(256)]),
    Seed("stores_twice", "LOOM-R216", lambda: [floats(), floats()]),
)

PALLADIUM = {
    "next_block": "LOOM-R121",
    "named_block": "LOOM-R121",
    "row_wraps": "LOOM-R214",
    "square_wraps": "LOOM-R214",
    "division_by_zero": "LOOM-R217",
    "logarithm": "LOOM-R217",
    "waits_for_a_change": "LOOM-S208",
    "counts_to_nowhere": "LOOM-S208",
    "reads_for_nothing": "LOOM-R215",
    "multiplies_for_nothing": "LOOM-R215",
}
"""Functions of `palladium_kernels.py` that launch a kernel, and the code of what must be found."""


@cache
def kernels_in(language: str) -> ModuleType:
    """`kernels.py` in "ltl" or in "triton"."""
    if language == "ltl":
        import loom.triton.language as tl

        jit = tl.jit
    else:
        import triton
        import triton.language as tl  # type: ignore[no-redef]

        jit = triton.jit
    path = Path(__file__).with_name("kernels.py")
    spec = importlib.util.spec_from_file_location(f"tests.check.kernels_{language}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(tl=tl, jit=jit)
    spec.loader.exec_module(module)
    return module
