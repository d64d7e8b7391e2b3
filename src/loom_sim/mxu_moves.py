"""Moving operands into micro-panels: the inner loops of packing, for one element type and register tile.

A word of a panel is 4 bytes, the element's `steps` of k of one row. "Row" means a row of A or a column of B.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from loom_sim.mxu_elements import PanelElement
from loom_sim.mxu_emission import (
    FLOAT,
    I32,
    I64,
    POINTER,
    WORD_BYTES,
    Emit,
    addresses,
    emit_prefetch,
    inline,
    interleaved,
    load,
    offset,
    outlined,
    shuffle,
    store,
    vector,
    widths,
)
from loom_sim.mxu_kernel import RegisterTile


@dataclass(frozen=True)
class Moves:
    """Numba intrinsics on int64 addresses and strides in bytes.

    copy_a(dst, src, k_stride)               one word of every row of a micro-panel of A; its rows are contiguous
    copy_b(dst, src, k_stride)               the same for B
    transpose_a(dst, src, row_stride)        `lanes` words of every row of a micro-panel of A, each contiguous in k
    transpose_b(dst, src, row_stride)        the same for `b_transpose_rows` of the rows of one of B
    copy_words(dst, pitch, src, stride, k_stride, count)   words from src, src + stride, ... to dst, dst + pitch, ...
    widened(src) -> int64                    the element at src: float32 bits, or 16 bits of an integer
    widened_bits(bits) -> int64              the same of an element given by its bits
    """

    copy_a: Any
    copy_b: Any
    transpose_a: Any
    transpose_b: Any
    copy_words: Any
    widened: Any
    widened_bits: Any


@functools.cache
def moves(element: PanelElement, tile: RegisterTile) -> Moves:
    """The moves for elements of one type."""
    rows, columns, part = tile.rows, tile.columns, tile.b_transpose_rows

    @intrinsic
    def copy_a(typing_context, dst, src, k_stride):  # type: ignore[no-untyped-def]
        return addresses(3), inline(_copy_emitter(element, tile, rows))

    @intrinsic
    def copy_b(typing_context, dst, src, k_stride):  # type: ignore[no-untyped-def]
        return addresses(3), inline(_copy_emitter(element, tile, columns))

    @intrinsic
    def transpose_a(typing_context, dst, src, row_stride):  # type: ignore[no-untyped-def]
        return addresses(3), inline(_transpose_emitter(element, tile, rows, rows))

    @intrinsic
    def transpose_b(typing_context, dst, src, row_stride):  # type: ignore[no-untyped-def]
        return addresses(3), inline(_transpose_emitter(element, tile, part, columns))

    # Vectorised, a loop over words some way apart becomes scatters, several times slower than its stores one by one:
    # hence the attribute.
    @intrinsic
    def copy_words(typing_context, dst, pitch, src, stride, k_stride, count):  # type: ignore[no-untyped-def]
        name = f"loom_mxu_copy_words_{element.name}"
        return addresses(6), outlined(name, _words_emitter(element), "noimplicitfloat")

    @intrinsic
    def widened(typing_context, src):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
            return builder.zext(element.widen(builder, load(builder, values[0], element.memory)), I64)

        return types.int64(types.int64), generate

    @intrinsic
    def widened_bits(typing_context, bits):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
            return builder.zext(element.widen(builder, builder.trunc(values[0], element.memory)), I64)

        return types.int64(types.int64), generate

    return Moves(copy_a, copy_b, transpose_a, transpose_b, copy_words, widened, widened_bits)


# ---- words from memory -----------------------------------------------------------------------------------------------


def _load_words_along_k(builder: ir.IRBuilder, element: PanelElement, address: ir.Value, count: int) -> ir.Value:
    """`count` words of one row whose steps of k are contiguous, as floats, whatever they are: they are only moved."""
    if element.bytes == WORD_BYTES:
        return load(builder, address, vector(FLOAT, count))
    elements = load(builder, address, vector(element.memory, count * element.steps))
    return builder.bitcast(element.widen(builder, elements), vector(FLOAT, count))


def _load_words_along_rows(
    builder: ir.IRBuilder, element: PanelElement, address: ir.Value, k_stride: ir.Value, count: int
) -> list[ir.Value]:
    """One word of each of `count` contiguous rows, as vectors in order."""
    if element.steps == 1:
        return [_load_words_along_k(builder, element, address, count)]
    kind = vector(element.memory, count)
    first = element.widen(builder, load(builder, address, kind))
    second = element.widen(builder, load(builder, builder.add(address, k_stride), kind))
    return list(interleaved(builder, first, second))


def _load_word(builder: ir.IRBuilder, element: PanelElement, address: ir.Value, k_stride: ir.Value) -> ir.Value:
    """One word as 32 bits."""
    first = element.widen(builder, load(builder, address, element.memory))
    if element.steps == 1:
        return first
    second = element.widen(builder, load(builder, builder.add(address, k_stride), element.memory))
    return builder.or_(builder.zext(first, I32), builder.shl(builder.zext(second, I32), I32(16)))


# ---- moves -----------------------------------------------------------------------------------------------------------


def _copy_emitter(element: PanelElement, tile: RegisterTile, count: int) -> Emit:
    """One word of `count` contiguous rows."""

    def emit(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> None:
        dst, src, k_stride = arguments
        done = 0
        for lanes in widths(count, tile.lanes):
            source, place = offset(builder, src, done, element.bytes), offset(builder, dst, done, WORD_BYTES)
            parts = _load_words_along_rows(builder, element, source, k_stride, lanes)
            for number, part in enumerate(parts):
                store(builder, part, offset(builder, place, number, lanes * WORD_BYTES // len(parts)))
            done += lanes

    return emit


def _words_emitter(element: PanelElement) -> Emit:
    def emit(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> None:
        dst, pitch, src, stride, k_stride, count = arguments
        with cgutils.for_range(builder, count, intp=I64) as loop:
            value = _load_word(builder, element, builder.add(src, builder.mul(loop.index, stride)), k_stride)
            store(builder, value, builder.add(dst, builder.mul(loop.index, pitch)))

    return emit


def _transpose_emitter(element: PanelElement, tile: RegisterTile, rows: int, panel_rows: int) -> Emit:
    """A vector of words from each of `rows` rows, row_stride apart, to as many words of a micro-panel of panel_rows."""
    lanes = tile.lanes

    def emit(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> None:
        dst, src, row_stride = arguments
        origins = [builder.add(src, builder.mul(row_stride, I64(i))) for i in range(rows)]
        loaded = [_load_words_along_k(builder, element, origin, lanes) for origin in origins]
        padded = 1 << (rows - 1).bit_length()
        undefined = ir.Constant(vector(FLOAT, lanes), ir.Undefined)
        columns = _transposed(builder, loaded + [undefined] * (padded - rows))
        if padded == panel_rows:
            for index, column in enumerate(columns):
                store(builder, column, offset(builder, dst, index, lanes * WORD_BYTES))
            return
        for k in range(lanes):
            done = 0
            for width in widths(rows, min(padded, lanes)):
                index, lane = divmod(k * padded + done, lanes)
                part = shuffle(builder, columns[index], columns[index], range(lane, lane + width))
                store(builder, part, offset(builder, dst, k * panel_rows + done, WORD_BYTES))
                done += width

    return emit


def _transposed(builder: ir.IRBuilder, rows: list[ir.Value]) -> list[ir.Value]:
    """The elements of a power of two of vectors, column by column, cut into as many vectors.

    Each round interleaves the first half of the vectors with the second; after log2(rows) rounds a column is together.
    """
    half = len(rows) // 2
    for _ in range(half.bit_length()):
        pairs = [interleaved(builder, rows[i], rows[i + half]) for i in range(half)]
        rows = [vector for pair in pairs for vector in pair]
    return rows


# ---- moves of any type -----------------------------------------------------------------------------------------------


def _emit_fill_words(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> None:
    dst, pitch, count, bits = arguments
    value = builder.trunc(bits, I32)
    with cgutils.for_range(builder, count, intp=I64) as loop:
        store(builder, value, builder.add(dst, builder.mul(loop.index, pitch)))


def _emit_zero_bytes(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> None:
    dst, count = arguments
    clear = builder.module.declare_intrinsic("llvm.memset", [POINTER, I64])
    builder.call(clear, [builder.inttoptr(dst, POINTER), ir.IntType(8)(0), count, ir.IntType(1)(0)])


@intrinsic
def fill_words(typing_context, dst, pitch, count, bits):  # type: ignore[no-untyped-def]
    """The low 32 bits of `bits` to `count` words at dst, dst + pitch, ..."""
    return addresses(4), outlined("loom_mxu_fill_words", _emit_fill_words, "noimplicitfloat")


@intrinsic
def zero_bytes(typing_context, dst, count):  # type: ignore[no-untyped-def]
    """Zero to `count` bytes at dst; the count is not negative."""
    return addresses(2), inline(_emit_zero_bytes)


@intrinsic
def prefetch(typing_context, address):  # type: ignore[no-untyped-def]
    """Fetch the cache line at `address`, mapped or not."""
    return addresses(1), inline(lambda builder, arguments: emit_prefetch(builder, *arguments))
