"""The verifier of what operations declare: counts, types, relations, placement, symbols, regions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from loom_core.interchange.attributes import SymbolName
from loom_core.interchange.constraints import type_satisfies_constraint as type_satisfies_constraint
from loom_core.interchange.declaration import OpDeclaration, RegionField
from loom_core.interchange.diagnostics import ERRORS, Diagnostic, DiagnosticEngine, DiagnosticSeverity, SourceRange
from loom_core.interchange.dialects import default_ops
from loom_core.interchange.model import MAX_REGION_DEPTH, Block, Module, Operation, Region, Symbol
from loom_core.interchange.relations import check_exits, check_loop, check_relations
from loom_core.interchange.rules import IDENTIFIED, RULES
from loom_core.interchange.source_ranges import related_locations, source_ranges
from loom_core.interchange.types import dynamic_values


class VerifierRegistry:
    """The operations that a verifier knows, by name."""

    def __init__(self, ops: dict[str, OpDeclaration]) -> None:
        self.ops = ops

    @classmethod
    def from_ops(cls, ops: Iterable[OpDeclaration]) -> VerifierRegistry:
        return cls({op.name: op for op in ops})

    def get(self, name: str) -> OpDeclaration | None:
        return self.ops.get(name)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operation stands: its path, and the operations around it, outermost first."""

    path: str
    around: tuple[tuple[Operation, OpDeclaration | None], ...] = ()
    region: Region | None = None

    def inside(
        self, op: Operation, decl: OpDeclaration | None, region: int, block: int, index: int, inner: Operation
    ) -> Place:
        path = f"{self.path}.regions[{region}].blocks[{block}].ops[{index}] {inner.name}"
        return Place(path, (*self.around, (op, decl)), op.regions[region])


@dataclass
class Finding:
    """Emits diagnostics of one operation."""

    module: Module
    diagnostics: DiagnosticEngine
    op: Operation | None
    path: str
    count: int = field(default=0)

    def __call__(self, message: str, *details: str) -> None:
        """Report a broken rule by its message."""
        self.count += 1
        error = ERRORS[RULES[message]] if message in IDENTIFIED else None
        self._emit(message, details, error)

    def rule(self, name: str, message: str, *details: str) -> None:
        """Report an error of the table."""
        self.count += 1
        self._emit(message, details, ERRORS[name])

    def _emit(self, message: str, details: tuple[str, ...], error: object) -> None:
        ranges = source_ranges(self.module, self.op.location_id) if self.op is not None else []
        self.diagnostics.emit(
            Diagnostic(
                DiagnosticSeverity.ERROR,
                message,
                origin=SourceRange.unavailable(),
                source_location=ranges[0] if ranges else None,
                emitter="VERIFIER",
                related_locations=related_locations(ranges),
                source=self.path,
                details=details,
                error_def=error,  # type: ignore[arg-type]
            )
        )


