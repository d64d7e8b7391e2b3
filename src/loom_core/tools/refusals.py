"""The list of recorded launches that may be refused, each with its code and the reason (docs/replay.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loom_core.base.location import Location
from loom_core.tools.diagnostics import BadRefusals

if TYPE_CHECKING:
    from loom_core.tools.replay import Result

MOST_REFUSED: Final = 0.05
"""The part of a replay that may be refused, listed or not."""


def read_refusals(path: Path) -> dict[str, str]:
    """Folder name to code, of lines `NAME CODE REASON`; `#` begins a comment. BadRefusals for other lines."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.partition("#")[0].split(maxsplit=2)
        if not words:
            continue
        if len(words) < 3 or words[0] in found:
            raise BadRefusals(Location(str(path), number), line=line.strip())
        found[words[0]] = words[1]
    return found


def judged(result: Result, listed: Mapping[str, str]) -> Result:
    """`result`, a failure if it is refused and the list does not say so, or passed and the list says refused."""
    name = result.folder.name
    if result.verdict == "refused" and listed.get(name) != result.code:
        return replace(result, verdict="failed", text=f"refused, which the list does not say: {result.text}")
    if result.verdict == "passed" and name in listed:
        return replace(result, verdict="failed", text=f"{result.text}, which the list says is refused")
    return result


def too_many_refused(results: Sequence[Result]) -> bool:
    """Whether more than `MOST_REFUSED` of the launches were refused."""
    return sum(result.verdict == "refused" for result in results) > MOST_REFUSED * len(results)
