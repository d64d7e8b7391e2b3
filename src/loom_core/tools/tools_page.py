"""docs/tools.md: how to look at a kernel, with the output that the tools give for one."""

from __future__ import annotations

import contextlib
import runpy
import shlex
import tempfile
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

from loom_core.base.knobs import knobs
from loom_core.objfile import write_object
from loom_core.tools.loomc import main

_KERNEL: Final = """\
@ltl.jit
def add(x, y, out, n, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    total = ltl.load(x + at, mask=at < n) + ltl.load(y + at, mask=at < n)
    ltl.store(out + at, total, mask=at < n)
"""
_ARGUMENTS: Final = '--arg "x=f32[10000]" --arg "y=f32[10000]" --arg "out=f32[10000]" --arg n=10000 --grid 10'

_PAGE: Final = """\
# Tools

<!-- Written by `./run golden` from loom_core/tools/tools_page.py, which runs what is shown here. -->

The kernel of this page:

```python
import numpy as np
import loom
import loom.triton.language as ltl

{kernel}
x, y, out = (np.zeros(10_000, np.float32) for _ in range(3))
```

## From Python

An object, without running it. Arguments are values, or texts for their types:

```python
compiled = add.compile(x, y, out, 10_000, BLOCK=1024)
compiled = add.compile("*fp32", "*fp32", "*fp32", "i32", BLOCK=1024)
compiled = add.compile(x, y, out, 10_000, BLOCK=1024, machine=loom.L1_MINI)

with open("add.loom", "wb") as file:
    file.write(loom.write_object(compiled))
with open("add.loom", "rb") as file:
    compiled = loom.read_object(file.read())
```

Cycles. The kernel runs as in a launch, and the cycle model says what it costs:

```python
trace = add.trace(x, y, out, 10_000, BLOCK=1024, grid=(10,))
trace = add.profile[(10,)](x, y, out, 10_000, BLOCK=1024)      # the same
trace.cycles, trace.busy_fraction("DMA0")                      # {cycles}, {busy}
print(trace)                                                   # {trace}
print(trace.table())                                           # a line for each queue
trace.profile                                                  # what it is bound by, and which lines cost what
trace.events                                                   # a NumPy record for each engine command
trace.division                                                 # {division}

with loom.profile() as traces:                                 # of all kernels that are launched in the block
    add[(10,)](x, y, out, 10_000, BLOCK=1024)
traces.cycles                                                  # {cycles}
```

The Tile IR, as traced: `print(add.lower(x, y, out, 10_000, BLOCK=1024))`.

An object runs without its source, on arrays and numbers in the order of its arguments, or by their names:

```python
loom.run(compiled, x, y, out, 10_000, grid=10)
```

In a notebook, kernels, Tile IR, objects, traces and diagnostics show themselves: a timeline of the queues, where the
windows lie in SRAM, what was compiled. Errors name the cell and its line ([tour](../examples/tour.ipynb)).

Errors are `loom.LoomError`; their text has the code, your line and what to do. [diagnostics.md](diagnostics.md) lists
the codes.

## From the environment

[knobs.md](knobs.md) has all of them. In Python: `with loom.knobs.override(debug=1): ...`.

`LOOM_DEBUG=1 python add.py` shows launches, 2 also compilations, 3 the IR and the commands, 4 the IR after each pass:

```
loom: launch add(*f32, *f32, *f32, i32, 1024) over (10, 1, 1)
```

`LOOM_DUMP_DIR=dump python add.py` writes down each kernel that the run compiles:

```
{dumped}
```

`.tracing.ir` is the program as it came from Python, each other `.ir` after a pass that changed it, `.asm` the commands,
`.loom` the object. With either of these set, kernels are compiled anew even if the disk cache has them.

`LOOM_PROFILE=1 python add.py` runs kernels under the cycle model, and prints what each launch costs:

```
loom: add {trace}
```

`LOOM_INTERPRET=1 python add.py` runs kernels by the NumPy meaning of each operation: slow, the same bits, and good for
finding out whether the compiler is at fault.

### Checked runs

`LOOM_CHECK=1 python add.py`, or `with loom.check():` around launches, looks at every access while compiled kernels run.
A launch goes to its end, then raises for all that was wrong:

* an access outside of an array (LOOM-R210): which element, in which program, by which element of the tile, and
  whether a mask holds there;
* an address that wraps in 32 bits (R214), told from the bounds of all integers or, where they do not settle it, by a
  second run on copies;
* a result that depends on masked elements of a load without `other` (R213): a second run, on copies, has poison there;
* a read of SRAM, or of an array given as `uninitialised=[...]`, that nothing has written (LOOM-S202), or that was
  written as a panel and is read as a tile (S203);
* programs of a grid of which one reads (S204) or changes (S205) what another has written: they have no order, whatever
  the number of cores; atomic operations order them;
* two engines on the same bytes without a wait between them (S201), a wait that no signal can meet (S207);
* a loop that waits for ever (S208): its state comes back;
* windows of SRAM that share bytes while both are in use (S209), an access beside its window (S210);
* with `nan=True`, the operation that made the first NaN or infinity of a result (R217, R218);
* with `replay=N`, a byte that depends on engine speeds, and the two commands whose order decides it (S206): N runs in
  other orders that tokens allow.

It warns (`LoomWarning`) of a load, a product or a compare-and-swap that nothing uses (R215), and of a store that is
overwritten at once (R216). `loomc run --check --replay N` does for an object what needs no source. A checked run
takes up to five times the CPU time of a plain one; where it runs again, that time comes on top. Race replay spoils what
a command writes from its start to its end, so that a reader which comes too early sees it: six runs make each engine
the slow one in turn, more leave the order to chance.

## loomc

`loomc` is installed with the package; `./run` puts it at `.venv/bin/loomc`. `-` in place of the file reads standard
input. It leaves with 0, with 1 if something is wrong with the object or its run, with 2 for bad usage.

### What is in it

```
{manifest}
```

```
{explain}
```

```
{disasm}
```

```
{validate}
```

### Running it

`--arg` gives zeroed arrays by type and shape, and numbers. The brackets are quoted because shells give them a meaning.
`--inputs in.npz` takes arrays by argument name (`numpy.savez("in.npz", x=x, y=y, ...)`), `--outputs out.npz` receives
what was written. The grid is `--grid 10` or `--grid 4,2,1`.

```
{run}
```

A fault names the source line. Objects know files by name only, so run `loomc` where the source is to see the line:

```
{fault}
```

### What it costs

```
{profile}
```

*busy*: the queue works; *waits for a token*: it has a command whose inputs are not there; *empty*: it has none. A limit
is what the work would take if nothing else cost anything. [performance.md](performance.md) says what to do about it.

`loomc visualize` writes the same as a page with pictures: a timeline of the queues of each core, what each of them is
given, and the windows in SRAM; without arguments only the latter two. `--dot` prints the graph of commands, tokens and
loops for graphviz: `loomc visualize add.loom --dot | dot -Tsvg > add.svg`.

```
{visualize}
```

### What the compiler does

`loomc opt` runs passes over the text of Tile IR, the `.ir` files of above, and verifies after each: all of the
pipeline, `--until` a pass, or each `--pass` that is named. `--changes` shows the IR after every pass that changed it;
`--emit asm` and `--emit object -o FILE` go on to commands and the object.

```
{opt}
```

`loomc diff` compares two objects, or two texts of Tile IR, and leaves with 1 where they differ. Positions and names of
values do not count. Here with the same kernel at `BLOCK=2048`:

```
{diff}
```

### Where results part

`loomc bisect SRC.py` runs a kernel twice, as an object and by the NumPy references of its operations. Where memory
differs afterwards, it has objects store what each operation gives, and names the first tile that differs: operation,
line, program, iteration, element, both values, and the operands at that element, as far back as an element is made of
single elements.

```
{bisect}
```

With an engine that adds where it should subtract, it would be:

```
decode.py:18: `sub` %(sub) is the first that differs
  program (0, 0, 0), iteration 0, element [0, 0]
  the object gives   0.5418825745582581
  its reference says -0.5552555918693542
      %scores[0, 0] = -0.006686522625386715  mul, line 15
        %(reduce)[0, 0] = -2.2288408279418945  reduce, line 15
        %scale = 0.003000000026077032  (given to the block)
      %largest[0] = 0.5485690832138062  max, line 17
        %best[0] = -inf  (given to the block)
        %(reduce)[0] = 0.5485690832138062  reduce, line 17
```

`loomc bisect DIR` takes a [recorded launch](replay.md) of a GPU instead: the first store of an element that is further
from the recorded one than its operations allow, and what that element was made of. If the object does not give what
the references give, that is what it names. Both leave with 1 where something differs.

```
{bisect_help}
```

### Whether all is well

`loomc doctor` looks at the installation: versions, the processor, the environment, the caches, and a kernel that is run
and compared with its reference, bit for bit. It says what to do about what is wrong, and leaves with 1.
"""


