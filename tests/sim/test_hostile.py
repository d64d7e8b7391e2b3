"""Random hostile commands never touch memory that they do not declare."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(os.name != "posix", reason="inaccessible pages are made with mprotect")
def test_random_commands_stay_inside_their_memory() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(_ROOT / "src"), str(_ROOT)))}
    finished = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.sim.hostile_runs", "0", "6000"],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    endings = dict(part.split(":") for part in finished.stdout.split())
    # The draw is worth something only if many commands run to their end and many fault in each way.
    assert sum(map(int, endings.values())) == 6000
    assert int(endings["done"]) > 1500
    assert int(endings["LOOM-S101"]) > 1500
    assert {"LOOM-S102", "LOOM-S103", "LOOM-S108"} <= endings.keys()
    assert int(endings.get("refused", 0)) < 600
