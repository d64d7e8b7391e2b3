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

_INTRODUCTION: Final = """\
# Scores

<!-- Written by `./run golden` from exhaustive/scores.json and exhaustive/hashes.json, which `./run exhaustive --write`
keeps. -->

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
        "## Hashes",
        "",
        f"First digits of the BLAKE3 digests over all 2³² operands of {len(hashes)} opcodes:",
        "",
        *table(("opcode", "digest"), ((f"`{name}`", entry["all"][:16]) for name, entry in hashes.items())),
    ]
    return "\n".join(lines)


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


def _hostile(runs: dict[str, dict[str, int]]) -> Iterator[str]:
    total = sum(sum(endings.values()) for endings in runs.values())
    yield f"{total:,} random commands: no access outside of the declared memory. They ended so:"
    yield ""
    endings: dict[str, int] = {}
    for run in runs.values():
        for ending, number in run.items():
            endings[ending] = endings.get(ending, 0) + number
    yield from table(("ending", "commands"), ((ending, f"{number:,}") for ending, number in sorted(endings.items())))
