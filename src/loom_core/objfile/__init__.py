"""The object file: what it holds, reading, writing, validation."""

from loom_core.objfile.format import OBJECT_MAGIC, sniff
from loom_core.objfile.model import Abi, AbiArg, CoreAxis, LoomObject, LoopRecord, SerialAxis, SourceEntry, Symbol
from loom_core.objfile.reader import read_object, validate
from loom_core.objfile.writer import write_object

__all__ = [
    "OBJECT_MAGIC",
    "Abi",
    "AbiArg",
    "CoreAxis",
    "LoomObject",
    "LoopRecord",
    "SerialAxis",
    "SourceEntry",
    "Symbol",
    "read_object",
    "sniff",
    "validate",
    "write_object",
]
