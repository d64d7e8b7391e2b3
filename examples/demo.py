"""The tour of `./run demo`: kernels on real arrays, checked against NumPy, with modelled cost and objects."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples import matmul, softmax, vector_add
from loom_core.objfile import write_object

BUILD = Path(__file__).resolve().parents[1] / "build"


@dataclass(frozen=True)
class Job:
    """One kernel on one set of arrays; `call` holds what `kernel[grid]` is called with."""

    name: str
    kernel: Any
    grid: tuple[int, ...]
    call: tuple[Any, ...]
    blocks: dict[str, int]
    out: np.ndarray
    reference: Callable[[], np.ndarray]
    tolerance: float


def jobs() -> list[Job]:
    """Sizes that fill no block evenly."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    x, y, z = normal(1_000_003), normal(1_000_003), np.zeros(1_000_003, np.float32)
    a, b, bias, c = normal(500, 700), normal(700, 600), normal(600), np.zeros((500, 600), np.float32)
    s, t = normal(1000, 777), np.zeros((1000, 777), np.float32)
    return [
        Job("vector add", vector_add.add, (977,), (x, y, z, x.size), {"BLOCK": 1024}, z, lambda: x + y, 0),
        Job(
            "matmul+bias+GELU", matmul.linear_gelu, (4, 3),
            (a, b, bias, c, 500, 600, 700, 700, 1, 600, 1, 600, 1), {"BM": 128, "BN": 256, "BK": 128}, c,
            lambda: matmul.reference(a, b, bias), 1e-4,
        ),
        Job("softmax", softmax.softmax_rows, (8,), (s, t, 1000, 777, 777, 777), {"BLOCK": 1024}, t,
            lambda: softmax.reference(s), 1e-6),
    ]  # fmt: skip


def main() -> int:
    """Run all; exit code 1 where a result is wrong."""
    console = Console()
    table = Table(title="Tile kernels, compiled and run on the simulator", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("kernel", "error", "time", "cycles", "MXU", "object"):
        left = heading in ("kernel", "object")
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    BUILD.mkdir(exist_ok=True)
    wrong = []
    for job in jobs():
        console.print(f"compiling and running {job.name} ...", style="dim")
        job.kernel[job.grid](*job.call, **job.blocks)
        error = float(np.abs(job.out - job.reference()).max())
        start = time.perf_counter()
        job.kernel[job.grid](*job.call, **job.blocks)
        seconds = time.perf_counter() - start
        trace = job.kernel.trace(*job.call, grid=job.grid, **job.blocks)
        path = BUILD / f"{job.kernel.__name__}.loom"
        path.write_bytes(write_object(job.kernel.compile(*job.call, **job.blocks)))
        table.add_row(
            job.name, f"{error:.0e}" if error else "none", f"{seconds * 1e3:.2f} ms",
            f"{trace.cycles:,}", f"{trace.busy_fraction('MXU'):.0%}", str(path.relative_to(BUILD.parent)),
        )  # fmt: skip
        if error > job.tolerance:
            wrong.append(job.name)
    console.print(table)
    console.print("error: against NumPy in float64; cycles and MXU (busy): the cycle model of machine l1.")
    console.print("The kernels are in examples/. To read an object:")
    console.print("  loomc explain --object-file OBJECT")
    console.print("  loomc profile --object-file OBJECT")
    console.print("  loomc disasm OBJECT")
    if wrong:
        console.print(f"wrong: {', '.join(wrong)}", style="bold red")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
