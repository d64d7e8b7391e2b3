"""Products on the matrix unit."""

from __future__ import annotations

from loom_core.codegen.context import Context, constant_bits, panel_use
from loom_core.codegen.emitter import Operand
from loom_core.codegen.errors import Unsupported
from loom_core.codegen.registry import lowers
from loom_core.codegen.storage import Tile, uniform_constant
from loom_core.codegen.stream import emit_move
from loom_core.isa.commands import Queue
from loom_core.ops import matmul


def emit_accfill(context: Context, tile: Tile, m: int, n: int, bits: int) -> None:
    """Set a whole accumulator tile."""
    context.emitter.emit(
        "accfill",
        [tile.base, m, n, bits],
        queue=Queue.MXU,
        accesses=[context.access(tile, write=True)],
        note="fill accumulator",
    )


@lowers(matmul.Dot)
def lower_dot(context: Context, op: matmul.Dot) -> None:
    """Accumulate into the result's window, which holds the accumulator operand already or is filled with it."""
    for value in (op.a, op.b, op.result):
        if value.type.dtype.name != "f32":
            raise Unsupported(op.location, what="a matrix product", dtype=value.type.dtype.name)
    m, n = op.result.type.shape
    k = op.a.type.shape[1]
    tile = context.define(op.result)
    constant = uniform_constant(op.acc) if op.acc is not None else None
    if op.acc is None:
        emit_accfill(context, tile, m, n, 0)
    elif constant is not None:
        emit_accfill(context, tile, m, n, constant_bits(constant.value, constant.type.dtype))
    elif not context.sharing.same(op.acc, op.result):
        emit_move(context, op.acc, tile, (m, n))
    panels = [context.panels[panel_use(side, value)] for side, value in (("a", op.a), ("b", op.b))]
    operands: list[Operand] = [tile.base, panels[0].base, panels[1].base, m, n, k]
    context.emitter.emit(
        "matmul",
        operands,
        queue=Queue.MXU,
        accesses=[context.access(tile, write=True), *(context.access(panel, write=False) for panel in panels)],
        note=f"{m}x{n}x{k}",
    )
