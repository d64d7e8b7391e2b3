"""docs/triton-ir.md: every operation of Triton's IR, and what the long checks of its importer found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from loom_core.importers import ttir
from loom_core.importers.ttir.assembly import INSTRUCTIONS
from loom_core.importers.ttir.importer import TABLE
from loom_core.importers.ttir.refused import PARTS, REASONS
from loom_core.tools.ops_page import table

SUITES: Final = Path(__file__).resolve().parents[3] / "tests" / "suites"
DIALECTS: Final = {
    "tt": "Triton", "ttg": "Triton for GPUs", "ttng": "Triton for NVIDIA's GPUs", "amdg": "Triton for AMD's GPUs",
    "scf": "structured control flow",
    "cf": "branches", "arith": "arithmetic", "math": "functions", "ub": "undefined values",
}  # fmt: skip

_INTRODUCTION: Final = """\
# Operations of Triton's IR

<!-- Written by `./run golden` from the importer's tables, tests/suites/triton_operations.json and
tests/suites/triton_ir.json, which `tests/suites/triton_ir.py` keeps. -->

All operations of these dialects that Triton 3.6 and 3.9 have registered, and what the importer does with each.
Others are refused too (LOOM-F302), with the operation, its line, a reason and a hint.
"""


def operations() -> dict[str, list[str]]:
    """The operations of each version of Triton that was looked into."""
    found: dict[str, list[str]] = json.loads((SUITES / "triton_operations.json").read_text(encoding="utf-8"))
    return found


def treatment(name: str) -> str | None:
    """What becomes of an operation: `imported`, the reason why it is refused, or None where nothing is said of it."""
    assert ttir.TABLES
    if name in TABLE or name in PARTS:
        return "imported"
    reason = REASONS.get(name) or (REASONS["amdg."] if name.startswith("amdg.") else None)
    return None if reason is None else f"refused: {reason}"


def triton_ir_markdown() -> str:
    """The page."""
    by_version = operations()
    names = sorted({name for found in by_version.values() for name in found})
    lines = [_INTRODUCTION, *_scores(json.loads((SUITES / "triton_ir.json").read_text(encoding="utf-8")))]
    for dialect, title in DIALECTS.items():
        own = [name for name in names if name.partition(".")[0] == dialect]
        taken = [name for name in own if treatment(name) == "imported"]
        lines += [f"## `{dialect}`: {title}", "", f"{len(taken)} of {len(own)} are imported:", ""]
        lines += [", ".join(f"`{name}`{_only(name, by_version)}" for name in taken) + ".", ""]
        rest = [(f"`{name}`{_only(name, by_version)}", treatment(name) or "") for name in own if name not in taken]
        if rest:
            lines += table(("refused", "why"), ((name, why.removeprefix("refused: ")) for name, why in rest))
    lines += [*_assembly()]
    return "\n".join(lines)


def _assembly() -> Iterator[str]:
    yield from ("## Inline assembly", "")
    yield "Of `tt.elementwise_inline_asm` these instructions of PTX are known, one at a time on one element. Those that"
    yield "are approximate on a GPU are as exact as the language's functions; `ftz` takes subnormal numbers as zeros:"
    yield ""
    yield ", ".join(f"`{name}`" for name in sorted(INSTRUCTIONS)) + "."
    yield ""


def _only(name: str, by_version: dict[str, list[str]]) -> str:
    """Which versions have an operation, where not all do."""
    having = [version.rpartition(".")[0] for version, found in by_version.items() if name in found]
    return "" if len(having) == len(by_version) else f" ({', '.join(having)})"


def _scores(scores: dict[str, Any]) -> Iterator[str]:
    yield from ("## What was compared", "")
    rows = ((f"`{name}`", str(entry["cases"]), entry["found"]) for name, entry in sorted(scores.items()))
    yield from table(("check", "cases", "found"), rows)
