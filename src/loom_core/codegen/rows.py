"""Operations on whole rows: scans, folds by a region, sorts, histograms."""

from __future__ import annotations

from loom_core.codegen.context import Context, constant_bits
from loom_core.codegen.emitter import Access, Operand
from loom_core.codegen.errors import TooManyDimensions, Unsupported
from loom_core.codegen.memory import stored_tile
from loom_core.codegen.registry import lowers
from loom_core.codegen.stream import ProgramBuilder, allocate_registers, mnemonic_of
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.isa.commands import Queue
from loom_core.isa.program import R, S, SceInstr, SceOperand, StreamSpec
from loom_core.isa.sce import DTYPE_CODES
from loom_core.ops import elementwise, rearrange, reduction, shape

MAX_ROW_DIMS = 4
NAN_FIRST, SIGNED_ZEROS = 1, 2
COMBINE_MODES = {(False, False): 0, (True, False): 1, (True, True): 2}


def axis_last(rank: int, axis: int) -> tuple[int, ...]:
    """The order of dimensions that walks `axis` innermost."""
    return (*(d for d in range(rank) if d != axis), axis)


@lowers(reduction.Scan)
def lower_scan(context: Context, op: reduction.Scan) -> None:
    """A program of one instruction."""
    sizes = op.result.type.shape
    program = ProgramBuilder(context, sizes, axis_last(len(sizes), op.axis))
    source = program.operand(op.operand)
    program.fold = 1
    program.flags = {"reverse": int(op.reverse)}
    program.instructions.append(SceInstr(mnemonic_of(op), program.store_ordered(op.result), source))
    program.emit("scan")


@lowers(reduction.ReduceRegion, reduction.ScanRegion)
def lower_region_fold(context: Context, op: reduction.RegionFold) -> None:
    """`combine` with the region as its program: streams of the left, of the right, of the results, and constants."""
    sizes = op.inputs[0].type.shape
    rank = len(sizes)
    if rank > MAX_ROW_DIMS:
        raise TooManyDimensions(op.location, rank=rank, verb="folded", limit=MAX_ROW_DIMS)
    order = axis_last(rank, op.axis)
    scans = isinstance(op, reduction.ScanRegion)
    specs = [StreamSpec("load", value.type.dtype.name) for value in op.inputs]
    stores = [StreamSpec("store", value.type.dtype.name) for value in op.results]
    addresses: list[tuple[Operand, tuple[int, ...]]] = [(0, (0,) * rank) for _ in op.inputs]
    accesses: list[Access] = []
    for value in op.inputs:
        tile = stored_tile(context, value)
        addresses.append((tile.base, tuple(tile.strides[d] for d in order)))
        accesses.append(context.access(tile, write=False))
    for value in op.results:
        tile = context.define(value)
        strides = tuple(tile.strides[d] for d in order) if scans else (*tile.strides, 0)
        addresses.append((tile.base, strides))
        accesses.append(context.access(tile, write=True))
    body = _RegionProgram(op, [*specs, *specs, *stores])
    addresses += [(bits, (0,) * rank) for bits in body.constants]
    operands: list[Operand] = [0, *(sizes[d] for d in order)]
    for base, strides in addresses:
        operands += [base, *strides]
    reverse = bool(op.attributes.get("reverse", False))
    context.emitter.emit(
        "combine",
        operands,
        flags={"ndim": rank, "mode": COMBINE_MODES[scans, reverse]},
        queue=Queue.SCE,
        program=allocate_registers(tuple(body.streams), body.instructions),
        accesses=accesses,
        note=op.name,
    )


class _RegionProgram:
    """A region as instructions; its constants become scalar streams."""

    def __init__(self, op: reduction.RegionFold, streams: list[StreamSpec]) -> None:
        self.streams = streams
        self.constants: list[int] = []
        self.instructions: list[SceInstr] = []
        self._operands: dict[Value, SceOperand] = {}
        self._registers = 0
        block = op.regions[0]
        for number, argument in enumerate(block.arguments):
            self._operands[argument] = S(number)
        for inner in block.operations[:-1]:
            self._operation(inner)
        for number, value in enumerate(block.operations[-1].operands):
            dtype = value.type.dtype
            move = "mov.bool" if dtype.kind == "bool" else f"mov.{8 * dtype.itemsize}"
            self.instructions.append(SceInstr(move, S(len(block.arguments) + number), self._operand(value)))

    def _operation(self, op: Op) -> None:
        if isinstance(op, shape.Constant):
            self.streams.append(StreamSpec("scalar", op.type.dtype.name))
            self.constants.append(constant_bits(op.value, op.type.dtype))
            self._operands[op.result] = S(len(self.streams) - 1)
            return
        if not op.elementwise:
            raise Unsupported(op.location, what=f"`{op.name}` in a combine function", dtype=str(op.results[0].type))
        sources = [self._operand(value) for value in op.operands]
        if isinstance(op, elementwise.Copy):
            self._operands[op.result] = sources[0]
            return
        result = R(self._registers)
        self._registers += 1
        self._operands[op.results[0]] = result
        a, b, c = (*sources, None, None, None)[:3]
        self.instructions.append(SceInstr(mnemonic_of(op), result, a, b, c))

    def _operand(self, value: Value) -> SceOperand:
        return self._operands[value]  # a region uses nothing from outside: the verifier's rule


@lowers(rearrange.Sort)
def lower_sort(context: Context, op: rearrange.Sort) -> None:
    """Rows in total order: -0 below +0, NaN above all (so first where the order descends)."""
    sizes = op.result.type.shape
    if len(sizes) > MAX_ROW_DIMS:
        raise TooManyDimensions(op.location, rank=len(sizes), verb="sorted", limit=MAX_ROW_DIMS)
    dtype = op.result.type.dtype
    source, target = stored_tile(context, op.operand), context.define(op.result)
    dims: list[Operand] = []
    for size, source_stride, target_stride in zip(sizes, source.strides, target.strides, strict=True):
        dims += [size, source_stride, target_stride, 0]
    specials = SIGNED_ZEROS | (NAN_FIRST if op.descending else 0)
    context.emitter.emit(
        "sort",
        [source.base, target.base, 0, DTYPE_CODES[dtype.name], sizes[-1], specials, *dims],
        flags={
            "ndim": len(sizes), "log2_bytes": dtype.itemsize.bit_length() - 1, "descending": int(op.descending),
            "values": 1, "order": 0,
        },
        queue=Queue.SCE,
        accesses=[context.access(source, write=False), context.access(target, write=True)],
        note="sort",
    )  # fmt: skip


@lowers(rearrange.Histogram)
def lower_histogram(context: Context, op: rearrange.Histogram) -> None:
    """Counts of one row of integers."""
    dtype = op.operand.type.dtype
    source, target = stored_tile(context, op.operand), context.define(op.result)
    accesses = [context.access(source, write=False), context.access(target, write=True)]
    mask: Operand = 0
    mask_stride = 0
    if op.mask is not None:
        tile = stored_tile(context, op.mask)
        mask, mask_stride = tile.base, tile.strides[0]
        accesses.append(context.access(tile, write=False))
    context.emitter.emit(
        "histogram",
        [source.base, mask, target.base, op.bins, op.operand.type.shape[0], source.strides[0], mask_stride],
        flags={
            "ndim": 1, "log2_bytes": dtype.itemsize.bit_length() - 1, "signed": int(dtype.kind == "int"),
            "masked": int(op.mask is not None), "accumulate": 0,
        },
        queue=Queue.SCE,
        accesses=accesses,
        note="histogram",
    )  # fmt: skip
