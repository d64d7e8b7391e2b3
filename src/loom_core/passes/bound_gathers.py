"""Gathers from tiles with indices that are inside, of a type that the engine reads.

    %g = gather %x, %i {axis = 0}
becomes
    %inside = and (cmp ge %i, 0), (cmp lt %i, size); %at = select %inside, %i, 0
    %g = select %inside, (gather %x, %at), 0
"""

from __future__ import annotations

from loom_core.base.dtype import i64
from loom_core.ir.block import Function
from loom_core.ir.builder import Builder
from loom_core.ir.value import Value
from loom_core.ops import elementwise, rearrange, shape
from loom_core.passes.log import log_rewrite

INDEX_TYPES = ("i32", "i64")


def bound_gathers(function: Function) -> Function:
    """Bound every gather from a tile."""
    for op in function.walk():
        if isinstance(op, rearrange.Gather):
            log_rewrite("bound_gathers", op)
            _bound(op)
    return function


def _bound(op: rearrange.Gather) -> None:
    assert op.parent is not None
    builder = Builder(op.parent)
    builder.anchor, builder.location = op, op.location

    def constant(number: int, like: Value) -> Value:
        kinds = {"float": float, "bool": bool}
        value = kinds.get(like.type.dtype.kind, int)(number)
        return builder.create(shape.Constant, value=value, type=like.type)  # type: ignore[no-any-return]

    index = op.index
    if index.type.dtype.name not in INDEX_TYPES:
        index = builder.create(elementwise.Cast, index, dtype=i64)
    zero, size = constant(0, index), constant(op.source.type.shape[op.axis], index)
    low = builder.create(elementwise.Compare, index, zero, predicate="ge")
    high = builder.create(elementwise.Compare, index, size, predicate="lt")
    inside = builder.create(elementwise.And, low, high)
    at = builder.create(elementwise.Select, inside, index, zero)
    found = builder.create(rearrange.Gather, op.source, at, axis=op.axis)
    result = builder.create(elementwise.Select, inside, found, constant(0, found))
    result.name = op.result.name
    op.result.replace_all_uses(result)
    op.erase()
