"""Operations that become one SCE program, and how values are seen through views."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

from loom_core.codegen.scalar_ops import on_command_processor
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.isa.commands import MASKED_OPERANDS
from loom_core.isa.machine import MachineConfig
from loom_core.ops import control, reduction, shape, special

# Operations that only look at a value through other strides, or have no storage at all.
VIEWS = (shape.Splat, shape.ExpandDims, shape.Broadcast, shape.Transpose, shape.Reshape)
VIRTUAL = (*VIEWS, shape.Constant, shape.AffineTile, control.ProgramId, control.NumPrograms)


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

    def split(self, machine: MachineConfig) -> list[Group]:
        """Cut in order, so that each part fits one program and one command."""
        ndim = max(1, len(self.shape))
        # Registers may stand for operands that the command's mask covers: only inputs need them, and they come first.
        most_inputs = (MASKED_OPERANDS - 1 - ndim) // (1 + ndim)
        parts: list[Group] = []
        part = _Part()
        for op in self.ops:
            part.add(op)
            if len(part.ops) > 1 and not part.fits(machine, most_inputs):
                part.ops.pop()
                parts.append(Group(self.shape, self.level, part.ops, self.permuted))
                part = _Part()
                part.add(op)
        return [*parts, Group(self.shape, self.level, part.ops, self.permuted)]


class _Part:
    """The beginning of a group that may become one of its own: what it takes from outside, and how much it gives."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.inputs: set[Value | int] = set()  # and numbers
        self.outputs = 0
        self._open: dict[Value, int] = {}  # results so far, and how many of their uses are not in this part

    def add(self, op: Op) -> None:
        self.ops.append(op)
        for value in op.operands:
            if value not in self._open:
                self.inputs.add(value)
                continue
            self._open[value] -= 1
            self.outputs -= self._open[value] == 0
        if isinstance(op, special.RoundMantissa):
            self.inputs.add(op.bits)
        result = op.results[0]
        self._open[result] = len(result.users)
        self.outputs += bool(result.users)

    def fits(self, machine: MachineConfig, most_inputs: int) -> bool:
        return (
            len(self.inputs) <= most_inputs
            and len(self.inputs) + self.outputs <= machine.sce_streams
            and len(self.ops) + self.outputs <= machine.sce_instructions
            and self.outputs < machine.sce_registers
        )


Node = Op | Group


def is_group(node: Node) -> TypeGuard[Group]:
    return isinstance(node, Group)


def on_stream_engine(op: Op) -> bool:
    """Whether the op is part of an SCE program."""
    return (op.elementwise and not on_command_processor(op)) or isinstance(op, reduction.Reduce)


def is_permuted(op: Op) -> bool:
    """A reduction not along the last axis walks its operand in an order of its own; others can share a program."""
    return isinstance(op, reduction.Reduce) and op.axis != len(op.operand.type.shape) - 1


def seen_value(value: Value) -> Value:
    """What a value shows through views."""
    while isinstance(value.defining_op, VIEWS):
        value = value.defining_op.operands[0]
    return value


def origin(value: Value) -> tuple[Op | None, bool]:
    """The operation that computes what `value` shows, and whether views on the way put elements in another order."""
    op, reordered = value.defining_op, False
    while isinstance(op, VIEWS):
        reordered |= isinstance(op, shape.Reshape | shape.Transpose)
        op = op.operands[0].defining_op
    return op, reordered


def uses_through_views(value: Value, reordered: bool = False) -> Iterator[tuple[Op, bool]]:
    """Operations that take the value, directly or through views, and whether those reorder it."""
    for user in value.users:
        if isinstance(user, VIEWS):
            reorders = isinstance(user, shape.Reshape | shape.Transpose)
            yield from uses_through_views(user.results[0], reordered or reorders)
        else:
            yield user, reordered
