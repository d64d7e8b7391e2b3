"""Kernels against references: `check_kernel`, and the declarations that it takes (docs/testing.md)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loom.testing.checking import check_kernel
    from loom.testing.declarations import array, choice, like, number, output, size, stride, updated

_HOMES = {
    "check_kernel": "loom.testing.checking",
    **dict.fromkeys(
        ("array", "choice", "like", "number", "output", "size", "stride", "updated"), "loom.testing.declarations"
    ),
}

__all__ = ["array", "check_kernel", "choice", "like", "number", "output", "size", "stride", "updated"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
