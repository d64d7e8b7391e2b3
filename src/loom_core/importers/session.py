"""What an importer keeps while it translates one body: which value stands for which foreign object, and a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from loom_core.importers.names import NameAllocator, source_key, source_name
from loom_core.interchange.builder import ValueRef
from loom_core.interchange.builders import LoomBuilder
from loom_core.interchange.diagnostics import DiagnosticEngine
from loom_core.interchange.model import Block, Module
from loom_core.interchange.text.printer import Printer
from loom_core.interchange.types import Type
from loom_core.interchange.verifier import verify_module


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What an import does besides translating."""

    verify_structure: bool = True
    include_report: bool = False


@dataclass(frozen=True, slots=True)
class ConversionRecord:
    """A foreign construct and the operations it became."""

    source: str
    target: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportBodyReport:
    """How a body was translated: its text, what was converted, what blocked, what could become regions."""

    lines: tuple[str, ...] = ()
    converted: tuple[ConversionRecord, ...] = ()
    blocked: tuple[str, ...] = ()
    region_candidates: tuple[str, ...] = ()
    unsupported_counts: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """An imported module with what was found on the way."""

    module: Module
    diagnostics: DiagnosticEngine
    report: ImportBodyReport | None = None


class SourceImportSession:
    """One import. Subclasses give `type` and `build_constant`."""

    def __init__(
        self,
        builder: LoomBuilder,
        values: dict[Any, ValueRef] | None = None,
        *,
        diagnostics: DiagnosticEngine | None = None,
        preview_block: Block | None = None,
    ) -> None:
        self.builder = builder
        self.diagnostics = diagnostics if diagnostics is not None else DiagnosticEngine()
        self.preview_block = preview_block
        self.names = NameAllocator()
        self.value_map: dict[Hashable, ValueRef] = {}
        self.value_types: dict[Hashable, Any] = {}
        self.constants: dict[Hashable, ValueRef] = {}
        self.converted: list[ConversionRecord] = []
        self.blocked: list[str] = []
        self.region_candidates: list[str] = []
        self.unsupported_counts: Counter[str] = Counter()
        # Objects are known by their identity, so they must live as long as the session.
        self._sources: list[Any] = []
        for source, value in (values or {}).items():
            self.map_value(source, value)

    @classmethod
    def create(
        cls,
        builder: LoomBuilder,
        values: dict[Any, ValueRef] | None = None,
        *,
        diagnostics: DiagnosticEngine | None = None,
        preview_block: Block | None = None,
    ) -> SourceImportSession:
        return cls(builder, values, diagnostics=diagnostics, preview_block=preview_block)

    # ---- to be given by importers ----

    def type(self, source_type: Any) -> Type:
        """The type that a foreign type becomes."""
        raise NotImplementedError

    def build_constant(self, value: Any, type: Type, name: str) -> ValueRef:
        """A constant."""
        raise NotImplementedError

    # ---- values ----

    def map_value(self, source: Any, value: ValueRef, source_type: Any = None) -> ValueRef:
        """Let `value` stand for `source` from now on."""
        key = source_key(source)
        self._sources.append(source)
        self.value_map[key] = value
        if source_type is not None:
            self.value_types[key] = source_type
        if value.name:
            self.names.capture(value.name)
        return value

    def map_result(self, source: Any, value: ValueRef, source_type: Any = None) -> ValueRef:
        """As `map_value`, for the result of a foreign operation."""
        return self.map_value(source, value, source_type)

    def mapped(self, source: Any) -> ValueRef:
        """The value that stands for `source`; KeyError if none does."""
        found = self.value_map.get(source_key(source))
        if found is None:
            raise KeyError(source_name(source))
        return found

    def mapped_value_type(self, source: Any) -> Any:
        """The foreign type that was recorded for `source`, None without one."""
        return self.value_types.get(source_key(source))

    def mapped_operands(self, sources: Sequence[Any]) -> list[ValueRef]:
        return [self.mapped(source) for source in sources]

    # ---- names ----

    def result_name(self, source: Any) -> str:
        """A new name for the result of a foreign operation."""
        return self.names.fresh_from_source(source)

    def reserve_name(self, name: str) -> str:
        return self.names.reserve_or_fresh(name)

    def fresh_name(self, base: str) -> str:
        return self.names.fresh(base)

    def ssa(self, source: Any) -> str:
        """The value of `source` as text spells it."""
        value = self.mapped(source)
        return f"%{value.name or value.id}"

    # ---- building ----

    def build_binary(self, build: Callable[..., ValueRef], source: Any, lhs: Any, rhs: Any, type: Type) -> ValueRef:
        """Build a binary operation over the values of `lhs` and `rhs`, and let its result stand for `source`."""
        operands = {"lhs": self.mapped(lhs), "rhs": self.mapped(rhs)}
        return self.map_result(source, build(**operands, results=[type], name=self.result_name(source)))

    def ensure_constant(self, value: Any, type: Type, name: str = "c") -> ValueRef:
        """The constant `value` of `type`, built at its first use."""
        key = (source_key(value), type)
        found = self.constants.get(key)
        return (
            found
            if found is not None
            else self.remember_constant(value, type, self.build_constant(value, type, self.fresh_name(name)))
        )

    def remember_constant(self, value: Any, type: Type, built: ValueRef) -> ValueRef:
        self.constants[(source_key(value), type)] = built
        return built

    # ---- the report ----

    def record_converted(self, source: Any, *targets: str) -> None:
        self.converted.append(ConversionRecord(source_name(source), targets))

    def record_blocked(self, reason: str) -> None:
        self.blocked.append(reason)

    def record_region_candidate(self, what: str) -> None:
        self.region_candidates.append(what)

    def record_unsupported(self, what: str, **fields: Any) -> None:
        """Count what has no translation, and report it."""
        self.unsupported_counts[what] += 1
        self.diagnostics.unsupported(what, **fields)

    def fork(self) -> SourceImportSession:
        """A session for a nested body: it sees the values and names, and keeps records of its own."""
        child = self.__class__(self.builder, diagnostics=self.diagnostics, preview_block=self.preview_block)
        child.value_map.update(self.value_map)
        child.value_types.update(self.value_types)
        child.constants.update(self.constants)
        child.names = self.names
        child._sources = self._sources
        return child

    def merge_child_records(self, child: SourceImportSession) -> None:
        """Take over the records of a fork."""
        self.converted += child.converted
        self.blocked += child.blocked
        self.region_candidates += child.region_candidates
        self.unsupported_counts += child.unsupported_counts

    def verify_structure(self) -> DiagnosticEngine:
        """Verify the module into the session's diagnostics."""
        ops = self.builder.ir.declarations.values()
        return verify_module(self.builder.module, ops=ops, diagnostics=self.diagnostics)

    def preview_lines(self) -> tuple[str, ...]:
        """The text of what was built into the preview block so far."""
        if self.preview_block is None:
            return ()
        printer = Printer()
        printer.register_ops(self.builder.ir.declarations.values())
        return tuple(
            line
            for op in self.preview_block.ops
            for line in printer.print_operation(op, self.builder.module).split("\n")
        )

    def finish(self, options: ImportOptions | None = None) -> ImportResult:
        """The result; LoomDiagnosticError where something was refused."""
        chosen = options or ImportOptions()
        if chosen.verify_structure and not self.diagnostics.has_errors:
            self.verify_structure()
        self.diagnostics.raise_if_errors()
        report = None
        if chosen.include_report:
            report = ImportBodyReport(
                self.preview_lines(), tuple(self.converted), tuple(self.blocked), tuple(self.region_candidates),
                self.unsupported_counts,
            )  # fmt: skip
        return ImportResult(self.builder.module, self.diagnostics, report)
