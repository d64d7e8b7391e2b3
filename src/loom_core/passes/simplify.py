"""Local clean-up: constant folding, identities, common subexpressions, dead code, invariant code motion.

Rules (integers and bools only, except where a rule moves data and never rounds):
  fold      add 2, 3            ->  5                 (scalar constants)
  identity  add x, 0; mul x, 1  ->  x
  splat     splat / broadcast / expand_dims / reshape of a constant -> one constant
  same      two pure ops with equal operands and attributes -> one
  dead      a pure op (or loop result) that nobody uses -> removed
  hoist     a pure scalar op of loop invariants -> before the loop
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from loom_core.base.dtype import DType
from loom_core.ir.block import Block, Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import control, elementwise, shape


def simplify(function: Function) -> Function:
    """Fold, merge and remove in one forward walk, then remove what became dead."""
    _simplify_block(function.body, {})
    remove_dead(function)
    return function


def hoist_invariants(function: Function) -> Function:
    """Move pure scalar operations out of the loops that do not change them."""
    _hoist_block(function.body)
    return function


def remove_dead(function: Function) -> Function:
    """Remove pure operations without users, last to first."""
    _remove_dead_block(function.body)
    return function


def wrap(value: int, dtype: DType) -> int:
    """`value` modulo 2^bits, in the range of `dtype`."""
    if dtype.kind == "bool":
        return int(bool(value))
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.kind == "int" and value >> (dtype.bits - 1) else value


def _truncated_quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_FOLDS: dict[type[Op], Callable[[int, int], int]] = {
    elementwise.Add: lambda a, b: a + b,
    elementwise.Sub: lambda a, b: a - b,
    elementwise.Mul: lambda a, b: a * b,
    elementwise.Min: min,
    elementwise.Max: max,
    elementwise.And: lambda a, b: a & b,
    elementwise.Or: lambda a, b: a | b,
    elementwise.Xor: lambda a, b: a ^ b,
    elementwise.Div: lambda a, b: _truncated_quotient(a, b) if b else -1,
    elementwise.FloorDiv: lambda a, b: a // b if b else -1,
    elementwise.Rem: lambda a, b: a - b * _truncated_quotient(a, b) if b else a,
}

_COMPARES: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

_RIGHT_IDENTITY = {elementwise.Add: 0, elementwise.Sub: 0, elementwise.Mul: 1, elementwise.Div: 1, elementwise.Or: 0}


def constant_of(value: Value) -> Any:
    """The Python number that every element of `value` is, or None where that is not known."""
    op = value.defining_op
    return op.value if isinstance(op, shape.Constant) else None


def _is_integral(type: TileType) -> bool:
    return not type.is_pointer and type.dtype.kind != "float"


def _fold(op: Op) -> Value | Any | None:
    """A value or a Python number that the op's result equals, or None."""
    if not op.operands or len(op.results) != 1 or not _is_integral(op.results[0].type):
        return None
    constants = [constant_of(value) for value in op.operands]
    if isinstance(op, elementwise.Binary):
        return _fold_binary(op, constants)
    if isinstance(op, elementwise.Cast):
        if op.operand.type == op.result.type:
            return op.operand
        if constants[0] is not None and _is_integral(op.operand.type):
            return wrap(int(constants[0]), op.dtype)
    if isinstance(op, elementwise.Select) and constants[0] is not None:
        return op.on_true if constants[0] else op.on_false
    if isinstance(op, elementwise.Negate) and constants[0] is not None:
        return wrap(-int(constants[0]), op.result.type.dtype)
    return None


def _fold_binary(op: Op, constants: list[Any]) -> Value | Any | None:
    left, right = constants
    if left is not None and right is not None and _is_integral(op.operands[0].type):
        if isinstance(op, elementwise.Compare):
            return _COMPARES[op.predicate](left, right)
        if type(op) in _FOLDS:
            return wrap(_FOLDS[type(op)](int(left), int(right)), op.results[0].type.dtype)
    if right is not None and _RIGHT_IDENTITY.get(type(op)) == right and not isinstance(op, elementwise.Compare):
        return op.operands[0]
    if left is not None and isinstance(op, elementwise.Add | elementwise.Mul) and _RIGHT_IDENTITY[type(op)] == left:
        return op.operands[1]
    return None


