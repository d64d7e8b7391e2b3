"""Random kernels in LTL (`tests.ltl.random_programs`): references, simulator, sanitizer and strict validation agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from loom_core.base.knobs import knobs
from tests.ltl.program_runs import faults
from tests.ltl.random_programs import Program, programs

KERNELS: Final = 5000
EXAMPLES: Final = 50
"""Programs that hypothesis makes from one seed; some differ in their numbers alone, and count once."""


@dataclass
class Found:
    """What a run met: the texts of the kernels, and the faults of those that are wrong."""

    kernels: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def score(self) -> dict[str, Any]:
        """For scores.json."""
        return {"kernels": len(self.kernels), "wrong": len(self.wrong)}


def search(seed: int, found: Found, examples: int = EXAMPLES) -> None:
    """Make the kernels of one seed, and add what is wrong with them to `found`; nothing is shrunk."""
    import hypothesis

    def one(program: Program) -> None:
        if program.text in found.kernels:
            return
        found.kernels.add(program.text)
        faulty = faults(program)
        if faulty:
            found.wrong.append(f"seed {seed}: {faulty[0]}\n{program}")

    settings = hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    made = programs(statements=(2, 4, 8)[seed % 3])
    with knobs.override(cache=False):
        hypothesis.seed(seed)(settings(hypothesis.given(made)(one)))()


def runs(kernels: int) -> Iterator[Found]:
    """Seed after seed, until there are so many different kernels; gives what was found so far."""
    found, seed = Found(), 0
    while len(found.kernels) < kernels:
        search(seed, found)
        seed += 1
        yield found
