"""Files that the tools read and write: whole or not at all, with diagnostics that name them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loom_core.base.atomic import replace_file
from loom_core.base.diagnostics import Diagnostic, LoomError
from loom_core.base.location import UNKNOWN, Location
from loom_core.objfile import LoomObject, read_object, sniff
from loom_core.objfile.errors import NotAnObject
from loom_core.tools.diagnostics import UnreadableFile, UnwritableFile
from loom_core.tools.file_kinds import identify, is_module

STANDARD_INPUT: Final = Path("-")


def shown_name(path: Path) -> str:
    """How messages call a file; `-` is standard input."""
    return "<stdin>" if path == STANDARD_INPUT else str(path)


def file_bytes(path: Path) -> bytes:
    """The bytes of a file, or of standard input. UnreadableFile."""
    try:
        return sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
    except OSError as error:
        raise UnreadableFile(Location(shown_name(path)), reason=error.strerror or str(error)) from error


def file_text(path: Path) -> str:
    """The UTF-8 text of a file, or of standard input. UnreadableFile."""
    try:
        return file_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise UnreadableFile(Location(shown_name(path)), reason=str(error)) from error


def write_file(path: Path, data: bytes) -> None:
    """Write a file: all of it, or it stays as it was. UnwritableFile."""
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # a pipe or a device, which cannot be replaced
        else:
            target = path.resolve()  # a link stays one
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_creation_mask()
            replace_file(target, data, mode)
    except OSError as error:
        raise UnwritableFile(Location(str(path)), reason=error.strerror or str(error)) from error


def _creation_mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# ---- objects ----


def read_bytes(path: Path) -> bytes:
    """The bytes of an object file, or of standard input. UnreadableFile; NotAnObject, which says what it is instead."""
    return checked_object(file_bytes(path), path)


def checked_object(data: bytes, path: Path) -> bytes:
    """The bytes of an object. NotAnObject, which says what they are instead."""
    if sniff(data) != "object":
        raise NotAnObject(Location(shown_name(path)), what=identify(data), hint=_advice(data))
    return data


def _advice(data: bytes) -> str:
    if is_module(data):
        return "loom-format reads, checks and converts modules; loomc run runs them"
    return "objects are the .loom files that the compiler writes"


def load_object(path: Path) -> LoomObject:
    """The object in a file; errors name the file."""
    return parse_object(read_bytes(path), path)


def parse_object(data: bytes, path: Path) -> LoomObject:
    """The object in the bytes of a file; errors name the file."""
    try:
        return read_object(data)
    except LoomError as error:
        raise type(error).of(in_file(error.diagnostics, path)) from error


def in_file(diagnostics: Sequence[Diagnostic], path: Path) -> list[Diagnostic]:
    """The diagnostics, those without a place of their own placed in the file."""
    where = Location(shown_name(path))
    return [
        Diagnostic(d.code, d.message, where if d.location == UNKNOWN else d.location, d.severity, d.notes, d.hint)
        for d in diagnostics
    ]
