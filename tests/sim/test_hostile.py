"""Random hostile commands never touch memory that they do not declare."""

from __future__ import annotations

import os

import pytest

from exhaustive import hostile
from loom_core.isa.commands import ALL_COMMANDS
from tests.sim.hostile_runs import DRAWN


@pytest.mark.skipif(os.name != "posix", reason="inaccessible pages are made with mprotect")
def test_random_commands_stay_inside_their_memory() -> None:
    """A sample: `./run exhaustive hostile` has a million."""
    endings = hostile.endings(0, 6000)
    # The draw is worth something only if many commands run to their end and many fault in each way.
    assert sum(endings.values()) == 6000
    assert endings["done"] > 1500
    assert endings["LOOM-S101"] > 1500
    assert {"LOOM-S102", "LOOM-S103", "LOOM-S108"} <= endings.keys()
    assert endings.get("refused", 0) < 600


def test_every_command_of_an_engine_is_drawn() -> None:
    assert {spec.mnemonic for spec in ALL_COMMANDS if spec.engine != "acp"} <= set(DRAWN)
