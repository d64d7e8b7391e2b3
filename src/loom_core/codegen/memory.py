"""Device memory: strided loads (also straight into panel layout), and stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from loom_core.base.dtype import DType
from loom_core.codegen.context import Context, PanelUse, constant_bits
from loom_core.codegen.emitter import Access, Address, Operand, Register
from loom_core.codegen.errors import TooManyDimensions
from loom_core.codegen.registry import lowers
from loom_core.codegen.scalar_ops import is_integral
from loom_core.codegen.storage import Tile, row_major
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.isa.commands import SPACE_SRAM, Queue
from loom_core.isa.encoding import Label
from loom_core.isa.machine import panel_bytes
from loom_core.ops import memory

MAX_DMA_DIMS = 5

# Element type of a product's operand -> the command that packs it, and its flags.
PACKS: dict[str, tuple[str, dict[str, int]]] = {
    "f32": ("pack", {"log2_bytes": 2}),
    **{name: ("packf", {"type": code}) for code, name in enumerate(("bf16", "f16", "f8e4m3", "f8e5m2"))},
    **{name: ("packi", {"type": code}) for code, name in enumerate(("i8", "u8", "i4", "u4"))},
}
Evaluate = Callable[[Value], Operand]


@dataclass(frozen=True)
class Descriptor:
    """Where a load reads elements of `dtype`: operands of the descriptor, evaluated for one iteration."""

    dtype: DType
    space: int
    offset: Operand
    fill: Operand
    sizes: tuple[int, ...]
    dims: tuple[tuple[Operand, Operand, Operand], ...]
    access: Access


def describe(context: Context, op: memory.DmaLoad, evaluate: Evaluate) -> Descriptor:
    """The descriptor of a load; `evaluate` turns its scalars into operands."""
    sizes = op.shape or (1,)
    dims = tuple((evaluate(stride), evaluate(lo), evaluate(hi)) for stride, lo, hi in op.dimensions)
    fill = evaluate(op.fill) if op.fill is not None else 0
    place = context.place(op.base, evaluate(op.offset))
    access = Access(place.target, write=False)
    return Descriptor(op.result.type.dtype, place.space, place.offset, fill, sizes, dims, access)


@dataclass(frozen=True)
class Route:
    """How a load is issued: its queue, whether it runs at all (an operand, 1 or 0), and its stream (see `Emitted`)."""

    queue: Queue
    enabled: Operand = 1
    stream: object = None


Row = tuple[int, Operand, Operand, Operand, Operand]
"""One dimension of a copy: size, strides of source and target, lo and hi."""


@dataclass(frozen=True)
class Copy:
    """What a copy command says beside its dimensions; `verb` is for diagnostics."""

    source: tuple[int, Operand]
    target: tuple[int, Operand]
    dtype: DType
    accesses: Sequence[Access]
    note: str
    verb: str
    fill: Operand = 0
    skip: bool = True


def emit_copy(context: Context, copy: Copy, rows: Sequence[Row], route: Route) -> None:
    """A strided copy, without the dimensions of one element that exists in any case."""
    kept = [row for row in rows if not (row[0] == 1 and row[3] == 0 and isinstance(row[4], int) and row[4] >= 1)]
    kept = kept or [*rows[:1]]
    if len(kept) > MAX_DMA_DIMS:
        raise TooManyDimensions(context.emitter.location, rank=len(kept), verb=copy.verb, limit=MAX_DMA_DIMS)
    operands: list[Operand] = [*copy.source, *copy.target, copy.fill]
    for position, (size, *numbers) in enumerate(kept):
        extent: Operand = size
        if position == 0 and route.enabled != 1:
            extent = context.emitter.scalar("mul", route.enabled, size)
        operands += [extent, *numbers]
    context.emitter.emit(
        "copy",
        operands,
        flags={"ndim": len(kept), "log2_bytes": copy.dtype.itemsize.bit_length() - 1, "skip": int(copy.skip)},
        queue=route.queue,
        accesses=copy.accesses,
        note=copy.note,
        stream=route.stream,
    )


def emit_load(context: Context, op: memory.DmaLoad, source: Descriptor, tile: Tile, route: Route) -> None:
    """Copy into a row-major tile."""
    dtype = op.result.type.dtype
    strides = tile.strides or (dtype.itemsize,)
    rows: list[Row] = [
        (size, stride, target, lo, hi)
        for size, (stride, lo, hi), target in zip(source.sizes, source.dims, strides, strict=True)
    ]
    accesses = [source.access, context.access(tile, write=True)]
    note = f"load {context.name_of(op.result)}"
    places = (source.space, source.offset), (SPACE_SRAM, tile.base)
    emit_copy(context, Copy(*places, dtype, accesses, note, "loaded", source.fill, skip=False), rows, route)


def emit_pack(context: Context, source: Descriptor, use: PanelUse, panel: Tile, route: Route) -> None:
    """Move an operand from device memory, or from a tile in SRAM, into panel layout."""
    extent, depth = (_dimension(source, axis, size) for axis, size in zip(use.axes, use.shape, strict=True))
    rows: Operand = use.shape[0]
    if route.enabled != 1:
        rows = context.emitter.scalar("mul", route.enabled, rows)
    mnemonic, flags = PACKS[source.dtype.name]
    context.emitter.emit(
        mnemonic,
        [
            source.space, source.offset, panel.base, rows, use.shape[1],
            extent[0], depth[0], extent[1], extent[2], depth[1], depth[2], source.fill,
        ],
        flags={"side": int(use.side == "b"), **flags},
        queue=route.queue,
        accesses=[source.access, context.access(panel, write=True)],
        note=f"pack {use.side}",
        stream=route.stream,
    )  # fmt: skip


def _dimension(source: Descriptor, axis: int, size: int) -> tuple[Operand, Operand, Operand]:
    return source.dims[axis] if axis >= 0 else (0, 0, size)


def panel_window(context: Context, value: Value, use: PanelUse, slots: int = 1) -> Tile:
    """A new window for `value` in panel layout."""
    size = panel_bytes(context.machine, use.side, use.shape[0], use.shape[1])
    window = context.emitter.window(f"{context.name_of(value)}.{use.side}", size, slots)
    return Tile(window, Address(window), ())


@lowers(memory.DmaLoad)
def lower_dma_load(context: Context, op: memory.DmaLoad) -> None:
    """A load that no loop runs ahead of."""
    source = describe(context, op, context.scalar)
    if context.only_panels(op.result):
        for use in context.panel_uses[op.result]:
            panel = panel_window(context, op.result, use)
            emit_pack(context, source, use, panel, Route(context.dma_queue()))
            context.panels[op.result, use] = panel
        return
    emit_load(context, op, source, context.define(op.result), Route(context.dma_queue()))


def is_scalar_load(op: Op) -> TypeGuard[memory.DmaLoad]:
    """Whether the command processor can load it itself."""
    return isinstance(op, memory.DmaLoad) and op.result.type.is_scalar and is_integral(op.result.type)


def load_to_register(context: Context, op: memory.DmaLoad, evaluate: Evaluate, enabled: Operand = 1) -> Register:
    """An integer scalar straight into a register, where `enabled`: the command processor waits for it."""
    emitter, dtype = context.emitter, op.result.type.dtype
    register, end = Register(op.result.name or "scalar"), Label("loaded")
    ((_, lo, hi),) = op.dimensions
    low, high = evaluate(lo), evaluate(hi)
    inside = enabled
    if not (isinstance(low, int) and isinstance(high, int) and low <= 0 < high):
        inside = emitter.scalar("and", emitter.scalar("le", low, 0), emitter.scalar("lt", 0, high))
        inside = inside if enabled == 1 else emitter.scalar("and", inside, enabled)
    if inside != 1:
        emitter.assign(register, evaluate(op.fill) if op.fill is not None else 0)
        emitter.emit("brz", [inside, end], note="inside")
    place = context.place(op.base, evaluate(op.offset))
    emitter.emit(
        "lds",
        [register, place.space, place.offset],
        flags={"log2_bytes": dtype.itemsize.bit_length() - 1, "signed": int(dtype.kind == "int")},
        accesses=[Access(place.target, write=False)],
    )
    if inside != 1:
        emitter.items.append(end)
    return register


def pack_from_sram(context: Context, value: Value) -> None:
    """Pack a value that is stored in SRAM for every product that takes it."""
    tile = context.tiles[value]
    sizes = value.type.shape
    for use in context.panel_uses.get(value, ()):
        panel = panel_window(context, value, use)
        dims = tuple((stride, 0, size) for stride, size in zip(tile.strides, sizes, strict=True))
        source = Descriptor(value.type.dtype, SPACE_SRAM, tile.base, 0, sizes, dims, context.access(tile, write=False))
        emit_pack(context, source, use, panel, Route(context.dma_queue()))
        context.panels[value, use] = panel


@lowers(memory.DmaStore)
def lower_dma_store(context: Context, op: memory.DmaStore) -> None:
    """Copy a tile out; a scalar that the ACP holds goes through a window, or by itself into one."""
    dtype = op.value.type.dtype
    if op.base in context.regions and op.value not in context.tiles and op.value.type.is_scalar:
        _store_from_register(context, op)
        return
    tile = stored_tile(context, op.value)
    place = context.place(op.base, context.scalar(op.offset))
    rows: list[Row] = [
        (size, source, context.scalar(stride), context.scalar(lo), context.scalar(hi))
        for size, source, (stride, lo, hi) in zip(
            op.shape or (1,), tile.strides or (dtype.itemsize,), op.dimensions, strict=True
        )
    ]
    accesses = [context.access(tile, write=False), Access(place.target, write=True)]
    places = (SPACE_SRAM, tile.base), (place.space, place.offset)
    emit_copy(context, Copy(*places, dtype, accesses, "store", "stored"), rows, Route(context.store_queue))


def _store_from_register(context: Context, op: memory.DmaStore) -> None:
    """A scalar of the command processor to a window, where it is inside."""
    emitter, end = context.emitter, Label("stored")
    ((_, lo, hi),) = op.dimensions
    low, high = context.scalar(lo), context.scalar(hi)
    known = isinstance(low, int) and isinstance(high, int) and low <= 0 < high
    if not known:
        inside = emitter.scalar("and", emitter.scalar("le", low, 0), emitter.scalar("lt", 0, high))
        emitter.emit("brz", [inside, end], note="inside")
    place = context.place(op.base, context.scalar(op.offset))
    emitter.emit(
        "sts",
        [place.space, place.offset, context.scalar(op.value)],
        flags={"log2_bytes": op.value.type.dtype.itemsize.bit_length() - 1},
        accesses=[Access(place.target, write=True)],
    )
    if not known:
        emitter.items.append(end)


@lowers(memory.DmaCopy)
def lower_dma_copy(context: Context, op: memory.DmaCopy) -> None:
    """One descriptor, on the queue that it names, or one of the loads'."""
    queue = context.dma_queue() if op.queue is None else context.numbered_queue(op.queue)
    source = context.place(op.source, context.scalar(op.source_offset))
    target = context.place(op.target, context.scalar(op.target_offset))
    rows: list[Row] = []
    for size, numbers in zip(op.shape, op.dimensions, strict=True):
        step, other, lo, hi = map(context.scalar, numbers)
        rows.append((size, step, other, lo, hi))
    accesses = [Access(source.target, write=False), Access(target.target, write=True)]
    places = (source.space, source.offset), (target.space, target.offset)
    copy = Copy(*places, op.source.type.pointee, accesses, "copy", "copied")
    emit_copy(context, copy, rows, Route(queue))