def _constant_shape(op: Op) -> Any:
    """The number of a tile that only repeats or reshapes a constant, else None."""
    if isinstance(op, shape.Splat | shape.Broadcast | shape.ExpandDims | shape.Reshape | shape.Transpose):
        return constant_of(op.operands[0])
    return None


def _key(op: Op) -> tuple[Any, ...] | None:
    """What two equal pure ops share; None where the op must not be merged."""
    if not op.pure or op.regions or not op.results:
        return None
    attributes = tuple((k, repr(v)) for k, v in op.attributes.items())
    return (type(op), tuple(op.operands), tuple(op.segments), attributes, op.results[0].type)


def _simplify_block(block: Block, known: dict[tuple[Any, ...], Op]) -> None:
    known = dict(known)
    builder = Builder(block)
    for op in list(block.operations):
        replacement = _constant_shape(op)
        if replacement is None:
            replacement = _fold(op)
        if replacement is not None:
            if not isinstance(replacement, Value):
                builder.anchor, builder.location = op, op.location
                replacement = builder.create(shape.Constant, value=replacement, type=op.results[0].type)
                new = replacement.defining_op
                merged = known.setdefault(_key(new), new)  # type: ignore[arg-type]
                if merged is not new:
                    new.erase()
                    replacement = merged.results[0]
            op.results[0].replace_all_uses(replacement)
            op.erase()
            continue
        key = _key(op)
        if key is not None:
            first = known.setdefault(key, op)
            if first is not op:
                op.results[0].replace_all_uses(first.results[0])
                op.erase()
                continue
        for region in op.regions:
            _simplify_block(region, known)


def _remove_dead_block(block: Block) -> None:
    kept: list[Op] = []
    for op in reversed(block.operations):
        if op.pure and op.results and not any(value.users for value in op.results):
            op.drop_operands()
            op.parent = None
            continue
        if isinstance(op, control.For):
            _drop_dead_carried(op)
        for region in op.regions:
            _remove_dead_block(region)
        kept.append(op)
    kept.reverse()
    block.operations[:] = kept


def _drop_dead_carried(loop: control.For) -> None:
    """Remove carried values that only feed themselves."""
    block = loop.regions[0]
    last = block.operations[-1]
    for i in reversed(range(len(loop.results))):
        argument = block.arguments[i + 1]
        if loop.results[i].users or any(user is not last for user in argument.users):
            continue
        if any(value is argument and j != i for j, value in enumerate(last.operands)):
            continue
        _remove_operand(loop, 3 + i)
        _remove_operand(last, i)
        del block.arguments[i + 1]
        del loop.results[i]
    for j, value in enumerate(block.arguments):
        value.index = j
    for j, value in enumerate(loop.results):
        value.index = j


def _remove_operand(op: Op, index: int) -> None:
    op.operands[index].users.remove(op)
    del op.operands[index]
    op.segments[-1] -= 1


def _hoist_block(block: Block) -> None:
    for op in list(block.operations):
        for region in op.regions:
            _hoist_block(region)
        if isinstance(op, control.For):
            _hoist_from(op, op.regions[0])


def _hoist_from(loop: Op, body: Block) -> None:
    parent = loop.parent
    assert parent is not None
    inside: set[Value] = set(body.arguments)
    kept: list[Op] = []
    hoisted: list[Op] = []
    for op in body.operations:
        movable = op.pure and not op.regions and op.results and op.results[0].type.is_scalar and _cheap(op)
        if movable and not _any_in(op.operands, inside):
            hoisted.append(op)
            continue
        inside.update(op.results)
        for nested in op.regions:
            inside.update(nested.arguments)
        kept.append(op)
    body.operations[:] = kept
    position = parent.operations.index(loop)
    parent.operations[position:position] = hoisted
    for op in hoisted:
        op.parent = parent


def _cheap(op: Op) -> bool:
    """Scalars of the command processor; a float would be an SCE program."""
    return _is_integral(op.results[0].type) and all(_is_integral(value.type) for value in op.operands)


def _any_in(values: Iterable[Value], group: set[Value]) -> bool:
    return any(value in group for value in values)
