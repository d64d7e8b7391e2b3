"""Blocks, loops and branches; loads that run one iteration ahead."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from loom_core.codegen.context import Context, PanelUse, constant_bits
from loom_core.codegen.emitter import Address, Operand, Register, Window
from loom_core.codegen.matmul import emit_accfill
from loom_core.codegen.memory import Route, describe, emit_load, emit_pack, pack_from_sram, panel_window
from loom_core.codegen.registry import LOWERINGS, lowers
from loom_core.codegen.scalar import emit_scalar
from loom_core.codegen.schedule import VIEWS, Group, effects, is_integral, on_command_processor
from loom_core.codegen.storage import Tile, needs_window, tile_of, uniform_constant
from loom_core.codegen.stream import emit_move, lower_group, seen
from loom_core.ir.block import Block
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.isa.commands import Queue
from loom_core.isa.encoding import Label
from loom_core.ops import control, memory, shape

# ---- blocks ----


def lower_block(context: Context, block: Block) -> None:
    """Every node of the block in scheduled order; terminators are the callers'."""
    for node in context.schedules[block].nodes:
        if isinstance(node, Group):
            lower_group(context, node)
            defined = list(node.outputs)
        elif node.terminator:
            continue
        else:
            with context.emitter.located(node.location):
                lower_op(context, node)
            defined = node.results
        for value in defined:
            _after_definition(context, value)


def lower_op(context: Context, op: Op) -> None:
    """One operation that is not part of a group, unless it was emitted ahead of its turn."""
    if on_command_processor(op):
        if op.results[0] in context.scalars:
            return
        operands = [context.scalar(value) for value in op.operands]
        context.scalars[op.results[0]] = emit_scalar(context.emitter, op, operands)
    elif op not in context.prefetched:
        LOWERINGS[type(op)](context, op)


def _after_definition(context: Context, value: Value) -> None:
    """Bring a fresh value where later users expect it: panel layout for products, a register for the ACP."""
    if value not in context.tiles:
        return
    pack_from_sram(context, value)
    if value.type.is_scalar and is_integral(value.type) and _used_by_command_processor(value):
        context.load_scalar(value)


def _used_by_command_processor(value: Value) -> bool:
    return any(
        on_command_processor(user) or isinstance(user, control.For | control.If | memory.DmaLoad | shape.AffineTile)
        or (isinstance(user, memory.DmaStore) and user.value is not value)
        for user in value.users
    )  # fmt: skip


# ---- values that loops and branches carry ----


def assign(context: Context, target: Value, source: Value) -> None:
    """Make `target`, which has its place already, hold `source`."""
    if not needs_window(target):
        register = context.scalars[target]
        assert isinstance(register, Register)
        context.emitter.assign(register, context.scalar(source))
        return
    tile = context.tiles[target]
    if source in context.tiles and context.tiles[source].window is tile.window:
        return
    constant = uniform_constant(source)
    if constant is not None and tile.accumulator:
        rows, columns = target.type.shape
        emit_accfill(context, tile, rows, columns, constant_bits(constant.value, constant.type.dtype))
        return
    emit_move(context, source, tile, target.type.shape)


def assign_all(context: Context, pairs: Sequence[tuple[Value, Value]]) -> None:
    """Assign in parallel: sources that are also targets are saved first."""
    targets = {target for target, source in pairs if target is not source}
    moves = []
    for target, source in pairs:
        if target is source:
            continue
        root = seen(context, source).root
        if root in targets and pairs_write_before(pairs, root, target):
            source = _saved(context, source)
        moves.append((target, source))
    for target, source in moves:
        assign(context, target, source)


def pairs_write_before(pairs: Sequence[tuple[Value, Value]], root: Value, reader: Value) -> bool:
    """Whether `root` is overwritten before `reader` is assigned."""
    order = [target for target, _ in pairs]
    return order.index(root) < order.index(reader)


