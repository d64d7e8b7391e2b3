"""Products on the matrix unit."""

from __future__ import annotations

from loom_core.codegen.context import Context, constant_bits, panel_use
from loom_core.codegen.emitter import Operand
from loom_core.codegen.errors import Unsupported
from loom_core.codegen.memory import PACKS
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


def product_command(op: matmul.Dot) -> tuple[str, dict[str, int]]:
    """The matrix unit's command for the operand types, and its flags; raises Unsupported where there is none."""
    types = (op.a.type.dtype, op.b.type.dtype)
    for dtype in types:
        if dtype.name not in PACKS:
            raise Unsupported(op.location, what="a matrix product", dtype=dtype.name)
    accumulator = "f32" if types[0].is_float else "i32"
    if op.dtype.name != accumulator or types[0].is_float != types[1].is_float:
        raise Unsupported(op.location, what=f"a matrix product of {types[0].name}", dtype=op.dtype.name)
    if accumulator == "i32":
        return "matmuli", {}
    if any(dtype.bits == 32 for dtype in types):
        return "matmul", {}
    return "matmulf", {"widest": int(all(dtype.bits == 8 for dtype in types))}


@lowers(matmul.Dot)
def lower_dot(context: Context, op: matmul.Dot) -> None:
    """Accumulate into the result's window, which holds the accumulator operand already or is filled with it."""
    mnemonic, flags = product_command(op)
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
        mnemonic,
        operands,
        flags=flags,
        queue=Queue.MXU,
        accesses=[context.access(tile, write=True), *(context.access(panel, write=False) for panel in panels)],
        note=f"{m}x{n}x{k}",
    )
