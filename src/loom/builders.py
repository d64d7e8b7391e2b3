"""Typed builders of modules."""

from loom_core.interchange.builders import (
    DialectBuilder,
    LoomBuilder,
    OpCallable,
    default_ops,
    default_types,
    module_builder,
)

__all__ = [
    "DialectBuilder",
    "LoomBuilder",
    "OpCallable",
    "default_ops",
    "default_types",
    "module_builder",
]
