"""The tour of `./run demo`: kernels on real arrays, checked against NumPy, with their modelled cost and their objects."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples import flash_attention, layer_norm, matmul, softmax, vector_add
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
    w, v, u = normal(777), normal(777), np.zeros((1000, 777), np.float32)
    q, k, value, o = normal(2, 500, 64), normal(2, 500, 64), normal(2, 500, 64), np.zeros((2, 500, 64), np.float32)
    return [
        Job("vector add", vector_add.add, (977,), (x, y, z, x.size), {"BLOCK": 1024}, z, lambda: x + y, 0),
        Job(
            "matmul + bias + GELU", matmul.linear_gelu, (4, 3),
            (a, b, bias, c, 500, 600, 700, 700, 1, 600, 1, 600, 1), {"BM": 128, "BN": 256, "BK": 128}, c,
            lambda: matmul.reference(a, b, bias), 1e-4,
        ),
        Job("softmax", softmax.softmax_rows, (8,), (s, t, 1000, 777, 777, 777), {"BLOCK": 1024}, t,
            lambda: softmax.reference(s), 1e-6),
        Job("layer norm", layer_norm.layer_norm, (1000,), (s, w, v, u, 777, 777, 1e-5), {"BLOCK": 1024}, u,
            lambda: layer_norm.reference(s, w, v), 1e-5),
        Job("causal flash attention", flash_attention.flash_attention, (8, 2),
            (q, k, value, o, 500, 500 * 64, 64, 0.125), {"D": 64, "ROWS": 64, "KEYS": 64}, o,
            lambda: flash_attention.reference(q, k, value), 1e-5),
    ]  # fmt: skip


def main() -> int:
    """Run all; exit code 1 where a result is wrong."""
    console = Console()
    table = Table(title="Loom: tile kernels, compiled and run on the simulator")
    for heading in ("kernel", "largest error", "time", "modelled", "matrix unit busy", "object"):
        table.add_column(heading, justify="left" if heading in ("kernel", "object") else "right")
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
        path = BUILD / f"{job.name.replace(' ', '_').replace('+_', '')}.loom"
        path.write_bytes(write_object(job.kernel.compile(*job.call, **job.blocks)))
        table.add_row(
            job.name, f"{error:.1e}" if error else "equal bits", f"{seconds * 1e3:.2f} ms",
            f"{trace.cycles:,} cycles", f"{trace.busy_fraction('MXU'):.0%}", str(path.relative_to(BUILD.parent)),
        )  # fmt: skip
        if error > job.tolerance:
            wrong.append(job.name)
    console.print(table)
    console.print("Errors are against NumPy (float64, exact for the sum). Next: loomc explain --object-file OBJECT,")
    console.print("loomc profile, loomc disasm; examples/ holds the kernels.")
    if wrong:
        console.print(f"wrong: {', '.join(wrong)}", style="bold red")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
