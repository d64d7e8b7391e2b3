"""docs/scores.md: what the checks that are too long for the test suite found, from the files that they keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from loom_core.isa.sce import SCE_OPS
from loom_core.reference.accuracy import ACCURACY_F32
from loom_core.tools.ops_page import table

CHECKS: Final = Path(__file__).resolve().parents[3] / "exhaustive"

_FUNCTIONS: Final = "functions of "
_INTRODUCTION: Final = """\
# Scores

<!-- Written by `./run golden` from exhaustive/scores.json and exhaustive/hashes.json, which `./run exhaustive --write`
and the suites of tests/suites keep. -->

`./run exhaustive` runs the checks that are too long for the test suite, all or those named; the suite runs samples of
them. It compares again, and says what differs from this page.

| check | of what |
|---|---|
| `formats` | every value of the 8- and 16-bit types through every function and cast; casts also against ml_dtypes |
| `properties` | every opcode of the stream engine against its reference, bit for bit |
| `hashes` | results for all 2³² float32 operands of the functions of one operand |
| `references` | 2²⁴ operands of the float32 functions against their references; errors against float64 |
| `hostile` | random commands of any operands and lengths on memory between closed pages |
| `targets` | every opcode and product under other instruction sets |
| `kernels` | random kernels in LTL: references, simulator, sanitizer and strict validation |
"""


def scores_markdown() -> str:
    """The page."""
    scores = json.loads((CHECKS / "scores.json").read_text(encoding="utf-8"))
    hashes = json.loads((CHECKS / "hashes.json").read_text(encoding="utf-8"))
    lines = [
        _INTRODUCTION,
        "## Errors of the float32 functions",
        "",
        _equal(scores["references"]),
        "Largest errors in units in the last place where the exact result is a normal number, and in units of 2⁻¹⁴⁹",
        "where it is subnormal, beside what [numerics.md](numerics.md) claims:",
        "",
        *table(("function", "error", "claimed", "subnormal", "claimed"), _errors(scores["references"])),
        "## Hostile commands",
        "",
        *_hostile(scores["hostile"]),
        "## Triton's own unit tests",
        "",
        *_triton_tests(scores["Triton's unit tests"]),
        "## Functions of Triton libraries",
        "",
        *_functions(
            {name.removeprefix(_FUNCTIONS): part for name, part in scores.items() if name.startswith(_FUNCTIONS)}
        ),
        "## Random kernels",
        "",
        *_kernels(scores["kernels"]),
        "",
        "## Hashes",
        "",
        f"First digits of the BLAKE3 digests over all 2³² operands of {len(hashes)} opcodes:",
        "",
        *table(("opcode", "digest"), ((f"`{name}`", entry["all"][:16]) for name, entry in hashes.items())),
    ]
    return "\n".join(lines)


def _triton_tests(runs: dict[str, dict[str, Any]]) -> Iterator[str]:
    """What `tests/suites/triton_upstream.py` counted."""
    yield "Those marked for its interpreter, launched through `loom.triton.install()` by"
    yield "`tests/suites/triton_upstream.py`; block pointers on Triton 3.7, the last to have them. Skipped are those"
    yield "that skip themselves."
    for name, run in runs.items():
        if run["note"]:
            yield f"{name}: {run['note']}."
    yield ""
    rows = [
        (name, f"`{file}`", *(f"{counts.get(outcome, 0):,}" for outcome in ("passed", "failed", "skipped")))
        for name, run in runs.items()
        for file, counts in run["files"].items()
    ]
    yield from table(("on", "tests", "pass", "fail", "skipped"), rows)
    yield "Those that fail:"
    yield ""
    failures = [
        (f"`{names[0]}`", str(len(names)), why) for run in runs.values() for why, names in run["failures"].items()
    ]
    yield from table(("the first", "how many", "why"), failures)


def _functions(packages: dict[str, dict[str, str]]) -> Iterator[str]:
    """What `tests/suites/jit_functions.py` found: for each package, what became of all its `@triton.jit` functions."""
    yield "All `@triton.jit` functions of a package, by `tests/suites/jit_functions.py`: launched by its operations,"
    yield "compiled for types and constants that the source suggests, or part of one that is. Unused are alternatives"
    yield "that are not defined or called here. exhaustive/scores.json has the whole table."
    yield ""
    outcomes = ("launched", "compiled", "inlined", "unused")
    rows = []
    for name, found in packages.items():
        counts = [sum(what == outcome for what in found.values()) for outcome in outcomes]
        rows.append((name.removeprefix(_FUNCTIONS), *map(str, (len(found), *counts, len(found) - sum(counts)))))
    yield from table(("package", "functions", *outcomes, "refused"), rows)
    yield "Refused:"
    yield ""
    refused = [
        (f"`{function}`", what)
        for found in packages.values()
        for function, what in found.items()
        if what not in outcomes
    ]
    yield from table(("function", "code, line and reason"), refused)


def _equal(references: dict[str, dict[str, Any]]) -> str:
    wrong = [name for name, score in references.items() if score["different"]]
    operands = min(score["operands"] for score in references.values())
    found = f"differ for {', '.join(wrong)}." if wrong else "are the same bits."
    return f"Engine and reference of {len(references)} opcodes on {operands:,} operands or more {found}"


def _errors(references: dict[str, dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    for name, score in references.items():
        claim = ACCURACY_F32.get(SCE_OPS[name].function)
        if claim is None or score["ulp"] is None:
            continue
        row = [f"`{SCE_OPS[name].function}`", f"{score['ulp']:g}", f"{claim.ulp:g}", "", ""]
        if claim.subnormal_ulp is not None:
            row[3:] = f"{score['subnormal_ulp']:g}", f"{claim.subnormal_ulp:g}"
        yield tuple(row)


def _kernels(runs: dict[str, dict[str, int]]) -> Iterator[str]:
    for language, run in runs.items():
        wrong = f"{run['wrong']} wrong" if run["wrong"] else "references and simulator agree bit for bit, nothing found"
        yield f"{run['kernels']:,} kernels in {language.upper()}, made by hypothesis: {wrong}."


def _hostile(runs: dict[str, dict[str, int]]) -> Iterator[str]:
    total = sum(sum(endings.values()) for endings in runs.values())
    yield f"{total:,} random commands: no access outside of the declared memory. They ended so:"
    yield ""
    endings: dict[str, int] = {}
    for run in runs.values():
        for ending, number in run.items():
            endings[ending] = endings.get(ending, 0) + number
    yield from table(("ending", "commands"), ((ending, f"{number:,}") for ending, number in sorted(endings.items())))
