"""What the long checks found when they were last run in full: `scores.json`, from which docs/scores.md is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

SCORES: Final = Path(__file__).with_name("scores.json")


def recorded() -> dict[str, dict[str, Any]]:
    """The committed scores by check and by what was checked."""
    found: dict[str, dict[str, Any]] = json.loads(SCORES.read_text()) if SCORES.exists() else {}
    return found


def record(check: str, what: str, score: dict[str, Any]) -> None:
    """Replace one score."""
    record_all(check, {**recorded().get(check, {}), what: score})


def record_all(check: str, found: dict[str, Any]) -> None:
    """Replace the scores of one check."""
    scores = {**recorded(), check: found}
    parts = [f"{json.dumps(name)}: {_lines(part)}" for name, part in sorted(scores.items())]
    SCORES.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _lines(part: dict[str, Any]) -> str:
    return (
        "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(score)}" for name, score in sorted(part.items())) + "\n}"
    )
