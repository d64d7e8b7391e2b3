"""The Triton-like surface: `import loom.triton as triton`, `import loom.triton.language as ltl`.

Names of the package `triton` that Loom has, each brought in at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ltl import Config, aggregate, autotune, cdiv, constexpr_function, heuristics, jit, next_power_of_2
    from ltl.driver import install
    from ltl.host_descriptor import TensorDescriptor
    from ltl.packages import set_allocator
    from ltl.record import record
    from ltl.source import load_source

__all__ = [
    "Config",
    "TensorDescriptor",
    "aggregate",
    "autotune",
    "cdiv",
    "constexpr_function",
    "heuristics",
    "install",
    "jit",
    "load_source",
    "next_power_of_2",
    "record",
    "set_allocator",
]

_HOMES = {
    **dict.fromkeys(__all__, "ltl"),
    "TensorDescriptor": "ltl.host_descriptor",
    "install": "ltl.driver",
    "load_source": "ltl.source",
    "record": "ltl.record",
    "set_allocator": "ltl.packages",
}


_MODULES = ("language", "testing")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"loom.triton.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"loom.triton has no {name!r}; it has {', '.join([*__all__, *_MODULES])}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
