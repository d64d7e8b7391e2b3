"""Bytecode of modules."""

from loom_core.interchange.bytecode.encoding import BytecodeError
from loom_core.interchange.bytecode.reader import read_module
from loom_core.interchange.bytecode.writer import write_module

__all__ = [
    "BytecodeError",
    "read_module",
    "write_module",
]
