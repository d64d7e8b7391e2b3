"""Accesses through index tiles: gather, scatter, and read-modify-write."""

from __future__ import annotations

from collections.abc import Sequence

from loom_core.base.dtype import DType
from loom_core.codegen.context import Context
from loom_core.codegen.emitter import Access, Address, Operand, Window
from loom_core.codegen.errors import TooManyDimensions, Unsupported
from loom_core.codegen.memory import stored_tile
from loom_core.codegen.registry import lowers
from loom_core.codegen.storage import Tile
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.isa.commands import SPACE_SRAM
from loom_core.isa.sce import SCE_OPS
from loom_core.ops import memory, rearrange

MAX_INDEXED_DIMS = 4
EXCHANGE = 0


class _Indexed:
    """The parts that all indexed commands share: tiles, flags and dimensions."""

    def __init__(self, context: Context, op: Op, sizes: tuple[int, ...], dtype: DType) -> None:
        if len(sizes) > MAX_INDEXED_DIMS:
            raise TooManyDimensions(op.location, rank=len(sizes), verb="indexed", limit=MAX_INDEXED_DIMS)
        self.context = context
        self.sizes = sizes or (1,)
        self.flags = {"ndim": len(self.sizes), "log2_bytes": dtype.itemsize.bit_length() - 1, "index": 0, "masked": 0}
        self.reads: list[Tile] = []

    def tile(self, value: Value) -> tuple[Tile, tuple[int, ...]]:
        """A tile that the command reads, and its strides in bytes."""
        tile = stored_tile(self.context, value)
        self.reads.append(tile)
        return tile, tile.strides or (0,)

    def index(self, value: Value | None) -> tuple[Operand, tuple[int, ...]]:
        """Address and strides of the index tile; one zero for all elements where there is none."""
        if value is None:
            window = self.context.emitter.window("zero", 4)
            zero = Tile(window, Address(window), ())
            self.context.emitter.emit(
                "sts", [SPACE_SRAM, zero.base, 0], flags={"log2_bytes": 2},
                accesses=[self.context.access(zero, write=True)],
            )  # fmt: skip
            self.reads.append(zero)
            return zero.base, (0,) * len(self.sizes)
        self.flags["index"] = int(value.type.dtype.bits == 64)
        tile, strides = self.tile(value)
        return tile.base, strides

    def mask(self, value: Value | None) -> tuple[Operand, tuple[int, ...]]:
        if value is None:
            return 0, (0,) * len(self.sizes)
        self.flags["masked"] = 1
        tile, strides = self.tile(value)
        return tile.base, strides

    def strides(self, values: Sequence[Value]) -> tuple[Operand, ...]:
        return tuple(self.context.scalar(value) for value in values) or (0,)

    def dimensions(self, *columns: Sequence[Operand]) -> list[Operand]:
        """size and one entry of every column, for each dimension."""
        return [operand for row in zip(self.sizes, *columns, strict=True) for operand in row]

    def accesses(
        self, target: Window | int, written: Tile | None, reads_memory: bool, writes_memory: bool
    ) -> list[Access]:
        found = [self.context.access(tile, write=False) for tile in self.reads]
        if written is not None:
            found.append(self.context.access(written, write=True))
        if reads_memory:
            found.append(Access(target, write=False))
        if writes_memory:
            found.append(Access(target, write=True))
        return found


@lowers(memory.DmaGather)
def lower_dma_gather(context: Context, op: memory.DmaGather) -> None:
    """Read through an index tile."""
    dtype = op.result.type.dtype
    parts = _Indexed(context, op, op.shape, dtype)
    index, index_strides = parts.index(op.index)
    mask, mask_strides = parts.mask(op.mask)
    tile = context.define(op.result)
    place = context.place(op.base, context.scalar(op.offset))
    fill = context.scalar(op.fill) if op.fill is not None else 0
    context.emitter.emit(
        "gather",
        [
            place.space, place.offset, tile.base, index, mask, dtype.itemsize, fill,
            *parts.dimensions(parts.strides(op.strides), tile.strides or (0,), index_strides, mask_strides),
        ],
        flags={**parts.flags, "skip": 0},
        queue=context.dma_queue(),
        accesses=parts.accesses(place.target, tile, reads_memory=True, writes_memory=False),
        note="gather",
    )  # fmt: skip


