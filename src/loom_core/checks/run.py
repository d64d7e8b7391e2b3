"""A checked launch: the run itself, and what else is looked at."""

from __future__ import annotations

from loom_core.base.diagnostics import Diagnostic, warn
from loom_core.base.knobs import knobs
from loom_core.checks.addresses import suspect_operations, wrapping_addresses
from loom_core.checks.bounds import explained
from loom_core.checks.declared import fresh_buffers
from loom_core.checks.finiteness import not_finite
from loom_core.checks.launch import Copies, Launch
from loom_core.checks.undefined import doubtful_loads, uses_of_masked_elements
from loom_core.checks.unused import unused_work
from loom_sim.errors import OutOfBounds


def check_launch(launch: Launch) -> list[Diagnostic]:
    """Run a launch to its end; returns what is wrong with it. Faults are raised; what is only wasted is warned of."""
    for wasted in launch.remember(("unused", launch.apart), lambda: unused_work(launch.function, launch.apart)):
        warn(wasted)
    doubtful = launch.remember("doubtful loads", lambda: doubtful_loads(launch.function))
    before = Copies(launch.views) if doubtful or suspect_operations(launch) or knobs.check_nan else None
    try:
        fresh = fresh_buffers(launch.kernel.object.abi.buffers, launch.views)
        findings = launch.kernel.check(launch.views, launch.scalars, launch.grid, knobs.check_replay, fresh)
    except OutOfBounds as error:
        # Without copies from before, what the kernel itself has changed counts as it is now.
        copies = before or Copies(launch.views)
        reasons = list(wrapping_addresses(launch, copies))
        found = explained(launch, error, copies)
        raise type(found).of([*reasons, *found.diagnostics]) from None
    if before is not None:
        wraps = list(wrapping_addresses(launch, before))
        findings += wraps
        findings += uses_of_masked_elements(launch, doubtful, before) if doubtful else ()
        findings += not_finite(launch, before) if knobs.check_nan and not wraps else ()
    return findings
