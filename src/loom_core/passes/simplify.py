"""Local clean-up: constant folding, identities, common subexpressions, then dead code (`dead`).

Rules (integers and bools only, except where a rule moves data and never rounds):
  view      splat / broadcast / expand_dims / reshape / transpose of a constant -> one constant
  fold      add 2, 3                    ->  5
  identity  add x, 0; mul 1, x; div x, 1  ->  x
  cast      cast x to its own type      ->  x
  select    select true, x, y           ->  x
  same      two pure ops with equal operands and attributes -> one
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loom_core.ir.block import Block, Function
from loom_core.ir.op import Op
from loom_core.ir.printer import print_value
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import elementwise, shape
from loom_core.passes import integers
from loom_core.passes.dead import remove_dead
from loom_core.passes.log import log_rewrite

VIEWS = (shape.Splat, shape.Broadcast, shape.ExpandDims, shape.Reshape, shape.Transpose)


def simplify(function: Function) -> Function:
    """Fold and merge in one forward walk, then remove what became dead."""
    _simplify_block(function.body, {})
    return remove_dead(function)


def constant_of(value: Value) -> Any:
    """The Python number that every element of `value` is, or None where that is not known."""
    op = value.defining_op
    return op.value if isinstance(op, shape.Constant) else None


def is_integral(type: TileType) -> bool:
    return not type.is_pointer and type.dtype.kind != "float"


# ---- rules: a value or a Python number that the op's only result equals, or None ----


def _view(op: Op) -> Any:
    return constant_of(op.operands[0]) if isinstance(op, VIEWS) else None


_FOLDS: dict[type[Op], Callable[..., int]] = {
    elementwise.Add: lambda a, b: a + b,
    elementwise.Sub: lambda a, b: a - b,
    elementwise.Mul: lambda a, b: a * b,
    elementwise.Min: min,
    elementwise.Max: max,
    elementwise.And: lambda a, b: a & b,
    elementwise.Or: lambda a, b: a | b,
    elementwise.Xor: lambda a, b: a ^ b,
    elementwise.Div: integers.truncated_quotient,
    elementwise.FloorDiv: integers.floor_quotient,
    elementwise.Rem: integers.remainder,
    elementwise.Negate: lambda a: -a,
    elementwise.Abs: abs,
    elementwise.Cast: lambda a: a,
}

_COMPARES: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _fold(op: Op) -> Any:
    rule = _COMPARES[op.predicate] if isinstance(op, elementwise.Compare) else _FOLDS.get(type(op))
    if rule is None:
        return None
    constants = [constant_of(value) for value in op.operands]
    if None in constants or not all(is_integral(value.type) for value in (*op.operands, op.results[0])):
        return None
    return integers.wrap(rule(*map(int, constants)), op.results[0].type.dtype)


_RIGHT_IDENTITY: dict[type[Op], int] = {
    elementwise.Add: 0, elementwise.Sub: 0, elementwise.Or: 0, elementwise.Xor: 0,
    elementwise.Mul: 1, elementwise.Div: 1,
}  # fmt: skip
_LEFT_IDENTITY: dict[type[Op], int] = {elementwise.Add: 0, elementwise.Or: 0, elementwise.Xor: 0, elementwise.Mul: 1}


def _identity(op: Op) -> Value | None:
    if type(op) not in _RIGHT_IDENTITY or not is_integral(op.results[0].type):
        return None
    left, right = (constant_of(value) for value in op.operands)
    if right is not None and right == _RIGHT_IDENTITY.get(type(op)):
        return op.operands[0]
    if left is not None and left == _LEFT_IDENTITY.get(type(op)):
        return op.operands[1]
    return None


def _cast(op: Op) -> Value | None:
    # A float would be made canonical.
    if isinstance(op, elementwise.Cast) and op.operand.type == op.result.type and is_integral(op.result.type):
        return op.operand  # type: ignore[no-any-return]
    return None


def _select(op: Op) -> Value | None:
    if not isinstance(op, elementwise.Select) or not is_integral(op.result.type):
        return None
    condition = constant_of(op.condition)
    if condition is None:
        return None
    return op.on_true if condition else op.on_false  # type: ignore[no-any-return]


RULES: tuple[tuple[str, Callable[[Op], Any]], ...] = (
    ("view", _view),
    ("fold", _fold),
    ("identity", _identity),
    ("cast", _cast),
    ("select", _select),
)


# ---- the walk ----


def _key(op: Op) -> tuple[Any, ...] | None:
    """What two equal pure ops share; None where the op must not be merged."""
    if not op.pure or op.regions or not op.results:
        return None
    attributes = tuple(map(print_value, op.attributes.values()))
    return (type(op), tuple(op.operands), tuple(op.segments), attributes, op.results[0].type)


def _simplify_block(block: Block, known: dict[tuple[Any, ...], Op]) -> None:
    """`known`: by key, the operations of this and the enclosing blocks so far."""
    known = dict(known)
    kept: list[Op] = []
    for op in block.operations:
        replacement = _replacement(op, known) if len(op.results) == 1 else None
        if replacement is None:
            kept.append(op)
            for region in op.regions:
                _simplify_block(region, {} if op.isolated else known)
            continue
        op.results[0].replace_all_uses(replacement)
        op.drop_operands()
        op.parent = None
        made = replacement.defining_op
        if made is not None and made.parent is None:  # a new constant in the op's place
            made.parent = block
            kept.append(made)
    block.operations[:] = kept


def _replacement(op: Op, known: dict[tuple[Any, ...], Op]) -> Value | None:
    """The value to use instead of the op's result, or None."""
    for name, rule in RULES:
        found = rule(op)
        if found is not None:
            log_rewrite(name, op)
            return found if isinstance(found, Value) else _constant(op, found, known)
    key = _key(op)
    if key is None:
        return None
    first = known.setdefault(key, op)
    if first is op:
        return None
    log_rewrite("same", op)
    return first.results[0]


def _constant(op: Op, number: Any, known: dict[tuple[Any, ...], Op]) -> Value:
    """A constant of the op's result type: one that is there, or a new one that is in no block yet."""
    type = op.results[0].type
    value = bool(number) if type.dtype.kind == "bool" else number
    new = shape.Constant((), {"value": value, "type": type}, (), op.location)
    new.result.name = op.results[0].name
    key = _key(new)
    assert key is not None
    return known.setdefault(key, new).results[0]
