"""Bounds of integers in one launch: what its grid and its numbers leave possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from loom_core.base.dtype import DType
from loom_core.checks.lanes import parameter_of
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import control, elementwise, memory, reduction, shape

Interval: TypeAlias = tuple[int, int]
_WRAPPING: Final = (elementwise.Add, elementwise.Sub, elementwise.Mul)
_KEEPING: Final = (shape.Splat, shape.ExpandDims, shape.Broadcast, shape.Reshape, shape.Transpose, elementwise.Copy)
_EXTREMES: Final = ("max", "min", "maxp", "minp")


class Bounds:
    """The interval of each integer of a function.

    `numbers` are the values of its scalar parameters, `contents` the intervals of what stands in arrays.
    """

    def __init__(
        self, numbers: Mapping[Value, int], contents: Mapping[Value, Interval], grid: tuple[int, int, int]
    ) -> None:
        self._grid = grid
        self._contents = contents
        self._known: dict[Value, Interval] = {value: (number, number) for value, number in numbers.items()}

    def of(self, value: Value) -> Interval:
        """The least and the largest number that the value may be, its type's at most."""
        known = self._known.get(value)
        if known is None:
            dtype = value.type.dtype
            op = value.defining_op
            found = self._argument(value) if op is None else self.exact(op)
            known = _clipped(found, dtype)
            self._known[value] = known
        return known

    def may_wrap(self, op: Op) -> bool:
        """Whether an operation on integers of less than 64 bits may give what its type cannot hold."""
        if not isinstance(op, _WRAPPING) or op.result.type.is_pointer:
            return False
        dtype = op.result.type.dtype
        if not dtype.is_integer or dtype.bits == 64:
            return False
        found = self.exact(op)
        return found is None or not (dtype.min_value <= found[0] and found[1] <= dtype.max_value)

    def exact(self, op: Op) -> Interval | None:
        """What the result of an operation would be without wrapping; None where that is not known."""
        if isinstance(op, shape.Constant):
            return (int(op.value), int(op.value)) if op.result.type.dtype.is_integer else None
        if isinstance(op, shape.Iota):
            return (op.start, op.end - 1)
        if isinstance(op, control.ProgramId):
            return (0, self._grid[op.axis] - 1)
        if isinstance(op, control.NumPrograms):
            return (self._grid[op.axis], self._grid[op.axis])
        if isinstance(op, memory.Load):
            return self._loaded(op)
        if isinstance(op, _KEEPING) or (isinstance(op, reduction.Reduce) and op.kind in _EXTREMES):
            return self._operand(op, 0)
        if isinstance(op, elementwise.Cast):
            return self._operand(op, 0) if op.operand.type.dtype.is_integer else None
        if isinstance(op, elementwise.Select):
            return _union(self._operand(op, 1), self._operand(op, 2))
        if isinstance(op, (*_WRAPPING, elementwise.Min, elementwise.Max, elementwise.Rem, elementwise.Div)):
            a, b = self._operand(op, 0), self._operand(op, 1)
            return None if a is None or b is None else _combined(op, a, b)
        return None

    def _loaded(self, op: memory.Load) -> Interval | None:
        """What stands in the array that a load reads, and what it gives where its mask does not hold."""
        pointer = parameter_of(op.pointer)
        found = None if pointer is None else self._contents.get(pointer)
        if found is None or op.mask is None:
            return found
        return _union(found, (0, 0) if op.other is None else self.of(op.other))

    def _operand(self, op: Op, number: int) -> Interval | None:
        value = op.operands[number]
        return self.of(value) if not value.type.is_pointer and value.type.dtype.is_integer else None

    def _argument(self, value: Value) -> Interval | None:
        """A loop's counter; other arguments of blocks may be anything."""
        block = value.parent_block
        loop = block.parent if block is not None else None
        if not isinstance(loop, control.For) or value.index != 0:
            return None
        lower, upper, step = (self.of(bound) for bound in (loop.lower, loop.upper, loop.step))
        return (lower[0], max(lower[0], upper[1] - 1)) if step[0] > 0 else None


def _combined(op: Op, a: Interval, b: Interval) -> Interval | None:
    if isinstance(op, elementwise.Add):
        return a[0] + b[0], a[1] + b[1]
    if isinstance(op, elementwise.Sub):
        return a[0] - b[1], a[1] - b[0]
    if isinstance(op, elementwise.Mul):
        corners = [x * y for x in a for y in b]
        return min(corners), max(corners)
    if isinstance(op, elementwise.Min):
        return min(a[0], b[0]), min(a[1], b[1])
    if isinstance(op, elementwise.Max):
        return max(a[0], b[0]), max(a[1], b[1])
    if b[0] <= 0 or a[0] < 0:
        return None
    if isinstance(op, elementwise.Rem):
        return 0, min(a[1], b[1] - 1)
    return a[0] // b[1], a[1] // b[0]


def _union(a: Interval | None, b: Interval | None) -> Interval | None:
    return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


def _clipped(found: Interval | None, dtype: DType) -> Interval:
    """The interval, or all that the type holds where it may leave that."""
    low, high = (0, 1) if dtype.is_bool else (dtype.min_value, dtype.max_value)
    return found if found is not None and low <= found[0] and found[1] <= high else (int(low), int(high))
