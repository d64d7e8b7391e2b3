"""docs/ops.md: what the machine computes on which element types, with error bounds, from the tables of the ISA."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import loom_core.ops  # noqa: F401  (declares the operations whose documentation is quoted)
from loom_core.ir.op import REGISTRY
from loom_core.isa.commands import COMMANDS, CommandSpec
from loom_core.isa.sce import ALL_SCE_OPS, DTYPE_CODES, SCE_OPS
from loom_core.reference.accuracy import largest_error

COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "f64": ("f64",),
    "f32": ("f32",),
    "f16, bf16, f8e4m3, f8e5m2": ("f16", "bf16", "f8e4m3", "f8e5m2"),
    "i8 to i64": ("i64", "i32", "i16", "i8"),
    "u8 to u64": ("u64", "u32", "u16", "u8"),
    "bool": ("bool",),
}
"""Types of one column have the same functions."""

# Functions that Tile IR has under another name, as a kind of another operation, or as several of its own.
_MEANINGS: Final = {
    "mov": "The operand, its NaNs canonical.",
    "softplus": "log(1 + exp(x)).",
    "ltu": "lhs < rhs as unsigned numbers.",
    "leu": "lhs <= rhs as unsigned numbers.",
    "shru": "Logical shift right.",
    "reduce": "Fold of a row",
    "scan": "Folds of all prefixes of a row, from either end",
}
_COMPARISONS: Final = {"eq": "=", "ne": "≠", "lt": "<", "le": "≤", "gt": ">", "ge": "≥"}
_COMBINES: Final = {"sum": "add", "prod": "mul"}
_ARGUMENT: Final = {
    "": "NaNs are passed over; of equal elements the first",
    "_last": "NaNs are passed over; of equal elements the last",
    "p": "a NaN wins; of equal elements the first",
    "p_last": "a NaN wins; of equal elements the last",
}

_INTRODUCTION: Final = """\
# Operations

<!-- Written by `./run golden` from loom_core/tools/ops_page.py and the tables of the ISA; edit those. -->

What the engines compute, on which element types. [numerics.md](numerics.md) defines every result bit by bit,
[isa.md](isa.md) the commands, [language.md](language.md) what of it a kernel reaches by which name.

## Elementwise functions

