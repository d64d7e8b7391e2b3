"""Order of a block's operations, and the elementwise ones grouped into SCE programs.

Every operation gets a level: how many results that must be complete (reductions, products, loops) lie on the way to it.
Elementwise operations and row reductions of one shape and level are one group, which becomes one SCE program; groups of
one level can only depend on each other from smaller to larger shapes, so there is no cycle. Inside a level come first
scalars and loads, then groups, then products, stores and loops in source order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from loom_core.ir.block import Block
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import control, matmul, memory, reduction, shape

# Operations that only look at a value through other strides, or have no storage at all.
VIEWS = (shape.Splat, shape.ExpandDims, shape.Broadcast, shape.Transpose, shape.Reshape)
VIRTUAL = (*VIEWS, shape.Constant, shape.AffineTile, control.ProgramId, control.NumPrograms)

_LAST = 1 << 30


@dataclass(eq=False)
class Group:
    """Operations that become one SCE program over `shape`; `permuted` for one reduction not along the last axis."""

    shape: tuple[int, ...]
    level: int
    ops: list[Op] = field(default_factory=list)
    permuted: bool = False

    @property
    def outputs(self) -> list[Value]:
        """Results that operations outside the group use."""
        inside = set(self.ops)
        return [op.results[0] for op in self.ops if any(user not in inside for user in op.results[0].users)]

    @property
    def inputs(self) -> list[Value]:
        """Operands that come from outside the group, each once."""
        inside = set(self.ops)
        operands = (value for op in self.ops for value in op.operands)
        return list(dict.fromkeys(value for value in operands if value.defining_op not in inside))

    def split(self, max_streams: int) -> list[Group]:
        """Cut in order, so that the inputs and outputs of each part fit one program."""
        parts = [Group(self.shape, self.level, [], self.permuted)]
        for op in self.ops:
            part = parts[-1]
            longer = Group(self.shape, self.level, [*part.ops, op], self.permuted)
            if part.ops and len(longer.inputs) + len(longer.outputs) > max_streams:
                longer = Group(self.shape, self.level, [op], self.permuted)
                parts.append(longer)
            parts[-1] = longer
        return parts


Node = Op | Group


def is_integral(type: TileType) -> bool:
    return not type.is_pointer and type.dtype.kind != "float"


def on_command_processor(op: Op) -> bool:
    """Whether the op is integer arithmetic on scalars, which the ACP does itself."""
    return (
        op.elementwise
        and op.results[0].type.is_scalar
        and is_integral(op.results[0].type)
        and all(is_integral(value.type) for value in op.operands)
    )


def on_stream_engine(op: Op) -> bool:
    """Whether the op is part of an SCE program."""
    return (op.elementwise and not on_command_processor(op)) or isinstance(op, reduction.Reduce)


def folds_rows(op: Op) -> bool:
    """A reduction along the last axis can share the program that computes its operand."""
    return isinstance(op, reduction.Reduce) and op.axis == len(op.operand.type.shape) - 1


@dataclass
class Effects:
    """Pointer arguments through which an operation reads and writes device memory."""

    reads: set[Value]
    writes: set[Value]

    def conflicts(self, later: Effects, may_alias: Callable[[Value, Value], bool]) -> bool:
        pairs = [(a, b) for a in self.writes for b in later.reads | later.writes]
        pairs += [(a, b) for a in self.reads for b in later.writes]
        return any(may_alias(a, b) for a, b in pairs)


def effects(op: Op) -> Effects:
    """Of the op and everything nested in it."""
    found = Effects(set(), set())
    for inner in op.walk():
        if isinstance(inner, memory.DmaLoad):
            found.reads.add(inner.base)
        elif isinstance(inner, memory.DmaStore):
            found.writes.add(inner.base)
    return found


class BlockSchedule:
    """The nodes of one block in order. `position[op]` is where an operation (or its group) stands."""

    def __init__(self, block: Block, may_alias: Callable[[Value, Value], bool], max_streams: int) -> None:
        self.block = block
        self._may_alias = may_alias
        self._max_streams = max_streams
        self._levels: dict[Op, int] = {}
        self.group_of: dict[Op, Group] = {}
        self.nodes: list[Node] = []
        self.position: dict[Op, int] = {}
        self._assign_levels()
        self._sink()
        self._order()

    def position_of(self, op: Op) -> int:
        """Place of the node that contains `op`, which may be nested in one."""
        while op not in self.position:
            block = op.parent
            assert block is not None and block.parent is not None
            op = block.parent
        return self.position[op]

    # Levels

    def _assign_levels(self) -> None:
        memory_ops: list[tuple[Op, Effects]] = []
        for op in self.block.operations:
            level = max((self._needed(op, value) for value in op.operands), default=0)
            for nested in op.regions:
                level = max([level, *(self._needed(op, v) for inner in nested.walk() for v in inner.operands)])
            touched = effects(op)
            if touched.reads or touched.writes:
                for earlier, other in memory_ops:
                    if other.conflicts(touched, self._may_alias):
                        # A load goes before the groups of its level, a store after them.
                        late = isinstance(op, memory.DmaLoad) and not isinstance(earlier, memory.DmaLoad)
                        level = max(level, self._levels[earlier] + late)
                memory_ops.append((op, touched))
            self._levels[op] = level

    def _needed(self, user: Op, value: Value) -> int:
        """Least level of `user` for it to take `value`."""
        producer = value.defining_op
        if producer is None or producer not in self._levels:
            return 0  # from outside this block
        level = self._levels[producer]
        early = not on_stream_engine(user) and not isinstance(user, VIRTUAL) and _phase(user) == 0
        if isinstance(producer, VIEWS):
            return level + early  # what it shows may be computed in this level
        if isinstance(producer, matmul.Dot | control.For | control.If):
            late_user = not isinstance(user, VIRTUAL) and not on_stream_engine(user) and not early
            return level if late_user else level + 1
        if isinstance(producer, reduction.Reduce):
            return level + 1 if early or on_stream_engine(user) or isinstance(user, VIRTUAL) else level
        if on_stream_engine(producer):
            reshaped = isinstance(user, shape.Reshape | shape.Transpose)
            permuted = isinstance(user, reduction.Reduce) and not folds_rows(user)
            return level + (early or reshaped or permuted)
        return level

    def _sink(self) -> None:
        """Delay what is elementwise to the level of its first user, so that it joins that user's program.

        Only where that keeps no more alive: at most one operand is a stored tile of the result's size.
        """
        for op in reversed(self.block.operations):
            delayed = isinstance(op, VIEWS) or (on_stream_engine(op) and op.elementwise and _light(op))
            if not delayed or any(user.parent is not self.block for user in op.results[0].users):
                continue
            limits = [self._levels[user] - self._lead(user, op) for user in op.results[0].users]
            self._levels[op] = max([self._levels[op], *([min(limits)] if limits else [])])

    def _lead(self, user: Op, op: Op) -> int:
        """By how many levels `user` must come after `op`."""
        return self._needed(user, op.results[0]) - self._levels[op]

    # Order

    def _order(self) -> None:
        groups: dict[tuple[object, ...], Group] = {}
        keyed: list[tuple[int, int, int, Node]] = []
        for index, op in enumerate(self.block.operations):
            if isinstance(op, VIRTUAL):
                continue
            level = self._levels[op]
            if op.terminator:
                keyed.append((_LAST, 0, index, op))
                continue
            if not on_stream_engine(op):
                keyed.append((level, _phase(op), index, op))
                continue
            permuted = isinstance(op, reduction.Reduce) and not folds_rows(op)
            key = (level, index if permuted else -1, op.operands[0].type.shape if permuted else _space(op))
            group = groups.get(key)
            if group is None:
                group = groups[key] = Group(op.operands[0].type.shape if permuted else _space(op), level, [], permuted)
                keyed.append((level, 1, index, group))
            group.ops.append(op)
            self.group_of[op] = group
        keyed.sort(key=lambda entry: entry[:3])
        for node in self._sort_groups([entry[3] for entry in keyed]):
            self.nodes += node.split(self._max_streams) if isinstance(node, Group) else [node]
        for position, node in enumerate(self.nodes):
            for op in node.ops if isinstance(node, Group) else (node,):
                self.position[op] = position

    def _sort_groups(self, nodes: list[Node]) -> list[Node]:
        """Groups of one level in order of their dependences, everything else as it is."""
        done: set[Group] = set()
        ordered: list[Node] = []

        def visit(group: Group) -> None:
            if group in done:
                return
            done.add(group)
            for op in group.ops:
                for value in op.operands:
                    producer = producer_of(value)
                    other = self.group_of.get(producer) if producer is not None else None
                    if other is not None and other is not group and other.level == group.level:
                        visit(other)
            ordered.append(group)

        for node in nodes:
            if isinstance(node, Group):
                visit(node)
            else:
                ordered.append(node)
        return ordered


def _light(op: Op) -> bool:
    size = op.results[0].type.size
    stored = [v for v in op.operands if v.type.size == size and not isinstance(producer_of(v), VIRTUAL)]
    return len(stored) <= 1


def producer_of(value: Value) -> Op | None:
    """The operation that computes what `value` shows, looking through views."""
    op = value.defining_op
    while isinstance(op, VIEWS):
        op = op.operands[0].defining_op
    return op


def _space(op: Op) -> tuple[int, ...]:
    """The iteration space of an SCE operation."""
    return op.operands[0].type.shape


def _phase(op: Op) -> int:
    """0 before the groups of the level, 2 after them."""
    return 0 if on_command_processor(op) or isinstance(op, memory.DmaLoad) else 2