def _saved(context: Context, source: Value) -> Value:
    """A copy of a value that is about to be overwritten, as a value of its own."""
    copy = Value(source.type, source.owner, source.index, source.name)
    if not needs_window(source):
        register = Register("saved")
        context.emitter.assign(register, context.scalar(source))
        context.scalars[copy] = register
        return copy
    accumulator = context.tiles[seen(context, source).root].accumulator
    window = context.emitter.window("saved", context.bytes_of(source, accumulator))
    tile = tile_of(window, source, context.machine, accumulator)
    emit_move(context, source, tile, source.type.shape)
    context.tiles[copy] = tile
    return copy


def _place(context: Context, value: Value) -> None:
    """Give a carried value or a result its register or window."""
    if needs_window(value):
        context.define(value)
    else:
        context.scalars[value] = Register(value.name or "carried")


# ---- loops ----


@lowers(control.For)
def lower_for(context: Context, loop: control.For) -> None:
    """A counted loop on the ACP, its loads one iteration ahead where that is legal."""
    emitter = context.emitter
    block = loop.regions[0]
    counter, *carried = block.arguments
    last = block.operations[-1]
    lower, upper, step = (context.scalar(value) for value in (loop.lower, loop.upper, loop.step))
    for argument in carried:
        _place(context, argument)
    assign_all(context, list(zip(carried, loop.initial, strict=True)))
    register = Register(counter.name or "i")
    context.scalars[counter] = register
    ahead = _Prefetch(context, block, context.options.prefetch in ("all", "loops") and isinstance(step, int))
    if ahead.loads:
        assert isinstance(step, int)
        ahead.prologue(
            {counter: lower, **dict(zip(carried, loop.initial, strict=True))}, _inside(context, lower, upper, step)
        )
    with emitter.loop(register, lower, upper, step, note="for"):
        if ahead.loads:
            assert isinstance(step, int)
            following = emitter.scalar("add", register, step, name="next")
            ahead.next(
                {counter: following, **dict(zip(carried, last.operands, strict=True))},
                _inside(context, following, upper, step),
            )
        lower_block(context, block)
        assign_all(context, list(zip(carried, last.operands, strict=True)))
    for argument, result in zip(carried, loop.results, strict=True):
        if needs_window(argument):
            context.tiles[result] = context.tiles[argument]
        else:
            context.scalars[result] = context.scalars[argument]


def _inside(context: Context, counter: Operand, upper: Operand, step: int) -> Operand:
    """1 where the counter is still inside the bounds."""
    if isinstance(counter, int) and isinstance(upper, int):
        return int(counter < upper if step > 0 else counter > upper)
    operands = (counter, upper) if step > 0 else (upper, counter)
    return context.emitter.scalar("lt", *operands, name="inside")


@dataclass(eq=False)
class _Slots:
    """A double-buffered window: this iteration reads `current`, the load, always on one queue, writes `next`."""

    window: Window
    queue: Queue
    current: Register
    next: Register


