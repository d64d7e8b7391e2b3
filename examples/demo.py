"""The tour of `./run demo`: kernels on real arrays, checked against NumPy, with modelled cost and objects."""

from __future__ import annotations

import shutil
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

import loom
from examples import matmul, softmax, vector_add

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


def launch_options(job: Job, compiled: loom.LoomObject) -> str:
    """The options of `loomc run` and `loomc profile` for a launch like the job's, on arrays of zeros."""
    names = [parameter.name for parameter in job.kernel.parameters]
    given = dict(zip(names, job.call, strict=False))
    options = []
    for argument in compiled.abi.args:
        value = given[argument.name]
        sizes = ",".join(map(str, value.shape)) if argument.kind == "buffer" else ""
        text = f"{argument.dtype}[{sizes}]" if argument.kind == "buffer" else str(value)
        # Brackets mean something to some shells.
        options.append(f'--arg "{argument.name}={text}"' if sizes else f"--arg {argument.name}={text}")
    return " ".join([*options, "--grid", ",".join(map(str, job.grid))])


def loomc_command() -> str:
    """How to call loomc here: by its name, by its path beside this Python, or as a module."""
    if shutil.which("loomc"):
        return "loomc"
    beside = shutil.which("loomc", path=str(Path(sys.executable).parent))
    if beside is None:
        python = f'"{sys.executable}"' if " " in sys.executable else sys.executable
        return f"{python} -m loom_core.tools.loomc"
    path = Path(beside)
    root = BUILD.parent
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def main() -> int:
    """Run all, on one core; exit code 1 where a result is wrong."""
    with loom.cores(1):
        return run_all()


def run_all() -> int:
    """The table of results, and how to go on."""
    console = Console()
    table = Table(title="Tile kernels, compiled and run on the simulator", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("kernel", "error", "time", "cycles", "MXU", "object"):
        left = heading in ("kernel", "object")
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    BUILD.mkdir(exist_ok=True)
    wrong, launches = [], []
    for job in jobs():
        console.print(f"compiling and running {job.name} ...", style="dim")
        job.kernel[job.grid](*job.call, **job.blocks)
        error = float(np.abs(job.out - job.reference()).max())
        start = time.perf_counter()
        job.kernel[job.grid](*job.call, **job.blocks)
        seconds = time.perf_counter() - start
        trace = job.kernel.trace(*job.call, grid=job.grid, **job.blocks)
        path = BUILD / f"{job.kernel.__name__}.loom"
        compiled = job.kernel.compile(*job.call, **job.blocks)
        path.write_bytes(loom.write_object(compiled))
        shown = path.relative_to(BUILD.parent)
        launches.append((shown, launch_options(job, compiled)))
        table.add_row(
            job.name, f"{error:.0e}" if error else "none", f"{seconds * 1e3:.2f} ms",
            f"{trace.cycles:,}", f"{trace.busy_fraction('MXU'):.0%}", str(shown),
        )  # fmt: skip
        if error > job.tolerance:
            wrong.append(job.name)
    console.print(table)
    console.print("error: against NumPy in float64; cycles and MXU (busy): the cycle model of one core of machine l1.")
    print("The kernels are in examples/. To read the objects, from the folder of this README:")
    loomc = loomc_command()
    print(f"  {loomc} explain {launches[0][0]}")
    print(f"  {loomc} disasm {launches[0][0]}")
    for path, options in launches:
        print(f"  {loomc} profile {path} {options}")
    if wrong:
        console.print(f"wrong: {', '.join(wrong)}", style="bold red")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
