"""Bytecode of modules, version 28.

All numbers are little-endian; a varint is unsigned LEB128 of at most 64 bits in its shortest form, a signed one is
zigzag coded. A file is a header, a directory of modules, a pool of their names, and the modules, each of which is a
summary, a directory of sections and the sections.
"""

from typing import Final

MAGIC: Final = b"LOOM"
VERSION: Final = 28
SOURCE_LOCATIONS, NO_LOCATIONS, FULL_LOCATIONS = 0, 1, 2

STRINGS, SOURCES, TYPES, ENCODINGS, OPS, LOCATIONS, SYMBOLS, IR, RESOURCES = range(9)
SOURCE_TRIVIA, PROVIDER_IMPORTS, SYMBOL_REFERENCES = 9, 10, 11
SECTION_NAMES: Final = (
    "STRINGS", "SOURCES", "TYPES", "ENCODINGS", "OPS", "LOCATIONS", "SYMBOLS", "IR", "RESOURCES", "SOURCE_TRIVIA",
    "PROVIDER_IMPORTS", "SYMBOL_REFERENCES",
)  # fmt: skip
WRITE_ORDER: Final = (
    IR, SYMBOLS, PROVIDER_IMPORTS, SYMBOL_REFERENCES, STRINGS, SOURCES, TYPES, ENCODINGS, OPS, LOCATIONS, SOURCE_TRIVIA,
)  # fmt: skip

DECLARATIONS_ONLY: Final = 1
SYMBOL_EXPLICIT_IMPORT: Final = 4
SYMBOL_HAS_PREDICATES: Final = 64
LIMITS: Final = {"strings": 1 << 24, "ops": 1 << 24, "locations": 1 << 24, "types": 1 << 16, "symbols": 1 << 16}
MAX_STRING: Final = 1 << 24

(
    ATTR_I64, ATTR_F64, ATTR_STRING, ATTR_BOOL, ATTR_ENUM, ATTR_I64S, ATTR_SYMBOL, ATTR_TYPE, ATTR_PREDICATES,
    ATTR_DICT, ATTR_ENCODING, ATTR_BYTES, ATTR_SCOPED_ENUM, ATTR_ENUMS, ATTR_PARAMETERIZED, ATTR_PARAMETERIZEDS,
    ATTR_SIGNED, ATTR_SYMBOLS, ATTR_SYMBOL_SET,
) = range(19)  # fmt: skip
DECLARED_KINDS: Final = {
    "i64": (ATTR_I64,), "f64": (ATTR_F64,), "string": (ATTR_STRING,), "word": (ATTR_STRING,), "bool": (ATTR_BOOL,),
    "enum": (ATTR_ENUM,), "i64s": (ATTR_I64S,), "symbol": (ATTR_SYMBOL,), "type": (ATTR_TYPE,),
    "predicates": (ATTR_PREDICATES,), "dict": (ATTR_DICT,), "encoding": (ATTR_ENCODING,), "bytes": (ATTR_BYTES,),
    "enums": (ATTR_ENUMS,), "signed": (ATTR_SIGNED,), "parameterized": (ATTR_PARAMETERIZED,),
    "parameterizeds": (ATTR_PARAMETERIZEDS,), "symbols": (ATTR_SYMBOLS, ATTR_SYMBOL_SET),
    "literal": (ATTR_I64, ATTR_F64, ATTR_BOOL),
}  # fmt: skip
"""Kind of a declared attribute -> kinds of its value."""