class _Prefetch:
    """Loads of one loop body that are issued an iteration ahead into the other half of their window."""

    def __init__(self, context: Context, block: Block, enabled: bool) -> None:
        self.context = context
        self.block = block
        self.carried: dict[Value, Value] = {}
        last = block.terminator
        if isinstance(last, control.Yield):
            self.carried = dict(zip(block.arguments[1:], last.operands, strict=True))
        self._known: dict[Value, bool] = {}
        self.loads: list[memory.DmaLoad] = []
        if enabled:
            self.loads = [op for op in block.operations if isinstance(op, memory.DmaLoad) and self._legal(op)]
        self._targets: list[tuple[memory.DmaLoad, PanelUse | None, _Slots]] = []

    # Legality

    def _legal(self, op: memory.DmaLoad) -> bool:
        """Addresses can be computed ahead, and nothing in the loop writes what is read."""
        if not all(
            self._ahead(value) for value in (op.offset, *op.bounds, *([op.fill] if op.fill is not None else []))
        ):
            return False
        written = {base for inner in self.block.operations for base in effects(inner).writes}
        return not any(self.context.may_alias(op.base, base) for base in written)

    def _ahead(self, value: Value) -> bool:
        """Whether the scalar of the next iteration is known at the start of this one."""
        if value not in self._known:
            self._known[value] = False  # a carried value that depends on itself alone stays unknown until proved
            self._known[value] = self._ahead_now(value)
        return self._known[value]

    def _ahead_now(self, value: Value) -> bool:
        op = value.defining_op
        if value.parent_block is not self.block:
            return True
        if op is None:
            if value not in self.carried:
                return True  # the loop counter
            self._known[value] = True
            return not needs_window(value) and self._ahead(self.carried[value])
        if isinstance(op, shape.Constant | control.ProgramId | control.NumPrograms):
            return True
        return on_command_processor(op) and all(self._ahead(operand) for operand in op.operands)

    # Emission

    def prologue(self, state: dict[Value, Value | Operand], enabled: Operand) -> None:
        """Before the loop: windows, and the loads of the first iteration."""
        evaluate = _Evaluator(self.context, self.block, state)
        for op in self.loads:
            with self.context.emitter.located(op.location):
                for use in self._uses(op):
                    slots = self._slots(op, use)
                    self._targets.append((op, use, slots))
                    self.context.emitter.assign(slots.next, Address(slots.window))
                    tile = Tile(slots.window, Address(slots.window), self._strides(op, use))
                    self._issue(op, use, tile, evaluate, Route(slots.queue, enabled, slots))

    def next(self, state: dict[Value, Value | Operand], enabled: Operand) -> None:
        """At the start of an iteration: switch slots, and issue the loads of the next one."""
        evaluate = _Evaluator(self.context, self.block, state)
        emitter = self.context.emitter
        for op, use, slots in self._targets:
            with emitter.located(op.location):
                emitter.assign(slots.current, slots.next)
                emitter.emit("sub", [slots.next, Address(slots.window, both=True), slots.current], flags={"narrow": 0})
                strides = self._strides(op, use)
                ahead = Tile(slots.window, slots.next, strides, phase="next")
                self._issue(op, use, ahead, evaluate, Route(slots.queue, enabled, slots))
                tile = Tile(slots.window, slots.current, strides, phase="cur")
                if use is None:
                    self.context.tiles[op.result] = tile
                else:
                    self.context.panels[op.result, use] = tile
            self.context.prefetched[op] = slots

    def _uses(self, op: memory.DmaLoad) -> list[PanelUse | None]:
        if self.context.only_panels(op.result):
            return list(self.context.panel_uses[op.result])
        return [None]

    def _slots(self, op: memory.DmaLoad, use: PanelUse | None) -> _Slots:
        context = self.context
        name = context.name_of(op.result)
        if use is None:
            window = context.emitter.window(name, context.bytes_of(op.result, False), slots=2)
        else:
            window = panel_window(context, op.result, use, slots=2).window
        return _Slots(window, context.dma_queue(), Register(f"{name}.cur"), Register(f"{name}.next"))

    def _strides(self, op: memory.DmaLoad, use: PanelUse | None) -> tuple[int, ...]:
        if use is not None:
            return ()
        return tile_of(Window("", 0), op.result, self.context.machine, False).strides

    def _issue(self, op: memory.DmaLoad, use: PanelUse | None, tile: Tile, evaluate: _Evaluator, route: Route) -> None:
        source = describe(self.context, op, evaluate)
        if use is None:
            emit_load(self.context, op, source, tile, route)
        else:
            emit_pack(self.context, source, use, tile, route)


