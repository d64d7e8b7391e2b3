"""docs/language.md: the kernel language. Prose, and what the code itself says: dtypes, functions."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any, Final

from loom_core.base.diagnostics import LoomError

# ---- dtypes: what compiles is found out by compiling it --------------------------------------------------------------

PROBES: Final[dict[str, str]] = {
    "load, store": "value = a",
    "`+` `-` `*`": "value = a + a * a",
    "division": "value = a / a if a.dtype.is_floating() else a // a",
    "comparison": "value = ltl.where(a < b, a, b)",
    "`exp`": "value = ltl.exp(a)",
    "`sum`": "value = ltl.sum(a, 0)",
    "`max`": "value = ltl.max(a, 0)",
    "`dot`": "value = ltl.dot(a, b)",
    "from float32": "value = a.to(ltl.float32).to(a.dtype)",
}
"""Column of the table of dtypes -> what is tried on tiles a and b."""

_PROBE: Final = """\
def probe(x, y):
    row = ltl.arange(0, 32)
    place = row[:, None] * 32 + row[None, :]
    a = ltl.load(x + place)
    b = ltl.load(x + 1024 + place)
    {attempt}
    ltl.store(y + place, value)
"""


def attempt(dtype_text: str, operation: str) -> str:
    """Whether an operation on a dtype compiles: "yes" or "no"."""
    import ltl

    source = _PROBE.format(attempt=operation)
    scope: dict[str, Any] = {"ltl": ltl}
    exec(compile(source, "probe.py", "exec"), scope)
    function = scope["probe"]
    assert isinstance(function, FunctionType)
    kernel = ltl.jit(function, source=source)
    try:
        kernel.compile(f"*{dtype_text}", f"*{dtype_text}")
    except LoomError:
        return "no"
    return "yes"


def _dtypes() -> dict[str, Any]:
    import ltl
    from ltl.dtypes import dtype

    return {name: found for name in ltl.__all__ if isinstance(found := getattr(ltl, name), dtype)}


def _dtype_rows() -> Iterator[str]:
    yield f"| dtype | {' | '.join(PROBES)} |"
    yield f"|---|{'---|' * len(PROBES)}"
    for name, dtype in _dtypes().items():
        cells = [attempt(dtype.name, operation) for operation in PROBES.values()]
        yield f"| `{name}` | {' | '.join(cells)} |"


# ---- functions -------------------------------------------------------------------------------------------------------

GROUPS: Final[dict[str, str]] = {
    "ltl.jit": "Kernels",
    "ltl.program": "The grid, and new tiles",
    "ltl.memory": "Loads and stores",
    "ltl.block_pointers": "Block pointers and tensor descriptors",
    "ltl.transfers": "Windows and copies: Loom's own",
    "ltl.atomics": "Atomics",
    "ltl.operators": "Operators",
    "ltl.overflow": "Operators",
    "ltl.functions": "Elementwise functions",
    "ltl.matmul": "Matrix products",
    "ltl.reductions": "Reductions",
    "ltl.scans": "Scans",
    "ltl.shaping": "Shapes",
    "ltl.rearranging": "Rearranging elements",
    "ltl.random_numbers": "Random numbers",
    "ltl.control": "Loops, assertions, hints",
    "ltl.constant": "Compile-time values",
    "ltl.aggregates": "Aggregates",
    "ltl.dtypes": "Types",
    "ltl.tensor": "Tiles",
    "ltl.tuning": "Tuning",
    "ltl.packages": "For host code, under Triton's names",
}
"""Module -> heading of its functions; functions of other modules come last."""
_OTHER: Final = "Other"
_BUILTINS: Final = ("slice", "tuple")


def documented() -> dict[str, list[tuple[str, Any]]]:
    """Heading -> names and values of the public functions and classes of `ltl` under it."""
    import ltl

    groups: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for name in ltl.__all__:
        value = getattr(ltl, name)
        if callable(value) and name not in _BUILTINS and not isinstance(value, ModuleType):
            groups[GROUPS.get(getattr(value, "__module__", ""), _OTHER)].append((name, value))
    order = [*GROUPS.values(), _OTHER]
    return {heading: sorted(groups[heading], key=lambda entry: entry[0]) for heading in order if heading in groups}


_MARKS: Final[dict[Any, str]] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def signature_text(value: Any) -> str:
    """The parameters of a function or class as text, without types: `(x, axis=None)`."""
    parts: list[str] = []
    for parameter in inspect.signature(value).parameters.values():
        default = parameter.default
        if isinstance(default, Enum):
            default_text = f"={type(default).__name__}.{default.name}"
        else:
            default_text = "" if default is parameter.empty else f"={default!r}"
        if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append(f"{_MARKS.get(parameter.kind, '')}{parameter.name}{default_text}")
    return f"({', '.join(parts)})"


_PLAIN_CLASSES: Final = ("tensor", "tensor_descriptor", "PropagateNan", "JitFunction", "const", "void", "dtype")
"""Classes that users meet as values, or name in annotations, and do not construct."""


def _function_entries() -> Iterator[str]:
    for heading, entries in documented().items():
        yield f"### {heading}\n"
        for name, value in entries:
            shown = name if name in _PLAIN_CLASSES else f"{name}{signature_text(value)}"
            yield f"**`{shown}`**\n\n{inspect.getdoc(value)}\n"
        if heading == "Kernels":
            yield from _kernel_methods()
        if heading == "Tiles":
            yield f"{_methods_text()}\n"


def _kernel_methods() -> Iterator[str]:
    import ltl

    for name in ("compile", "trace", "lower"):
        method = getattr(ltl.JitFunction, name)
        shown = signature_text(method).replace("(self, ", "(")
        yield f"**`kernel.{name}{shown}`**\n\n{inspect.getdoc(method)}\n"
    yield f"**`kernel.profile[grid](...)`**\n\n{inspect.getdoc(ltl.JitFunction.profile)}\n"


def _methods_text() -> str:
    import ltl

    shared = [name for name in dir(ltl.tensor) if not name.startswith("_") and _is_shared(ltl, name)]
    names = ", ".join(f"`{name}`" for name in shared)
    return f"Methods, the same as the functions of their names with the tile as first argument: {names}."


def _is_shared(ltl: ModuleType, name: str) -> bool:
    function = getattr(ltl, name, None)
    return isinstance(function, FunctionType) and getattr(ltl.tensor, name) is function


def _module_text(module: ModuleType) -> str:
    role = " ".join((inspect.getdoc(module) or "").split("\n\n")[0].split())
    return f"{role} {', '.join(f'`{name}`' for name in sorted(module.__all__))}."


# ---- the page --------------------------------------------------------------------------------------------------------

_PAGE: Final = """\
# The kernel language

