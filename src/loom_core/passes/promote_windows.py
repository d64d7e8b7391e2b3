"""Windows of SRAM become values: what is read from and written to them is carried by loops and branches instead.

    %w = window {shape = [8]}                      %p = constant {value = nan}
    for %k ... {                                   for %k ..., %p {
      if (cmp eq %k, 0) { dma_store %w, %zero }    ^(%k, %acc):
      %a = dma_load %w              ->               %i = if (cmp eq %k, 0) { yield %zero } { yield %acc }
      dma_store %w, add %a, %b                       yield add %i, %b
    }                                              }

A window is promoted where every access is of all of it. Rules:
  carried   a loop with a store inside carries the value; a branch yields it
  begin     what the first iteration of a loop stores before anything else becomes the initial value
            (above: `for %k ..., %zero`, and the branch is gone)
"""

from __future__ import annotations

from math import prod

from loom_core.ir.block import Block, Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import control, elementwise, memory, shape
from loom_core.passes.log import log_rewrite
from loom_core.passes.simplify import constant_of


def promote_windows(function: Function) -> Function:
    """Promote every window that can be; unused ones go."""
    for op in list(function.walk()):
        if isinstance(op, memory.Window) and all(_is_whole(user, op) for user in op.result.users):
            log_rewrite("promote_windows", op)
            _Promotion(op).run()
    return function


def _is_whole(op: Op, window: memory.Window) -> bool:
    """Whether `op` reads or writes all elements of the window, in order."""
    if not isinstance(op, memory.DmaLoad | memory.DmaStore) or op.shape != tuple(window.shape):
        return False
    if op.operands.count(window.result) != 1 or constant_of(op.offset) != 0:
        return False
    sizes = op.shape or (1,)
    for axis, (size, numbers) in enumerate(zip(sizes, op.dimensions, strict=True)):
        stride = prod(sizes[axis + 1 :]) * window.dtype.itemsize
        if [constant_of(value) for value in numbers] != [stride, 0, size]:
            return False
    return True


class _Promotion:
    """The promotion of one window."""

    def __init__(self, window: memory.Window) -> None:
        self.window = window
        self.type = TileType(window.dtype, tuple(window.shape))
        self.reading = self._containers(memory.DmaLoad)
        self.writing = self._containers(memory.DmaStore)

    def run(self) -> None:
        block = self.window.parent
        assert block is not None
        if self.window.result.users:
            poison = _constant_before(self.window, self.window.dtype.poison, self.type)
            self._block(block, poison)
        self.window.erase()

    def _containers(self, kind: type[Op]) -> set[Op]:
        """Loops and branches between the window and its accesses of a kind."""
        found: set[Op] = set()
        for user in self.window.result.users:
            block = user.parent
            while isinstance(user, kind) and block is not None and block is not self.window.parent:
                assert block.parent is not None
                found.add(block.parent)
                block = block.parent.parent
        return found

    def _block(self, block: Block, current: Value) -> Value:
        """Take the accesses out of a block that begins with the value `current`; gives the value at its end."""
        for op in list(block.operations):
            if isinstance(op, memory.DmaLoad) and op.base is self.window.result:
                op.result.replace_all_uses(current)
                op.erase()
            elif isinstance(op, memory.DmaStore) and op.base is self.window.result:
                current = op.value
                current.name = current.name or self.window.result.name
                op.erase()
            elif op in self.writing:
                current = self._carry(op, current)
            elif op in self.reading:
                for region in op.regions:
                    self._block(region, current)
        return current

    def _carry(self, op: Op, current: Value) -> Value:
        """Hand the value through a loop or branch that stores it."""
        if isinstance(op, control.If):
            ends = [self._block(region, current) for region in op.regions]
            op.attributes["types"] = (*op.types, self.type)
        elif isinstance(op, control.For):
            _append(op, self._begin(op, current))
            ends = [self._block(op.regions[0], self._argument(op.regions[0]))]
        else:
            assert isinstance(op, control.While)
            _append(op, current)
            condition, body = op.regions
            handed = self._block(condition, self._argument(condition))
            ends = [handed, self._block(body, self._argument(body))]
            op.attributes["types"] = (*op.types, self.type)
        for region, end in zip(op.regions, ends, strict=True):
            _append(region.operations[-1], end)
        result = Value(self.type, op, len(op.results), self.window.result.name)
        op.results.append(result)
        return result

    def _argument(self, block: Block) -> Value:
        return block.add_argument(self.type, self.window.result.name)

    def _begin(self, loop: control.For, current: Value) -> Value:
        """The initial value: what the first iteration stores, where that is a constant, else what is there."""
        branch = next((op for op in loop.regions[0].operations if self._touches(op)), None)
        if not isinstance(branch, control.If) or not _is_first_iteration(branch.condition, loop):
            return current
        accesses = [op for op in branch.walk() if self._touches(op) and op is not branch]
        if len(accesses) != 1 or accesses[0].parent is not branch.regions[0]:
            return current
        (store,) = accesses
        number = constant_of(store.value) if isinstance(store, memory.DmaStore) else None
        if number is None:
            return current
        store.erase()
        self.writing.discard(branch)
        log_rewrite("begin", loop)
        return _constant_before(loop, number, self.type)

    def _touches(self, op: Op) -> bool:
        return self.window.result in op.operands or op in self.reading or op in self.writing


def _is_first_iteration(condition: Value, loop: control.For) -> bool:
    """Whether the condition holds in the first of one or more iterations, and in no other."""
    op = condition.defining_op
    lower, upper, step = (constant_of(value) for value in (loop.lower, loop.upper, loop.step))
    if lower is None or upper is None or step is None or step <= 0 or lower >= upper:
        return False
    if not isinstance(op, elementwise.Compare) or op.predicate != "eq":
        return False
    counter = loop.regions[0].arguments[0]
    return any(a is counter and constant_of(b) == lower for a, b in ((op.lhs, op.rhs), (op.rhs, op.lhs)))


def _constant_before(anchor: Op, number: bool | int | float, type: TileType) -> Value:
    assert anchor.parent is not None
    builder = Builder(anchor.parent)
    builder.anchor, builder.location = anchor, anchor.location
    return builder.create(shape.Constant, value=number, type=type)  # type: ignore[no-any-return]


def _append(op: Op, value: Value) -> None:
    """One more operand of the variadic field at the end."""
    op.operands.append(value)
    op.segments[-1] += 1
    value.users.append(op)
