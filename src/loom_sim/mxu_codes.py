"""Codes of weights to bytes, and bytes through a table: the inner loops of decoding.

By host address, as in `mxu`; nothing here checks a bound. A code becomes a byte below the format's `entries`, whatever
the bits, so that it always finds its place in a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from loom_core.isa.codes import (
    ALL_CODE_FORMATS,
    CODE_BITS,
    ENTRIES,
    FLIP,
    MINUS,
    SHIFT,
    UNIT_BYTES,
    UNIT_CODES,
)
from loom_sim.jit import subroutine
from loom_sim.memory import load8, load64, move_bytes, store8, store32, store64
from loom_sim.mxu_elements import ELEMENTS
from loom_sim.mxu_emission import FLOAT, I8, I32, I64, WORD_BYTES, addresses, load, offset, outlined, store
from loom_sim.mxu_kernel import REGISTER_TILE
from loom_sim.mxu_moves import moves
from loom_sim.mxu_pack import PASS_DEPTH

_LANE_BITS: Final = 16
_SLACK: Final = 8  # words of eight bytes are read and written across the ends

STRING_BYTES: Final = max((PASS_DEPTH // row.unit_codes + 2) * row.unit_bytes + _SLACK for row in ALL_CODE_FORMATS)
"""Bytes of a buffer for the units that hold the codes of one pass of k, wherever they begin."""

CODES_BYTES: Final = PASS_DEPTH + 2 * max(UNIT_CODES) + _SLACK
"""Bytes of a buffer for those codes, a byte each."""

TABLE_BYTES: Final = max(ENTRIES) * WORD_BYTES
"""Bytes of a buffer for the float32 value of each code."""

ONE_BITS: Final = 0x3F800000
half_bits: Final = moves(ELEMENTS["f16"], REGISTER_TILE).widened
"""The fp16 at an address as the bits of a float32."""


def stack_buffer(size: int) -> Any:
    """Function without arguments: the address of `size` bytes that live as long as the function that calls it."""

    @intrinsic
    def buffer(typing_context):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
            # Not by cgutils.alloca_once: it stores a zero of the whole type, which takes LLVM seconds.
            with builder.goto_entry_block():
                place = builder.alloca(ir.ArrayType(I8, size))
            place.align = 64
            return builder.ptrtoint(place, I64)

        return types.int64(), generate

    return buffer


def _column(values: Sequence[int]) -> Any:
    """Function of an index: a constant array. Numba's tuples would cost seconds of compile time."""

    @intrinsic
    def entry(typing_context, index):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
            kind = ir.ArrayType(I64, len(values))
            array = cgutils.global_constant(builder, "loom_code_formats", ir.Constant(kind, list(values)))
            return builder.load(builder.gep(array, [I64(0), arguments[0]]))

        return types.int64(types.int64), generate

    return entry


bits_of: Final = _column(CODE_BITS)
unit_codes_of: Final = _column(UNIT_CODES)
unit_bytes_of: Final = _column(UNIT_BYTES)
entries_of: Final = _column(ENTRIES)
_flip_of: Final = _column(FLIP)
_shift_of: Final = _column(SHIFT)
_minus_of: Final = _column(MINUS)


# ---- splitting -------------------------------------------------------------------------------------------------------


@subroutine("void(int64, int64, int64, int64)")
def split_bits(codes, string, units, bits):  # type: ignore[no-untyped-def]
    """Units of eight codes of up to eight bits each, to a byte each: the bits of a word spread in three rounds."""
    quad = (1 << 4 * bits) - 1
    pairs = ((1 << 2 * bits) - 1) * 0x1000100010001
    singles = ((1 << bits) - 1) * 0x101010101010101
    for unit in range(units):
        word = load64(string + unit * bits)
        word = word & quad | (word << (32 - 4 * bits)) & (quad << 32)
        word = (word | word << (16 - 2 * bits)) & pairs
        store64(codes + 8 * unit, (word | word << (8 - bits)) & singles)


@subroutine("void(int64, int64, int64)")
def split_digits(codes, string, units):  # type: ignore[no-untyped-def]
    """Bytes of five digits to base 3, the lowest first; a byte counts modulo 3^5."""
    for unit in range(units):
        rest = load8(string + unit)
        for digit in range(5):
            third = rest * 171 >> 9  # rest / 3, for rest < 512
            store8(codes + 5 * unit + digit, rest - 3 * third)
            rest = third


