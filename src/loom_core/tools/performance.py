"""docs/performance.md: what decides a kernel's cycles, and the measured figures against their bars."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from loom_core.base.units import byte_count
from loom_core.isa.machine import L1

SOURCE_TREE: Final = Path(__file__).resolve().parents[3]
RESULTS: Final = SOURCE_TREE / "benchmarks" / "results" / "latest.json"
PAGE: Final = SOURCE_TREE / "docs" / "performance.md"
_BEGIN: Final = "<!-- measured -->"
_END: Final = "<!-- end of measured -->"
_NOT_MEASURED: Final = "`./run bench` measures them."

_ELEMENTS: Final = 1 << 20
_BLOCKS: Final = (256, 1024, 4096, 16384, 65536)
_ADD: Final = """\
def add(x, y, out, n, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    total = ltl.load(x + at, mask=at < n) + ltl.load(y + at, mask=at < n)
    ltl.store(out + at, total, mask=at < n)
"""

_TEXT: Final = """\
# Performance

<!-- Written by `./run golden` from loom_core/tools/performance.py and benchmarks/results/latest.json. -->

Two different times: the *cycles* that the machine would take, which the cycle model computes and which are the same on
every host, and the *seconds* that the simulator takes here.

## The cycle model

`kernel.profile[grid](...)` and `loomc profile` give cycles of the cores that share the programs of a launch. Machine
l1, at {clock} GHz:

| part | what it does | what it costs |
|---|---|---|
{parts}

Queues work at the same time. A command starts when its queue is free, it has been issued, and the commands that it
depends on are done. Loads run ahead of the work on them, and stores behind it, by as many iterations as it takes to
keep HBM busy ({worth} move in its latency), up to 15, where SRAM has room for them. [isa.md](isa.md) has all numbers,
`isa/cost.py` the formulas.

## Choosing blocks

`loomc profile` says what a run is bound by and what to change. In the order in which it matters:

1. **Bytes in a program.** The command processor takes some 40 cycles to issue a small program, in which HBM moves
   {issued}. Adding two vectors of {elements} elements:

{blocks}

2. **Rows in one program.** For rows shorter than that, give a program several rows as one two-dimensional tile.
3. **The matrix array.** n and k of a dot in multiples of {cols} and {rows}; m as large as SRAM allows, since every
   block of weights is used for m rows. 128 x 256 x 128 is a good start for float32.
4. **A contiguous last dimension.** Runs shorter than {burst} bytes cost {burst} bytes.
5. **Loops inside of the program** instead of a larger grid: what does not change in the loop stays in SRAM.
6. **Few functions of {transcendental} cycles.** Multiply by a reciprocal that is computed once a row.
7. **Programs for every core.** Cores share one axis of the grid in parts of about equal work, the outermost that has a
   program for each and whose programs prove to be apart. `kernel.explain(...)` says how a launch is divided, and why
   one core runs all: the stores of two programs that meet, by line and element.
8. **Two chains in a loop with products.** Each engine works in order: with two blocks that have nothing to do with each
   other the stream engine works for one while the matrix unit works for the other (`examples/paired_attention.py`).

SRAM is the limit: a tile costs its elements times their size, operands of a dot four bytes an element, and what is
loaded or stored in a loop at least twice. `loomc manifest` lists the windows of an object; past the limit compiling
says so (LOOM-C101).

## The simulator's speed

A launch costs microseconds beyond the work: pass the same arrays and a grid written as a literal. The first launch
compiles; LOOM_DEBUG=2 shows how long that takes. In a new process the object comes from the disk cache. Large blocks
help here as well: each command is one call of a compiled loop.

## Measured

`./run bench` measures ratios in one process, each side at its best on one thread, and compares them with the bar that
we hold ourselves to.

{begin}
{measured}
{end}
"""


def performance_markdown() -> str:
    """The page with the figures of the last benchmark on this host, or if there was none with the committed ones."""
    if RESULTS.is_file():
        return page_with("\n".join(figure_rows(json.loads(RESULTS.read_text(encoding="utf-8")))))
    return page_with(figures_in(PAGE.read_text(encoding="utf-8")) if PAGE.is_file() else _NOT_MEASURED)


def _parts() -> Iterator[tuple[str, str, str]]:
    """The parts of machine l1, what they do, what that costs."""
    yield (
        "ACP", "runs the grid and scalars, issues commands in order",
        f"{L1.acp_scalar_cycles} cycle a scalar command, {L1.acp_issue_cycles} an engine command",
    )  # fmt: skip
    yield (
        "DMA0 to DMA3", "move tiles between HBM and SRAM",
        f"{L1.dma_descriptor_cycles} cycles to start; {L1.hbm_bytes_per_cycle} bytes a cycle for all queues together; "
        f"the data is there {L1.hbm_latency} cycles later",
    )  # fmt: skip
    yield (
        "MXU", f"an array of {L1.mxu_rows} x {L1.mxu_cols} cells (k x n)",
        f"a float32 dot of m, n, k: m x {L1.mxu_fp32_divisor} cycles for each {L1.mxu_rows} x {L1.mxu_cols} block of "
        "k and n, full or not",
    )  # fmt: skip
    yield (
        "SCE", "elementwise functions and reductions",
        f"{L1.sce_startup_cycles} cycles to start; {L1.sce_lanes} simple operations a cycle; a division counts for "
        f"{L1.sce_divide_slots} of them, `exp` and its kin for {L1.sce_transcendental_slots}",
    )  # fmt: skip
    yield "SRAM", "holds all tiles of a program", f"{byte_count(L1.sram_bytes)} a core"


def block_rows() -> Iterator[str]:
    """Cycles of a vector addition by block size, a table indented into a list."""
    import numpy as np

    import ltl

    scope: dict[str, Any] = {"ltl": ltl}
    exec(compile(_ADD, "add.py", "exec"), scope)
    add = ltl.jit(scope["add"], source=_ADD)
    x, y, out = (np.zeros(_ELEMENTS, np.float32) for _ in range(3))
    yield "   | BLOCK | cycles | part of HBM's rate |"
    yield "   |---|---|---|"
    for block in _BLOCKS:
        trace = add.trace(x, y, out, _ELEMENTS, BLOCK=block, grid=(_ELEMENTS // block,))
        part = trace.hbm_bytes / L1.hbm_bytes_per_cycle / trace.cycles
        yield f"   | {block} | {trace.cycles:,} | {part:.0%} |"


def is_current(text: str) -> bool:
    """Whether a page is what the code says, whenever its figures were measured."""
    return text == page_with(figures_in(text))


def page_with(measured: str) -> str:
    """The page with these figures."""
    return _TEXT.format(
        clock=f"{L1.clock_hz / 1e9:g}",
        parts="\n".join(f"| {' | '.join(row)} |" for row in _parts()),
        rows=L1.mxu_rows,
        cols=L1.mxu_cols,
        transcendental=L1.sce_transcendental_slots,
        worth=byte_count(L1.hbm_bytes_per_cycle * L1.hbm_latency),
        issued=byte_count(L1.hbm_bytes_per_cycle * 40),
        burst=L1.dma_min_burst,
        elements=f"{_ELEMENTS:,}",
        blocks="\n".join(block_rows()),
        begin=_BEGIN,
        measured=measured,
        end=_END,
    )


def figures_in(text: str) -> str:
    """The figures of a page."""
    _, found, rest = text.partition(f"{_BEGIN}\n")
    return rest.partition(f"\n{_END}")[0] if found else _NOT_MEASURED


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
