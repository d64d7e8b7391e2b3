"""Diagnostics of the interchange model, and the table of its errors.

An error is named `DOMAIN/NNN` (`ERR_DOMAIN_NNN` in Python); rules and readers look it up in `ERRORS` by that name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final


class DiagnosticSeverity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"


class SourceProvenance(StrEnum):
    """Where the text of a source range comes from."""

    EXACT_SOURCE = "exact_source"
    PRINTED_IR_FALLBACK = "printed_ir_fallback"
    UNAVAILABLE_SOURCE = "unavailable_source"


@dataclass(frozen=True, slots=True)
class SourceRange:
    """A range of a source: offsets `start` and `end` into `source`, lines from 1 and columns from 1 (0: unknown)."""

    provenance: SourceProvenance = SourceProvenance.UNAVAILABLE_SOURCE
    filename: str = ""
    source: str = ""
    start: int = 0
    end: int = 0
    start_line: int = 0
    start_column: int = 0
    end_line: int = 0
    end_column: int = 0

    @classmethod
    def unavailable(cls) -> SourceRange:
        """A range that is nowhere."""
        return cls()

    @classmethod
    def line(
        cls, file: str, line: int, *, column: int = 0, end_line: int = 0, end_column: int = 0, source: str = ""
    ) -> SourceRange:
        """A place in a file."""
        provenance = SourceProvenance.EXACT_SOURCE
        return cls(provenance, file, source, 0, 0, line, column, end_line or line, end_column or column)

    @property
    def has_location(self) -> bool:
        return bool(self.filename) and self.start_line > 0

    @property
    def display(self) -> str:
        """`file:line:col`, as much of it as is known; `<unknown>` without a file."""
        if not self.filename:
            return "<unknown>"
        line = f":{self.start_line}" if self.start_line else ""
        return self.filename + line + (f":{self.start_column}" if line and self.start_column else "")


@dataclass(frozen=True, slots=True)
class DiagnosticFieldRef:
    """A part of an operation: its kind ("operand", "result", "attribute", "region") and position."""

    kind: str
    index: int = 0
    occurrence: int = 0


@dataclass(frozen=True, slots=True)
class DiagnosticParam:
    """A named value of a diagnostic."""

    name: str
    value: Any
    kind: str = "string"
    field_ref: DiagnosticFieldRef | None = None


@dataclass(frozen=True, slots=True)
class DiagnosticHighlightRange:
    """Offsets within a source range that matter."""

    start: int
    end: int
    field_ref: DiagnosticFieldRef | None = None
    param_index: int | None = None


@dataclass(frozen=True, slots=True)
class DiagnosticRelatedLocation:
    """Another place that explains the first."""

    label: str
    source_location: SourceRange
    highlights: tuple[DiagnosticHighlightRange, ...] = ()
    omitted_highlight_count: int = 0


@dataclass(frozen=True, slots=True)
class ErrorDefinition:
    """An error of the table: its domain, number and what it is about."""

    domain: str
    code: int
    summary: str

    @property
    def error_id(self) -> str:
        return f"ERR_{self.domain}_{self.code:03}"

    @property
    def name(self) -> str:
        return f"{self.domain}/{self.code:03}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `source` is the structural path of the operation, `details` are further lines."""

    severity: DiagnosticSeverity
    message: str
    origin: SourceRange = field(default_factory=SourceRange)
    source_location: SourceRange | None = None
    params: tuple[DiagnosticParam, ...] = ()
    emitter: str = ""
    highlights: tuple[DiagnosticHighlightRange, ...] = ()
    omitted_highlight_count: int = 0
    related_locations: tuple[DiagnosticRelatedLocation, ...] = ()
    omitted_related_location_count: int = 0
    source: str = ""
    details: tuple[str, ...] = ()
    error_def: ErrorDefinition | None = None

    @property
    def domain(self) -> str | None:
        return self.error_def.domain if self.error_def else None

    @property
    def code(self) -> int | None:
        return self.error_def.code if self.error_def else None

    @property
    def error_id(self) -> str | None:
        return self.error_def.error_id if self.error_def else None

    @property
    def primary_location(self) -> SourceRange:
        return self.source_location or self.origin

    def rendered_message(self) -> str:
        """The message with its parameters filled in."""
        text = self.message
        for param in self.params:
            text = text.replace("{" + param.name + "}", str(param.value))
        return text

    def rendered_params(self) -> tuple[str, ...]:
        """`name = value` of each parameter."""
        return tuple(f"{param.name} = {param.value}" for param in self.params)

    def __str__(self) -> str:
        where = f"{self.primary_location.display}: " if self.primary_location.filename else ""
        number = f" {self.error_id}" if self.error_id else ""
        lines = [f"{where}{self.severity}{number}: {self.rendered_message()}"]
        if self.source:
            lines.append(f"  source: {self.source}")
        lines += [f"  {detail}" for detail in self.details]
        lines += [f"  {other.source_location.display}: note: {other.label}" for other in self.related_locations]
        return "\n".join(lines)


