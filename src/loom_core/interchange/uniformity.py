"""Which values may differ among the workitems of a workgroup.

Identities of workitems do; so does what is computed from them, loaded at a place that depends on them, or carried out
of control flow that depends on them. Launch arguments and identities of the workgroup do not.
"""

from __future__ import annotations

from typing import Final

from loom_core.interchange.model import Operation, Region

DIVERGENT: Final = frozenset(
    f"kernel.{name}"
    for name in (
        "workitem.id", "workitem.dispatch.id", "subgroup.id", "subgroup.lane.id", "subgroup.shuffle", "subgroup.scan",
        "subgroup.reduce", "subgroup.broadcast", "subgroup.broadcast.first", "subgroup.vote.any", "subgroup.vote.all",
        "subgroup.vote.ballot", "subgroup.active.mask", "subgroup.match.any", "subgroup.match.all", "workgroup.scan",
    )
)  # fmt: skip
"""Operations whose results differ among the workitems of a workgroup, whatever their operands."""
UNIFORM: Final = frozenset(
    f"kernel.workgroup.{name}" for name in ("reduce", "vote.any", "vote.all", "vote.count", "id", "size", "count")
)
"""Operations whose results are the same in the whole workgroup, whatever their operands."""


def divergent_values(body: Region) -> set[int]:
    """Ids of the values of a kernel's body that may differ among the workitems of a workgroup."""
    found: set[int] = set()
    while True:
        before = len(found)
        _visit_region(body, found, False)
        if len(found) == before:
            return found


def _visit_region(region: Region, found: set[int], divergent: bool) -> None:
    inside = divergent or _branches_apart(region, found)
    for index, block in enumerate(region.blocks):
        if index and inside:
            found.update(block.arg_ids)
        for op in block.ops:
            _visit(op, found)
            for target in op.successors:
                for given, argument in zip(op.operands, target.arg_ids, strict=False):
                    if given in found:
                        found.add(argument)


def _branches_apart(region: Region, found: set[int]) -> bool:
    """Whether some branch of the region's blocks depends on the workitem."""
    return any(
        len(op.successors) > 1 and op.operands and op.operands[0] in found
        for block in region.blocks
        for op in block.ops
    )


def _visit(op: Operation, found: set[int]) -> None:
    if op.name in UNIFORM:
        return
    divergent = op.name in DIVERGENT or any(value in found for value in op.operands)
    if op.regions:
        _visit_structured(op, found)
    elif divergent:
        found.update(op.results)


def _visit_structured(op: Operation, found: set[int]) -> None:
    apart = depends_on_workitem(op, found)
    for region in op.regions:
        entry = region.blocks[0] if region.blocks else None
        if entry is None:
            continue
        if apart:
            found.update(entry.arg_ids)
        _hand_over(op, entry.arg_ids, found)
        _visit_region(region, found, apart)
        last = entry.ops[-1] if entry.ops else None
        if last is None:
            continue
        handed = last.operands[1:] if last.name == "scf.condition" else last.operands
        for given, result in zip(handed, op.results, strict=False):
            if given in found:
                found.add(result)
        for other in op.regions:
            targets = other.blocks[0].arg_ids if other.blocks else []
            carried = targets[1:] if op.name == "scf.for" else targets
            if op.name in ("scf.for", "scf.while"):
                found.update(target for given, target in zip(handed, carried, strict=False) if given in found)
    if apart:
        found.update(op.results)


def _hand_over(op: Operation, arguments: list[int], found: set[int]) -> None:
    if op.name == "scf.for":
        found.update(a for a, init in zip(arguments[1:], op.operands[3:], strict=False) if init in found)
    elif op.name == "scf.while":
        found.update(a for a, init in zip(arguments, op.operands, strict=False) if init in found)


def depends_on_workitem(op: Operation, found: set[int]) -> bool:
    """Whether workitems may take different ways through a structured operation."""
    if op.name == "scf.for":
        return any(value in found for value in op.operands[:3])
    if op.name == "scf.while":
        last = op.regions[0].blocks[0].ops[-1] if op.regions[0].blocks and op.regions[0].blocks[0].ops else None
        return last is not None and bool(last.operands) and last.operands[0] in found
    return bool(op.operands) and op.operands[0] in found
