"""Loom's compiler core: diagnostics, Tile IR, machine description, passes, code generation and the object file."""

__version__ = "0.1.0"