<!-- Written by `./run golden` from loom_core/tools/language.py and the docstrings of ltl; edit those. -->

LTL has the names, signatures and meanings of Triton's language. A kernel is a Python function that describes what one
*program* does with *tiles*, arrays of a size that is known when it is compiled; a launch runs a grid of programs.

```python
import loom.triton.language as ltl

@ltl.jit
def scale(x, y, n, factor, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(y + at, ltl.load(x + at, mask=at < n) * factor, mask=at < n)

scale[(ltl.cdiv(n, 1024),)](x, y, n, 0.5, BLOCK=1024)
```

## Launching

`kernel[grid](...)` runs the kernel and returns when it is done. The grid is an int, one to three ints, or a function
that is given the arguments by name and returns those: `scale[lambda a: (ltl.cdiv(a["n"], a["BLOCK"]),)](...)`. Programs
run one after another, x fastest, so that every run of a launch gives the same bits; a grid with a 0 runs nothing.

The first launch for each signature traces and compiles the kernel. Objects are kept in memory and on disk
([knobs](knobs.md)); when the source, a helper or a global value that the kernel read has changed, it is compiled again.
Triton's launch options (`num_warps`, `num_stages`, ...) are accepted and mean nothing. [tools.md](tools.md) shows how
to get at the object and the cycles of a kernel.

## Arguments and specialisation

