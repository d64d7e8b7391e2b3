"""Chains of work that overlap: while the stream engine works for one product, the matrix unit works on the next.

    cut     a group of parts that have nothing to do with each other becomes a program each, so that what waits for one
            need not wait for all
    order   of a block with several products, groups and products are issued when they can start, by the estimate of
            `cost_of`: engines work in order, and what comes first must not wait while others could go on

Everything else in a block keeps its order: loads, stores, loops, scalars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from loom_core.codegen.groups import VIRTUAL, Group, Node, is_group, on_stream_engine, origin
from loom_core.codegen.scalar_ops import on_command_processor
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.isa.machine import MachineConfig
from loom_core.ops import control, matmul, memory, reduction

_WIDTH = 4
"""Bytes of an element, where only an estimate is needed."""
LEAST_WORK = 4
"""A program of its own is worth so many times what it takes to start."""


# ---- cut ----


def parts_of(group: Group, machine: MachineConfig) -> list[Group]:
    """The group, or where that pays its independent parts.

    Tiles that two parts would both read keep them together, and so does little work, which is not worth another program
    unless each part waits for something else that takes long.
    """
    size = prod(group.shape)
    number: dict[Op | Value, int] = {}  # of the part that an operation, or a tile that it reads, belongs to
    for i, op in enumerate(group.ops):
        near: list[Op | Value] = [op]
        for value in op.operands:
            producer, _ = origin(value)
            root = _seen(value)
            if producer is not None and producer in number:
                near.append(producer)
            elif root.type.size == size and not isinstance(producer, VIRTUAL):
                near.append(root)
        met = {number[key] for key in near if key in number}
        number.update(dict.fromkeys(near, i))
        number = {key: i if part in met else part for key, part in number.items()}
    parts: dict[int, list[Op]] = {}
    for op in group.ops:
        parts.setdefault(number[op], []).append(op)
    least = LEAST_WORK * machine.sce_startup_cycles * machine.sce_lanes
    waits = [_awaited(part, least) for part in parts.values()]
    is_large = min(map(len, parts.values())) * size >= least
    if len(parts) == 1 or not (is_large or (all(waits) and sum(map(len, waits)) == len(set().union(*waits)))):
        return [group]
    return [Group(group.shape, group.level, part, group.permuted) for part in parts.values()]


def _seen(value: Value) -> Value:
    """What a value shows through views."""
    op, _ = origin(value)
    while value.defining_op is not op:
        assert value.defining_op is not None
        value = value.defining_op.operands[0]
    return value


def _awaited(ops: Iterable[Op], work: int) -> set[Op]:
    """The nearest products, and reductions of so much work, on which operations of a block depend."""
    found: set[Op] = set()
    seen: set[Op] = set()
    pending = list(ops)
    while pending:
        op = pending.pop()
        for producer in _producers([op]):
            if producer in seen or producer.parent is not op.parent:
                continue
            seen.add(producer)
            if isinstance(producer, matmul.Dot) or (
                isinstance(producer, reduction.Reduce) and 2 * producer.operand.type.size >= work
            ):
                found.add(producer)
            elif on_stream_engine(producer):
                pending.append(producer)
    return found


def _producers(ops: Iterable[Op]) -> Iterator[Op]:
    for op in ops:
        for value in op.operands:
            producer, _ = origin(value)
            if producer is not None:
                yield producer


# ---- order ----


def overlapped(nodes: list[Node], machine: MachineConfig) -> list[Node]:
    """The nodes of a block in another order, where it has several products."""
    ordered: list[Node] = []
    run: list[Node] = []
    for node in nodes:
        if is_group(node) or isinstance(node, matmul.Dot | memory.DmaLoad | memory.DmaStore) or _is_scalar(node):
            run.append(node)
        else:
            ordered += [*_Order(run, machine).nodes(), node]
            run = []
    return [*ordered, *_Order(run, machine).nodes()]


def _is_scalar(node: Node) -> bool:
    return isinstance(node, Op) and on_command_processor(node)


class _Order:
    """List scheduling of a run of nodes on the matrix unit and the stream engine."""

    def __init__(self, run: list[Node], machine: MachineConfig) -> None:
        self._run = run
        self._machine = machine
        home = {op: node for node in run for op in _ops(node)}
        self._needs = {node: {home[op] for op in _producers(_ops(node)) if op in home} - {node} for node in run}
        # What reads a product's accumulator operand must do so before the product takes its place.
        readers: dict[Value, list[Node]] = {}
        for node in run:
            if isinstance(node, matmul.Dot) and node.acc is not None:
                self._needs[node].update(readers.get(_seen(node.acc), ()))
            for value in (value for op in _ops(node) for value in op.operands):
                readers.setdefault(_seen(value), []).append(node)

    def nodes(self) -> list[Node]:
        if sum(isinstance(node, matmul.Dot) for node in self._run) < 2:
            return self._run
        ordered: list[Node] = []
        left = list(self._run)
        free = {"mxu": 0, "sce": 0}
        done: dict[Node, int] = {}
        while left:
            node = self._next(left, free, done)
            left.remove(node)
            ordered.append(node)
            ready = self._ready(node, done)
            if _moves(node):
                engine = _engine(node)
                free[engine] = max(free[engine], ready) + self._cycles(node)
                done[node] = free[engine] + self._way(node)
            else:
                done[node] = ready
        return ordered

    def _next(self, left: list[Node], free: dict[str, int], done: dict[Node, int]) -> Node:
        """The next node in order of those that keep it, else the one that can start first, the shortest of those."""
        kept = next((node for node in left if not _moves(node)), None)
        if kept is not None and self._needs[kept] <= done.keys():
            return kept
        able = [node for node in left if _moves(node) and self._needs[node] <= done.keys()]
        return min(able, key=lambda node: (max(self._ready(node, done), free[_engine(node)]), self._cycles(node)))

    def _ready(self, node: Node, done: dict[Node, int]) -> int:
        return max((done[other] for other in self._needs[node]), default=0)

    def _cycles(self, node: Node) -> int:
        machine = self._machine
        if is_group(node):
            size = prod(node.shape)
            moved = 2 * size * _WIDTH // machine.sram_bytes_per_cycle
            return machine.sce_startup_cycles + max(len(node.ops) * size // machine.sce_lanes, moved)
        assert isinstance(node, matmul.Dot)
        m, n = node.result.type.shape
        k = node.a.type.shape[1]
        cycles: int = m * -(-n // machine.mxu_cols) * -(-k // machine.mxu_rows)
        return cycles

    def _way(self, node: Node) -> int:
        """Cycles until others can use the results: through the array, or by DMA into the layout of operands."""
        if isinstance(node, matmul.Dot):
            return 0
        assert is_group(node)
        packed = [value for value in node.outputs if any(isinstance(user, matmul.Dot) for user in value.users)]
        moved = sum(value.type.size for value in packed)
        return moved * (self._machine.panel_element_bytes + 2) // self._machine.sram_bytes_per_cycle


def _moves(node: Node) -> bool:
    """Whether the order may change for it: its effect is its results alone, on one of the two engines."""
    return is_group(node) or isinstance(node, matmul.Dot)


def _ops(node: Node) -> list[Op]:
    return node.ops if isinstance(node, Group) else [node]


def _engine(node: Node) -> str:
    """Which engine works on a node: groups that read an accumulator drain it in the matrix unit."""
    if not is_group(node):
        return "mxu"
    return "mxu" if any(_is_accumulator(_seen(value)) for op in node.ops for value in op.operands) else "sce"


def _is_accumulator(value: Value) -> bool:
    block = value.parent_block
    if isinstance(value.defining_op, matmul.Dot):
        return True
    if value.defining_op is not None or block is None or not isinstance(block.parent, control.For) or value.index == 0:
        return False
    return isinstance(block.operations[-1].operands[value.index - 1].defining_op, matmul.Dot)
