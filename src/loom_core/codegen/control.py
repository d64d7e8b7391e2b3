"""Blocks, loops, branches, and the program grid."""

from __future__ import annotations

from contextlib import ExitStack

from loom_core.codegen.carry import assign_all, place
from loom_core.codegen.context import Context
from loom_core.codegen.emitter import Register
from loom_core.codegen.errors import TooManyLoops
from loom_core.codegen.groups import VIEWS, Group
from loom_core.codegen.memory import is_scalar_load, load_to_register, pack_from_sram
from loom_core.codegen.prefetch import Counter, Prefetch
from loom_core.codegen.registry import LOWERINGS, lowers
from loom_core.codegen.rings import advance_rings, start_rings
from loom_core.codegen.scalar import emit_scalar
from loom_core.codegen.scalar_ops import is_integral, on_command_processor
from loom_core.codegen.storage import needs_window
from loom_core.codegen.stream import lower_group
from loom_core.ir.block import Block
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.isa.encoding import Label
from loom_core.ops import control, debug, memory, shape

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
    elif op in context.prefetched:
        return
    elif is_scalar_load(op) and op.result.users and all(_reads_register(user, op.result) for user in op.result.users):
        context.scalars[op.result] = load_to_register(context, op, context.scalar)
    else:
        LOWERINGS[type(op)](context, op)


def _after_definition(context: Context, value: Value) -> None:
    """Bring a fresh value where later users expect it: panel layout for products, a register for the ACP."""
    if value not in context.tiles:
        return
    assert value.defining_op is not None
    with context.emitter.located(value.defining_op.location):
        pack_from_sram(context, value)
        if (
            value.type.is_scalar
            and is_integral(value.type)
            and any(_reads_register(user, value) for user in value.users)
        ):
            context.scalars[value] = context.load_scalar(value)


_TAKERS = (
    debug.Assert,
    control.For,
    control.If,
    control.While,
    control.Yield,
    memory.DmaLoad,
    memory.DmaCopy,
    shape.AffineTile,
)


def _reads_register(user: Op, value: Value) -> bool:
    """Whether a user of an integer scalar takes it from a register: what is no stream program and no store of it."""
    return (
        on_command_processor(user)
        or isinstance(user, _TAKERS)
        or (isinstance(user, memory.DmaStore) and (user.value is not value or user.operands.count(value) > 1))
        or (isinstance(user, memory.IndexedAccess) and value is not getattr(user, "value", None))
    )


# ---- loops ----


@lowers(control.For)
def lower_for(context: Context, loop: control.For) -> None:
    """A counted loop on the ACP, its loads ahead where that is legal."""
    emitter, limit = context.emitter, context.machine.loop_depth
    if emitter.depth >= limit:
        raise TooManyLoops(loop.location, depth=emitter.depth + 1, limit=limit)
    block = loop.regions[0]
    counter, *carried = block.arguments
    yields = block.operations[-1].operands
    lower, upper, step = (context.scalar(value) for value in (loop.lower, loop.upper, loop.step))
    lower, upper = context.core_axes.of_loop(loop, lower, upper)
    for argument in carried:
        place(context, argument)
    assign_all(context, list(zip(carried, loop.initial, strict=True)))
    register = Register(counter.name or "i")
    context.scalars[counter] = register
    initial = dict(zip(carried, loop.initial, strict=True))
    counting = Counter((counter,), lower, upper, step)
    ahead = Prefetch(context, block, counting, initial, context.options.prefetch in ("all", "loops"))
    ahead.prologue()
    with emitter.loop(register, lower, upper, step, note="for"):
        advance_rings(context, block)
        ahead.next()
        lower_block(context, block)
        assign_all(context, list(zip(carried, yields, strict=True)))
    for argument, result in zip(carried, loop.results, strict=True):
        if needs_window(argument):
            context.tiles[result] = context.tiles[argument]
        else:
            context.scalars[result] = context.scalars[argument]


@lowers(control.While)
def lower_while(context: Context, op: control.While) -> None:
    """A backward jump under the watchdog; the results' places are the body's arguments."""
    emitter = context.emitter
    condition, body = op.regions
    for value in (*condition.arguments, *op.results):
        place(context, value)
    for argument, result in zip(body.arguments, op.results, strict=True):
        if needs_window(result):
            context.tiles[argument] = context.tiles[result]
        else:
            context.scalars[argument] = context.scalars[result]
    assign_all(context, list(zip(condition.arguments, op.initial, strict=True)))
    end = Label("done")
    with emitter.while_loop():
        lower_block(context, condition)
        holds, *handed = condition.operations[-1].operands
        decided = context.scalar(holds)
        assign_all(context, list(zip(op.results, handed, strict=True)))
        emitter.emit("brz", [decided, end], note="while")
        lower_block(context, body)
        assign_all(context, list(zip(condition.arguments, body.operations[-1].operands, strict=True)))
    emitter.items.append(end)


# ---- branches ----


@lowers(control.If)
def lower_if(context: Context, op: control.If) -> None:
    """Forward jumps around the block that is not taken; results are assigned at the end of each block."""
    emitter = context.emitter
    for result in op.results:
        place(context, result)
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
    assign_all(context, list(zip(op.results, block.operations[-1].operands, strict=True)))


# ---- the program grid ----


def lower_grid(context: Context, body: Block) -> None:
    """The grid as three nested loops, x innermost, around the kernel; what no program id changes comes before them."""
    emitter = context.emitter
    ids = [Register(f"pid.{axis}") for axis in "xyz"]
    context.program_ids = ids
    _bind_program_ids(context, ids)
    for op in _grid_invariant(body):
        with emitter.located(op.location):
            lower_op(context, op)
    columns = tuple(op.result for op in context.function.walk() if isinstance(op, control.ProgramId) and op.axis == 0)
    x, y, z = (context.core_axes.of_grid(axis, extent) for axis, extent in enumerate(context.grid))
    ahead = Prefetch(context, body, Counter(columns, *x, 1), {}, context.options.prefetch == "all")
    start_rings(context)
    with ExitStack() as loops:
        loops.enter_context(emitter.located(context.function.location))
        loops.enter_context(emitter.loop(ids[2], *z, 1, note="grid z"))
        loops.enter_context(emitter.loop(ids[1], *y, 1, note="grid y"))
        ahead.prologue()
        loops.enter_context(emitter.loop(ids[0], *x, 1, note="grid x"))
        advance_rings(context, body)
        ahead.next()
        lower_block(context, body)


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
