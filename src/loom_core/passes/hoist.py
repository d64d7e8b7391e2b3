"""Invariant code motion: a pure scalar operation of loop invariants moves before the loop.

    for %i ... { %a = mul %n, %m; ... }     ->     %a = mul %n, %m; for %i ... { ... }

Only what the command processor does itself: a float would be a program of the stream engine, and a tile would keep its
window through the loop.
"""

from __future__ import annotations

from loom_core.ir.block import Block, Function
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import control
from loom_core.passes.log import log_rewrite
from loom_core.passes.simplify import is_integral


def hoist_invariants(function: Function) -> Function:
    """Move invariant scalar operations out of loops, inner loops first."""
    _hoist_block(function.body)
    return function


def _hoist_block(block: Block) -> None:
    for op in list(block.operations):
        for region in op.regions:
            _hoist_block(region)
        if isinstance(op, control.For):
            _hoist_from(op)


def _hoist_from(loop: control.For) -> None:
    body, parent = loop.regions[0], loop.parent
    assert parent is not None
    varying: set[Value] = set(body.arguments)
    kept: list[Op] = []
    hoisted: list[Op] = []
    for op in body.operations:
        if _movable(op) and not any(value in varying for value in op.operands):
            log_rewrite("hoist", op)
            hoisted.append(op)
            op.parent = parent
        else:
            varying.update(op.results)
            kept.append(op)
    body.operations[:] = kept
    position = parent.operations.index(loop)
    parent.operations[position:position] = hoisted


def _movable(op: Op) -> bool:
    if not op.pure or op.regions or not op.results or not op.results[0].type.is_scalar:
        return False
    return all(is_integral(value.type) for value in (*op.results, *op.operands))
