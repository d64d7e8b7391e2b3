"""docs/performance.md: what decides a kernel's cycles, and the measured figures against their bars."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from loom_core.isa.machine import L1
from loom_core.tools.console import byte_count

SOURCE_TREE: Final = Path(__file__).resolve().parents[3]
RESULTS: Final = SOURCE_TREE / "benchmarks" / "results" / "latest.json"
PAGE: Final = SOURCE_TREE / "docs" / "performance.md"
_BEGIN: Final = "<!-- measured -->"
_END: Final = "<!-- end of measured -->"
_NOT_MEASURED: Final = "`./run bench` measures them."

_TEXT: Final = """\
# Performance

<!-- Written by `./run golden` from loom_core/tools/performance.py and benchmarks/results/latest.json. -->

Two different times: the *cycles* that the machine would take, which the cycle model computes and which are the same on
every host, and the *seconds* that the simulator takes here.

## The cycle model

`kernel.profile[grid](...)` and `loomc profile` give cycles of one core. Machine l1, at {clock} GHz:

| part | what it does | what it costs |
|---|---|---|
| ACP | runs the grid and scalars, issues commands in order | {scalar} cycle a scalar command, {issue} an engine command |
| DMA0 to DMA3 | moves tiles between HBM and SRAM | {descriptor} cycles to start; {hbm} bytes a cycle for all queues together; the data is there {latency} cycles later |
| MXU | an array of {rows} x {cols} cells (k x n) | a dot of m, n, k: m x {divisor} cycles for each {rows} x {cols} block of k and n, full or not |
| SCE | elementwise functions and reductions | {startup} cycles to start; {lanes} simple operations a cycle; a division {divide}, `exp` and its kin {transcendental} each |
| SRAM | holds all tiles of a program | {sram} |

Queues work at the same time. A command starts when its queue is free, it has been issued, and the commands that it
depends on are done. Loads run one iteration ahead of the work on them where SRAM has room for both. [isa.md](isa.md)
has all numbers, `isa/cost.py` the formulas.

## Choosing blocks

`loomc profile` says what a run is bound by and what to change. In the order in which it matters:

1. **Bytes in a transfer.** HBM moves {worth} in the {latency} cycles that the first byte takes. A transfer of 4 KiB takes
   {small_cycles} cycles to move and {latency} to arrive: blocks of 1024 float32 leave the engines waiting. Blocks of
   16 to 64 Ki elements move at HBM's rate.
2. **Rows in one program.** For rows shorter than that, give a program several rows as one two-dimensional tile.
3. **The matrix array.** n and k of a dot in multiples of {cols} and {rows}; m as large as SRAM allows, since every block
   of weights is used for m rows. 128 x 256 x 128 is a good start for float32.
4. **A contiguous last dimension.** Runs shorter than {burst} bytes cost {burst} bytes.
5. **Loops inside of the program** instead of a larger grid: what does not change in the loop stays in SRAM.
6. **Few functions of {transcendental} cycles.** Multiply by a reciprocal that is computed once a row.

SRAM is the limit: a tile costs its elements times their size, operands of a dot four bytes an element, double buffers
twice. `loomc manifest` lists the windows of an object; past the limit compiling says so (LOOM-C101).

## The simulator's speed

A launch costs microseconds beyond the work: pass the same arrays and a grid written as a literal. The first launch
compiles; LOOM_DEBUG=2 shows how long that takes. In a new process the object comes from the disk cache. Large blocks
help here as well: each command is one call of a compiled loop.

## Measured

`./run bench` measures ratios in one process, each side at its best on one thread, and compares with the bar that we hold
ourselves to.

{begin}
{measured}
{end}
"""


def performance_markdown() -> str:
    """The page, with the figures that the committed page has. The same text on every host."""
    return page_with(committed_figures())


def page_with(measured: str) -> str:
    """The page with these figures."""
    return _TEXT.format(
        clock=f"{L1.clock_hz / 1e9:g}",
        scalar=L1.acp_scalar_cycles,
        issue=L1.acp_issue_cycles,
        descriptor=L1.dma_descriptor_cycles,
        hbm=L1.hbm_bytes_per_cycle,
        latency=L1.hbm_latency,
        rows=L1.mxu_rows,
        cols=L1.mxu_cols,
        divisor=L1.mxu_fp32_divisor,
        startup=L1.sce_startup_cycles,
        lanes=L1.sce_lanes,
        divide=L1.sce_divide_slots,
        transcendental=L1.sce_transcendental_slots,
        sram=f"{byte_count(L1.sram_bytes)} a core",
        worth=byte_count(L1.hbm_bytes_per_cycle * L1.hbm_latency),
        small_cycles=4096 // L1.hbm_bytes_per_cycle,
        burst=L1.dma_min_burst,
        begin=_BEGIN,
        measured=measured,
        end=_END,
    )


def committed_figures() -> str:
    """The figures of the page in docs/."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    _, found, rest = text.partition(f"{_BEGIN}\n")
    return rest.partition(f"\n{_END}")[0] if found else _NOT_MEASURED


def latest_page() -> str:
    """The page with the figures of the last benchmark on this host, or if there was none with the committed ones."""
    if not RESULTS.is_file():
        return performance_markdown()
    return page_with("\n".join(figure_rows(json.loads(RESULTS.read_text(encoding="utf-8")))))


def figure_rows(results: dict[str, Any]) -> Iterator[str]:
    """The table of a results file: each claim, its figure and its bar."""
    environment = results["environment"]
    versions = [f"{name} {environment[name]}" for name in ("numpy", "numba", "triton", "jax") if name in environment]
    yield f"{environment['date']}, {environment['processor']}, Python {environment['python']}, {', '.join(versions)}."
    yield ""
    yield "| claim | figure | bar | met |"
    yield "|---|---|---|---|"
    for claims in results["claims"].values():
        for claim in claims:
            bar = "" if claim["bar"] is None else f"{'≥' if claim['sense'] == '>=' else '≤'} {claim['bar']:g}"
            met = "" if claim["bar"] is None else "yes" if claim["met"] else "no"
            yield f"| {claim['claim']} | {claim['figure']:.3g} {claim['unit']} | {bar} | {met} |"
