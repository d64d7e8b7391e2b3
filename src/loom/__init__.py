"""Loom's public names. Everything here is re-exported from the layers below, at its first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from loom_core import __version__

if TYPE_CHECKING:
    from loom_core.base.diagnostics import LoomError
    from loom_core.base.knobs import knobs
    from loom_core.isa.machine import L1, L1_MINI, MachineConfig
    from loom_core.objfile import LoomObject, read_object, write_object

__all__ = [
    "L1", "L1_MINI", "LoomError", "LoomObject", "MachineConfig", "__version__", "knobs", "read_object", "write_object",
]  # fmt: skip

_HOMES = {
    "L1": "loom_core.isa.machine",
    "L1_MINI": "loom_core.isa.machine",
    "LoomError": "loom_core.base.diagnostics",
    "LoomObject": "loom_core.objfile",
    "MachineConfig": "loom_core.isa.machine",
    "knobs": "loom_core.base.knobs",
    "read_object": "loom_core.objfile",
    "write_object": "loom_core.objfile",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
