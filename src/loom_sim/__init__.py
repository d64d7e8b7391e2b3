"""The simulator: runs finished objects bit-exactly, and models their cycles.

It knows the ISA and the object file, never the IR or the passes. Importing this package imports neither numba nor
NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loom_sim.errors import SimulatorError
    from loom_sim.program import Launch, Program, load

__all__ = ["Launch", "Program", "SimulatorError", "load"]

_HOMES = {
    "Launch": "loom_sim.program",
    "Program": "loom_sim.program",
    "SimulatorError": "loom_sim.errors",
    "load": "loom_sim.program",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