| given | in the kernel |
|---|---|
| NumPy array, torch CPU tensor, jax array (read only) | a pointer to its element 0; strides are the kernel's business |
| `bool`, `float` | a run-time int1, float32 |
| `int` | a run-time int32; int64 or uint64 if it needs more bits |
| the `int` 1 | a constant, compiled in, as in Triton: unit strides fold |
| `None`, or anything for a parameter annotated `ltl.constexpr` | a compile-time value |
| a tuple or named tuple | a tuple of these |

A variant is compiled for each combination of dtypes of arrays and numbers and of exact compile-time values. Because 1
is a constant, it is no argument of the object: `stride=1` and `stride=2` are two variants.
`@ltl.jit(do_not_specialize=["stride"])` makes 1 an ordinary number; an annotation such as `n: ltl.int64` fixes the
dtype.

A kernel is compiled for arguments that do not overlap what it writes, and once more, without that assumption, at the
first launch where they do.

## Dtypes

Found out by compiling it; "no" is refused at the line where it stands.

{dtypes}

Arithmetic of two dtypes computes in their common one, by Triton's rules: numbers adapt to tiles, float32 and an integer
give float32, float16 and float32 give float32, `/` of integers is float32. Integers wrap. `docs/numerics.md` defines
every result bit by bit.

Dtypes are values: `x.to(ltl.float16)`, `x.dtype == ltl.int32`. `ltl.pi32_t` is the type of a pointer to int32.

## Addresses and masks

`ltl.load` and `ltl.store` take a pointer plus integer offsets. What compiles to transfers:

* Addresses that are sums of *index times stride*: `base + row[:, None] * stride + column[None, :]`, with indices from
  `arange` and any scalars, those of loops and `program_id` included.
* Masks that compare such indices with scalars, joined by `&`: `(row[:, None] < m) & (column[None, :] < n)`. They bound
  a box of the tile.
* `other`, a scalar or a tile, where the mask does not hold; without it 0.
* Pointers that a loop moves by scalars (`a_at += BLOCK * stride`), and `advance` of block pointers.

The rest, addresses and masks made of data (`x + ltl.load(index)`, `mask=value > 0`), remainders of indices, pointers
that a loop moves by tiles, or that a branch or `where` chooses, also between several arrays, goes through tiles of
indices: gathers and scatters, element by element. Results are the same, the cycles are more. Refused at their line
(LOOM-C110) are tiles of pointers that are joined, sorted or sliced, and `atomic_cas` through tiles of pointers into one
of several arrays.

Where a mask does not hold no memory is touched, whatever the address. A tile has any size and, unlike in Triton, it
need not be a power of two. All tiles of a program that are alive at once must fit SRAM (LOOM-C101).

## Out of bounds

Every address that is touched is checked against the whole allocation that the argument lives in, which is what a
pointer of Triton would reach: the base array of a NumPy view, the storage of a torch tensor. So a kernel may go from a
slice `x[2:]` back to `x[0]`, and from a row to the next; one element past the allocation stops the run with the line
of the access (LOOM-S101; LOOM-R210 in the interpreter) and what it reached. Programs that ran before have had their
effect.

## Control flow

* `for i in range(...)`, `ltl.range`: loops at run time. `ltl.static_range` is unrolled while compiling.
* `if`, `a if c else b`, `and`, `or`, `not` on scalars. A condition that is known while compiling takes one way as in
  Python; on a run-time condition both ways are compiled.
* `while`; `break`; `continue`; early `return`; `assert` of compile-time conditions.
* A variable that a loop or a run-time branch changes keeps its dtype and shape, and has a value before the loop or in
  both branches. Compile-time values cannot change there.
* Functions made with `@ltl.jit` are inlined where a kernel calls them. Plain Python functions may take compile-time
  values only. Kernels read numbers, strings, tuples, dtypes and functions from outside; the rest is passed.

Choosing between elements is `ltl.where`, not `if`.

## Windows, copies and engines

Tiles are values; where one lies in SRAM is the compiler's business. A *window* is a region of SRAM that the kernel
names itself, and `copy` a DMA command that it issues itself, between an array and a window or between two windows:

