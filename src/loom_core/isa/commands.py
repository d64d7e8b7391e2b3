"""The command table: one `CommandSpec` per command, in opcode order.

Encoder, decoder, disassembler, loader checks and docs/isa.md derive from this table. Opcodes are stable: a command is
added by adding a row with a new number. Opcode 0 is never used, so that a zeroed word is an error.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import IntEnum

from loom_core.isa.codes import ALL_CODE_FORMATS, FIRST_INTEGER_FORMAT


class Queue(IntEnum):
    """Queue numbers of the header's queue field."""

    ACP = 0
    DMA0 = 1
    DMA1 = 2
    DMA2 = 3
    DMA3 = 4
    MXU = 5
    SCE = 6


QUEUE_COUNT = len(Queue)
SPACE_SRAM = 0  # space operand of the core's own SRAM; 1.. are HBM bindings

# engine -> queues that accept its commands
ENGINE_QUEUES: dict[str, tuple[Queue, ...]] = {
    "acp": (Queue.ACP,),
    "dma": (Queue.DMA0, Queue.DMA1, Queue.DMA2, Queue.DMA3),
    "mxu": (Queue.MXU,),
    "sce": (Queue.SCE, Queue.MXU),  # program alone on MXU, exactly when its drain flag is set
}


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """One operand word. `role` is what the loader checks and the disassembler shows.

    role: "value" any integer; "bits" an element's bits; "register" number of an ACP register written by the command;
    "space"; "offset" bytes in the space before it; "target" absolute word index in the stream; "program" word offset
    in the programs section; "instruction" opcode of an SCE instruction, or 0; "dtype" code of an element type. Only
    value, bits, space and offset operands may be registers.
    """

    name: str
    role: str = "value"
    doc: str = ""
    written: bool = False  # a space that the command writes to

    @property
    def may_be_register(self) -> bool:
        return self.role in ("value", "bits", "space", "offset")


@dataclass(frozen=True, slots=True)
class OperandGroup:
    """Operands repeated `count` times: `count` names a flag field, or "streams" (as many as the program has)."""

    count: str
    members: tuple[OperandSpec | OperandGroup, ...]


