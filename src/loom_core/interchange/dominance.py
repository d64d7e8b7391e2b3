"""Values are defined once, on every way to their uses, in a region that the use sees, and not used once consumed."""

from __future__ import annotations

from loom_core.interchange.diagnostics import DiagnosticEngine
from loom_core.interchange.model import Block, Module, Operation, Region
from loom_core.interchange.order import dominators
from loom_core.interchange.types import dynamic_values
from loom_core.interchange.verifier import Finding, VerifierRegistry


def check_dominance(module: Module, diagnostics: DiagnosticEngine, registry: VerifierRegistry) -> None:
    """DOMINANCE/001 and DOMINANCE/002 over a module, and values that are defined twice."""
    walk = _Walk(module, diagnostics, registry)
    for index, op in enumerate(module.body.ops):
        walk.operation(op, set(), f"module operation[{index}] {op.name}")


class _Walk:
    def __init__(self, module: Module, diagnostics: DiagnosticEngine, registry: VerifierRegistry) -> None:
        self.module = module
        self.diagnostics = diagnostics
        self.registry = registry
        self.defined: set[int] = set()
        self.consumed: dict[int, str] = {}

    def name(self, value: int) -> str:
        return f"%{self.module.values[value].name or value}"

    def operation(self, op: Operation, visible: set[int], path: str) -> None:
        """`visible` holds the values that may be used here."""
        decl = self.registry.get(op.name)
        found = Finding(self.module, self.diagnostics, op, path)
        symbolic = decl is not None and decl.symbol is not None
        for value in op.operands:
            self._use(value, visible, found)
        if not symbolic:
            for result in op.results:
                for value in dynamic_values(self.module.values[result].type):
                    self._use(value, visible, found)
            for tie in op.tied_results:
                value = op.operands[tie.operand_index]
                self.consumed[value] = op.name
        outside = set() if decl is not None and decl.isolated else visible
        for number, region in enumerate(op.regions):
            self.region(region, outside, f"{path}.regions[{number}]", found)

    def _use(self, value: int, visible: set[int], found: Finding) -> None:
        if value not in visible:
            found.rule("DOMINANCE/001", f"{self.name(value)} is not defined on every way here")
        elif value in self.consumed:
            found.rule("DOMINANCE/002", f"{self.name(value)} was consumed by {self.consumed[value]}")

    def _define(self, values: list[int], visible: set[int], found: Finding) -> None:
        for value in values:
            if value in self.defined:
                found.rule("DOMINANCE/001", f"{self.name(value)} is defined twice")
            self.defined.add(value)
            visible.add(value)

    def region(self, region: Region, outside: set[int], path: str, found: Finding) -> None:
        own: dict[int, list[int]] = {
            id(block): [*block.arg_ids, *(value for op in block.ops for value in op.results)] for block in region.blocks
        }
        above = dominators(region) if len(region.blocks) > 1 else {}
        for number, block in enumerate(region.blocks):
            before = above.get(id(block), {id(block)})
            visible = outside | {value for other in before if other != id(block) for value in own[other]}
            if len(region.blocks) > 1 and id(block) not in above:
                # What nothing reaches uses what it likes.
                visible |= {value for values in own.values() for value in values}
            self._block(block, visible, f"{path}.blocks[{number}]", found)

    def _block(self, block: Block, visible: set[int], path: str, found: Finding) -> None:
        arguments = set(block.arg_ids)
        self._define(block.arg_ids, visible, found)
        for value in block.arg_ids:
            for used in dynamic_values(self.module.values[value].type):
                if used not in arguments:
                    self._use(used, visible, found)
        for number, op in enumerate(block.ops):
            self.operation(op, visible, f"{path}.ops[{number}] {op.name}")
            self._define(
                op.results, visible, Finding(self.module, self.diagnostics, op, f"{path}.ops[{number}] {op.name}")
            )
