"""Order of a block's operations, and the elementwise ones grouped into SCE programs.

Every operation gets a level: how many results that must be complete (reductions, products, loops) lie on the way to it.
Elementwise operations and row reductions of one shape and level are one group, which becomes one SCE program; groups of
one level can only depend on each other from smaller to larger shapes, so there is no cycle. Inside a level come first
scalars and loads, then groups, then products, stores and loops in source order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loom_core.codegen.groups import (
    VIEWS,
    VIRTUAL,
    Group,
    Node,
    is_group,
    is_permuted,
    on_stream_engine,
    origin,
    uses_through_views,
)
from loom_core.codegen.overlap import overlapped, parts_of
from loom_core.codegen.scalar_ops import on_command_processor
from loom_core.ir.block import Block
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.isa.machine import MachineConfig
from loom_core.ops import debug, memory, reduction

_LAST = 1 << 30


@dataclass
class Effects:
    """Pointer arguments through which an operation reads and writes device memory.

    `reports`: it tells the host something, which comes between what the program did before and what it does after.
    """

    reads: set[Value]
    writes: set[Value]
    reports: bool = False

    @property
    def any(self) -> bool:
        return bool(self.reads or self.writes or self.reports)


def effects(op: Op) -> Effects:
    """Of the op and everything nested in it."""
    found = Effects(set(), set())
    for inner in op.walk():
        if isinstance(inner, memory.DmaLoad | memory.DmaGather | memory.DmaScatterReduce | memory.DmaCompareSwap):
            found.reads.add(inner.base)
        if isinstance(inner, memory.DmaStore | memory.StoringAccess):
            found.writes.add(inner.base)
        if isinstance(inner, memory.DmaCopy):
            found.reads.add(inner.source)
            found.writes.add(inner.target)
        found.reports |= isinstance(inner, debug.Print | debug.Assert)
    return found


class BlockSchedule:
    """The nodes of one block in order. `position[op]` is where an operation (or its group) stands."""

    def __init__(self, block: Block, may_alias: Callable[[Value, Value], bool], machine: MachineConfig) -> None:
        self.block = block
        self._may_alias = may_alias
        self._machine = machine
        self._levels: dict[Op, int] = {}
        self._read: dict[Value, int] = {}  # pointer argument -> highest level at which it is read so far
        self._written: dict[Value, int] = {}
        self._reported = -1  # the level of the last report so far, -1 for none
        self._touched = 0  # the highest level at which memory is accessed so far
        self.group_of: dict[Op, Group] = {}
        self.position: dict[Op, int] = {}
        for op in block.operations:
            self._levels[op] = self._level(op)
        self._sink()
        self.nodes = [part for node in self._ordered() for part in (node.split(machine) if is_group(node) else [node])]
        for position, node in enumerate(self.nodes):
            for op in node.ops if isinstance(node, Group) else (node,):
                self.position[op] = position

    def position_of(self, op: Op) -> int:
        """Place of the node that contains `op`, which may be nested in one."""
        while op not in self.position:
            block = op.parent
            assert block is not None and block.parent is not None
            op = block.parent
        return self.position[op]

    # ---- levels ----

    def _level(self, op: Op) -> int:
        """The least level at which everything is there that the op, with what is nested in it, needs."""
        if isinstance(op, VIEWS):
            return 0  # has none: its users see through it
        taken = [value for inner in op.walk() if not isinstance(inner, VIEWS) for value in inner.operands]
        touched = effects(op)
        level = max([0, *(self._needed(op, value) for value in taken), *self._after_memory(op, touched)])
        for table, bases in ((self._read, touched.reads), (self._written, touched.writes)):
            for base in bases:
                table[base] = max(level, table.get(base, 0))
        if touched.any:
            self._touched = max(level, self._touched)
        if touched.reports:
            self._reported = level
        return level

    def _needed(self, user: Op, value: Value) -> int:
        """Least level of `user` for it to take `value`."""
        producer, reordered = origin(value)
        if producer is None or producer not in self._levels:
            return 0  # from outside this block
        return self._levels[producer] + _delay(producer, user, reordered)

    def _after_memory(self, op: Op, touched: Effects) -> list[int]:
        """Levels that keep the op behind what it must not overtake: a load goes before the groups of its level."""
        late = isinstance(op, memory.DmaLoad)
        after = [level + late for base, level in self._written.items() if self._meets(base, touched.reads)]
        for table in (self._written, self._read):
            after += [level for base, level in table.items() if self._meets(base, touched.writes)]
        if touched.reports:
            after.append(self._touched)
        if touched.any:
            after.append(self._reported + late)
        return after

    def _meets(self, base: Value, others: set[Value]) -> bool:
        return any(self._may_alias(base, other) for other in others)

    def _sink(self) -> None:
        """Delay what is elementwise to the level of its first user, so that it joins that user's program.

        Only where that keeps no more alive: at most one operand is a stored tile of the result's size.
        """
        for op in reversed(self.block.operations):
            if _stage(op) != "elementwise" or not _is_light(op):
                continue
            uses = list(uses_through_views(op.results[0]))
            if uses and all(user in self._levels for user, _ in uses):
                latest = min(self._levels[user] - _delay(op, user, reordered) for user, reordered in uses)
                self._levels[op] = max(self._levels[op], latest)

    # ---- order ----

    def _ordered(self) -> list[Node]:
        groups: dict[tuple[object, ...], Group] = {}
        keyed: list[tuple[int, int, int, Node]] = []
        for index, op in enumerate(self.block.operations):
            level = _LAST if op.terminator else self._levels[op]
            if isinstance(op, VIRTUAL):
                continue
            if not on_stream_engine(op):
                keyed.append((level, 0 if _stage(op) == "early" else 2, index, op))
                continue
            space, permuted = op.operands[0].type.shape, is_permuted(op)
            key = (level, space, index if permuted else -1)
            if key not in groups:
                groups[key] = Group(space, level, [], permuted)
                keyed.append((level, 1, index, groups[key]))
            groups[key].ops.append(op)
        keyed.sort(key=lambda entry: entry[:3])
        nodes: list[Node] = []
        for *_, node in keyed:
            parts = parts_of(node, self._machine) if is_group(node) else [node]
            self.group_of.update((op, part) for part in parts if is_group(part) for op in part.ops)
            nodes += parts
        return overlapped(self._sorted_groups(nodes), self._machine)

    def _sorted_groups(self, nodes: list[Node]) -> list[Node]:
        """Groups of one level in order of their dependences, everything else as it is."""
        done: set[Group] = set()
        ordered: list[Node] = []

        def visit(group: Group) -> None:
            if group in done:
                return
            done.add(group)
            for op in group.ops:
                for value in op.operands:
                    producer, _ = origin(value)
                    other = self.group_of.get(producer) if producer is not None else None
                    if other is not None and other.level == group.level:
                        visit(other)
            ordered.append(group)

        for node in nodes:
            if isinstance(node, Group):
                visit(node)
            else:
                ordered.append(node)
        return ordered


# ---- what a level is made of ----


def _stage(op: Op) -> str:
    """How an operation takes part in a level: "early" ones come first, then the groups, then the "late" ones."""
    if on_command_processor(op) or isinstance(op, (memory.DmaLoad, *VIRTUAL)):
        return "early"
    if isinstance(op, reduction.Reduce):
        return "reduction"
    return "elementwise" if on_stream_engine(op) else "late"


# Stages of users that must be a level later, by the producer's stage.
_LATER_USERS = {
    "early": (),
    "elementwise": ("early",),
    "reduction": ("early", "elementwise", "reduction"),
    "late": ("early", "elementwise", "reduction"),
}


def _delay(producer: Op, user: Op, reordered: bool) -> bool:
    """Whether `user` must be a level later; `reordered`: it takes the elements in another order."""
    stage = _stage(user)
    if _stage(producer) == "elementwise" and on_stream_engine(user) and (reordered or is_permuted(user)):
        return True
    return stage in _LATER_USERS[_stage(producer)]


def _is_light(op: Op) -> bool:
    size = op.results[0].type.size
    stored = [v for v in op.operands if v.type.size == size and not isinstance(origin(v)[0], VIRTUAL)]
    return len(stored) <= 1
