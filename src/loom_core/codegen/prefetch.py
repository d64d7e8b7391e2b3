"""Loads of a loop that run one iteration ahead, into the other half of a double-buffered window.

    before the loop      load the first iteration's tile
    in each iteration    swap the halves; load the next iteration's tile; compute on the current one

A load may run ahead where its addresses for the next iteration can be computed at the start of this one, and where
nothing in the loop writes what it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loom_core.codegen.context import Context, PanelUse
from loom_core.codegen.emitter import Address, Operand, Register, Window
from loom_core.codegen.memory import Route, describe, emit_load, emit_pack, panel_window
from loom_core.codegen.scalar import emit_scalar
from loom_core.codegen.schedule import effects, on_command_processor
from loom_core.codegen.storage import Tile, needs_window, row_major
from loom_core.ir.block import Block
from loom_core.ir.value import Value
from loom_core.isa.commands import Queue
from loom_core.ops import control, memory, shape

State = dict[Value, Value | Operand]
"""What the counter and the carried values of a loop are in another iteration, in terms of the current one."""


@dataclass(eq=False)
class _Slots:
    """A double-buffered window: this iteration reads `current`, the load, always on one queue, writes `next`."""

    window: Window
    queue: Queue
    current: Register
    next: Register
    strides: tuple[int, ...]


class Prefetch:
    """The loads of one loop body that run ahead: those in `loads`."""

    def __init__(self, context: Context, block: Block, enabled: bool) -> None:
        self.context = context
        self.block = block
        self.loads: list[memory.DmaLoad] = []
        if enabled:
            legality = _Legality(context, block)
            self.loads = [op for op in block.operations if isinstance(op, memory.DmaLoad) and legality.allows(op)]
        self._targets: list[tuple[memory.DmaLoad, PanelUse | None, _Slots]] = []

    def prologue(self, state: State, enabled: Operand) -> None:
        """Before the loop: windows, and the loads of the first iteration."""
        evaluate = _Evaluator(self.context, self.block, state)
        for op in self.loads:
            with self.context.emitter.located(op.location):
                for use in self._uses(op):
                    slots = self._slots(op, use)
                    self._targets.append((op, use, slots))
                    self.context.emitter.assign(slots.next, Address(slots.window))
                    tile = Tile(slots.window, Address(slots.window), slots.strides)
                    self._issue(op, use, tile, evaluate, Route(slots.queue, enabled, slots))

    def next(self, state: State, enabled: Operand) -> None:
        """At the start of an iteration: switch slots, and issue the loads of the next one."""
        evaluate = _Evaluator(self.context, self.block, state)
        emitter = self.context.emitter
        for op, use, slots in self._targets:
            with emitter.located(op.location):
                emitter.assign(slots.current, slots.next)
                emitter.emit("sub", [slots.next, Address(slots.window, both=True), slots.current], flags={"narrow": 0})
                ahead = Tile(slots.window, slots.next, slots.strides, phase="next")
                self._issue(op, use, ahead, evaluate, Route(slots.queue, enabled, slots))
            tile = Tile(slots.window, slots.current, slots.strides, phase="cur")
            if use is None:
                self.context.tiles[op.result] = tile
            else:
                self.context.panels[op.result, use] = tile
            self.context.prefetched.add(op)

    def _uses(self, op: memory.DmaLoad) -> list[PanelUse | None]:
        if self.context.only_panels(op.result):
            return list(self.context.panel_uses[op.result])
        return [None]

    def _slots(self, op: memory.DmaLoad, use: PanelUse | None) -> _Slots:
        context = self.context
        name = context.name_of(op.result)
        if use is None:
            window = context.emitter.window(name, context.bytes_of(op.result, False), slots=2)
            strides = row_major(op.shape, op.result.type.dtype.itemsize)
        else:
            window, strides = panel_window(context, op.result, use, slots=2).window, ()
        return _Slots(window, context.dma_queue(), Register(f"{name}.cur"), Register(f"{name}.next"), strides)

    def _issue(self, op: memory.DmaLoad, use: PanelUse | None, tile: Tile, evaluate: _Evaluator, route: Route) -> None:
        source = describe(self.context, op, evaluate)
        if use is None:
            emit_load(self.context, op, source, tile, route)
        else:
            emit_pack(self.context, source, use, tile, route)


class _Legality:
    """Which loads of a block may run ahead."""

    def __init__(self, context: Context, block: Block) -> None:
        self._context = context
        self._block = block
        touched = [effects(op) for op in block.operations]
        self._written = {base for effect in touched for base in effect.writes}
        self._reports = any(effect.reports for effect in touched)
        self._following: dict[Value, Value] = {}
        if isinstance(block.terminator, control.Yield):
            self._following = dict(zip(block.arguments[1:], block.terminator.operands, strict=True))
        self._ready: dict[Value, bool] = {}
        self._ahead: dict[Value, bool] = {}

    def allows(self, op: memory.DmaLoad) -> bool:
        if not op.ahead or self._reports or any(self._context.may_alias(op.base, base) for base in self._written):
            return False
        if op.base.defining_op is not None and op.base.parent_block is self._block:
            return False  # a window of this iteration alone
        scalars = (op.offset, *op.bounds, *([op.fill] if op.fill is not None else []))
        return all(self.is_ahead(value) for value in scalars)

    def is_ahead(self, value: Value) -> bool:
        """Whether the scalar's value in the next iteration is known at the start of this one."""
        if value not in self._ahead:
            if value in self._following:
                known = not needs_window(value) and self.is_ready(self._following[value])
            else:
                known = self._from_operands(value, self.is_ahead)
            self._ahead[value] = known
        return self._ahead[value]

    def is_ready(self, value: Value) -> bool:
        """Whether the scalar's value in this iteration is known at its start."""
        if value not in self._ready:
            is_carried = value in self._following
            self._ready[value] = not needs_window(value) if is_carried else self._from_operands(value, self.is_ready)
        return self._ready[value]

    def _from_operands(self, value: Value, known: Callable[[Value], bool]) -> bool:
        op = value.defining_op
        if value.parent_block is not self._block or op is None:
            return True  # from outside, or the loop's counter
        if isinstance(op, shape.Constant | control.ProgramId | control.NumPrograms):
            return True
        return on_command_processor(op) and all(known(operand) for operand in op.operands)


class _Evaluator:
    """Scalars of a loop body under another state of its counters, computed anew where they depend on it."""

    def __init__(self, context: Context, block: Block, state: State) -> None:
        self._context = context
        self._block = block
        self._state = state
        self._dependent = set(state)
        for op in block.operations:
            if any(operand in self._dependent for operand in op.operands):
                self._dependent.update(op.results)
        self._memo: dict[Value, Operand] = {}

    def __call__(self, value: Value) -> Operand:
        if value not in self._memo:
            self._memo[value] = self._evaluate(value)
        return self._memo[value]

    def _evaluate(self, value: Value) -> Operand:
        if value in self._state:
            replacement = self._state[value]
            return self._current(replacement) if isinstance(replacement, Value) else replacement
        if value not in self._dependent:
            return self._current(value)
        op = value.defining_op
        assert op is not None
        return emit_scalar(self._context.emitter, op, [self(operand) for operand in op.operands])

    def _current(self, value: Value) -> Operand:
        """The value as this iteration has it; computed here where its turn has not come yet."""
        op = value.defining_op
        context = self._context
        if op is not None and on_command_processor(op) and value not in context.scalars:
            operands = [self._current(operand) for operand in op.operands]
            context.scalars[value] = emit_scalar(context.emitter, op, operands)
        return context.scalar(value)
