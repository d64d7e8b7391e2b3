"""What a benchmark reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Result:
    """One claim with its figure.

    `bar` is what the figure must reach: at least, or (`sense` "<=") at most; None where it is only reported.
    """

    claim: str
    figure: float
    bar: float | None
    sense: Literal[">=", "<="] = ">="
    unit: str = "x"
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        if self.bar is None:
            return True
        return self.figure >= self.bar if self.sense == ">=" else self.figure <= self.bar