class ModuleVerifier:
    """Verifies one module into an engine; never raises for invalid IR."""

    def __init__(self, module: Module, diagnostics: DiagnosticEngine, registry: VerifierRegistry) -> None:
        self.module = module
        self.diagnostics = diagnostics
        self.registry = registry
        self.symbols: dict[str, Symbol] = {}
        for symbol in module.symbols:
            self.symbols.setdefault(symbol.name, symbol)

    def verify(self) -> DiagnosticEngine:
        self._symbol_table()
        self._ownership()
        for index, op in enumerate(self.module.body.ops):
            self._operation(op, Place(f"module operation[{index}] {op.name}"))
        return self.diagnostics

    def finding(self, op: Operation | None, path: str) -> Finding:
        return Finding(self.module, self.diagnostics, op, path)

    # ---- the module ----

    def _symbol_table(self) -> None:
        seen: set[str] = set()
        for index, symbol in enumerate(self.module.symbols):
            found = self.finding(symbol.op, f"module symbol[{index}] @{symbol.name}")
            if not symbol.name:
                found("symbol has empty name")
            elif symbol.name in seen:
                found("duplicate symbol name", f"symbol '@{symbol.name}' is defined twice")
            seen.add(symbol.name)

    def _ownership(self) -> None:
        owned = {id(op) for op in self.module.body.ops}
        tabled = {id(symbol.op) for symbol in self.module.symbols}
        for index, symbol in enumerate(self.module.symbols):
            if symbol.op is None or id(symbol.op) not in owned:
                self.finding(symbol.op, f"module symbol[{index}] @{symbol.name}")(
                    "symbol op is not owned by the module", "the operation of a symbol stands in the module's body"
                )
        for index, op in enumerate(self.module.body.ops):
            found = self.finding(op, f"module operation[{index}] {op.name}")
            decl = self.registry.get(op.name)
            if decl is None:
                continue
            if decl.symbol is None:
                found("op is not permitted at module scope")
            elif id(op) not in tabled:
                found("symbol op is not in the symbol table", "add it with Module.add_symbol")

    # ---- operations ----

    def _operation(self, op: Operation, place: Place) -> None:
        found = self.finding(op, place.path)
        decl = self.registry.get(op.name)
        usable = self._values(op, found)
        if decl is None:
            found("unknown op", f"there is no operation '{op.name}'")
        else:
            self._placement(op, decl, place, found)
            counted = self._counts(op, decl, found)
            self._required_attributes(op, decl, found)
            if usable and counted:
                self._types(op, decl, found)
                check_relations(self.module, op, decl, found)
            self._references(op, decl, found)
            self._regions(op, decl, found)
            self._successors(op, decl, place, found)
            if usable and not found.count:
                check_exits(self.module, op, decl, found)
                check_loop(self.module, op, decl, found)
        if op.regions and len(place.around) >= MAX_REGION_DEPTH:
            found("regions nest too deeply", f"at most {MAX_REGION_DEPTH} deep")
            return
        for r, region in enumerate(op.regions):
            for b, block in enumerate(region.blocks):
                for i, inner in enumerate(block.ops):
                    self._operation(inner, place.inside(op, decl, r, b, i, inner))

    def _values(self, op: Operation, found: Finding) -> bool:
        count = len(self.module.values)
        ids = [
            *op.operands,
            *op.results,
            *(arg for region in op.regions for block in region.blocks for arg in block.arg_ids),
        ]
        missing = [value for value in ids if not 0 <= value < count]
        if not missing:
            ids += [v for value in ids for v in dynamic_values(self.module.values[value].type)]
            missing = [value for value in ids if not 0 <= value < count]
        if missing:
            found("operation references missing value", f"value {missing[0]} is not in the module")
        bound = len(op.operands) + sum(len(region.blocks[0].arg_ids) for region in op.regions if region.blocks)
        for tie in op.tied_results:
            if not (0 <= tie.result_index < len(op.results) and 0 <= tie.operand_index < bound):
                found("tied result is out of range")
        return not missing

    def _placement(self, op: Operation, decl: OpDeclaration, place: Place, found: Finding) -> None:
        names = [outer.name for outer, _ in place.around]
        if decl.symbol is not None and names:
            found("symbol op is nested", f"{op.name} stands at the top of a module")
        if not names and decl.symbol is None:
            return
        if decl.parents and names[-1] not in decl.parents:
            found("op has wrong parent", f"{op.name} stands in {' or '.join(decl.parents)}, not in {names[-1]}")
        if decl.ancestors and not any(name in decl.ancestors for name in names) and not _deferred(place):
            found("op is missing required ancestor", f"{op.name} stands inside {' or '.join(decl.ancestors)}")
        forbidden = [name for name in names if name in decl.forbidden]
        if forbidden:
            found("op has forbidden ancestor", f"{op.name} does not stand inside {forbidden[0]}")

    def _counts(self, op: Operation, decl: OpDeclaration, found: Finding) -> bool:
        before = found.count
        if decl.split_operands(op.operands, op.operand_segment_counts) is None:
            counts = f", divided {op.operand_segment_counts}" if decl.segmented else ""
            found("wrong operand count", f"{op.name} does not take {len(op.operands)} operands{counts}")
        least = sum(slot.kind == "one" for slot in decl.result_fields.values())
        if len(op.results) < least or (len(op.results) > least and not decl.variadic_results):
            found("wrong result count", f"{op.name} has {least} results, not {len(op.results)}")
        kinds = list(decl.successor_fields.values())
        if len(op.successors) < kinds.count("one") or (len(op.successors) > len(kinds) and "variadic" not in kinds):
            found("wrong successor count", f"{op.name} does not have {len(op.successors)} successors")
        self._region_count(op, decl, found)
        return found.count == before

    def _region_count(self, op: Operation, decl: OpDeclaration, found: Finding) -> None:
        slots = list(decl.region_fields.values())
        least = sum(not (slot.optional or slot.variadic) for slot in slots)
        unlimited = any(slot.variadic for slot in slots)
        if len(op.regions) < least or (len(op.regions) > len(slots) and not unlimited):
            found("wrong region count", f"{op.name} does not have {len(op.regions)} regions")
        elif op.name == "scf.if" and op.results and len(op.regions) < 2:
            found("missing required else region", "an scf.if with results has an else region")

    def _required_attributes(self, op: Operation, decl: OpDeclaration, found: Finding) -> None:
        for name, slot in decl.attribute_fields.items():
            if slot.required and name not in op.attributes:
                found("missing required attribute", f"{op.name} needs the attribute '{name}'")

    def _types(self, op: Operation, decl: OpDeclaration, found: Finding) -> None:
        values = self.module.values
        operands = decl.split_operands(op.operands, op.operand_segment_counts) or {}
        for name, slot in decl.operand_fields.items():
            for value in operands[name]:
                if not slot.constraint.accepts(values[value].type):
                    found("operand type constraint violated", f"{name} of {op.name} is a {slot.constraint.name}")
        results = decl.split_results(op.results)
        for name, result in decl.result_fields.items():
            for value in results[name]:
                if not result.constraint.accepts(values[value].type):
                    found("result type constraint violated", f"{name} of {op.name} is a {result.constraint.name}")

    def _references(self, op: Operation, decl: OpDeclaration, found: Finding) -> None:
        for use in decl.symbol_uses:
            name = op.attributes.get(use.attribute)
            if not isinstance(name, SymbolName | str) or not name:
                continue
            symbol = self.symbols.get(str(name))
            target = self.registry.get(symbol.op.name) if symbol is not None and symbol.op is not None else None
            if symbol is None:
                found("unresolved symbol reference", f"symbol '@{name}' is referenced but not defined")
            elif target is not None and (target.symbol is None or use.interface not in target.symbol.interfaces):
                found(
                    "symbol reference target has wrong interface",
                    f"symbol '@{name}' is {target.name}, which is no {use.interface}",
                )

    # ---- regions ----

    def _regions(self, op: Operation, decl: OpDeclaration, found: Finding) -> None:
        for name, regions in decl.split_regions(op.regions).items():
            slot = decl.region_fields[name]
            declaration_only = decl.symbol is not None and decl.symbol.declaration
            for region in regions:
                self._region(op, slot, region, declaration_only, found)

    def _region(self, op: Operation, slot: RegionField, region: Region, bodiless: bool, found: Finding) -> None:
        if bodiless:
            return
        if slot.single_block and len(region.blocks) != 1:
            found("single-block region has wrong block count", f"a region of {op.name} has {len(region.blocks)} blocks")
        elif not region.blocks:
            found("region has no block", f"a region of {op.name} is empty")
        for block in region.blocks:
            self._block(op, slot, block, found)

    def _block(self, op: Operation, slot: RegionField, block: Block, found: Finding) -> None:
        last = self.registry.get(block.ops[-1].name) if block.ops else None
        for inner in block.ops[:-1]:
            decl = self.registry.get(inner.name)
            if decl is not None and decl.terminator:
                found("terminator is not last in block", f"{inner.name} is followed by other operations")
        if not slot.terminators or (block.ops and last is None):
            return
        if last is None or not last.terminator:
            found("block is missing required terminator", f"a block of {op.name} ends with {slot.terminators[0]}")
        elif last.name not in slot.terminators and not last.successor_fields:
            found(
                "region terminated by wrong op",
                f"a region of {op.name} ends with {slot.terminators[0]}, not {last.name}",
            )

    def _successors(self, op: Operation, decl: OpDeclaration, place: Place, found: Finding) -> None:
        blocks = place.region.blocks if place.region is not None else []
        for target in op.successors:
            if not any(target is block for block in blocks):
                found("successor is outside the enclosing region")
            elif target is blocks[0] and place.around[-1][1] is not None and place.around[-1][1].symbol is not None:
                found("successor targets the function entry block")


