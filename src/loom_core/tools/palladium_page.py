"""docs/palladium.md: the language of refs and blocks. Prose, and the functions as the code lists them."""

from __future__ import annotations

import inspect
from collections import defaultdict
from types import FunctionType
from typing import Final

SECTIONS: Final[dict[str, str]] = {
    "calls": "Kernels",
    "specs": "Operands, blocks, scratch",
    "control": "Position and control flow",
    "views": "Refs",
    "refs": "Reading and writing",
    "scoped": "Scoped scratch, read-modify-write",
    "engines": "Engines by hand",
    "pipeline": "Pipelines inside of a kernel",
    "copies": "Copies",
    "semaphores": "Semaphores",
    "shaping": "Making and reshaping tiles",
    "operators": "Operators",
    "elementwise": "Elementwise functions",
    "numeric": "Further elementwise functions",
    "reductions": "Folds, scans, sorts",
    "ordering": "Orders and places",
    "arranging": "Moving elements",
    "products": "Matrix products",
    "staging": "Parts at run-time indices",
    "random_bits": "Random numbers",
    "values": "Values",
}
"""Module of `palladium` -> the heading under which its functions stand."""

_PAGE: Final = """\
# Palladium

<!-- Written by `./run golden` from loom_core/tools/palladium_page.py and the docstrings of palladium; edit those. -->

Palladium has the form of Pallas: a kernel is a Python function of *refs*, run over a grid; block specs say which part
of each array a grid point gets.

```python
from loom.experimental import palladium as lpl

@lpl.kernel(
    out_shape=lpl.ShapeDtypeStruct((1024, 1024), lpl.float32),
    grid=(8, 8, 8),
    in_specs=[lpl.BlockSpec((128, 128), lambda i, j, k: (i, k)), lpl.BlockSpec((128, 128), lambda i, j, k: (k, j))],
    out_specs=lpl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
)
def matmul(x_ref, y_ref, o_ref):
    @lpl.when(lpl.program_id(2) == 0)
    def start():
        o_ref[...] = lpl.zeros_like(o_ref)

    o_ref[...] += lpl.dot(x_ref[...], y_ref[...])

z = matmul(x, y)
```

`lpl.call(function, **options)` is the functional form. A call takes NumPy arrays, torch CPU tensors or jax arrays of
any strides, numbers, and trees of these; it gives outputs of the same kind. `matmul.compile(x, y)` is the object,
`matmul.lower(x, y)` the IR, `matmul.trace(x, y)` a run under the cycle model. `LOOM_INTERPRET=1` runs by the NumPy
meaning of each operation, with the same bits.

Ported code changes its imports: `loom.experimental.pallas` has the upstream names (`pallas_call`, `BlockSpec`, ...),
and `.numpy`, `.lax`, `.nn`, `.tpu`, `.triton` stand in for the modules that kernel bodies use. jax is not needed.

## What becomes of it

The function runs once for each set of shapes, dtypes and strides, on values that stand for tiles; Python's control flow
is thus unrolled, and `when`, `cond`, `fori`, `loop`, `while_loop` decide at run time. What the function and
the index maps read outside (globals, closures, defaults, attributes of classes, objects and modules, elements of
arrays) is compared at each call; equal functions share what was compiled.

* The grid is loops of the command processor, its last axis innermost.
* A read of a whole input block is placed in the loop of the last grid axis on which the block depends, and loaded as
  many blocks ahead as keep memory busy. `pipeline_mode=Buffered(n)` says how many are in SRAM at once, whatever the
  compiler would choose: 1 loads when needed. Blocks that prefetched operands name run ahead too: these operands are in
  SRAM. Reads of parts are made where they stand. `loomc manifest` shows each window with its slots.
* An output block that is only written is written in place. One that is also read (an accumulator) is a window of SRAM
  for as long as the grid stays on it. Windows that are only accessed whole become values, which the matrix unit
  accumulates in.
* Scratch is windows of SRAM around all loops. A copy is a DMA descriptor; what reads its target waits for it, with or
  without `wait`. Tokens are waited for once, where they begin; semaphores count: a wait too many, or a copy that nobody
  waits for, is a diagnostic at its line. `copy(src, dst, queue=n)` names the queue.
* `accumulator(shape)` stays in the matrix unit until it is drained; `window(shape, dtype)` is SRAM where it stands;
  `emit_pipeline` is a grid inside of a kernel, of sizes that may be known only at run time.
* Random numbers are Threefry 2x32 of 20 rounds, counted as jax.random counts: after `prng_seed(s)` the first draw has
  the bits of `jax.random.bits(jax.random.key(s), shape)`, further draws and loops go on from there.
* Arrays without a block shape, and those in `ANY` or `HBM`, stay where they are: their refs reach all of them.

## Rules

Pallas's modes disagree on these; here they are fixed.

| case | what happens |
|---|---|
| a block reaches over the end of its array | the elements outside read as poison and are not written |
| poison | NaN, the least integer (0 for unsigned ones), False |
| a block begins outside its array | LOOM-R121 names operand, grid point and block (*) |
| output elements that nothing writes | poison |
| scratch, and an output block read before it is written | begins as poison |
| an output block that is left and comes back later | LOOM-R122 names both grid points (***) |
| consecutive grid points with one output block | share it: it accumulates |
| an axis declared parallel along which an output accumulates | LOOM-R126; in `pallas_call` it runs in order |
| scalar prefetch | index maps read what the call was given; the kernel may not write to it (LOOM-F208) |
| a prefetched index that leads outside | LOOM-R121 at the call, before anything runs |
| `input_output_aliases` | the output begins with the operand's contents, the operand stays as it is (**) |
| a grid with an axis of size 0 | nothing runs; outputs are poison (aliased ones keep their contents) |
| negative known indices | count from the end; outside of the ref they are LOOM-F207 |
| run-time indices and slices outside of a ref | read as poison, write nothing |
| float sums | one fixed order, whatever the blocks ([numerics.md](numerics.md)) |
| products | accumulate in float32 (int32 for integers) and round once; `precision` means nothing |
| dtypes | JAX's lattice; 64-bit results arise only from 64-bit operands |

(*) With `out_of_bounds_reads="uninitialized"` inputs read poison there. (**) Prefetched operands count; other shapes,
dtypes or numbers are LOOM-R125. (***) `Buffered(n, revisits=True)` allows it.

## Names

{names}
"""


def _first_sentence(function: object) -> str:
    text = " ".join((inspect.getdoc(function) or "").split("\n\n", 1)[0].split())
    return text.replace("|", "\\\\|")


def palladium_markdown() -> str:
    """The page. Deterministic."""
    import palladium

    rows: dict[str, list[str]] = defaultdict(list)
    for name in palladium.__all__:
        found = getattr(palladium, name)
        module = getattr(found, "__module__", "").partition(".")[2]
        if module in SECTIONS and isinstance(found, (FunctionType, type)):
            rows[module].append(f"| `{name}` | {_first_sentence(found)} |")
    parts = []
    for module, heading in SECTIONS.items():
        if rows[module]:
            parts.append("\n".join([f"### {heading}", "", "| name | |", "|---|---|", *rows[module]]))
    return _PAGE.format(names="\n\n".join(parts))
