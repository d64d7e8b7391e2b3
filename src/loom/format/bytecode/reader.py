"""Reading bytecode."""

from loom_core.interchange.bytecode.encoding import BytecodeError
from loom_core.interchange.bytecode.reader import BytecodeReader, read_module

__all__ = [
    "BytecodeError",
    "BytecodeReader",
    "read_module",
]