@dataclass(frozen=True, slots=True)
class FlagField:
    """Bits [lo, lo + bits) of the header's flags; legal values are minimum..maximum; `values` are their names."""

    name: str
    lo: int
    bits: int
    doc: str
    minimum: int = 0
    maximum: int = -1  # -1: all that fits in the bits
    values: tuple[str, ...] = ()

    @property
    def limit(self) -> int:
        return self.maximum if self.maximum >= 0 else (1 << self.bits) - 1

    def get(self, flags: int) -> int:
        return (flags >> self.lo) & ((1 << self.bits) - 1)


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command. `synchronises`: it may carry wait words and a signal token."""

    opcode: int
    mnemonic: str
    engine: str
    operands: tuple[OperandSpec, ...]
    doc: str
    groups: tuple[OperandGroup, ...] = ()
    flags: tuple[FlagField, ...] = ()
    synchronises: bool = False
    issue: str = "executed by the ACP at issue"

    def flag(self, name: str) -> FlagField:
        """The flag field of that name; KeyError if the command has none."""
        for field in self.flags:
            if field.name == name:
                return field
        raise KeyError(name)


NARROW = FlagField(
    "narrow",
    0,
    4,
    "the result is wrapped to this type, then widened to 64 bits",
    maximum=7,
    values=("i64", "i32", "u32", "i16", "u16", "i8", "u8", "bool"),
)
_RD = OperandSpec("rd", "register", "destination register")
_A = OperandSpec("a")
_B = OperandSpec("b")
_TARGET = OperandSpec("target", "target", "word index of a command")
_LOG2_BYTES = "log2 of the element's bytes"
_QUEUED = "operands are read at issue; the command runs on its queue, in order, after its waits"


def _control(opcode: int, mnemonic: str, operands: tuple[OperandSpec, ...], doc: str) -> CommandSpec:
    return CommandSpec(opcode, mnemonic, "acp", operands, doc)


def _scalar(opcode: int, mnemonic: str, operands: tuple[OperandSpec, ...], doc: str) -> CommandSpec:
    return CommandSpec(opcode, mnemonic, "acp", (_RD, *operands), doc, flags=(NARROW,))


def _binary(opcode: int, mnemonic: str, doc: str) -> CommandSpec:
    return _scalar(opcode, mnemonic, (_A, _B), doc)


def _engine(
    opcode: int,
    mnemonic: str,
    engine: str,
    operands: tuple[OperandSpec, ...],
    doc: str,
    groups: tuple[OperandGroup, ...] = (),
    flags: tuple[FlagField, ...] = (),
) -> CommandSpec:
    return CommandSpec(opcode, mnemonic, engine, operands, doc, groups, flags, True, _QUEUED)


_CONTROL = (
    _control(0x01, "halt", (), "The core is done once all its queues are empty."),
    _control(
        0x02,
        "loop",
        (
            _RD,
            OperandSpec("lo"),
            OperandSpec("hi"),
            OperandSpec("step"),
            OperandSpec("end", "target", "word after its endloop"),
        ),
        "Counted loop. (step > 0 and lo >= hi) or (step < 0 and lo <= hi): continue at end. Otherwise rd = lo, and "
        "the body runs; "
        "hi and step are latched, the loop keeps its own counter (writes to rd do not change the count). Step 0 is a "
        "fault.",
    ),
    _control(
        0x03,
        "endloop",
        (),
        "Innermost loop: counter += step, rd = counter; inside the bounds: continue after its loop command, else "
        "leave it. "
        "A counter that overflows 64 bits leaves the loop.",
    ),
    _control(0x04, "jump", (_TARGET,), "Continue at target: forward, in the same loop body."),
    _control(0x05, "brz", (_A, _TARGET), "Jump if a == 0: forward, in the same loop body."),
    _control(0x06, "brnz", (_A, _TARGET), "Jump if a != 0: forward, in the same loop body."),
    _control(
        0x07,
        "while",
        (_TARGET,),
        "Continue at target: backward, in the same loop body. Each one taken uses one unit of the manifest's "
        "watchdog budget "
        "(`while_budget`, one for the whole run of a core); with none left it is a fault.",
    ),
    _control(0x08, "trap", (OperandSpec("code", "value", "reported to the host"),), "Stop the run with an error."),
)

_ARITHMETIC = (
    _scalar(0x10, "mov", (_A,), "rd = a."),
    _binary(0x11, "add", "rd = a + b modulo 2^64."),
    _binary(0x12, "sub", "rd = a - b modulo 2^64."),
    _binary(0x13, "mul", "rd = a * b modulo 2^64."),
    _binary(0x14, "div", "rd = a / b truncated; a / 0 = -1; INT64_MIN / -1 = INT64_MIN."),
    _binary(0x15, "rem", "rd = a - b * div(a, b); a % 0 = a; INT64_MIN % -1 = 0."),
    _binary(0x16, "fdiv", "rd = floor(a / b); a / 0 = -1; INT64_MIN / -1 = INT64_MIN."),
    _binary(0x17, "cdiv", "rd = ceil(a / b); a / 0 = -1; INT64_MIN / -1 = INT64_MIN."),
    _binary(0x18, "min", "rd = signed minimum."),
    _binary(0x19, "max", "rd = signed maximum."),
    _binary(0x1A, "and", "rd = a & b."),
    _binary(0x1B, "or", "rd = a | b."),
    _binary(0x1C, "xor", "rd = a ^ b."),
    _binary(0x1D, "shl", "rd = a << b; b outside 0..63 gives 0."),
    _binary(0x1E, "shr", "rd = a >> b arithmetic; b outside 0..63 gives 0, or -1 for a negative a."),
    _binary(0x1F, "shru", "rd = a >> b with zeros shifted in; b outside 0..63 gives 0."),
    _binary(0x20, "eq", "rd = a == b (1 or 0)."),
    _binary(0x21, "ne", "rd = a != b."),
    _binary(0x22, "lt", "rd = a < b, signed."),
    _binary(0x23, "le", "rd = a <= b, signed."),
    _binary(0x24, "ltu", "rd = a < b, unsigned 64 bits."),
    _binary(0x25, "leu", "rd = a <= b, unsigned 64 bits."),
    _scalar(0x26, "sel", (OperandSpec("c"), _A, _B), "rd = a if c != 0 else b."),
)

_SPACE = OperandSpec("space", "space", "0 SRAM, 1.. HBM binding")
_OFFSET = OperandSpec("offset", "offset", "bytes")

_SCALAR_MEMORY = (
    CommandSpec(
        0x30,
        "lds",
        "acp",
        (_RD, _SPACE, _OFFSET),
        "rd = the integer in memory, zero or sign extended. The ACP stands still until its waits are met and the "
        "load is done.",
        flags=(
            FlagField("log2_bytes", 0, 3, _LOG2_BYTES, maximum=3),
            FlagField("signed", 3, 1, "sign extend"),
        ),
        synchronises=True,
    ),
    CommandSpec(
        0x31,
        "sts",
        "acp",
        (dataclasses.replace(_SPACE, written=True), _OFFSET, OperandSpec("value")),
        "Store the low bytes of value. The ACP stands still until its waits are met and the store is done.",
        flags=(FlagField("log2_bytes", 0, 3, _LOG2_BYTES, maximum=3),),
        synchronises=True,
    ),
    CommandSpec(
        0x32,
        "report",
        "acp",
        (
            OperandSpec("code", "value", "which entry of the manifest's `reports`"),
            OperandSpec("offset", "offset", "SRAM bytes of the tile that it speaks of"),
            OperandSpec("program", "value", "the number of the program in the grid, x fastest"),
        ),
        "Let the host read a tile: it prints it, or stops the run because of it, as the entry says. The ACP stands "
        "still until its waits are met and the host is done.",
        synchronises=True,
    ),
)

_COPY_DIM = OperandGroup(
    "ndim",
    (
        OperandSpec("size", "value", "elements"),
        OperandSpec("src_stride", "value", "bytes"),
        OperandSpec("dst_stride", "value", "bytes"),
        OperandSpec("lo", "value", "first valid index"),
        OperandSpec("hi", "value", "one past the last valid index"),
    ),
)

_NDIM = FlagField("ndim", 0, 3, "dimensions", minimum=1, maximum=4)
_ELEMENT = FlagField("log2_bytes", 3, 2, _LOG2_BYTES)
_WIDE_INDEX = FlagField("index", 5, 1, "type of the index tile", values=("i32", "i64"))
_MASKED = FlagField("masked", 6, 1, "there is a mask tile")
_RETURNS = FlagField("old", 7, 1, "old elements are stored to the tile at old_off")
_INDEX_OFF = OperandSpec("index_off", "offset", "SRAM bytes")
_MASK_OFF = OperandSpec("mask_off", "offset", "SRAM bytes; a bool tile, ignored unless masked")
_OLD_OFF = OperandSpec("old_off", "offset", "SRAM bytes; ignored unless old elements are asked for")
_SCALE = OperandSpec("scale", "value", "bytes an index counts")
_INDEXED_DIM = (
    OperandSpec("size", "value", "elements"),
    OperandSpec("stride", "value", "bytes in memory, beside the index"),
    OperandSpec("tile_stride", "value", "bytes"),
    OperandSpec("index_stride", "value", "bytes"),
    OperandSpec("mask_stride", "value", "bytes"),
)
_ADDRESSED = (
    "Element i of the tile meets the element at its offset + scale * index[i] + the sum of stride * i in memory. "
    "Row-major order, dimensions outermost first. Where the mask is false memory is not touched; everywhere else the "
    "address is bounds checked. Any size <= 0: nothing happens."
)
_SIDE = FlagField("side", 0, 1, "operand of the product", values=("a", "b"))
_BOX = (OperandSpec("ext_lo"), OperandSpec("ext_hi"), OperandSpec("k_lo"), OperandSpec("k_hi"))
_PANEL = (
    OperandSpec("src_space", "space"),
    OperandSpec("src_off", "offset", "bytes"),
    OperandSpec("dst_off", "offset", "SRAM bytes"),
    OperandSpec("extent", "value", "rows of A, columns of B"),
    OperandSpec("depth", "value", "k"),
)
_PACK_OPERANDS = (
    *_PANEL,
    OperandSpec("extent_stride", "value", "bytes"),
    OperandSpec("depth_stride", "value", "bytes"),
    *_BOX,
    OperandSpec("fill", "bits", "the fill element"),
)
_CODE_NAMES = tuple(row.name for row in ALL_CODE_FORMATS)
_DECODE_OPERANDS = (
    *_PANEL,
    OperandSpec("row_stride", "value", "bytes"),
    OperandSpec("first_k", "value", "index in its row of the code at depth 0"),
    *_BOX,
)

# 0x46 and 0x47 are free.
_DMA = (
    _engine(
        0x40,
        "copy",
        "dma",
        (
            OperandSpec("src_space", "space"),
            OperandSpec("src_off", "offset", "bytes"),
            OperandSpec("dst_space", "space", written=True),
            OperandSpec("dst_off", "offset", "bytes"),
            OperandSpec("fill", "bits", "the fill element"),
        ),
        "Strided copy of an ndim box, dimensions outermost first. An element is valid if lo <= index < hi in every "
        "dimension; only "
        "valid elements read the source. Any size <= 0: nothing happens. Every touched address is bounds checked.",
        (_COPY_DIM,),
        (
            FlagField("ndim", 0, 3, "dimensions", minimum=1, maximum=5),
            FlagField("log2_bytes", 3, 2, _LOG2_BYTES),
            FlagField("skip", 5, 1, "elements that are not valid", values=("fill", "skip")),
        ),
    ),
    _engine(
        0x41,
        "pack",
        "dma",
        _PACK_OPERANDS,
        "Move a matrix operand of f32 into panel layout, as floats. Elements outside [ext_lo, ext_hi) x [k_lo, k_hi) "
        "are `fill`; rows or columns that "
        "pad the extent to a whole panel are zero. A zero extent or depth: nothing happens.",
        flags=(_SIDE, FlagField("log2_bytes", 3, 2, _LOG2_BYTES + " (2 in this version)", minimum=2, maximum=2)),
    ),
    _engine(
        0x42,
        "gather",
        "dma",
        (
            OperandSpec("src_space", "space"),
            OperandSpec("src_off", "offset", "bytes"),
            OperandSpec("dst_off", "offset", "SRAM bytes"),
            _INDEX_OFF,
            _MASK_OFF,
            _SCALE,
            OperandSpec("fill", "bits", "the fill element"),
        ),
        "Read elements from where an index tile says. " + _ADDRESSED,
        (OperandGroup("ndim", _INDEXED_DIM),),
        (_NDIM, _ELEMENT, _WIDE_INDEX, _MASKED, FlagField("skip", 7, 1, "masked elements", values=("fill", "skip"))),
    ),
    _engine(
        0x43,
        "scatter",
        "dma",
        (
            OperandSpec("src_off", "offset", "SRAM bytes"),
            OperandSpec("dst_space", "space", written=True),
            OperandSpec("dst_off", "offset", "bytes"),
            _INDEX_OFF,
            _MASK_OFF,
            _SCALE,
        ),
        "Write elements to where an index tile says; of several to one address the last in order stays. " + _ADDRESSED,
        (OperandGroup("ndim", _INDEXED_DIM),),
        (_NDIM, _ELEMENT, _WIDE_INDEX, _MASKED),
    ),
    _engine(
        0x44,
        "scatter_reduce",
        "dma",
        (
            OperandSpec("src_off", "offset", "SRAM bytes"),
            OperandSpec("dst_space", "space", written=True),
            OperandSpec("dst_off", "offset", "bytes"),
            _INDEX_OFF,
            _MASK_OFF,
            _OLD_OFF,
            _SCALE,
            OperandSpec("combine", "instruction", "an SCE instruction of two operands and one type, or 0: exchange"),
        ),
        "memory = combine(memory, element), one element after the other. Old elements that are asked for are 0 where "
        "the mask is false. " + _ADDRESSED,
        (OperandGroup("ndim", (*_INDEXED_DIM, OperandSpec("old_stride", "value", "bytes"))),),
        (_NDIM, _ELEMENT, _WIDE_INDEX, _MASKED, _RETURNS),
    ),
    _engine(
        0x45,
        "compare_swap",
        "dma",
        (
            OperandSpec("src_off", "offset", "SRAM bytes"),
            OperandSpec("dst_space", "space", written=True),
            OperandSpec("dst_off", "offset", "bytes"),
            _INDEX_OFF,
            _MASK_OFF,
            _OLD_OFF,
            _SCALE,
            OperandSpec("expected_off", "offset", "SRAM bytes"),
        ),
        "memory = element where memory holds the bits of the expected element, one after the other. Old elements that "
        "are asked for are 0 where the mask is false. " + _ADDRESSED,
        (
            OperandGroup(
                "ndim",
                (
                    *_INDEXED_DIM,
                    OperandSpec("old_stride", "value", "bytes"),
                    OperandSpec("expected_stride", "value", "bytes"),
                ),
            ),
        ),
        (_NDIM, _ELEMENT, _WIDE_INDEX, _MASKED, _RETURNS),
    ),
    _engine(
        0x48,
        "packf",
        "dma",
        _PACK_OPERANDS,
        "The same for narrower floats, which widen exactly; `fill` is an element of the type too.",
        flags=(_SIDE, FlagField("type", 3, 2, "of the elements", values=("bf16", "f16", "f8e4m3", "f8e5m2"))),
    ),
    _engine(
        0x49,
        "packi",
        "dma",
        _PACK_OPERANDS,
        "The same for integers of 8 and 4 bits, a byte each (of i4 and u4 the low half counts), into panel layout as "
        "integers.",
        flags=(_SIDE, FlagField("type", 3, 2, "of the elements", values=("i8", "u8", "i4", "u4"))),
    ),
    _engine(
        0x4A,
        "decodef",
        "dma",
        (
            *_DECODE_OPERANDS,
            OperandSpec("table_space", "space"),
            OperandSpec("table_off", "offset", "bytes"),
            OperandSpec("table_row_stride", "value", "bytes"),
            OperandSpec("table_group_stride", "value", "bytes"),
            OperandSpec("scale_space", "space"),
            OperandSpec("scale_off", "offset", "bytes"),
            OperandSpec("scale_row_stride", "value", "bytes"),
            OperandSpec("group", "value", "codes of a group"),
        ),
        "Decode weights into panel layout, as floats. src_off is the first code of the row at extent 0, whose codes "
        "are as in docs/formats.md; the element at depth k of row e is code first_k + k of the codes at src_off + "
        "e * row_stride, of the group (first_k + k) / group, rounded down (group <= 0: a row is one group). Its value "
        "is the integer of the code, or the fp16 at table_off + e * table_row_stride + group * table_group_stride + "
        "2 * code; `scaled`: times the fp16 at scale_off + e * scale_row_stride + 2 * group, exactly. Elements outside "
        "[ext_lo, ext_hi) x [k_lo, k_hi) and padding are zero.",
        flags=(
            _SIDE,
            FlagField("scaled", 1, 1, "values are scaled"),
            FlagField("format", 3, 4, "of the codes", maximum=len(_CODE_NAMES) - 1, values=_CODE_NAMES),
        ),
    ),
    _engine(
        0x4B,
        "decodei",
        "dma",
        _DECODE_OPERANDS,
        "The same for formats without table, into panel layout as integers, without scales.",
        flags=(
            _SIDE,
            FlagField(
                "format",
                3,
                4,
                "of the codes",
                minimum=FIRST_INTEGER_FORMAT,
                maximum=len(_CODE_NAMES) - 1,
                values=_CODE_NAMES,
            ),
        ),
    ),
)

_M_N = (OperandSpec("m"), OperandSpec("n"))

_PRODUCT = (
    OperandSpec("acc_off", "offset", "SRAM bytes"),
    OperandSpec("a_off", "offset", "SRAM bytes"),
    OperandSpec("b_off", "offset", "SRAM bytes"),
    *_M_N,
    OperandSpec("k"),
)

_MXU = (
    _engine(
        0x50,
        "matmul",
        "mxu",
        _PRODUCT,
        "acc[m, n] += a . b, operands packed as floats, accumulators f32. For each pass of pass_depth k: t = +0; "
        "t = fma(a, b, t), k ascending; acc = acc + t. Any extent <= 0: "
        "nothing happens.",
    ),
    _engine(
        0x51,
        "accfill",
        "mxu",
        (OperandSpec("acc_off", "offset", "SRAM bytes"), *_M_N, OperandSpec("bits", "bits", "the element")),
        "Every element of the padded accumulator tile, f32 or i32, = bits.",
    ),
    _engine(
        0x52,
        "accload",
        "mxu",
        (
            OperandSpec("acc_off", "offset", "SRAM bytes"),
            OperandSpec("src_off", "offset", "SRAM bytes"),
            *_M_N,
            OperandSpec("src_row_stride", "value", "bytes"),
            OperandSpec("src_col_stride", "value", "bytes"),
        ),
        "acc[m, n] = a tile of f32 or i32 in SRAM; the padding becomes zero.",
    ),
    _engine(
        0x53,
        "matmulf",
        "mxu",
        _PRODUCT,
        "The same product, faster: both operands were at most `widest` when they were packed (decoded weights are 16 "
        "bits).",
        flags=(FlagField("widest", 3, 1, "type of the wider operand", values=("f16", "f8")),),
    ),
    _engine(
        0x54,
        "matmuli",
        "mxu",
        _PRODUCT,
        "acc[m, n] += a . b, operands packed as integers, signed or not, accumulators i32, exactly modulo 2^32.",
    ),
)

_PROGRAM = OperandSpec("program", "program", "word offset in the programs section")
_SPACE_AND_STREAMS = (
    OperandGroup("ndim", (OperandSpec("size", "value", "elements"),)),
    OperandGroup(
        "streams",
        (
            OperandSpec("base", "value", "SRAM bytes, scalar bits or first iota value"),
            OperandGroup("ndim", (OperandSpec("stride", "value", "bytes, or iota steps"),)),
        ),
    ),
)

_SCE = (
    _engine(
        0x60,
        "program",
        "sce",
        (_PROGRAM,),
        "Run an SCE program over an iteration space. Its `fold` innermost dimensions are the ones that reductions and "
        "scans fold. Any size <= 0: nothing happens.",
        _SPACE_AND_STREAMS,
        (
            _NDIM,
            FlagField("fold", 3, 3, "trailing dimensions folded by reductions", maximum=4),
            FlagField("drain", 6, 1, "issued on the MXU queue; streams may touch accumulators"),
            FlagField("reverse", 7, 1, "scans go from the last element of a row to the first"),
        ),
    ),
    _engine(
        0x61,
        "combine",
        "sce",
        (_PROGRAM,),
        "Fold the rows (innermost dimension) of n tiles together by a program: its first n streams are loads of what "
        "is on the left, the next n loads of what is on the right, the next n stores of the results, the rest "
        "scalars. Operands of the right streams address the tiles, those of the stores the results (without the "
        "innermost dimension when reducing); those of the left streams are ignored. Reduce: neighbours 0 and 1, 2 and "
        "3, ... combine, the lower on the left, a last one without a neighbour stays, and again until one is left. "
        "Scan: what is carried on the left, the next element on the right, ascending or from the last one down. "
        "Elements of float type are NaN-canonical from the start. Any size <= 0: nothing happens.",
        _SPACE_AND_STREAMS,
        (_NDIM, FlagField("mode", 3, 2, "fold", maximum=2, values=("reduce", "scan", "reverse_scan"))),
    ),
    _engine(
        0x62,
        "sort",
        "sce",
        (
            OperandSpec("src_off", "offset", "SRAM bytes"),
            OperandSpec("values_off", "offset", "SRAM bytes; ignored unless values are asked for"),
            OperandSpec("order_off", "offset", "SRAM bytes; ignored unless the order is asked for"),
            OperandSpec("dtype", "dtype", "of the elements"),
            OperandSpec("kept", "value", "elements of a sorted row that are stored, from its start"),
            OperandSpec("specials", "value", "bit 0: NaNs first, else last; bit 1: -0 below +0, else equal"),
        ),
        "Sort each row (innermost dimension), stable: equal elements keep their order, descending too. NaNs are equal "
        "to each other and canonical in the result. `order` is the i32 index that each result had. Rows are read "
        "whole before they are written. Any size <= 0: nothing happens.",
        (
            OperandGroup(
                "ndim",
                (
                    OperandSpec("size", "value", "elements"),
                    OperandSpec("src_stride", "value", "bytes"),
                    OperandSpec("values_stride", "value", "bytes"),
                    OperandSpec("order_stride", "value", "bytes"),
                ),
            ),
        ),
        (
            _NDIM,
            _ELEMENT,
            FlagField("descending", 5, 1, "direction"),
            FlagField("values", 6, 1, "store the sorted values"),
            FlagField("order", 7, 1, "store the permutation"),
        ),
    ),
    _engine(
        0x63,
        "histogram",
        "sce",
        (
            OperandSpec("src_off", "offset", "SRAM bytes"),
            OperandSpec("mask_off", "offset", "SRAM bytes; a bool tile, ignored unless masked"),
            OperandSpec("dst_off", "offset", "SRAM bytes of the i32 counts"),
            OperandSpec("bins", "value", "counts"),
        ),
        "Count the elements that equal 0, 1, ... bins - 1, where the mask is true; others do not count. The counts "
        "start at 0, or where they stand. No bins: nothing happens; any size <= 0: nothing is counted.",
        (
            OperandGroup(
                "ndim",
                (
                    OperandSpec("size", "value", "elements"),
                    OperandSpec("src_stride", "value", "bytes"),
                    OperandSpec("mask_stride", "value", "bytes"),
                ),
            ),
        ),
        (
            _NDIM,
            _ELEMENT,
            FlagField("signed", 5, 1, "elements are signed"),
            _MASKED,
            FlagField("accumulate", 7, 1, "add to the counts that are there"),
        ),
    ),
)

ALL_COMMANDS: tuple[CommandSpec, ...] = (*_CONTROL, *_ARITHMETIC, *_SCALAR_MEMORY, *_DMA, *_MXU, *_SCE)
COMMANDS: dict[str, CommandSpec] = {spec.mnemonic: spec for spec in ALL_COMMANDS}
BY_OPCODE: dict[int, CommandSpec] = {spec.opcode: spec for spec in ALL_COMMANDS}

# Plain integers for compiled code: numba freezes module-level ints.
OP_HALT = 0x01
OP_LOOP = 0x02
OP_ENDLOOP = 0x03
OP_JUMP = 0x04
OP_BRZ = 0x05
OP_BRNZ = 0x06
OP_WHILE = 0x07
OP_TRAP = 0x08
OP_MOV = 0x10
OP_ADD = 0x11
OP_SUB = 0x12
OP_MUL = 0x13
OP_DIV = 0x14
OP_REM = 0x15
OP_FDIV = 0x16
OP_CDIV = 0x17
OP_MIN = 0x18
OP_MAX = 0x19
OP_AND = 0x1A
OP_OR = 0x1B
OP_XOR = 0x1C
OP_SHL = 0x1D
OP_SHR = 0x1E
OP_SHRU = 0x1F
OP_EQ = 0x20
OP_NE = 0x21
OP_LT = 0x22
OP_LE = 0x23
OP_LTU = 0x24
OP_LEU = 0x25
OP_SEL = 0x26
OP_LDS = 0x30
OP_STS = 0x31
OP_REPORT = 0x32
OP_COPY = 0x40
OP_PACK = 0x41
OP_GATHER = 0x42
OP_SCATTER = 0x43
OP_SCATTER_REDUCE = 0x44
OP_COMPARE_SWAP = 0x45
OP_PACKF = 0x48
OP_PACKI = 0x49
OP_DECODEF = 0x4A
OP_DECODEI = 0x4B
OP_MATMUL = 0x50
OP_ACCFILL = 0x51
OP_ACCLOAD = 0x52
OP_MATMULF = 0x53
OP_MATMULI = 0x54
OP_PROGRAM = 0x60
OP_COMBINE = 0x61
OP_SORT = 0x62
OP_HISTOGRAM = 0x63

# Header word: field -> (lowest bit, bits). Word 1 is the register mask; operands and waits follow.
HEADER_FIELDS: dict[str, tuple[int, int]] = {
    "opcode": (0, 8),
    "length": (8, 8),
    "queue": (16, 4),
    "waits": (20, 4),
    "flags": (24, 8),
    "signal": (32, 16),
    "operands": (48, 16),
}
HEADER_WORDS = 2
MAX_COMMAND_WORDS = 255
MAX_WAITS = 15
MASKED_OPERANDS = 64  # operands from this one on are immediates: the register mask is one word
LOOP_DEPTH = 16
