"""Which values may differ among the workitems of a workgroup.

Identities of workitems do; so does what is computed from them, loaded at a place that depends on them or while not all
workitems run, or carried out of control flow that depends on them. Launch arguments and identities of the workgroup do
not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from loom_core.interchange.model import Module, Operation, Region

DIVERGENT: Final = frozenset(
    (
        *(
            f"kernel.{name}"
            for name in (
                "workitem.id", "workitem.dispatch.id", "subgroup.id", "subgroup.lane.id", "subgroup.shuffle",
                "subgroup.scan", "subgroup.reduce", "subgroup.broadcast", "subgroup.broadcast.first",
                "subgroup.vote.any", "subgroup.vote.all", "subgroup.vote.ballot", "subgroup.active.mask",
                "subgroup.match.any", "subgroup.match.all", "workgroup.scan",
            )
        ),
        "view.atomic.rmw", "view.atomic.cmpxchg", "vector.atomic.rmw", "vector.atomic.cmpxchg", "buffer.compare",
    )
)  # fmt: skip
"""Operations whose results differ among the workitems of a workgroup, whatever their operands."""
UNIFORM: Final = frozenset(
    f"kernel.workgroup.{name}" for name in ("reduce", "vote.any", "vote.all", "vote.count", "id", "size", "count")
)
"""Operations whose results are the same in the whole workgroup, whatever their operands."""
LOADS: Final = frozenset(("buffer.load.i8.u", "view.load"))


def divergent_values(body: Region, module: Module, known: Iterable[int] = (), *, masked: bool = False) -> set[int]:
    """Ids of the values of a body that may differ among the workitems of a workgroup.

    known: values that differ, such as arguments of a called function. masked: whether some workitems may not run.
    """
    analysis = _Analysis(module, known)
    while True:
        before = len(analysis.found)
        analysis.region(body, masked)
        if len(analysis.found) == before:
            return analysis.found


class _Analysis:
    def __init__(self, module: Module, known: Iterable[int]) -> None:
        self.module = module
        self.found = set(known)

    def region(self, region: Region, masked: bool) -> None:
        masked = masked or self._branches_apart(region)
        for index, block in enumerate(region.blocks):
            if index and masked:
                self.found.update(block.arg_ids)
            for op in block.ops:
                self.operation(op, masked)
                masked = masked or op.name == "kernel.exit"
                for target in op.successors:
                    self.hand_over(op.operands, target.arg_ids)

    def hand_over(self, given: Iterable[int], received: Iterable[int]) -> None:
        self.found.update(b for a, b in zip(given, received, strict=False) if a in self.found)

    def _branches_apart(self, region: Region) -> bool:
        """Whether some branch of the region's blocks depends on the workitem."""
        return any(
            len(op.successors) > 1 and op.operands and op.operands[0] in self.found
            for block in region.blocks
            for op in block.ops
        )

    def operation(self, op: Operation, masked: bool) -> None:
        if op.name in UNIFORM:
            return
        if op.regions:
            self.structured(op, masked)
            return
        differs = op.name in DIVERGENT or any(value in self.found for value in op.operands)
        differs = (
            differs or (masked and op.name in LOADS) or (op.name == "func.call" and self._call_differs(op, masked))
        )
        if differs:
            self.found.update(op.results)

    def _call_differs(self, op: Operation, masked: bool) -> bool:
        """Whether a called function asks which workitem it runs for, or loads while not all run."""
        pending, seen = [op], {id(op)}
        while pending:
            at = pending.pop()
            if at.name in DIVERGENT or (masked and at.name in LOADS):
                return True
            symbol = self.module.find_symbol(str(at.attributes.get("callee", ""))) if at.name == "func.call" else None
            regions = symbol.op.regions if symbol is not None and symbol.op is not None else []
            for inner in (
                inner for region in (*at.regions, *regions) for block in region.blocks for inner in block.ops
            ):
                if id(inner) not in seen:
                    seen.add(id(inner))
                    pending.append(inner)
        return False

    def structured(self, op: Operation, masked: bool) -> None:
        apart = depends_on_workitem(op, self.found)
        carried = _carried(op)
        for region in op.regions:
            entry = region.blocks[0] if region.blocks else None
            if entry is None:
                continue
            if apart:
                self.found.update(entry.arg_ids)
            self.region(region, masked or apart)
            last = entry.ops[-1] if entry.ops else None
            if last is None:
                continue
            handed = last.operands[1:] if last.name == "scf.condition" else last.operands
            self.hand_over(handed, op.results)
            if last.name == "scf.condition" and len(op.regions) > 1 and op.regions[1].blocks:
                self.hand_over(handed, op.regions[1].blocks[0].arg_ids)
            elif op.name in ("scf.for", "scf.while"):
                self.hand_over(handed, carried)
        if op.name == "scf.for":
            self.hand_over(op.operands[3:], carried)
            self.hand_over(carried, op.results)
        elif op.name == "scf.while":
            self.hand_over(op.operands, carried)
        if apart:
            self.found.update(op.results)


def _carried(op: Operation) -> list[int]:
    """The arguments of a loop that take the values of the iteration before."""
    if op.name not in ("scf.for", "scf.while") or not op.regions[0].blocks:
        return []
    arguments = op.regions[0].blocks[0].arg_ids
    return arguments[1:] if op.name == "scf.for" else arguments


def depends_on_workitem(op: Operation, found: set[int]) -> bool:
    """Whether workitems may take different ways through a structured operation."""
    if op.name == "scf.for":
        return any(value in found for value in op.operands[:3])
    if op.name == "scf.while":
        last = op.regions[0].blocks[0].ops[-1] if op.regions[0].blocks and op.regions[0].blocks[0].ops else None
        return last is not None and bool(last.operands) and last.operands[0] in found
    return bool(op.operands) and op.operands[0] in found
