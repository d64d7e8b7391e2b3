"""Products folded into their accumulators; docs/numerics.md defines the sum so.

    %d = dot %a, %b; %s = add %acc, %d
becomes, where the product has no other use,
    %s = dot %a, %b, acc = %acc
The two are in one block: in another one the product would be computed more or less often.
"""

from __future__ import annotations

from loom_core.ir.block import Function
from loom_core.ir.builder import Builder
from loom_core.ir.value import Value
from loom_core.ops import elementwise, matmul
from loom_core.passes.log import log_rewrite


def fold_dot_accumulator(function: Function) -> Function:
    """Fold single-use products into their accumulators; of two products that are added, the right one."""
    for op in function.walk():
        if isinstance(op, elementwise.Add):
            _fold_sum(op)
    return function


def _fold_sum(op: elementwise.Add) -> None:
    for product, acc in ((op.rhs, op.lhs), (op.lhs, op.rhs)):
        dot = product.defining_op
        if not isinstance(dot, matmul.Dot) or not _foldable(op, dot, product):
            continue
        assert op.parent is not None
        log_rewrite("fold_dot_accumulator", op)
        builder = Builder(op.parent)
        builder.anchor, builder.location = op, dot.location
        new = builder.create(matmul.Dot, dot.a, dot.b, acc, **dot.attributes)
        new.name = op.result.name
        op.result.replace_all_uses(new)
        op.erase()
        dot.erase()
        return


def _foldable(op: elementwise.Add, dot: matmul.Dot, product: Value) -> bool:
    return dot.acc is None and len(product.users) == 1 and dot.parent is op.parent
