"""`tt.reduce` and `tt.scan`: folds by the function in their region."""

from __future__ import annotations

from typing import Any

from loom_core.importers.ttir.attributes import plain
from loom_core.importers.ttir.importer import Importer, row
from loom_core.importers.ttir.shapes import integer_attribute
from loom_core.importers.ttir.syntax import Operation
from loom_core.ir.block import Block
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.control import Yield
from loom_core.ops.reduction import Reduce, ReduceRegion, ScanRegion, recognised
from loom_core.ops.regions import verify_region
from loom_core.trace.scans import scan


def scalar_region(importer: Importer, op: Operation, types: list[TileType], results: list[TileType]) -> Block:
    """The region of an operation as one of elementwise scalar code."""
    source = importer.region(op, 0)
    if len(source.arguments) != len(types):
        importer.wrong(op, f"its region takes {len(source.arguments)} values, {len(types)} are needed")
    block = Block(tuple(types))
    with importer.trace.elementwise(block), importer.nested_scope():
        for (name, type), value in zip(source.arguments, block.arguments, strict=True):
            importer.check_type(op, value, type, name)
            importer.define(op, name, value)
        last = importer.body(op, source, f"{op.name}.return")
        importer.create(Yield, [importer.value(last, name) for name in last.operands])
    _drop_unused(block)
    problem = verify_region(block, types, results)
    if problem is not None:
        importer.refuse(op, problem)
    return block


def _drop_unused(block: Block) -> None:
    """Remove what nobody uses: functions that were asked about types leave computations behind, also of tiles."""
    for op in reversed(block.operations):
        if op.pure and not op.terminator and not any(value.users for value in op.results):
            op.erase()


def _region(importer: Importer, op: Operation, operands: list[Value]) -> tuple[int, Block]:
    """The axis to fold and the combine function."""
    shapes = {value.type.shape for value in operands}
    axis = integer_attribute(importer, op, "axis")
    if len(shapes) != 1 or any(value.type.is_pointer for value in operands):
        importer.wrong(op, f"it does not take {', '.join(str(value.type) for value in operands)}")
    if not 0 <= axis < len(operands[0].type.shape):
        importer.wrong(op, f"axis {axis} is out of range")
    scalars = [TileType(value.type.element) for value in operands]
    return axis, scalar_region(importer, op, [*scalars, *scalars], scalars)


@row("tt.reduce", operands=(1, 64), attributes=("axis", "reduction_ordering"), regions=1)
def _reduce(importer: Importer, op: Operation, operands: list[Any]) -> Any:
    axis, block = _region(importer, op, operands)
    kind = recognised(block) if len(operands) == 1 else None
    if kind is not None:
        return importer.create(Reduce, operands[0], kind=kind, axis=axis)
    return importer.create(ReduceRegion, operands, regions=[block], axis=axis)


@row("tt.scan", operands=(1, 64), attributes=("axis", "reverse"), regions=1)
def _scan(importer: Importer, op: Operation, operands: list[Any]) -> Any:
    axis, block = _region(importer, op, operands)
    reverse = bool(plain(op.attributes.get("reverse", False)))
    kind = recognised(block) if len(operands) == 1 else None
    if kind is not None:
        return scan(importer.trace.builder, operands[0], kind, axis, reverse)
    return importer.create(ScanRegion, operands, regions=[block], axis=axis, reverse=reverse)
