"""Prints and assertions: commands that hand a tile to the host (`loom_sim.reports`)."""

from __future__ import annotations

from typing import Any

from loom_core.codegen.context import Context
from loom_core.codegen.emitter import Operand
from loom_core.codegen.memory import stored_tile
from loom_core.codegen.registry import lowers
from loom_core.ir.value import Value
from loom_core.isa.encoding import Label
from loom_core.ops import debug


@lowers(debug.Print)
def lower_print(context: Context, op: debug.Print) -> None:
    """A report for each value."""
    program = _program(context)
    for value in op.values or [None]:
        _report(context, {"kind": "print", "text": op.prefix, "hex": op.hex}, value, program)


@lowers(debug.Assert)
def lower_assert(context: Context, op: debug.Assert) -> None:
    """A report, at which the host stops the run, unless the condition holds."""
    held = Label("held")
    context.emitter.emit("brnz", [context.scalar(op.holds or op.condition), held], note="assert")
    _report(context, {"kind": "assert", "text": op.message}, op.condition, _program(context))
    context.emitter.items.append(held)


def _report(context: Context, entry: dict[str, Any], value: Value | None, program: Operand) -> None:
    offset: Operand = 0
    accesses = []
    if value is not None:
        tile = stored_tile(context, value)
        offset, accesses = tile.base, [context.access(tile, write=False)]
        entry |= {"dtype": value.type.dtype.name, "shape": list(value.type.shape)}
    context.reports.append(entry)
    context.emitter.emit("report", [len(context.reports) - 1, offset, program], accesses=accesses, note=entry["kind"])


def _program(context: Context) -> Operand:
    """The number of the program in the grid, x fastest."""
    emitter = context.emitter
    x, y, z = context.program_ids
    row = emitter.scalar("add", emitter.scalar("mul", z, context.grid[1]), y)
    return emitter.scalar("add", emitter.scalar("mul", row, context.grid[0]), x, name="program")
