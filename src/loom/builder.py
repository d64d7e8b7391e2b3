"""Building operations by name."""

from loom_core.interchange.builder import IndexedValue, IRBuilder, TiedResultSpec, ValueRef, tied

__all__ = [
    "IRBuilder",
    "IndexedValue",
    "TiedResultSpec",
    "ValueRef",
    "tied",
]