@lowers(memory.DmaScatter)
def lower_dma_scatter(context: Context, op: memory.DmaScatter) -> None:
    """Write through an index tile."""
    dtype = op.value.type.dtype
    parts = _Indexed(context, op, op.shape, dtype)
    source, tile_strides = parts.tile(op.value)
    index, index_strides = parts.index(op.index)
    mask, mask_strides = parts.mask(op.mask)
    place = context.place(op.base, context.scalar(op.offset))
    context.emitter.emit(
        "scatter",
        [
            source.base, place.space, place.offset, index, mask, dtype.itemsize,
            *parts.dimensions(parts.strides(op.strides), tile_strides, index_strides, mask_strides),
        ],
        flags=parts.flags,
        queue=context.store_queue,
        accesses=parts.accesses(place.target, None, reads_memory=False, writes_memory=True),
        note="scatter",
    )  # fmt: skip


def combine_opcode(op: memory.DmaScatterReduce) -> int:
    """The SCE instruction that combines memory and element; 0 exchanges them."""
    if op.kind == "xchg":
        return EXCHANGE
    mnemonic = f"{op.kind}.{op.value.type.dtype.name}"
    if mnemonic not in SCE_OPS:
        raise Unsupported(op.location, what=f"atomic {op.kind}", dtype=op.value.type.dtype.name)
    return SCE_OPS[mnemonic].opcode


@lowers(memory.DmaScatterReduce, memory.DmaCompareSwap)
def lower_read_modify_write(context: Context, op: memory.DmaScatterReduce | memory.DmaCompareSwap) -> None:
    """Program order is the order of elements; old elements are kept where they are used."""
    dtype = op.value.type.dtype
    parts = _Indexed(context, op, op.shape, dtype)
    source, tile_strides = parts.tile(op.value)
    index, index_strides = parts.index(op.index)
    mask, mask_strides = parts.mask(op.mask)
    old = context.define(op.result) if op.result.users else None
    columns = [parts.strides(op.strides), tile_strides, index_strides, mask_strides]
    columns.append((old.strides or (0,)) if old is not None else (0,) * len(parts.sizes))
    place = context.place(op.base, context.scalar(op.offset))
    operands: list[Operand] = [
        source.base, place.space, place.offset, index, mask, old.base if old is not None else 0, dtype.itemsize,
    ]  # fmt: skip
    if isinstance(op, memory.DmaCompareSwap):
        expected, expected_strides = parts.tile(op.compare)
        operands.append(expected.base)
        columns.append(expected_strides)
        mnemonic = "compare_swap"
    else:
        operands.append(combine_opcode(op))
        mnemonic = "scatter_reduce"
    context.emitter.emit(
        mnemonic,
        [*operands, *parts.dimensions(*columns)],
        flags={**parts.flags, "old": int(old is not None)},
        queue=context.store_queue,
        accesses=parts.accesses(place.target, old, reads_memory=True, writes_memory=True),
        note=mnemonic,
    )


@lowers(rearrange.Gather)
def lower_gather(context: Context, op: rearrange.Gather) -> None:
    """Elements of a tile picked along one axis: a gather from SRAM."""
    dtype = op.result.type.dtype
    parts = _Indexed(context, op, op.result.type.shape, dtype)
    source, source_strides = parts.tile(op.operands[0])
    index, index_strides = parts.index(op.operands[1])
    tile = context.define(op.result)
    strides = tuple(0 if d == op.axis else stride for d, stride in enumerate(source_strides))
    context.emitter.emit(
        "gather",
        [
            SPACE_SRAM, source.base, tile.base, index, 0, source_strides[op.axis], 0,
            *parts.dimensions(strides, tile.strides, index_strides, (0,) * len(parts.sizes)),
        ],
        flags={**parts.flags, "skip": 0},
        queue=context.dma_queue(),
        accesses=parts.accesses(SPACE_SRAM, tile, reads_memory=False, writes_memory=False),
        note="gather",
    )  # fmt: skip