@lowers(memory.Window)
def lower_window(context: Context, op: memory.Window) -> None:
    """A region that is alive from here on: it is filled with poison, by a copy of nothing."""
    window = context.regions[op.result] = context.emitter.window(context.name_of(op.result), op.bytes)
    size, dtype = op.bytes // op.dtype.itemsize, op.dtype
    start = Address(window)
    context.emitter.emit(
        "copy",
        [SPACE_SRAM, start, SPACE_SRAM, start, constant_bits(dtype.poison, dtype), size, 0, dtype.itemsize, 0, 0],
        flags={"ndim": 1, "log2_bytes": dtype.itemsize.bit_length() - 1, "skip": 0},
        queue=context.dma_queue(),
        accesses=[Access(window, write=True)],
        note="fill",
    )


def stored_tile(context: Context, value: Value) -> Tile:
    """The tile of `value`; a scalar that only a register holds is put into a window first."""
    if value in context.tiles:
        return context.tiles[value]
    dtype = value.type.dtype
    window = context.emitter.window("scalar", dtype.itemsize)
    tile = Tile(window, Address(window), row_major((), dtype.itemsize))
    context.emitter.emit(
        "sts",
        [SPACE_SRAM, tile.base, context.scalar(value)],
        flags={"log2_bytes": dtype.itemsize.bit_length() - 1},
        accesses=[context.access(tile, write=True)],
    )
    return tile
