"""Parts of tiles, and tiles made of parts: copies within SRAM."""

from __future__ import annotations

from loom_core.codegen.context import Context
from loom_core.codegen.emitter import Address, Operand
from loom_core.codegen.errors import TooManyDimensions
from loom_core.codegen.memory import MAX_DMA_DIMS
from loom_core.codegen.registry import lowers
from loom_core.codegen.storage import Tile
from loom_core.ir.op import Op
from loom_core.isa.commands import SPACE_SRAM
from loom_core.ops import rearrange


@lowers(rearrange.Slice)
def lower_slice(context: Context, op: rearrange.Slice) -> None:
    """The source is walked from its first element in steps."""
    source, target = context.tiles[op.operands[0]], context.define(op.result)
    first = sum(start * stride for start, stride in zip(op.starts, source.strides, strict=True))
    steps = tuple(step * stride for step, stride in zip(op.steps, source.strides, strict=True))
    _copy(context, op, (source, first, steps), (target, 0, target.strides), tuple(op.shape))


@lowers(rearrange.Concat)
def lower_concat(context: Context, op: rearrange.Concat) -> None:
    """Each part is copied to its place."""
    target = context.define(op.result)
    at = 0
    for part in op.operands:
        source, sizes = context.tiles[part], part.type.shape
        _copy(context, op, (source, 0, source.strides), (target, at, target.strides), sizes)
        at += sizes[op.axis] * target.strides[op.axis]


_Side = tuple[Tile, int, tuple[int, ...]]
"""A tile, the bytes from its start to the first element, and the strides from there."""


def _copy(context: Context, op: Op, source: _Side, target: _Side, sizes: tuple[int, ...]) -> None:
    if len(sizes) > MAX_DMA_DIMS:
        raise TooManyDimensions(op.location, rank=len(sizes), verb="copied", limit=MAX_DMA_DIMS)
    operands: list[Operand] = [SPACE_SRAM, _moved(context, source), SPACE_SRAM, _moved(context, target), 0]
    for size, read, written in zip(sizes, source[2], target[2], strict=True):
        operands += [size, read, written, 0, size]
    itemsize = op.results[0].type.dtype.itemsize
    context.emitter.emit(
        "copy",
        operands,
        flags={"ndim": len(sizes), "log2_bytes": itemsize.bit_length() - 1, "skip": 0},
        queue=context.dma_queue(),
        accesses=[context.access(source[0], write=False), context.access(target[0], write=True)],
        note=op.name,
    )


def _moved(context: Context, side: _Side) -> Operand:
    """The address of a side's first element."""
    tile, displacement, _ = side
    base = tile.base
    if not displacement:
        return base
    if isinstance(base, Address) and not base.both:
        return Address(base.window, base.displacement + displacement)
    return context.emitter.scalar("add", base, displacement)
