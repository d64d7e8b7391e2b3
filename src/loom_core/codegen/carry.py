"""Values that loops and branches carry: their places, and assignments to them."""

from __future__ import annotations

from collections.abc import Sequence

from loom_core.codegen.context import Context, constant_bits
from loom_core.codegen.emitter import Operand, Register, Window
from loom_core.codegen.matmul import emit_accfill
from loom_core.codegen.storage import needs_window, tile_of, uniform_constant
from loom_core.codegen.stream import emit_move, seen
from loom_core.ir.value import Value

Pair = tuple[Value, Value]
"""A carried value and what it becomes."""


def place(context: Context, value: Value) -> None:
    """Give a carried value or a result its register or window."""
    if needs_window(value):
        context.define(value)
    else:
        context.scalars[value] = Register(value.name or "carried")


def assign(context: Context, target: Value, source: Value) -> None:
    """Make `target`, which has its place already, hold `source`."""
    if not needs_window(target):
        register = context.scalars[target]
        assert isinstance(register, Register)
        context.emitter.assign(register, context.scalar(source))
    elif not _is_in_place(context, target, source):
        tile = context.tiles[target]
        constant = uniform_constant(source)
        if constant is not None and tile.accumulator:
            rows, columns = target.type.shape
            emit_accfill(context, tile, rows, columns, constant_bits(constant.value, constant.type.dtype))
        else:
            emit_move(context, source, tile, target.type.shape)


def assign_all(context: Context, pairs: Sequence[Pair]) -> None:
    """Assign in parallel: no target is overwritten while another assignment has to read it.

    Places are compared, not values: a window may hold several values, one after another, and a register may be known
    under several names.
    """
    pending = [pair for pair in pairs if not _is_done(context, *pair)]
    while pending:
        pair = next((pair for pair in pending if not _is_read(context, pair, pending)), None)
        if pair is None:  # a cycle
            target, source = pending[0]
            pending[0] = target, _saved(context, source)
        else:
            assign(context, *pair)
            pending.remove(pair)


def _is_done(context: Context, target: Value, source: Value) -> bool:
    if needs_window(target):
        return _is_in_place(context, target, source)
    return _read_place(context, source) is context.scalars[target]


def _is_in_place(context: Context, target: Value, source: Value) -> bool:
    """Whether the window of `target` holds `source` already."""
    return source in context.tiles and context.tiles[source].window is context.tiles[target].window


def _is_read(context: Context, pair: Pair, pending: Sequence[Pair]) -> bool:
    """Whether the pair's target is what a pending assignment reads (its own: a tile turned in place)."""
    target = pair[0]
    written = context.tiles[target].window if needs_window(target) else context.scalars[target]
    return any(
        _read_place(context, source) is written and (other is not target or needs_window(target))
        for other, source in pending
    )


def _read_place(context: Context, source: Value) -> Window | Operand | None:
    """The window or register that holds what `source` shows."""
    root = seen(context, source).root
    if root in context.tiles:
        return context.tiles[root].window
    return context.scalars.get(root)


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
