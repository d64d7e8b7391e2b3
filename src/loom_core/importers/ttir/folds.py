"""`tt.reduce`, `tt.scan` and `tt.map_elementwise`: what is done by the function in their region."""

from __future__ import annotations

from typing import Any

from loom_core.importers.ttir.attributes import plain
from loom_core.importers.ttir.branches import import_blocks
from loom_core.importers.ttir.importer import Importer, row
from loom_core.importers.ttir.shapes import integer_attribute
from loom_core.importers.ttir.syntax import IrBlock, Operation
from loom_core.ir.block import Block
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.control import Yield
from loom_core.ops.rearrange import Concat, Slice
from loom_core.ops.reduction import Reduce, ReduceRegion, ScanRegion, recognised
from loom_core.ops.regions import inline_region, verify_region
from loom_core.ops.shape import Reshape, Splat
from loom_core.trace.scans import scan
from loom_core.trace.values import flatten


def scalar_region(
    importer: Importer, op: Operation, types: list[TileType], results: list[TileType] | None = None
) -> Block:
    """The region of an operation as one of elementwise scalar code; without `results` it may give any scalars."""
    blocks = op.regions[0]
    source = blocks[0]
    if len(source.arguments) != len(types):
        importer.wrong(op, f"its region takes {len(source.arguments)} values, {len(types)} are needed")
    block = Block(tuple(types))
    with importer.trace.elementwise(block), importer.nested_scope():
        for (name, type), value in zip(source.arguments, block.arguments, strict=True):
            importer.check_type(op, value, type, name)
            importer.define(op, name, value)
        given = _computed(importer, op, blocks)
        importer.create(Yield, given)
    if results is None:
        results = [value.type for value in given]
    _drop_unused(block)
    problem = verify_region(block, types, results)
    if problem is not None:
        importer.refuse(op, problem)
    return block


def _computed(importer: Importer, op: Operation, blocks: list[IrBlock]) -> list[Value]:
    """What a region gives, built where the builder stands; a helper with several returns makes several blocks of it."""
    if len(blocks) == 1:
        last = importer.body(op, blocks[0], f"{op.name}.return")
        return [importer.value(last, name) for name in last.operands]
    return flatten(import_blocks(importer, op, blocks))


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


@row("tt.map_elementwise", operands=(1, 64), attributes=("pack",), regions=1)
def _map(importer: Importer, op: Operation, operands: list[Any]) -> list[Value]:
    """The function at every element; with `pack` n, at n neighbours of each operand, giving n of each result."""
    pack, shape = integer_attribute(importer, op, "pack"), operands[0].type.shape
    whole = operands[0].type.size
    if any(value.type.shape != shape or value.type.is_pointer for value in operands) or pack < 1 or whole % pack:
        importer.wrong(op, f"it does not take {', '.join(str(value.type) for value in operands)}, {pack} at a time")
    scalars = [TileType(value.type.element) for value in operands for _ in range(pack)]
    block = scalar_region(importer, op, scalars)
    parts = [part for value in operands for part in _unpacked(importer, value, pack)]
    made = inline_region(importer.trace.builder, block, parts)
    if len(made) != pack * len(op.results):
        importer.wrong(op, f"its function gives {len(made)} values, {pack * len(op.results)} are needed")
    return [_packed(importer, made[i : i + pack], shape) for i in range(0, len(made), pack)]


def _unpacked(importer: Importer, value: Value, pack: int) -> list[Value]:
    """Every n-th element from the first, the second, ... on."""
    if pack == 1:
        return [value]
    rows = importer.create(Reshape, value, shape=(value.type.size // pack, pack))
    taken = {"steps": (1, 1), "shape": (rows.type.shape[0], 1)}
    return [importer.create(Slice, rows, starts=(0, i), **taken) for i in range(pack)]


def _packed(importer: Importer, parts: list[Value], shape: tuple[int, ...]) -> Value:
    if len(parts) == 1:
        return parts[0] if parts[0].type.shape == shape else importer.create(Splat, parts[0], shape=shape)
    return importer.create(Reshape, importer.create(Concat, parts, axis=1), shape=shape)  # type: ignore[no-any-return]