@subroutine("void(int64, int64, int64)")
def split_lanes(codes, string, count):  # type: ignore[no-untyped-def]
    """The low bytes of lanes."""
    for i in range(count):
        store8(codes + i, load8(string + 2 * i))


@subroutine("UniTuple(int64, 2)(int64, int64, int64)", inline=True)
def string_range(code_format, first, count):  # type: ignore[no-untyped-def]
    """(low, high): the bytes of a row that hold `count` codes from number `first` on."""
    bits = bits_of(code_format)
    if bits == 0:
        codes = unit_codes_of(code_format)
        return first // codes, (first + count + codes - 1) // codes
    return first * bits // 8, ((first + count) * bits + 7) // 8


@subroutine("int64(int64, int64, int64, int64, int64, int64)")
def split_codes(codes, string, row, code_format, first, count):  # type: ignore[no-untyped-def]
    """Address of `count` codes as bytes, in the buffer `codes`; `row` is where the codes of their row begin.

    `string` is a buffer too: of the row, no byte is read that holds no code of these.
    """
    unit_codes, unit_bytes, bits = unit_codes_of(code_format), unit_bytes_of(code_format), bits_of(code_format)
    unit = first // unit_codes
    skipped = first - unit * unit_codes
    units = (skipped + count + unit_codes - 1) // unit_codes
    low, high = string_range(code_format, first, count)
    move_bytes(string + low - unit * unit_bytes, row + low, high - low)
    if bits == 0:
        split_digits(codes, string, units)
    elif bits == _LANE_BITS:
        split_lanes(codes, string, units * unit_codes)
    else:
        split_bits(codes, string, units, bits)
    return codes + skipped


# ---- values ----------------------------------------------------------------------------------------------------------


@intrinsic
def integer_bits(typing_context, value):  # type: ignore[no-untyped-def]
    """The bits of an integer as float32, zero extended."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return builder.zext(builder.bitcast(builder.sitofp(values[0], FLOAT), I32), I64)

    return types.int64(types.int64), generate


@subroutine("int64(int64, int64)", inline=True)
def integer_of(code, code_format):  # type: ignore[no-untyped-def]
    """The value of a code of a format without table."""
    return ((code ^ _flip_of(code_format)) << _shift_of(code_format)) - _minus_of(code_format)


@subroutine("void(int64, int64)")
def tabulate_integers(table, code_format):  # type: ignore[no-untyped-def]
    """The float32 value of every code of a format without table."""
    for code in range(entries_of(code_format)):
        store32(table + code * WORD_BYTES, integer_bits(integer_of(code, code_format)))


@subroutine("void(int64, int64, int64)")
def tabulate_halves(table, halves, code_format):  # type: ignore[no-untyped-def]
    """A table of fp16 as float32."""
    for code in range(entries_of(code_format)):
        store32(table + code * WORD_BYTES, half_bits(halves + 2 * code))


@subroutine("void(int64, int64, int64, int64)")
def to_integers(dst, codes, count, code_format):  # type: ignore[no-untyped-def]
    """The values of codes of a format without table, a byte each."""
    flip, shift, minus = _flip_of(code_format), _shift_of(code_format), _minus_of(code_format)
    for i in range(count):
        store8(dst + i, ((load8(codes + i) ^ flip) << shift) - minus)


def _emit_look_up(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> None:
    dst, codes, table, count, scale_bits = arguments
    scale = builder.bitcast(builder.trunc(scale_bits, I32), FLOAT)
    with cgutils.for_range(builder, count, intp=I64) as loop:
        code = builder.zext(load(builder, builder.add(codes, loop.index), I8), I64)
        value = load(builder, offset(builder, table, code, WORD_BYTES), FLOAT)
        store(builder, builder.fmul(value, scale), offset(builder, dst, loop.index, WORD_BYTES))


@intrinsic
def look_up(typing_context, dst, codes, table, count, scale_bits):  # type: ignore[no-untyped-def]
    """dst[i] = table[codes[i]] * scale for `count` bytes of codes; table, scale and result are float32."""
    return addresses(5), outlined("loom_mxu_look_up", _emit_look_up)
