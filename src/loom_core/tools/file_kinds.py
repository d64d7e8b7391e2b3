"""What a file is, from its first bytes: so that a tool that was given the wrong one can say which."""

from __future__ import annotations

import json
import re
from typing import Final

MAGICS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"LOOMOBJ\0", "a Loom object"),
    (b"LOOM", "a Loom module in bytecode"),
    (b"GGUF", "a GGUF checkpoint"),
    (b"ML\xefR", "MLIR bytecode"),
    (b"\x7fELF", "an ELF binary"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"PK\x03\x04", "a zip archive (.npz arrays, a .pt checkpoint or a wheel)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x89PNG", "a PNG picture"),
    (b"%PDF", "a PDF document"),
    (b"BC\xc0\xde", "LLVM bitcode"),
)
"""First bytes and what they tell; the first match holds."""

TILE_IR: Final = "the text of Tile IR"

TEXTS: Final[tuple[tuple[str, str], ...]] = (
    (r"^from [\w.]+ import |^import [\w.]+|^(def|class) \w+.*:$", "Python source"),
    (r"\btt\.func\b|#ttg?\.|\btt\.", "Triton IR text (TTIR or TTGIR)"),
    (r"\bstablehlo\.", "StableHLO text"),
    (r"^\s*module\b.*\{", "MLIR text"),
    (r"^func @[^\n]*\) \{$", TILE_IR),
    (r"^(target|kernel|func|amdgpu)\.[\w.]+(<\w+>)? [^\n]*@\w", "a Loom module in text"),
)
"""Patterns searched in the first lines of a text; the first match holds."""

_PROBED_BYTES: Final = 4096


def identify(data: bytes) -> str:
    """What a file with these bytes is, in words with an article; the first 4096 bytes and the length are looked at."""
    if not data:
        return "an empty file"
    for magic, kind in MAGICS:
        if data.startswith(magic):
            return kind
    if data.startswith(b"LOOMOBJ"[: len(data)]):
        return "the beginning of a Loom object, cut off"
    if _is_safetensors(data):
        return "a safetensors checkpoint"
    text = _as_text(data[:_PROBED_BYTES])
    if text is None:
        return f"binary data of an unknown kind (it begins with {data[:8].hex(' ')})"
    if text.lstrip().startswith(("{", "[")):
        return "JSON or a text like it"
    for pattern, kind in TEXTS:
        if re.search(pattern, text, re.MULTILINE):
            return kind
    return "a text file"


def is_module(data: bytes) -> bool:
    """Whether these are a module, of text or bytecode."""
    return identify(data).startswith("a Loom module")


def _is_safetensors(data: bytes) -> bool:
    header_bytes = int.from_bytes(data[:8], "little")
    if not 2 <= header_bytes <= len(data) - 8 or data[8:9] != b"{":
        return False
    try:
        return isinstance(json.loads(data[8 : 8 + header_bytes]), dict)
    except ValueError:
        return False


def _as_text(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        # A character may be cut by the end of what is looked at.
        if error.start < len(data) - 3:
            return None
        text = data[: error.start].decode()
    return text if all(c.isprintable() or c in "\t\r\n\f" for c in text) else None