class _Evaluator:
    """Scalars of a loop body under another state of its counters, computed anew where they depend on it."""

    def __init__(self, context: Context, block: Block, state: dict[Value, Value | Operand]) -> None:
        self.context = context
        self.block = block
        self.state = state
        self._memo: dict[Value, Operand] = {}

    def __call__(self, value: Value) -> Operand:
        if value not in self._memo:
            self._memo[value] = self._evaluate(value)
        return self._memo[value]

    def _evaluate(self, value: Value) -> Operand:
        if value in self.state:
            replacement = self.state[value]
            return self._current(replacement) if isinstance(replacement, Value) else replacement
        op = value.defining_op
        if op is None or op.parent is not self.block or isinstance(op, shape.Constant) or not self._depends(op):
            return self._current(value)
        return emit_scalar(self.context.emitter, op, [self(operand) for operand in op.operands])

    def _depends(self, op: Op) -> bool:
        return any(
            value in self.state or (value.defining_op is not None and value.defining_op.parent is self.block
                                    and self._depends(value.defining_op))
            for value in op.operands
        )  # fmt: skip

    def _current(self, value: Value) -> Operand:
        """The value as this iteration has it; computed here where its turn has not come yet."""
        op = value.defining_op
        context = self.context
        if op is not None and on_command_processor(op) and value not in context.scalars:
            operands = [self._current(operand) for operand in op.operands]
            context.scalars[value] = emit_scalar(context.emitter, op, operands)
        return context.scalar(value)


# ---- branches ----


@lowers(control.If)
def lower_if(context: Context, op: control.If) -> None:
    """Forward jumps around the block that is not taken; results are assigned at the end of each block."""
    emitter = context.emitter
    for result in op.results:
        _place(context, result)
    otherwise, end = Label("else"), Label("endif")
    emitter.emit("brz", [context.scalar(op.condition), otherwise], note="if")
    _lower_arm(context, op, 0)
    emitter.emit("jump", [end])
    emitter.items.append(otherwise)
    _lower_arm(context, op, 1)
    emitter.items.append(end)


def _lower_arm(context: Context, op: control.If, index: int) -> None:
    block = op.regions[index]
    lower_block(context, block)
    for result, value in zip(op.results, block.operations[-1].operands, strict=True):
        assign(context, result, value)


# ---- the program grid ----


def lower_grid(context: Context, body: Block) -> None:
    """The grid as three nested loops, x innermost, around the kernel; what no program id changes comes before them."""
    emitter = context.emitter
    ids = [Register(f"pid.{axis}") for axis in "xyz"]
    _bind_program_ids(context, ids)
    for op in _grid_invariant(body):
        with emitter.located(op.location):
            lower_op(context, op)
    ahead = _Prefetch(context, body, context.options.prefetch == "all")
    state: dict[Value, Value | Operand] = {
        op.results[0]: 0 for op in context.function.walk() if isinstance(op, control.ProgramId) and op.axis == 0
    }
    outer: list[AbstractContextManager[None]] = [
        emitter.loop(ids[2], 0, context.grid[2], 1, note="grid z"),
        emitter.loop(ids[1], 0, context.grid[1], 1, note="grid y"),
    ]
    for loop in outer:
        loop.__enter__()
    if ahead.loads:
        ahead.prologue(state, _inside(context, 0, context.grid[0], 1))
    with emitter.loop(ids[0], 0, context.grid[0], 1, note="grid x"):
        if ahead.loads:
            following = emitter.scalar("add", ids[0], 1, name="next")
            ahead.next(dict.fromkeys(state, following), _inside(context, following, context.grid[0], 1))
        lower_block(context, body)
    for loop in reversed(outer):
        loop.__exit__(None, None, None)


def _bind_program_ids(context: Context, ids: list[Register]) -> None:
    for op in context.function.walk():
        if isinstance(op, control.ProgramId):
            context.scalars[op.result] = ids[op.axis]
        elif isinstance(op, control.NumPrograms):
            context.scalars[op.result] = context.grid[op.axis]


def _grid_invariant(body: Block) -> list[Op]:
    """ACP operations of the kernel's body that no program id reaches."""
    varying: set[Value] = set()
    invariant: list[Op] = []
    for op in body.operations:
        if isinstance(op, shape.Constant | control.NumPrograms):
            continue
        if on_command_processor(op) and not any(value in varying for value in op.operands):
            invariant.append(op)
        else:
            varying.update(op.results)
    return invariant


@lowers(control.ProgramId, control.NumPrograms, *VIEWS, shape.Constant, shape.AffineTile)
def lower_virtual(context: Context, op: Op) -> None:
    """Nothing: these have a register of their own, or are read by their users through strides."""
