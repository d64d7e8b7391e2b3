"""Numbers of values within a symbol: arguments, results, then what its body defines, in the order of the bytes."""

from __future__ import annotations

from collections.abc import Mapping

from loom_core.interchange.bytecode.encoding import BytecodeError
from loom_core.interchange.declaration import OpDeclaration
from loom_core.interchange.model import Module, Operation, Region


class Numbering:
    """Numbers of the symbol that `signature` was called for last, and the names that values get."""

    def __init__(self, module: Module, declarations: Mapping[str, OpDeclaration]) -> None:
        self.module = module
        self._numbers: dict[int, int] = {}
        # Results of signatures show their names alone.
        self._results = {result for symbol in module.symbols if symbol.op is not None for result in symbol.op.results}
        self._names = self._kept_names(declarations)

    @property
    def count(self) -> int:
        """How many values the symbol has."""
        return len(self._numbers)

    def number(self, value: int) -> int:
        found = self._numbers.get(value)
        if found is None:
            raise BytecodeError(f"value {value} is used outside the function that defines it", "BYTECODE/016")
        return found

    def name(self, value: int) -> str:
        given = self.module.values[value].name
        return given or (str(value) if self._names and value not in self._results else "")

    def signature(self, op: Operation, decl: OpDeclaration) -> tuple[list[int], list[int]]:
        """Number the values of a symbol; the arguments of its configuration and its body."""
        regions = decl.split_regions(op.regions)
        workloads, arguments = (_entry(regions.get(name)) for name in ("config", "body"))
        self._numbers = {}
        for value in self._order(op, decl):
            if value in self._numbers:
                raise BytecodeError(f"value {value} is defined twice", "BYTECODE/016")
            self._numbers[value] = len(self._numbers)
        return workloads, arguments

    def _order(self, op: Operation, decl: OpDeclaration) -> list[int]:
        regions = decl.split_regions(op.regions)
        bodies = [regions[name] for name in ("body", "config") if regions.get(name)]
        found = [*_entry(regions.get("config")), *_entry(regions.get("body")), *op.results]
        if decl.symbol is None or not decl.symbol.declaration:
            for (region,) in bodies:
                _defined(region, found, True)
        return found

    def _kept_names(self, declarations: Mapping[str, OpDeclaration]) -> bool:
        """Whether unnamed values must be named by their ids, for reading would give them others, and other texts."""
        at = 0
        for symbol in self.module.symbols:
            decl = declarations.get(symbol.op.name) if symbol.op is not None else None
            if symbol.op is None or decl is None:
                continue
            for value in self._order(symbol.op, decl):
                if value != at and value not in self._results and not self.module.values[value].name:
                    return True
                at += 1
        return False


def _entry(regions: list[Region] | None) -> list[int]:
    return regions[0].blocks[0].arg_ids if regions and regions[0].blocks else []


def _defined(region: Region, found: list[int], root: bool) -> None:
    for index, block in enumerate(region.blocks):
        if not (root and index == 0):
            found += block.arg_ids
        for op in block.ops:
            if op.is_dead:
                continue
            found += op.results
            for inner in op.regions:
                _defined(inner, found, False)
