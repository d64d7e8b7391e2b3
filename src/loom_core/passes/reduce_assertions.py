"""Assertions about tiles look at one value, which says whether all elements hold.

    assert %tile
becomes
    %flat = reshape %tile {shape = [n]}; %all = reduce %flat {kind = "and", axis = 0}
    assert %tile, holds = %all
"""

from __future__ import annotations

from loom_core.ir.block import Function
from loom_core.ir.builder import Builder
from loom_core.ops import debug, reduction, shape
from loom_core.passes.log import log_rewrite


def reduce_assertions(function: Function) -> Function:
    """Give every assertion about a tile its `holds`."""
    for op in list(function.walk()):
        if isinstance(op, debug.Assert) and op.holds is None and op.condition.type.shape:
            log_rewrite("reduce_assertions", op)
            _reduce(op)
    return function


def _reduce(op: debug.Assert) -> None:
    assert op.parent is not None
    builder = Builder(op.parent)
    builder.anchor, builder.location = op, op.location
    flat = builder.create(shape.Reshape, op.condition, shape=(op.condition.type.size,))
    holds = builder.create(reduction.Reduce, flat, kind="and", axis=0)
    builder.create(debug.Assert, op.condition, holds, message=op.message)
    op.erase()
