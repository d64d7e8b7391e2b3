"""A checked launch: the run itself, and what else is looked at."""

from __future__ import annotations

from loom_core.base.diagnostics import Diagnostic
from loom_core.checks.launch import Copies, Launch
from loom_core.checks.undefined import doubtful_loads, uses_of_masked_elements


def check_launch(launch: Launch) -> list[Diagnostic]:
    """Run a launch to its end; returns what is wrong with it. Faults are raised."""
    doubtful = launch.remember("doubtful loads", lambda: doubtful_loads(launch.function))
    before = Copies(launch.views) if doubtful else None
    findings = launch.kernel.check(launch.views, launch.scalars, launch.grid)
    if before is not None:
        findings += uses_of_masked_elements(launch, doubtful, before)
    return findings
