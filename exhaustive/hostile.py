"""Random hostile commands on memory between inaccessible pages, in a process that an access outside would kill."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SEED: Final = 1_000_000
COMMANDS: Final = 1_000_000


def endings(seed: int, count: int) -> dict[str, int]:
    """How `count` commands ended: "done", "refused" with their object, or the code of their fault.

    Raises RuntimeError with what the process said if it did not survive.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.sim.hostile_runs", str(seed), str(count)]
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise RuntimeError(finished.stderr)
    return {ending: int(number) for ending, number in (part.split(":") for part in finished.stdout.split())}