def tools_markdown() -> str:
    """The page. Deterministic: the same text on every host."""
    runner = CliRunner()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        kernel = _kernel(Path("add.py").absolute())
        with knobs.override(dump_dir=Path("dump"), debug=0):
            compiled = kernel.compile("*fp32", "*fp32", "*fp32", "i32", 1024)
        dumped = sorted(path.name for path in Path("dump").iterdir())
        Path("add.loom").write_bytes(write_object(compiled))
        Path("add2048.loom").write_bytes(write_object(kernel.compile("*fp32", "*fp32", "*fp32", "i32", 2048)))
        shown = _commands(runner)
        trace = _trace(kernel)
    return _PAGE.format(
        kernel=_KERNEL,
        cycles=trace.cycles,
        division=trace.division,
        busy=f"{trace.busy_fraction('DMA0'):.3f}",
        trace=repr(trace),
        dumped="\n".join(dumped),
        **shown,
    )


def _kernel(path: Path) -> Any:
    """The kernel, defined in a file that is written at `path`."""
    path.write_text(f"import loom.triton.language as ltl\n\n\n{_KERNEL}", encoding="utf-8")
    return runpy.run_path(str(path))["add"]


def _trace(kernel: Any) -> Any:
    import numpy as np

    x, y, out = (np.zeros(10_000, np.float32) for _ in range(3))
    return kernel.trace(x, y, out, 10_000, BLOCK=1024, grid=(10,))


def _commands(runner: CliRunner) -> dict[str, str]:
    """What loomc prints for add.loom of the current folder, by the place in the page."""
    commands = {
        "manifest": "loomc manifest add.loom",
        "explain": "loomc explain add.loom",
        "disasm": "loomc disasm add.loom",
        "validate": "loomc validate --strict add.loom",
        "run": f"loomc run add.loom {_ARGUMENTS}",
        "fault": f"loomc run add.loom {_ARGUMENTS.replace('n=10000', 'n=10001')}",
        "profile": f"loomc profile add.loom {_ARGUMENTS}",
        "visualize": f"loomc visualize add.loom {_ARGUMENTS}",
        "opt": "loomc opt dump/add.tracing.ir --until lower_addresses",
        "diff": "loomc diff add.loom add2048.loom --facts",
        "bisect": f"loomc bisect add.py {_ARGUMENTS} --const BLOCK=1024",
        "bisect_help": "loomc bisect --help",
    }
    shown = {}
    for place, line in commands.items():
        result = runner.invoke(main, shlex.split(line)[1:], prog_name="loomc")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        shown[place] = f"$ {line}\n{result.output}".rstrip()
    return shown
