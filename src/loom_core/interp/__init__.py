"""Runs Tile IR by the reference meaning of its operations: the oracle that everything else is compared with."""

from loom_core.interp.memory import Buffer, OutOfBounds, Pointer
from loom_core.interp.run import interpret

__all__ = ["Buffer", "OutOfBounds", "Pointer", "interpret"]