```python
import loom.triton.language as ltl

@ltl.jit
def blur(x, y, n, BLOCK: ltl.constexpr):
    # y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3, with 0 outside; a block is read from memory once.
    first = ltl.program_id(0) * BLOCK
    row = ltl.make_tensor_descriptor(x, (n,), (1,), (BLOCK + 2,))
    halo = ltl.window((BLOCK + 2,), ltl.float32)
    ltl.store(halo, ltl.zeros((BLOCK + 2,), ltl.float32))
    ltl.copy(row.block((first - 1,)), halo).wait()
    left, middle, right = (ltl.load(halo.block((shift,), (BLOCK,))) for shift in ltl.static_range(3))
    at = first + ltl.arange(0, BLOCK)
    ltl.store(y + at, (left + middle + right) / 3, mask=at < n)

blur[(ltl.cdiv(n, 256),)](x, y, n, BLOCK=256)
```

A window is a block pointer to all of itself: `load`, `store`, `advance` and `block` take it, and `halo.base` is a plain
pointer for gathers and atomics. It lives while the block of the program around it runs, and begins as poison (NaN, the
least integer, False). Block pointers are the descriptors of copies: `block` of a window, of a block pointer or of a
tensor descriptor gives one. Elements outside either array are not copied.

`copy` gives a token; `token.wait()` says where the program relies on the copy. The compiler orders all engines so that
every access sees what the program did before, so a forgotten `wait` cannot change a result. A token may be carried by
a loop, as a hand-written pipeline does:

```python
@ltl.jit
def total(x, y, blocks, BLOCK: ltl.constexpr):
    # The sum of x, by two halves of a window: one is filled while the other is summed.
    rows = ltl.make_tensor_descriptor(x, (blocks, BLOCK), (BLOCK, 1), (1, BLOCK))
    halves = ltl.window((2, BLOCK), ltl.float32)
    token = ltl.copy(rows.block((0, 0)), halves.block((0, 0), (1, BLOCK)))
    sums = ltl.zeros((1, BLOCK), ltl.float32)
    for i in range(blocks):
        token.wait()
        token = ltl.copy(rows.block((i + 1, 0)), halves.block(((i + 1) % 2, 0), (1, BLOCK)))
        sums += ltl.load(halves.block((i % 2, 0), (1, BLOCK)))
    token.wait()
    ltl.store(y, ltl.sum(sums))
```

The compiler does this by itself for loads of tiles in loops. What runs where:

* DMA, four queues: `copy`; `load`, `store` and the methods of descriptors, also through tiles of indices; atomics;
  `gather`, `flip`, `cat`, `split` and their kin.
* MXU: `dot`. Its accumulator (`acc=`) stays where it is from one step of a loop to the next, and what is done to the
  result element by element joins its way out.
* SCE: elementwise functions, casts, reductions, scans, `sort`, `histogram`. Neighbours of one shape become one program;
  functions given to `reduce`, `associative_scan` and `map_elementwise` are programs too.
* Command processor: integer scalars, loops, branches, `device_print`, `device_assert`.

## Differences from Triton

* Any block size. `tl.dot` of float32 is exact float32 (`input_precision="ieee"`) unless asked otherwise.
* Results do not depend on `num_warps` or the machine: reductions and dots have a fixed order.
* Out of bounds is an error instead of undefined.
* Programs run in order: atomics give the same result every time, and a program that waits for another never ends.
* Hints (`multiple_of`, `max_contiguous`, cache modifiers) are accepted and mean nothing.
* Functions that name a GPU's instructions are refused with what to use instead.

## Functions

Operators: `+ - * / // % & | ^ ~ << >> == != < <= > >=` and unary `-`, on tiles, scalars and numbers, which broadcast;
`//` and `%` of integers truncate. `x[:, None]` adds a dimension. `x.T`, `x.shape`, `x.dtype`, `x.to(dtype)`.

{functions}
### Modules

* {math}
* {libdevice}
"""


def language_markdown() -> str:
    """The page. Deterministic: the same text on every host."""
    from ltl import libdevice, math

    return _PAGE.format(
        dtypes="\n".join(_dtype_rows()),
        functions="\n".join(_function_entries()),
        math=_module_text(math),
        libdevice=_module_text(libdevice),
    )
