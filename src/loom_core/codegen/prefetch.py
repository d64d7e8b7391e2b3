"""Loads of a loop that run ahead, into the other slots of a window with several.

    before the loop      load the tiles of the first iterations
    in each iteration    take the next slot; load the tile of a later iteration; compute on the current one

What runs ahead has a state of its own: registers for the counter and the carried scalars that its addresses need, as
many iterations ahead as there are slots but one. A load may run ahead where that state can be advanced without the
loop, and where nothing in the loop writes what it reads.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass

from loom_core.codegen.context import Context, PanelUse
from loom_core.codegen.emitter import Operand, Register
from loom_core.codegen.errors import CannotRunAhead
from loom_core.codegen.memory import (
    Route,
    describe,
    emit_load,
    emit_pack,
    is_scalar_load,
    load_to_register,
    panel_window,
)
from loom_core.codegen.rings import Ring, assign_in_parallel, useful_slots
from loom_core.codegen.scalar import emit_scalar
from loom_core.codegen.scalar_ops import on_command_processor
from loom_core.codegen.schedule import effects
from loom_core.codegen.storage import Tile, needs_window, row_major
from loom_core.ir.block import Block
from loom_core.ir.value import Value
from loom_core.isa.commands import Queue
from loom_core.ops import control, memory, shape


@dataclass(frozen=True)
class Counter:
    """A counted loop: the values that are its counter, its first value, its bound and its step."""

    values: tuple[Value, ...]
    lower: Operand
    upper: Operand
    step: Operand

    def inside(self, context: Context, value: Operand) -> Operand:
        """1 where a value of the counter is inside the bounds, else 0."""
        upper, step = self.upper, self.step
        if isinstance(value, int) and isinstance(upper, int) and isinstance(step, int):
            return int(value < upper if step > 0 else value > upper)
        emitter = context.emitter
        if isinstance(step, int):
            operands = (value, upper) if step > 0 else (upper, value)
            return emitter.scalar("lt", *operands, name="inside")
        below, above = emitter.scalar("lt", value, upper), emitter.scalar("lt", upper, value)
        return emitter.scalar("sel", emitter.scalar("lt", 0, step), below, above, name="inside")


@dataclass(eq=False)
class _Target:
    """Where a load goes: a ring, filled on one queue."""

    op: memory.DmaLoad
    use: PanelUse | None
    ring: Ring
    queue: Queue
    strides: tuple[int, ...]


class Prefetch:
    """The loads of one loop body that run ahead. `initial` holds what is carried at the start.

    With `enabled`, all that may; else, and with as many slots as they say, those that say how many slots they have.
    """

    def __init__(
        self, context: Context, block: Block, counter: Counter, initial: dict[Value, Value], enabled: bool
    ) -> None:
        legality = _Legality(context, block)
        common = useful_slots(context, block) if enabled else 1
        loads: dict[int, list[memory.DmaLoad]] = defaultdict(list)
        for op in block.operations:
            if isinstance(op, memory.DmaLoad):
                slots = op.slots or common
                if slots > 1 and legality.allows(op):
                    loads[slots].append(op)
        self._runs = [_Ahead(context, block, counter, initial, legality, *one) for one in loads.items()]

    def prologue(self) -> None:
        """Before the loop: windows, and the loads of the first iterations."""
        for run in self._runs:
            run.prologue()

    def next(self) -> None:
        """At the start of an iteration: load for a later one where the last has read, then take the next slot."""
        for run in self._runs:
            run.next()


class _Ahead:
    """Loads that run ahead by as many iterations as there are `slots` but one, with the state that they share."""

    def __init__(
        self, context: Context, block: Block, counter: Counter, initial: dict[Value, Value], legality: _Legality,
        slots: int, loads: list[memory.DmaLoad],
    ) -> None:  # fmt: skip
        self.context = context
        self.block = block
        self.counter = counter
        self.loads = loads
        self._slots = slots
        self._following = legality.following
        self._initial = {value: initial[value] for value in legality.needed(loads)}
        self._ahead = Register("ahead")
        self._carried: dict[Value, Register] = {value: Register(value.name or "ahead") for value in self._initial}
        self._targets: list[_Target] = []

    def prologue(self) -> None:
        context, emitter = self.context, self.context.emitter
        self._targets = [self._target(op, use) for op in self.loads for use in self._uses(op)]
        emitter.assign(self._ahead, self.counter.lower)
        starts = [(self._carried[value], context.scalar(start)) for value, start in self._initial.items()]
        for register, operand in starts:
            emitter.assign(register, operand)
        for target in self._targets:
            emitter.assign(target.ring.current, target.ring.slot(0))
        with ExitStack() as several:
            if self._slots > 2:
                several.enter_context(emitter.loop(Register("slot"), 0, self._slots - 1, 1, note="ahead"))
            self._issue("")
            for target in self._targets:
                emitter.set(target.ring.current, "add", target.ring.current, target.ring.window.size)

    def next(self) -> None:
        self._issue("next")
        for target in self._targets:
            with self.context.emitter.located(target.op.location):
                target.ring.advance(self.context.emitter)
            tile = Tile(target.ring.window, target.ring.current, target.strides, phase="cur")
            if target.use is None:
                self.context.tiles[target.op.result] = tile
            else:
                self.context.panels[target.op.result, target.use] = tile
            self.context.prefetched.add(target.op)

    def _issue(self, phase: str) -> None:
        """The loads for the state ahead, which then goes on by one iteration."""
        context, emitter = self.context, self.context.emitter
        state: dict[Value, Operand] = dict.fromkeys(self.counter.values, self._ahead)
        state.update(self._carried)
        enabled = self.counter.inside(context, self._ahead)
        evaluate = _Evaluator(context, self.block, state, enabled)
        for target in self._targets:
            with emitter.located(target.op.location):
                source = describe(context, target.op, evaluate)
                tile = Tile(target.ring.window, target.ring.current, target.strides, phase=phase)
                route = Route(target.queue, enabled, target)
                if target.use is None:
                    emit_load(context, target.op, source, tile, route)
                else:
                    emit_pack(context, source, target.use, tile, route)
        pairs = [(register, evaluate(self._following[value])) for value, register in self._carried.items()]
        assign_in_parallel(emitter, pairs)
        emitter.set(self._ahead, "add", self._ahead, self.counter.step)

    def _uses(self, op: memory.DmaLoad) -> list[PanelUse | None]:
        if self.context.only_panels(op.result):
            return list(self.context.panel_uses[op.result])
        return [None]

    def _target(self, op: memory.DmaLoad, use: PanelUse | None) -> _Target:
        context = self.context
        name = context.name_of(op.result)
        with context.emitter.located(op.location):
            if use is None:
                window = context.emitter.window(name, context.bytes_of(op.result, False), self._slots)
                strides = row_major(op.shape, op.result.type.dtype.itemsize)
            else:
                window, strides = panel_window(context, op.result, use, self._slots).window, ()
        ring = Ring(window, Register(f"{name}.cur"))
        return _Target(op, use, ring, context.dma_queue(), strides)


class _Legality:
    """Which loads of a block may run ahead."""

    def __init__(self, context: Context, block: Block) -> None:
        self._context = context
        self._block = block
        touched = [effects(op) for op in block.operations]
        self._written = {base for effect in touched for base in effect.writes}
        self._reports = any(effect.reports for effect in touched)
        self.following: dict[Value, Value] = {}
        if isinstance(block.terminator, control.Yield):
            self.following = dict(zip(block.arguments[1:], block.terminator.operands, strict=True))
        self._unknown = {value for value in self.following if needs_window(value)}
        while True:
            more = {v for v, given in self.following.items() if v not in self._unknown and not self.is_ahead(given)}
            if not more:
                break
            self._unknown |= more

    def allows(self, op: memory.DmaLoad) -> bool:
        """Whether it may; CannotRunAhead where it must, having slots of its own."""
        reason = self._reason(op)
        if reason and op.slots:
            name = self._context.name_of(op.result)
            raise CannotRunAhead(op.location, name=name, slots=op.slots, reason=reason)
        return not reason

    def _reason(self, op: memory.DmaLoad) -> str:
        """Why a load may not run ahead; empty where it may."""
        if not self._is_constant(op.base):
            return "the loop writes to what it reads"
        if not all(self.is_ahead(value) for value in _scalars(op)):
            return "its place depends on what the iteration before computes"
        # Told so, it crosses what the loop reports to the host: nobody can see that.
        return "the loop prints or checks" if self._reports and not op.slots else ""

    def _is_constant(self, base: Value) -> bool:
        """Whether memory holds the same in all iterations."""
        if base.defining_op is not None and base.parent_block is self._block:
            return False  # a window of one iteration alone
        return not any(self._context.may_alias(base, other) for other in self._written)

    def is_ahead(self, value: Value) -> bool:
        """Whether the scalar can be computed from the counter and what is carried, or does not change."""
        return all(known for _, known in self._leaves(value))

    def needed(self, loads: list[memory.DmaLoad]) -> list[Value]:
        """The carried values on which the addresses of the loads depend."""
        found: dict[Value, None] = {}
        pending = [value for op in loads for value in _scalars(op)]
        while pending:
            for leaf, _ in self._leaves(pending.pop()):
                if leaf in self.following and leaf not in found:
                    found[leaf] = None
                    pending.append(self.following[leaf])
        return list(found)

    def _leaves(self, value: Value) -> list[tuple[Value, bool]]:
        """What a scalar is computed from, and whether that is known ahead."""
        found: dict[Value, bool] = {}
        pending, seen = [value], {value}
        while pending:
            value = pending.pop()
            op = value.defining_op
            if value in self.following:
                found[value] = value not in self._unknown
            elif value.parent_block is not self._block or op is None:
                found[value] = True  # from outside, or the loop's counter
            elif isinstance(op, shape.Constant | control.ProgramId | control.NumPrograms):
                found[value] = True
            elif on_command_processor(op) or (is_scalar_load(op) and self._is_constant(op.base)):
                scalars = _scalars(op) if isinstance(op, memory.DmaLoad) else op.operands
                pending += [operand for operand in scalars if operand not in seen]
                seen.update(scalars)
            else:
                found[value] = False
        return list(found.items())


def _scalars(op: memory.DmaLoad) -> list[Value]:
    return [op.offset, *op.bounds, *([op.fill] if op.fill is not None else [])]


class _Evaluator:
    """Scalars of a loop body under another state of its counters, computed anew where they depend on it.

    Memory is read where `enabled`: the state of an iteration that does not come may lead outside.
    """

    def __init__(self, context: Context, block: Block, state: dict[Value, Operand], enabled: Operand) -> None:
        self._block = block
        self._enabled = enabled
        self._context = context
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
            return self._state[value]
        if value not in self._dependent:
            return self._current(value)
        op = value.defining_op
        assert op is not None
        if isinstance(op, memory.DmaLoad):
            return load_to_register(self._context, op, self, self._enabled)
        return emit_scalar(self._context.emitter, op, [self(operand) for operand in op.operands])

    def _current(self, value: Value) -> Operand:
        """The value as this iteration has it; computed here where its turn has not come yet."""
        op = value.defining_op
        context = self._context
        if op is not None and is_scalar_load(op) and op.parent is self._block and value not in context.scalars:
            context.scalars[value] = load_to_register(context, op, self._current)
        elif op is not None and on_command_processor(op) and value not in context.scalars:
            operands = [self._current(operand) for operand in op.operands]
            context.scalars[value] = emit_scalar(context.emitter, op, operands)
        return context.scalar(value)
