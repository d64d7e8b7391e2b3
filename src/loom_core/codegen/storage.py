"""Which values get windows of SRAM, which share one, and in which layout.

Sharing (each only where no other use would see the overwritten value):
  dot        the product takes the window of its accumulator operand
  loop       initial value, carried argument, yielded value and result of a loop take one window
  branch     a value that a branch hands on as it is takes the window of the result that it becomes
"""

from __future__ import annotations

from dataclasses import dataclass

from loom_core.codegen.emitter import Address, Operand, Window
from loom_core.codegen.groups import VIEWS, VIRTUAL, Group, uses_through_views
from loom_core.codegen.scalar_ops import is_integral, on_command_processor
from loom_core.codegen.schedule import BlockSchedule
from loom_core.ir.block import Block
from loom_core.ir.value import Value
from loom_core.isa.machine import MachineConfig, acc_shape
from loom_core.ops import control, matmul, shape
from loom_core.passes.materialize import may_share_window

ELEMENT_BYTES_OF_ACCUMULATOR = 4


@dataclass(frozen=True)
class Tile:
    """A value in SRAM: `base` is its address (a register where a loop switches slots), strides are in bytes."""

    window: Window
    base: Operand
    strides: tuple[int, ...]
    accumulator: bool = False
    phase: str = ""