A number is the largest error in units in the last place of the result's type (0.5: correctly rounded); "exact": there
is none. [numerics.md](numerics.md#6-error-bounds) has what holds for subnormal results and next to zeros,
[scores.md](scores.md) what was measured.
"""


def ops_markdown() -> str:
    """The page."""
    functions = dict.fromkeys(op.function for op in ALL_SCE_OPS if op.is_elementwise and "cast" not in op.function)
    rows = dict.fromkeys(op.function for op in ALL_SCE_OPS if not op.is_elementwise)
    lines = [
        _INTRODUCTION,
        *table(["function", "result", *COLUMNS], map(_function_row, functions)),
        "`mov.8` to `mov.64` move elements of any type as they are. i4 and u4 have casts alone.",
        "",
        "## Functions of rows",
        "",
        "Sums and products of floats round at each step, in the order of",
        "[numerics.md](numerics.md#3-reductions-and-scans); all others are exact.",
        "",
        *table(["function", "result", *COLUMNS], map(_function_row, rows)),
        "`combine` folds rows of several values together by any program, as a tree or a scan; `sort` sorts rows of any",
        "of these types, stable, and gives the permutation; `histogram` counts integers.",
        "",
        "## Casts",
        "",
        *_casts(),
        "",
        "## Products of matrices",
        "",
        *table(["operands", "accumulator", "by"], _products()),
        "The two operands may be of different types of one row. `dot` on f64, i32 and i64 is a program of `fma`, or of",
        "`mul` and `add`, with k ascending.",
        "",
        "## Moves",
        "",
        "Of elements of 1, 2, 4 or 8 bytes, whatever their type; `scatter_reduce` combines by any function of the",
        "first table that has two operands and a result of one type.",
        "",
        *table(["command", "what it does"], _moves()),
    ]
    return "\n".join(lines)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table and the empty line after it."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def _function_row(function: str) -> list[str]:
    return [f"`{function}`", meaning(function), *(_cell(function, types) for types in COLUMNS.values())]


def meaning(function: str) -> str:
    """What a function gives, in words; KeyError if nobody says."""
    if function in _COMPARISONS:
        return f"lhs {_COMPARISONS[function]} rhs; false for a NaN" if function != "ne" else "lhs ≠ rhs; true for a NaN"
    if function in _MEANINGS:
        return _MEANINGS[function]
    kind, _, name = function.partition("_")
    if kind in ("reduce", "scan"):
        if name.startswith("arg"):
            return f"Place of the {name[3:6]}imum, i32; {_ARGUMENT[name[6:]]}"
        return f"{_MEANINGS[kind]} by `{_COMBINES.get(name, name)}`"
    documented = inspect.getdoc(REGISTRY[function])
    assert documented is not None
    return documented.partition("\n")[0]


def _cell(function: str, types: Sequence[str]) -> str:
    ops = [SCE_OPS.get(f"{function}.{dtype}") for dtype in types]
    if ops.count(None):
        if ops.count(None) != len(ops):
            raise AssertionError(f"{function} has not the same form on all of {', '.join(types)}")
        return ""
    known = [op for op in ops if op is not None]
    if not known[0].is_elementwise:
        return "yes"
    error = max(map(largest_error, known))
    # Rounded up, so that the page claims nothing that is not so.
    return f"{math.ceil(error * 1000 - 1e-9) / 1000:g}" if error else "exact"


def _casts() -> Iterator[str]:
    missing = [
        f"{source} to {result}"
        for source in DTYPE_CODES
        for result in DTYPE_CODES
        if source != result and f"cast.{source}.{result}" not in SCE_OPS
    ]
    yield f"`cast` goes from each of {', '.join(DTYPE_CODES)} to each other" + (
        f", except {', '.join(missing)}." if missing else "."
    )
    yield "To floats it rounds once to nearest even (0.5 ulp); from floats to integers it truncates and saturates, NaN"
    yield "gives 0; from integers to narrower ones it keeps the low bits."
    for function, what in (("cast_sat", "saturates where `cast` overflows"), ("cast_rtz", "rounds towards zero")):
        pairs: dict[str, list[str]] = {}
        for op in ALL_SCE_OPS:
            if op.function == function:
                pairs.setdefault(op.result, []).append(op.operands[0])
        kinds = [f"{result} from {', '.join(sources)}" for result, sources in pairs.items()]
        yield f"`{function}` {what}: to " + "; to ".join(kinds) + "."


def _products() -> Iterator[tuple[str, str, str]]:
    floats, integers = (values_of(COMMANDS[name], "type") for name in ("packf", "packi"))
    codes = values_of(COMMANDS["decodef"], "format")
    whole = values_of(COMMANDS["decodei"], "format")
    yield ", ".join(("f32", *floats)), "f32", "`pack`, `packf`, `matmul`, `matmulf`"
    yield (
        "weights coded as " + ", ".join(f"`{name}`" for name in codes),
        "f32",
        "`decodef`, and the other operand as above",
    )
    yield ", ".join(integers), "i32, modulo 2³²", "`packi`, `matmuli`"
    yield (
        "weights coded as " + ", ".join(f"`{name}`" for name in whole),
        "i32",
        "`decodei`, and the other operand as above",
    )
    yield "f64; i32, u32; i64, u64", "their own", "programs"


def _coded(formats: Sequence[str]) -> str:
    return "weights coded as " + ", ".join(f"`{name}`" for name in formats)


def values_of(spec: CommandSpec, name: str) -> tuple[str, ...]:
    """The names of the values that a flag of a command may have."""
    field = spec.flag(name)
    return field.values[field.minimum : field.limit + 1]


_MOVES: Final = ("copy", "gather", "scatter", "scatter_reduce", "compare_swap")


def _moves() -> Iterator[tuple[str, str]]:
    for name in _MOVES:
        yield f"`{name}`", COMMANDS[name].doc.partition(". ")[0] + "."
