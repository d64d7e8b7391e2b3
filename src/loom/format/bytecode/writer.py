"""Writing bytecode."""

from loom_core.interchange.bytecode.encoding import BytecodeError
from loom_core.interchange.bytecode.writer import BytecodeWriter, write_module

__all__ = [
    "BytecodeError",
    "BytecodeWriter",
    "write_module",
]
