"""Which elements of a tile are where a mask holds, told from the program's text alone.

Values are compared by what computes them, so that a mask which is written twice is one mask.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import atomic, elementwise, memory, shape

_MOVING: Final = (shape.ExpandDims, shape.Broadcast, shape.Reshape, shape.Transpose)
"""Operations that move elements, whatever these are."""


class Keys:
    """A key for each value: equal keys, equal values."""

    def __init__(self) -> None:
        self._known: dict[Value, Hashable] = {}

    def of(self, value: Value) -> Hashable:
        """The key of a value."""
        known = self._known.get(value)
        if known is None:
            op = value.defining_op
            if op is None or not op.pure or op.regions:
                known = value.serial
            else:
                known = applied(op, [self.of(operand) for operand in op.operands], value.index)
            self._known[value] = known
        return known

    def conjuncts(self, mask: Value | None) -> set[Hashable]:
        """Keys of all that holds where a mask does."""
        found: set[Hashable] = set()
        pending = [] if mask is None else [mask]
        while pending:
            value = pending.pop()
            found.add(self.of(value))
            if isinstance(value.defining_op, elementwise.And):
                pending += value.defining_op.operands
            elif isinstance(value.defining_op, _MOVING):
                op = value.defining_op
                found |= {applied(op, [key], 0) for key in self.conjuncts(op.operands[0])}
        return found


def applied(op: Op, operands: list[Hashable], index: int) -> Hashable:
    """The key of result `index` of such an operation with other operands."""
    attributes = tuple((name, repr(value)) for name, value in op.attributes.items())
    return (op.name, index, attributes, tuple(operands))


def parameter_of(pointer: Value) -> Value | None:
    """The parameter that a pointer, or a tile of pointers, points into; None where that is not told."""
    found: Value | None = pointer
    while found is not None and found.defining_op is not None:
        source = found.defining_op
        moves = isinstance(source, (memory.AddPointer, shape.Splat, *_MOVING))
        found = source.operands[0] if moves else None
    if found is None or found.parent_block is None or found.parent_block.parent is not None:
        return None  # carried by a loop
    return found


def stays_masked(load: memory.Load, keys: Keys) -> bool:
    """Whether what a load gives where its mask does not hold is told to reach no result and no address."""
    assert load.mask is not None
    pending: list[tuple[Value, Hashable]] = [(load.result, keys.of(load.mask))]
    seen: set[tuple[Value, Hashable]] = set()
    while pending:
        value, mask = step = pending.pop()
        if step in seen:
            continue
        seen.add(step)
        for user in value.users:
            if isinstance(user, memory.Store | memory.Load | atomic.AtomicRmw):
                if mask not in keys.conjuncts(user.mask) or value is user.mask:
                    return False
            elif _drops(user, value, mask, keys):
                continue
            elif user.elementwise or isinstance(user, memory.AddPointer):
                pending.append((user.result, mask))
            elif isinstance(user, _MOVING):
                pending.append((user.result, applied(user, [mask], 0)))
            else:
                return False
    return True


def _drops(user: Op, value: Value, mask: Hashable, keys: Keys) -> bool:
    """Whether a result is the same whatever the value is outside of the mask."""
    if isinstance(user, elementwise.And):
        return any(mask in keys.conjuncts(other) for other in user.operands if other is not value)
    if isinstance(user, elementwise.Select):
        chosen = value is not user.condition and value is not user.on_false
        return chosen and mask in keys.conjuncts(user.condition)
    return False
