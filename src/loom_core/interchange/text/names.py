"""The names under which values are printed.

A named value keeps its name, an unnamed one is called by its id. Where a name would be defined twice in one region, or
an inner definition would hide an outer value that is used inside, the later value is called `name$id`.
"""

from __future__ import annotations

from collections.abc import Mapping

from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.model import Module, Operation, Region, Value
from loom_core.interchange.types import dynamic_values


def plan_names(module: Module, declarations: Mapping[str, OpDeclaration]) -> dict[int, str]:
    """Value id -> printed name, with `%`; every value of the module has one."""
    plan = _Plan(module, declarations)
    for op in module.body.ops:
        plan.operation(op, {})
    for value in range(len(module.values)):
        if value not in plan.names:
            plan.names[value] = f"%{module.values[value].name or value}"
    return plan.names


class _Plan:
    def __init__(self, module: Module, declarations: Mapping[str, OpDeclaration]) -> None:
        self.values = module.values
        self.declarations = declarations
        self.names: dict[int, str] = {}

    def operation(self, op: Operation, outer: Mapping[str, int]) -> None:
        decl = self.declarations.get(op.name)
        for region in op.regions:
            self.region(
                region, {} if decl is not None and decl.isolated else outer, op if decl and decl.symbol else None
            )

    def region(self, region: Region, outer: Mapping[str, int], symbol_op: Operation | None) -> None:
        """Names of the values that a region defines; the named results of a signature stand among its arguments."""
        own: dict[str, int] = {}
        used: set[int] | None = None
        values, names = self.values, self.names
        visible = len(values)
        defined = [value for block in region.blocks for value in block.arg_ids]
        if symbol_op is not None:
            defined += [value for value in symbol_op.results if value < visible and values[value].name]
        defined += [value for block in region.blocks for op in block.ops for value in op.results]
        for value in defined:
            if not 0 <= value < visible:
                continue
            name = values[value].name or str(value)
            clash = own.get(name)
            hidden = outer.get(name)
            if clash is None and hidden is not None:
                if used is None:
                    used = uses_in(region, values)
                clash = hidden if hidden in used else None
            if clash is not None and clash != value:
                name = self._fresh(name if values[value].name else "", value, own, outer)
            own[name] = value
            names[value] = f"%{name}"
        if any(op.regions for block in region.blocks for op in block.ops):
            scope = {**outer, **own}
            for block in region.blocks:
                for op in block.ops:
                    if op.regions:
                        self.operation(op, scope)

    def _fresh(self, name: str, value: int, own: Mapping[str, int], outer: Mapping[str, int]) -> str:
        candidate = base = f"{name}${value}" if not name.isdigit() else f"${name}${value}"
        number = 0
        while candidate in own or candidate in outer:
            number += 1
            candidate = f"{base}${number}"
        return candidate


def uses_in(region: Region, values: list[Value]) -> set[int]:
    """Ids of all values that a region and those inside it refer to, in operands and in types."""
    found: set[int] = set()
    stack = [region]
    while stack:
        at = stack.pop()
        for block in at.blocks:
            for value in block.arg_ids:
                found.update(dynamic_values(values[value].type))
            for op in block.ops:
                found.update(op.operands)
                for value in op.results:
                    found.update(dynamic_values(values[value].type))
                stack.extend(op.regions)
    return found