def row_major(sizes: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Byte strides of a dense row-major tile."""
    strides = [itemsize] * len(sizes)
    for d in range(len(sizes) - 2, -1, -1):
        strides[d] = strides[d + 1] * sizes[d + 1]
    return tuple(strides)


def needs_window(value: Value) -> bool:
    """Whether the value lives in SRAM (and not in ACP registers, or nowhere)."""
    op = value.defining_op
    if value.type.is_pointer or isinstance(op, VIRTUAL):
        return False
    if op is None or isinstance(op, control.For | control.If | control.While):
        return not (value.type.is_scalar and is_integral(value.type))
    return not on_command_processor(op)


class Sharing:
    """Classes of values that share a window, built by union where it is proved safe."""

    def __init__(self, schedules: dict[Block, BlockSchedule]) -> None:
        self._schedules = schedules
        self._parent: dict[Value, Value] = {}
        self._members: dict[Value, list[Value]] = {}
        self.accumulators: set[Value] = set()

    def root(self, value: Value) -> Value:
        while value in self._parent:
            value = self._parent[value]
        return value

    def members(self, value: Value) -> list[Value]:
        root = self.root(value)
        return self._members.get(root, [root])

    def same(self, a: Value, b: Value) -> bool:
        return self.root(a) is self.root(b)

    def is_accumulator(self, value: Value) -> bool:
        return any(member in self.accumulators for member in self.members(value))

    def _unite(self, a: Value, b: Value) -> None:
        a, b = self.root(a), self.root(b)
        if a is b:
            return
        members = self.members(a) + self.members(b)
        self._members.pop(b, None)
        self._parent[b] = a
        self._members[a] = members

    def build(self, block: Block) -> None:
        """Unite what the operations of `block` and of the blocks inside connect."""
        for op in block.operations:
            for region in op.regions:
                self.build(region)
            if isinstance(op, matmul.Dot):
                self._build_product(op)
            elif isinstance(op, control.For):
                self._build_loop(op)
            elif isinstance(op, control.While):
                # What the condition hands on is the body's argument and, in the end, the result.
                for argument, result in zip(op.regions[1].arguments, op.results, strict=True):
                    if needs_window(result):
                        self._unite(result, argument)

    def _build_product(self, op: matmul.Dot) -> None:
        self.accumulators.add(op.result)
        if op.acc is None or not needs_window(op.acc):
            return
        self.accumulators.add(op.acc)
        # One from an enclosing block must be there again in the next iteration, or after the branch.
        if op.acc.parent_block is op.parent and self._compatible(op.acc, op.result):
            self._unite(op.acc, op.result)

    def _build_loop(self, loop: control.For) -> None:
        block = loop.regions[0]
        yields = block.operations[-1].operands
        for initial, argument, given, result in zip(
            loop.initial, block.arguments[1:], yields, loop.results, strict=True
        ):
            if not needs_window(argument):
                continue
            if _may_share(given) and given.parent_block is block and self._compatible(argument, given):
                self._unite(argument, given)
            self._unite(argument, result)
            if _may_share(initial) and initial.parent_block is loop.parent and initial.users == [loop]:
                self._unite(argument, initial)

    def build_branches(self, block: Block) -> None:
        """Unite what branches hand on, once it is known which windows are accumulators."""
        for op in block.operations:
            for region in op.regions:
                self.build_branches(region)
            if isinstance(op, control.If):
                for arm in op.regions:
                    for given, result in zip(arm.operations[-1].operands, op.results, strict=True):
                        if needs_window(result) and _may_share(given) and self._passes_through(given, op, result):
                            self._unite(given, result)

    def _passes_through(self, given: Value, branch: control.If, result: Value) -> bool:
        """Whether a value from outside of the branch ends with it, so that the result may take its window: a block
        assigns the results at its end, after all that it reads.
        """
        block = branch.parent
        if block is None or given.parent_block is not block or any(map(self.is_accumulator, (given, result))):
            return False
        schedule = self._schedules[block]
        last = max(schedule.position_of(user) for user, _ in uses_through_views(given))
        return last == schedule.position[branch] and all(
            self._disjoint(x, y)
            for x in self.members(given)
            for y in self.members(result)
            if x.parent_block is y.parent_block and (x, y) != (given, result)
        )

    # ---- interference ----

    def _compatible(self, a: Value, b: Value) -> bool:
        """Whether no two members of the classes are alive at once.

        Only values of one block have to be compared: a class has members inside a loop and around it only through the
        loop's results, which stand for what is inside.
        """
        return all(
            self._disjoint(x, y) for x in self.members(a) for y in self.members(b) if x.parent_block is y.parent_block
        )

    def _disjoint(self, a: Value, b: Value) -> bool:
        """Whether the lives of two values of one block never overlap, or meet in a legal handover."""
        assert a.parent_block is not None
        schedule = self._schedules[a.parent_block]
        if _born(schedule, a) > _born(schedule, b):
            a, b = b, a
        birth = _born(schedule, b)
        if _born(schedule, a) == birth:
            return False
        death = max((schedule.position_of(user) for user, _ in uses_through_views(a)), default=-1)
        if death != birth:
            return death < birth
        node = schedule.nodes[birth]
        if isinstance(node, Group):
            return _read_in_place(a, node)
        if isinstance(node, control.For):
            return a in node.initial and a.users == [node]
        return isinstance(node, matmul.Dot) and node.acc is a and a not in (node.a, node.b)


def _may_share(value: Value) -> bool:
    return needs_window(value) and may_share_window(value)


def _born(schedule: BlockSchedule, value: Value) -> int:
    op = value.defining_op
    return -1 if op is None else schedule.position[op]


def _read_in_place(value: Value, group: Group) -> bool:
    """Whether the group reads the value only at the index that it writes, never through a view."""
    inside = set(group.ops)
    views = [user for user in value.users if isinstance(user, VIEWS)]
    return not any(user in inside for view in views for user, _ in uses_through_views(view.results[0]))


def tile_of(window: Window, value: Value, machine: MachineConfig, accumulator: bool) -> Tile:
    """The tile of `value` at the start of `window`."""
    sizes = value.type.shape
    if accumulator:
        columns = acc_shape(machine, sizes[0], sizes[1])[1]
        strides = (columns * ELEMENT_BYTES_OF_ACCUMULATOR, ELEMENT_BYTES_OF_ACCUMULATOR)
        return Tile(window, Address(window), strides, True)
    return Tile(window, Address(window), row_major(sizes, value.type.dtype.itemsize))


def uniform_constant(value: Value) -> shape.Constant | None:
    """The constant that `value` is, or None."""
    op = value.defining_op
    return op if isinstance(op, shape.Constant) else None