class LoomDiagnosticError(RuntimeError):
    """Errors were found; `diagnostics` holds all findings, warnings too."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))


class DiagnosticEngine:
    """Collects diagnostics in order."""

    def __init__(self) -> None:
        self._diagnostics: list[Diagnostic] = []

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self._diagnostics)

    @property
    def has_errors(self) -> bool:
        return any(diagnostic.severity is DiagnosticSeverity.ERROR for diagnostic in self._diagnostics)

    @property
    def error_count(self) -> int:
        return sum(diagnostic.severity is DiagnosticSeverity.ERROR for diagnostic in self._diagnostics)

    def emit(self, diagnostic: Diagnostic) -> Diagnostic:
        self._diagnostics.append(diagnostic)
        return diagnostic

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        self._diagnostics.extend(diagnostics)

    def error(self, message: str, **fields: Any) -> Diagnostic:
        """Emit an error; `fields` are those of `Diagnostic`."""
        return self.emit(Diagnostic(DiagnosticSeverity.ERROR, message, **fields))

    def warning(self, message: str, **fields: Any) -> Diagnostic:
        return self.emit(Diagnostic(DiagnosticSeverity.WARNING, message, **fields))

    def remark(self, message: str, **fields: Any) -> Diagnostic:
        return self.emit(Diagnostic(DiagnosticSeverity.REMARK, message, **fields))

    def unsupported(self, what: str, **fields: Any) -> Diagnostic:
        """Emit the error that an importer has no translation for `what`."""
        return self.error(f"unsupported: {what}", **fields)

    def raise_if_errors(self) -> None:
        """LoomDiagnosticError with all diagnostics if one of them is an error."""
        if self.has_errors:
            raise LoomDiagnosticError(self._diagnostics)


DOMAINS: Final = (
    "TYPE", "SHAPE", "SUBRANGE", "ENCODING", "STRUCTURE", "DOMINANCE", "SYMBOL", "PARSE", "BYTECODE", "FOLD",
    "LOWERING", "BACKEND", "TARGET", "AMDGPU", "X86", "WASM", "SPIRV",
)  # fmt: skip
EMITTERS: Final = ("VERIFIER", "PARSER", "BYTECODE_READER", "PASS", "BUILDER")

_TABLE: Final = """
PARSE 001 undefined value
PARSE 002 value name defined twice
PARSE 003 unexpected token
PARSE 004 no type
PARSE 005 unterminated string
PARSE 006 unknown operation
PARSE 007 malformed type
PARSE 008 unknown encoding
PARSE 009 wrong number of results
PARSE 010 wrong number of operands
PARSE 011 malformed location
PARSE 013 unknown predicate
PARSE 015 malformed integer
PARSE 016 malformed float
PARSE 017 unknown keyword
PARSE 018 unknown flag
PARSE 019 not UTF-8
PARSE 020 key given twice
PARSE 021 nested too deeply
PARSE 022 unresolved reference in a signature
PARSE 023 malformed escape
PARSE 024 sigil without a name
PARSE 025 unexpected character
PARSE 030 rows of unequal width
PARSE 031 wrong number of predicate arguments
PARSE 032 undefined label
PARSE 033 label defined twice
TYPE 001 types differ
TYPE 002 element types differ
TYPE 003 operand type
TYPE 004 result type
TYPE 005 attribute kind
TYPE 009 yielded or returned type
TYPE 012 poison at a boundary
TYPE 013 block argument type
STRUCTURE 001 operand count
STRUCTURE 002 result count
STRUCTURE 003 attribute missing
STRUCTURE 004 region count
STRUCTURE 005 terminator missing
STRUCTURE 006 single block
STRUCTURE 007 block argument count
STRUCTURE 008 yielded or returned count
STRUCTURE 010 enumeration out of range
STRUCTURE 011 operation at module level
STRUCTURE 012 operation after the terminator
STRUCTURE 013 variadic counts differ
STRUCTURE 014 attribute value
STRUCTURE 017 effect in a pure function
STRUCTURE 018 wrong terminator
STRUCTURE 023 successor outside the region
STRUCTURE 024 successor is the entry block
STRUCTURE 025 successor argument count
STRUCTURE 026 successor argument type
STRUCTURE 029 placement
STRUCTURE 034 pure call of an impure function
STRUCTURE 038 barrier in divergent control flow
STRUCTURE 052 effect in a configuration region
SYMBOL 001 symbol out of range
SYMBOL 002 symbol is not defined
SYMBOL 003 symbol of the wrong kind
SYMBOL 005 symbol defined twice
DOMINANCE 001 value does not dominate its use
DOMINANCE 002 value used after it was consumed
BYTECODE 001 magic
BYTECODE 002 version
BYTECODE 003 end of data
BYTECODE 004 unknown type kind
BYTECODE 005 unknown attribute kind
BYTECODE 006 record field
BYTECODE 007 range
BYTECODE 008 varint
BYTECODE 009 limit
BYTECODE 010 string reference
BYTECODE 011 enumeration
BYTECODE 012 table reference
BYTECODE 013 location
BYTECODE 014 encoding
BYTECODE 015 attribute
BYTECODE 016 body
BYTECODE 017 resource
"""


def _read_table() -> dict[str, ErrorDefinition]:
    rows = [line.split(" ", 2) for line in _TABLE.strip().splitlines()]
    found = [ErrorDefinition(domain, int(code), summary) for domain, code, summary in rows]
    return {definition.name: definition for definition in found}


ERRORS: Final = _read_table()
"""`DOMAIN/NNN` -> the error."""
