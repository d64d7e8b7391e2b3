"""Sections and the values they hold: both directions, one place.

JSON sections are canonical: keys sorted or in declaration order, no spaces, UTF-8. A reader encodes again what it
decoded and refuses other bytes, so that equal objects have equal files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from loom_core.base.diagnostics import LoomError
from loom_core.base.location import UNKNOWN
from loom_core.isa.machine import MachineConfig
from loom_core.objfile.errors import InvalidSection
from loom_core.objfile.format import KNOWN, Section
from loom_core.objfile.model import Abi, LoomObject, LoopRecord, SourceEntry, Symbol

T = TypeVar("T")


class _SourceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Compact source map: rows of (word, file, line, column, end column, function, note), texts as indices."""

    strings: tuple[str, ...]
    rows: tuple[tuple[int, int, int, int, int, int, int], ...]


def object_sections(obj: LoomObject) -> list[Section]:
    """The sections of an object, in file order. Raises InvalidSection for a manifest that is not JSON."""
    contents = {
        "machine": _json("machine", obj.machine.as_dict()),
        "commands": np.ascontiguousarray(obj.commands, dtype="<u8").tobytes(),
        "programs": np.ascontiguousarray(obj.programs, dtype="<u8").tobytes(),
        "constants": bytes(obj.constants),
        "abi": _json("abi", obj.abi),
        "manifest": _json("manifest", obj.manifest),
        "symbols": _json("symbols", obj.symbols),
        "loops": _json("loops", obj.loops),
        "sourcemap": _json("sourcemap", _source_table(obj.sourcemap)),
    }
    return [Section(name, contents[name], spec.required) for name, spec in KNOWN.items()]


def object_of(sections: dict[str, bytes], machine_digest: str) -> LoomObject:
    """The object that these sections hold. Raises InvalidSection; an absent section that is not required is empty."""
    machine = _machine(sections["machine"])
    if machine.digest() != machine_digest:
        raise _invalid("machine", f"its digest is {machine.digest()}, the header says {machine_digest}")
    table = _parsed("sourcemap", sections, _SourceTable, _SourceTable((), ()))
    return LoomObject(
        commands=_words("commands", sections["commands"]),
        programs=_words("programs", sections["programs"]),
        constants=sections["constants"],
        abi=_parsed("abi", sections, Abi, Abi()),
        sourcemap=_source_entries(table),
        loops=_parsed("loops", sections, tuple[LoopRecord, ...], ()),
        symbols=_parsed("symbols", sections, tuple[Symbol, ...], ()),
        manifest=_parsed("manifest", sections, dict[str, Any], {}),
        machine=machine,
    )


def _invalid(section: str, reason: str) -> InvalidSection:
    return InvalidSection(UNKNOWN, section=section, reason=reason)


def _json(section: str, value: object) -> bytes:
    try:
        return msgspec.json.encode(value, order="sorted")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _invalid(section, f"cannot be written as JSON: {error}") from error


def _parsed(section: str, sections: dict[str, bytes], kind: type[T], absent: T) -> T:
    data = sections.get(section)
    if data is None:
        return absent
    value = _decoded(section, data, lambda: msgspec.json.decode(data, type=kind))
    if _json(section, value) != data:
        raise _invalid(section, "is not canonical JSON")
    return value


def _decoded(section: str, data: bytes, decode: Callable[[], T]) -> T:
    try:
        return decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(section, str(error)) from error


def _machine(data: bytes) -> MachineConfig:
    fields = _decoded("machine", data, lambda: msgspec.json.decode(data, type=dict[str, Any]))
    try:
        machine = MachineConfig.from_dict(fields)
    except LoomError as error:
        raise _invalid("machine", error.diagnostics[0].message) from error
    if _json("machine", machine.as_dict()) != data:
        raise _invalid("machine", "is not canonical JSON of every field")
    return machine


def _words(section: str, data: bytes) -> npt.NDArray[np.uint64]:
    if len(data) % 8:
        raise _invalid(section, f"{len(data)} bytes are not whole words")
    words = np.frombuffer(data, dtype="<u8").astype(np.uint64)
    words.setflags(write=False)
    return words


# ---- source map ----


def _source_table(entries: tuple[SourceEntry, ...]) -> _SourceTable:
    strings: dict[str, int] = {}

    def index(text: str) -> int:
        return strings.setdefault(text, len(strings))

    rows = tuple(
        (e.word, index(e.file), e.line, e.column, e.end_column, index(e.function), index(e.note)) for e in entries
    )
    return _SourceTable(tuple(strings), rows)


def _source_entries(table: _SourceTable) -> tuple[SourceEntry, ...]:
    strings = table.strings
    count = len(strings)
    entries = []
    for word, file, line, column, end, function, note in table.rows:
        if not (0 <= file < count and 0 <= function < count and 0 <= note < count):
            raise _invalid("sourcemap", f"a row names a string outside the table's {count}")
        entries.append(SourceEntry(word, strings[file], line, column, strings[function], strings[note], end))
    return tuple(entries)
