"""Loom's public names. Everything here is re-exported from the layers below, at its first use."""

from typing import TYPE_CHECKING, Any

from loom_core import __version__

if TYPE_CHECKING:
    from loom_core.base.knobs import knobs

__all__ = ["__version__", "knobs"]


def __getattr__(name: str) -> Any:
    if name == "knobs":
        from loom_core.base.knobs import knobs

        return knobs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
