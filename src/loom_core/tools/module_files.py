"""Reading modules from files of text or bytecode, and rendering what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from loom_core.importers.kernel_module import known_ops
from loom_core.interchange.bytecode.encoding import BytecodeError
from loom_core.interchange.bytecode.reader import read_module
from loom_core.interchange.diagnostics import ERRORS, Diagnostic
from loom_core.interchange.model import Module
from loom_core.interchange.rules import RULES
from loom_core.interchange.text.parser import Parser
from loom_core.interchange.text.tokenizer import ParseError
from loom_core.interchange.verifier import verify_module
from loom_core.objfile import sniff
from loom_core.tools.file_kinds import identify

Format = Literal["text", "bytecode"]
MAX_ERRORS: Final = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a module: its name in the table of errors, the place (line and column from 1, 0 where
    unknown), and what to do."""

    name: str
    message: str
    line: int = 0
    column: int = 0
    hint: str = ""
    notes: tuple[str, ...] = ()
    file: str = ""
    end_column: int = 0

    def render(self, file: str, source: str | None) -> str:
        """`file:line:col: error [DOMAIN/NNN]: message`, the line with a caret, notes and hint."""
        named = self.file or file
        where = named + (f":{self.line}:{self.column}" if self.line else "")
        lines = [f"{where}: error [{self.name}]: {self.message}"]
        if source is not None and self.line and named == file:
            lines += self._snippet(source)
        lines += [f"  note: {note}" for note in self.notes]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def _snippet(self, source: str) -> Iterator[str]:
        lines = source.split("\n")
        if self.line > len(lines):
            return
        text = lines[self.line - 1].rstrip("\r")
        before = "".join("\t" if character == "\t" else " " for character in text[: self.column - 1])
        width = max(1, min(self.end_column, len(text) + 1) - self.column)
        yield f"{self.line:>5} | {text}"
        yield f"      | {before}{'^' * width}"


class ModuleFaults(Exception):
    """What makes a file no usable module."""

    def __init__(self, faults: Sequence[Fault], source: str | None = None) -> None:
        super().__init__(faults[0].message)
        self.faults = tuple(faults)
        self.source = source

    def render(self, file: str) -> str:
        return "\n".join(fault.render(file, self.source) for fault in self.faults)


def detect_format(data: bytes) -> Format:
    """Bytecode by its first bytes, else text. ModuleFaults for an object or what is neither."""
    kind = sniff(data)
    if kind == "bytecode":
        return "bytecode"
    if kind == "object":
        hint = "loomc reads objects: loomc run, disasm, explain, validate"
        raise ModuleFaults([Fault("BYTECODE/001", "this is a Loom object, not a module", hint=hint)])
    return "text"


def decode_text(data: bytes) -> str:
    """The characters of a text file; ModuleFaults where it is none."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        message = f"this is no UTF-8 text but {identify(data)}"
        raise ModuleFaults([Fault("PARSE/019", message, line, column)]) from error


def load_module(data: bytes, file: str, format: Format | None = None, *, hooks: bool = True) -> Module:
    """The verified module of a file; ModuleFaults with at most `MAX_ERRORS` faults if it is none.

    hooks: also check the rules of single operations.
    """
    chosen = format or detect_format(data)
    source: str | None = None
    if chosen == "bytecode":
        try:
            module = read_module(data)
        except BytecodeError as error:
            raise ModuleFaults([Fault(error.code, str(error))]) from error
    else:
        source = decode_text(data)
        parser = Parser()
        parser.register_ops(known_ops())
        try:
            module = parser.parse(source, file)
        except ParseError as error:
            at = error.location
            fault = Fault(error.code, error.message, at.line, at.column, error.hint)
            raise ModuleFaults([fault], source) from error
    found = verify_module(module, ops=known_ops(), hooks=hooks).diagnostics
    if found:
        raise ModuleFaults([fault_of(diagnostic) for diagnostic in found[:MAX_ERRORS]], source)
    return module


def fault_of(diagnostic: Diagnostic) -> Fault:
    """A finding of the verifier."""
    definition = diagnostic.error_def or ERRORS[RULES[diagnostic.message]]
    place = diagnostic.primary_location
    notes = tuple(f"{other.source_location.display}: {other.label}" for other in diagnostic.related_locations)
    message = diagnostic.message
    if diagnostic.message in RULES and diagnostic.details:
        message = diagnostic.details[0]
    if not place.has_location:
        notes = (f"in {diagnostic.source}", *notes)
    end = place.end_column if place.end_line == place.start_line else 1 << 20
    return Fault(definition.name, message, place.start_line, place.start_column, "", notes, place.filename, end)