def _deferred(place: Place) -> bool:
    """Whether the operation stands in an inline function or a template, which its users' kernels take in."""
    for outer, decl in reversed(place.around):
        if outer.name == "func.template" or (
            outer.name == "func.def" and outer.attributes.get("inline_policy") == "inline"
        ):
            return True
        if decl is not None and decl.isolated:
            return False
    return False


def verify_module(
    module: Module,
    *,
    ops: Iterable[OpDeclaration] | VerifierRegistry | None = None,
    diagnostics: DiagnosticEngine | None = None,
    hooks: bool = False,
) -> DiagnosticEngine:
    """Verify a module; what is found is added to `diagnostics`, which is returned, or to a new engine.

    ops: operations that may occur, all default ones unless given. hooks: also check the rules of single operations,
    dominance and ownership, which only make sense where the declared rules hold.
    """
    engine = diagnostics if diagnostics is not None else DiagnosticEngine()
    chosen = default_ops() if ops is None else ops
    registry = chosen if isinstance(chosen, VerifierRegistry) else VerifierRegistry.from_ops(chosen)
    before = engine.error_count
    ModuleVerifier(module, engine, registry).verify()
    if hooks and engine.error_count == before:
        from loom_core.interchange.hooks import check_hooks

        check_hooks(module, engine, registry)
    return engine
