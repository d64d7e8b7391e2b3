"""Regions of elementwise scalar code: the combine functions of reductions and scans.

Such a region takes scalars, holds only constants and pure elementwise operations of scalars, uses nothing from outside,
and ends in a `yield`. Applied to tiles, each of its operations works on tiles: `evaluate_region` does so with arrays,
`inline_region` by copying the operations into another block.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loom_core.ir.block import Block
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops.references import Array
from loom_core.ops.shape import Constant


def verify_region(block: Block, types: Sequence[object], results: Sequence[object]) -> str | None:
    """What keeps `block` from being a region of elementwise scalar code of `types` to `results`, or None."""
    if [argument.type for argument in block.arguments] != list(types):
        return f"the region takes {_list(block.arguments)}, needs {', '.join(map(str, types))}"
    inside = set(block.arguments)
    for op in block.operations:
        if any(value not in inside for value in op.operands):
            return f"{op.name} in the region uses a value from outside"
        if op.terminator:
            break
        if not (op.elementwise or isinstance(op, Constant)) or not op.pure:
            return f"the region holds {op.name}; it may hold only elementwise operations"
        if any(not value.type.is_scalar for value in op.results):
            return "the region computes with tiles"
        inside.update(op.results)
    last = block.terminator
    if last is None or last.name != "yield":
        return "the region does not end in a yield"
    if [value.type for value in last.operands] != list(results):
        return f"the region yields {_list(last.operands)}, needs {', '.join(map(str, results))}"
    return None


def _list(values: Sequence[Value]) -> str:
    return ", ".join(str(value.type) for value in values) or "nothing"


def evaluate_region(block: Block, arguments: Sequence[Array]) -> list[Array]:
    """What the region yields, element by element, for arrays of one shape."""
    values = dict(zip(block.arguments, arguments, strict=True))
    shape = np.shape(arguments[0])
    for op in block.operations:
        if op.terminator:
            return [np.broadcast_to(values[value], shape) for value in op.operands]
        # The references broadcast, so that a constant meets an array.
        values[op.results[0]] = op.ref(*(values[value] for value in op.operands))  # type: ignore[misc]
    return []


def inline_region(builder: Builder, block: Block, arguments: Sequence[Value]) -> list[Value]:
    """Copies the region's operations to where `builder` stands, as operations of tiles of the arguments' shape."""
    values = dict(zip(block.arguments, arguments, strict=True))
    shape = arguments[0].type.shape
    for op in block.operations:
        operands = [values[value] for value in op.operands]
        if op.terminator:
            return operands
        attributes = dict(op.attributes)
        if isinstance(op, Constant):
            attributes["type"] = attributes["type"].with_shape(shape)
        made = builder.create_op(type(op), *operands, location=op.location, **attributes)
        values[op.results[0]] = made.results[0]
    return []


def only_operation(block: Block) -> Op | None:
    """The operation of a region that applies just one to its two arguments in order (or a commutative one), or None."""
    if len(block.operations) != 2 or len(block.arguments) != 2:
        return None
    op, last = block.operations
    if list(last.operands) != op.results:
        return None
    return op if op.operands in ([*block.arguments], [*reversed(block.arguments)]) else None
