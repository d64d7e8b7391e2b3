"""acc + dot(a, b) becomes dot(a, b, acc).

    %d = dot %a, %b; %s = add %acc, %d        (%d has no other user)
becomes
    %s = dot %a, %b, %acc
"""

from __future__ import annotations

from loom_core.ir.block import Function
from loom_core.ir.builder import Builder
from loom_core.ops import elementwise, matmul


def fold_dot_accumulator(function: Function) -> Function:
    """Fold single-use products into their accumulators (docs/numerics.md defines `acc + dot` so)."""
    for op in function.walk():
        if not isinstance(op, elementwise.Add):
            continue
        for product, other in ((op.rhs, op.lhs), (op.lhs, op.rhs)):
            dot = product.defining_op
            if not isinstance(dot, matmul.Dot) or dot.acc is not None or len(product.users) != 1:
                continue
            if dot.parent is not op.parent or product.type != other.type:
                continue
            assert op.parent is not None
            builder = Builder(op.parent)
            builder.anchor, builder.location = op, dot.location
            new = builder.create(matmul.Dot, dot.a, dot.b, other, **dot.attributes)
            op.result.replace_all_uses(new)
            op.erase()
            dot.erase()
            break
    return function
