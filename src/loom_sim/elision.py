"""Copies that do not take place: SRAM whose bytes are, for now, in HBM only.

A contiguous COPY from HBM to SRAM of some size only notes that these bytes of SRAM are to be found there (an
"absence"). A program that reads them reads HBM. A program whose tile the next command copies to HBM writes it there at
once, and the tile is absent from then on. Whatever else touches absent bytes, or is about to write what they stand for,
first makes them present. So every command sees the bytes that it would see without all this, faults included.

Only runs elide copies (`state.ELIDED_FROM`), plain or checked; the cycle model sees every copy.

The table: a word of bits, one an absence; then columns of ABSENCES words: first byte in SRAM and one past the last, the
host address of the first byte where the content is and one past the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from loom_sim.jit import subroutine
from loom_sim.lines import move_run, splat
from loom_sim.memory import load_word, store_word
from loom_sim.spaces import space_base
from loom_sim.state import ABSENCES, ABSENT, SRAM

_I1 = ir.IntType(1)
_I64 = ir.IntType(64)
_GROUP: Final = 8  # absences that are compared at once
ABSENT_IN: Final = 1  # columns, for `meeting`: by where the bytes are missing
_END: Final = ABSENT_IN + ABSENCES
ABSENT_FROM: Final = _END + ABSENCES  # and by where they are

_SOURCE_END: Final = ABSENT_FROM + ABSENCES
TABLE_WORDS: Final = _SOURCE_END + ABSENCES
_TOP_CLEAR: Final = (1 << (64 - _GROUP)) - 1


@intrinsic
def _meeting_group(typing_context, lows, highs, low, high):  # type: ignore[no-untyped-def]
    """Bits of the ranges that meet [low, high), of the _GROUP ranges whose bounds are at two addresses."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        pointer = ir.VectorType(_I64, _GROUP).as_pointer()
        lows, highs = (builder.load(builder.inttoptr(value, pointer), align=8) for value in values[:2])
        low, high = (splat(builder, value, _GROUP) for value in values[2:])
        both = builder.and_(builder.icmp_signed("<", lows, high), builder.icmp_signed(">", highs, low))
        return builder.zext(builder.bitcast(both, ir.IntType(_GROUP)), _I64)

    return types.int64(*[types.int64] * 4), generate


@intrinsic
def lowest_bit(typing_context, bits):  # type: ignore[no-untyped-def]
    """Number of the lowest bit of `bits` that is set; `bits` is not 0."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        count = builder.module.declare_intrinsic("llvm.cttz", [_I64], ir.FunctionType(_I64, [_I64, _I1]))
        return builder.call(count, [values[0], _I1(1)])

    return types.int64(types.int64), generate


@subroutine("int64(int64, int64, int64, int64)")
def meeting(state, column, low, high):  # type: ignore[no-untyped-def]
    """Bits of the absences that meet [low, high): SRAM bytes for the column ABSENT_IN, host bytes for ABSENT_FROM."""
    bits = load_word(state, ABSENT)
    found, shift, lows, left = 0, 0, state + (ABSENT + column) * 8, bits
    while left != 0:
        found |= _meeting_group(lows, lows + ABSENCES * 8, low, high) << shift
        left = (left >> _GROUP) & _TOP_CLEAR
        shift += _GROUP
        lows += _GROUP * 8
    return found & bits


@subroutine("void(int64, int64)")
def make_present(state, bits):  # type: ignore[no-untyped-def]
    """Copy the content of some absences to SRAM."""
    table = state + ABSENT * 8
    store_word(table, 0, load_word(table, 0) & ~bits)
    while bits != 0:
        number = lowest_bit(bits)
        low, source = load_word(table, ABSENT_IN + number), load_word(table, ABSENT_FROM + number)
        move_run(load_word(state, SRAM) + low, source, load_word(table, _END + number) - low)
        bits &= bits - 1


@subroutine("void(int64, int64, int64)")
def overwrite(state, low, high):  # type: ignore[no-untyped-def]
    """Prepare for SRAM bytes [low, high) to be overwritten, all of them."""
    bits = meeting(state, ABSENT_IN, low, high)
    while bits != 0:
        entry = state + (ABSENT + lowest_bit(bits)) * 8
        if load_word(entry, ABSENT_IN) < low or load_word(entry, _END) > high:
            make_present(state, bits & -bits)
        store_word(state, ABSENT, load_word(state, ABSENT) & ~(bits & -bits))
        bits &= bits - 1


@subroutine("void(int64, int64, int64, int64)")
def make_absent(state, low, high, source):  # type: ignore[no-untyped-def]
    """SRAM bytes [low, high), in which nothing is absent, are to be found at host address `source`."""
    if load_word(state, ABSENT) == -1:
        make_present(state, -1)
    bits = load_word(state, ABSENT)
    number = lowest_bit(~bits)
    entry = state + (ABSENT + number) * 8
    store_word(entry, ABSENT_IN, low)
    store_word(entry, _END, high)
    store_word(entry, ABSENT_FROM, source)
    store_word(entry, _SOURCE_END, source + high - low)
    store_word(state, ABSENT, bits | 1 << number)


@subroutine("int64(int64, int64, int64, int64)")
def place_of(state, bits, low, high):  # type: ignore[no-untyped-def]
    """Host address where SRAM bytes [low, high) can be read; `bits`: the absences that they meet."""
    if bits != 0:
        entry = state + (ABSENT + lowest_bit(bits)) * 8
        start = load_word(entry, ABSENT_IN)
        if bits & (bits - 1) == 0 and start <= low and high <= load_word(entry, _END):
            return load_word(entry, ABSENT_FROM) + low - start
        make_present(state, bits)
    return load_word(state, SRAM) + low


@subroutine("void(int64, int64, int64, int64)")
def before_write(state, space, low, high):  # type: ignore[no-untyped-def]
    """Prepare for some of the bytes [low, high) of a space to be written."""
    if space == 0:
        make_present(state, meeting(state, ABSENT_IN, low, high))
    else:
        base = space_base(state, space)
        make_present(state, meeting(state, ABSENT_FROM, base + low, base + high))
