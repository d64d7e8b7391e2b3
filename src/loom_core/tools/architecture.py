"""docs/architecture.md: the stages of the compiler, each shown on the same kernel by running it."""

from __future__ import annotations

from types import FunctionType

import loom_core.passes.pipeline as pipeline
from loom_core.codegen.context import Options
from loom_core.codegen.kernel import generate
from loom_core.ir.printer import print_function
from loom_core.ir.rewriter import clone_function
from loom_core.isa.describe import disassemble
from loom_core.isa.machine import L1

_KERNEL = """\
def softmax(x, y, n, BLOCK: ltl.constexpr):
    row = ltl.program_id(0)
    column = ltl.arange(0, BLOCK)
    inside = column < n
    value = ltl.load(x + row * n + column, mask=inside, other=-float("inf"))
    value = ltl.exp(value - ltl.max(value, axis=0))
    ltl.store(y + row * n + column, value / ltl.sum(value, axis=0), mask=inside)
"""

_PAGE = """\
# How it works

<!-- Written by `./run golden` from loom_core/tools/architecture.py, which runs every stage shown here. -->

Python becomes Tile IR, Tile IR becomes commands, commands run. Imports go downward only (`tests/test_layering.py`):

```
loom_core/tools      loomc
loom                 public names
ltl                  the kernel language: syntax, types, launches
libloom              arrays and launches of finished objects
loom_sim             runs commands; knows the ISA and the object file, never the IR
loom_core            trace -> ir, ops -> passes -> codegen -> isa, objfile;  interp and reference beside them
```

## 1. A kernel

```python
@ltl.jit
{kernel}```

At the first launch for a signature (dtypes, compile-time values) `loom_core.trace` rewrites the function's syntax
tree so that `if`, `for` and the like call hooks, and runs it once. Static values stay Python; the rest becomes Tile
IR.

## 2. Tile IR

An operation is one class in `loom_core/ops`: fields, result types, and its meaning in NumPy (`ref`).
`loom_core.interp` walks the IR with these references: the oracle for all that follows.

```
{traced}
```

## 3. Passes

`passes/pipeline.py` is the list: {passes}.
Pointer tiles become base, offset, strides and bounds, which is what a DMA descriptor holds; a mask becomes a bound.

```
{lowered}
```

## 4. Commands

`codegen` groups elementwise operations and row reductions of one shape into SCE programs (`schedule`), decides
which values share a window of SRAM (`storage`), lowers each operation (`@lowers`), runs loads ahead and stores behind
in windows of several slots (`prefetch`, `rings`), numbers registers and places windows (`allocate`), and finds the
waits between engines (`tokens`). The grid is three loops of the command processor.

```
{commands}```

## 5. The object

Sections with hashes: commands, SCE programs, constants, ABI, loops, source map, manifest. The same source and
machine give the same bytes on every host. This one uses {sram} bytes of SRAM in {windows} windows.

## 6. Running it

`loom_sim` interprets the binary stream: scalar commands in line, engine commands through a table of compiled
functions, of which it compiles only those that the object names. `run` gives the bits that `interp` gives; `trace`
adds the cycle model of `isa/cost.py`. Every address is checked against the buffers and windows that exist.

The programs of a launch run on several cores where a survey of its commands (`sharing`) shows that no core writes what
another one reads or writes: then each core runs a part of one axis of the grid, in a thread of its own. Otherwise one
core runs all; `kernel.explain(...)` says which, and the lines that decide it.

A run need not copy what nothing looks at (`loom_sim/elision.py`). A contiguous load of a kilobyte or more only notes
where the bytes are, and the program that reads the tile reads them there; a program whose tile the next command stores
writes to HBM at once. Any other command that meets such a tile, or is about to overwrite what it stands for, has it
copied first. No bit and no fault depends on this, overlapping arguments included. Traced and checked runs copy all."""


def architecture_markdown() -> str:
    """The page. Deterministic: the same text on every host."""
    import ltl

    scope: dict[str, object] = {"ltl": ltl}
    exec(compile(_KERNEL, "softmax.py", "exec"), scope)
    function = scope["softmax"]
    assert isinstance(function, FunctionType)
    kernel = ltl.jit(function, source=_KERNEL)
    traced = clone_function(kernel.lower("*fp32", "*fp32", "i32", 1024))
    before = print_function(traced)
    for step in pipeline.PIPELINE:
        traced = step(traced)
    obj = generate(traced, L1, Options(prefetch="none"))
    return _PAGE.format(
        kernel=_KERNEL,
        traced=before,
        passes=", ".join(f"`{step.__name__}`" for step in pipeline.PIPELINE),
        lowered=print_function(traced),
        commands=disassemble(obj),
        sram=obj.abi.sram_bytes_used,
        windows=len(obj.manifest["windows"]),
    )
