"""A checked launch: the run itself, and what else is looked at."""

from __future__ import annotations

from loom_core.base.diagnostics import Diagnostic
from loom_core.base.knobs import knobs
from loom_core.checks.bounds import explained
from loom_core.checks.launch import Copies, Launch
from loom_core.checks.undefined import doubtful_loads, uses_of_masked_elements
from loom_sim.errors import OutOfBounds


def check_launch(launch: Launch) -> list[Diagnostic]:
    """Run a launch to its end; returns what is wrong with it. Faults are raised."""
    doubtful = launch.remember("doubtful loads", lambda: doubtful_loads(launch.function))
    before = Copies(launch.views) if doubtful else None
    try:
        findings = launch.kernel.check(launch.views, launch.scalars, launch.grid, knobs.check_replay)
    except OutOfBounds as error:
        # Without copies from before, what the kernel itself has changed counts as it is now.
        raise explained(launch, error, before or Copies(launch.views)) from None
    if before is not None:
        findings += uses_of_masked_elements(launch, doubtful, before)
    return findings
