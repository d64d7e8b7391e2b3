"""Moves between strided streams and slots (contiguous scratch memory of the stream engine), a plane at a time.

A plane is some rows of one length whose starts lie one stride apart. Slots are written in ascending order and in lines
of 64 bytes: what a line writes past the end of a row is the next row's, and past the last row's it is padding of the
slot (`state.SLOT_PADDING`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from loom_sim.jit import subroutine
from loom_sim.lines import LINE, copy_line, fill_line, splat
from loom_sim.memory import (
    load8,
    load16,
    load32,
    load64,
    move_bytes,
    store8,
    store16,
    store32,
    store64,
    wrapping_add,
    wrapping_multiply,
)

_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


# ---- lines of integers -----------------------------------------------------------------------------------------------


def _ramp(element: ir.IntType) -> Any:
    count = LINE * 8 // element.width
    kind = ir.VectorType(element, count)

    @intrinsic
    def ramp_line(typing_context, address, value, step):  # type: ignore[no-untyped-def]
        """The integers value, value + step, ... that fill 64 bytes, wrapped, to `address`."""

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
            first, step = values[1:]
            if element.width < 64:
                first, step = builder.trunc(first, element), builder.trunc(step, element)
            steps = builder.mul(splat(builder, step, count), ir.Constant(kind, list(range(count))))
            vector = builder.add(splat(builder, first, count), steps)
            builder.store(vector, builder.inttoptr(values[0], kind.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    return ramp_line


_ramp_line32: Final = _ramp(_I32)
_ramp_line64: Final = _ramp(_I64)


# ---- elements --------------------------------------------------------------------------------------------------------


@subroutine("int64(int64, int64)")
def load_element(address, log2):  # type: ignore[no-untyped-def]
    if log2 == 2:
        return load32(address)
    if log2 == 3:
        return load64(address)
    if log2 == 0:
        return load8(address)
    return load16(address)


@subroutine("int64(int64, int64)", inline=True)
def repeated(value, log2):  # type: ignore[no-untyped-def]
    """The low bits of `value`, an element of 2^log2 bytes, as often as they fit in 64 bits."""
    if log2 == 2:
        return wrapping_multiply(value & 0xFFFFFFFF, 0x0000000100000001)
    if log2 == 3:
        return value
    if log2 == 0:
        return wrapping_multiply(value & 0xFF, 0x0101010101010101)
    return wrapping_multiply(value & 0xFFFF, 0x0001000100010001)


@subroutine("void(int64, int64, int64, int64)")
def fill_slot(slot, value, count, log2):  # type: ignore[no-untyped-def]
    """`count` elements = the low bits of `value`."""
    pattern = repeated(value, log2)
    for place in range(slot, slot + (count << log2), LINE):
        fill_line(place, pattern)


# ---- planes ----------------------------------------------------------------------------------------------------------


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def count_plane(slot, value, rows, row_step, step, row_bytes):  # type: ignore[no-untyped-def]
    """Rows of 4-byte integers value, value + step, ...; the next row begins at value + row_step."""
    line_step = wrapping_multiply(step, LINE // 4)
    for _ in range(rows):
        first = value
        for place in range(slot, slot + row_bytes, LINE):
            _ramp_line32(place, first, step)
            first = wrapping_add(first, line_step)
        value = wrapping_add(value, row_step)
        slot += row_bytes


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def count_plane_wide(slot, value, rows, row_step, step, row_bytes):  # type: ignore[no-untyped-def]
    """`count_plane` of 8-byte integers."""
    line_step = wrapping_multiply(step, LINE // 8)
    for _ in range(rows):
        first = value
        for place in range(slot, slot + row_bytes, LINE):
            _ramp_line64(place, first, step)
            first = wrapping_add(first, line_step)
        value = wrapping_add(value, row_step)
        slot += row_bytes


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def spread_plane(slot, src, rows, row_stride, row_bytes, log2):  # type: ignore[no-untyped-def]
    """Each row all one element, row_stride bytes after the one before."""
    for _ in range(rows):
        pattern = repeated(load_element(src, log2), log2)
        for place in range(slot, slot + row_bytes, LINE):
            fill_line(place, pattern)
        src += row_stride
        slot += row_bytes


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def copy_plane(dst, dst_row, src, src_row, rows, row_bytes):  # type: ignore[no-untyped-def]
    """Rows that are contiguous on both sides; no byte outside them is touched."""
    if row_bytes % LINE == 0:
        for _ in range(rows):
            for at in range(0, row_bytes, LINE):
                copy_line(dst + at, src + at)
            dst += dst_row
            src += src_row
    else:
        for _ in range(rows):
            move_bytes(dst, src, row_bytes)
            dst += dst_row
            src += src_row


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def move_row(dst, dst_stride, src, src_stride, count, log2):  # type: ignore[no-untyped-def]
    """`count` elements between two strided rows."""
    if log2 == 2:
        for i in range(count):
            store32(dst + i * dst_stride, load32(src + i * src_stride))
    elif log2 == 3:
        for i in range(count):
            store64(dst + i * dst_stride, load64(src + i * src_stride))
    elif log2 == 0:
        for i in range(count):
            store8(dst + i * dst_stride, load8(src + i * src_stride))
    else:
        for i in range(count):
            store16(dst + i * dst_stride, load16(src + i * src_stride))


@subroutine("void(int64, int64, int64, int64, int64, int64, int64)")
def load_plane(slot, src, rows, row_stride, inner, stride, log2):  # type: ignore[no-untyped-def]
    """`rows` rows of `inner` strided elements to a slot."""
    row_bytes = inner << log2
    if stride == 0:
        spread_plane(slot, src, rows, row_stride, row_bytes, log2)
    elif stride == 1 << log2:
        copy_plane(slot, row_bytes, src, row_stride, rows, row_bytes)
    else:
        for row in range(rows):
            move_row(slot + row * row_bytes, 1 << log2, src + row * row_stride, stride, inner, log2)


@subroutine("void(int64, int64, int64, int64, int64, int64, int64)")
def store_plane(slot, dst, rows, row_stride, inner, stride, log2):  # type: ignore[no-untyped-def]
    """A slot to `rows` rows of `inner` strided elements."""
    row_bytes = inner << log2
    if stride == 1 << log2:
        copy_plane(dst, row_stride, slot, row_bytes, rows, row_bytes)
    else:
        for row in range(rows):
            move_row(dst + row * row_stride, stride, slot + row * row_bytes, 1 << log2, inner, log2)
