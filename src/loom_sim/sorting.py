"""The stream engine's SORT: each row of a tile, stable, by value.

An element becomes an unsigned key that orders as the command asks, and carries the index that it had: keys of up to 32
bits in one word with it, wider ones in a word of their own. Rows are sorted by these, digit of 8 bits by digit from the
lowest up, short ones by insertion; indices ascend at the start and every step is stable. Values are then taken from a
copy of the row, so that a row may be sorted in place.

Scratch memory: two arrays of keys, the copy of the row, and the counts of every digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from loom_core.base.dtype import by_name
from loom_core.isa.sce import DTYPE_CODES, DTYPE_LOG2_BYTES
from loom_sim import memory
from loom_sim.bits import select
from loom_sim.boxes import (
    BOX_WORDS,
    INNER,
    check_tile,
    count_elements,
    count_rows,
    place,
    read_box,
    row_indices,
)
from loom_sim.jit import subroutine
from loom_sim.memory import larger, load_word, smaller, store32, store_word, unsigned_at_most
from loom_sim.order import canonical_nan, largest_magnitude
from loom_sim.spaces import check_elements, oversized
from loom_sim.state import DMA_BOXES, OK, SCRATCH, SRAM, SRAM_BYTES

_SRC_OFF, _VALUES_OFF, _ORDER_OFF, _DTYPE, _KEPT, _SPECIALS, _FIRST_DIM = range(7)
_SRC, _VALUES, _ORDER = 1, 2, 3  # arrays of a dimension
_DESCENDING, _STORE_VALUES, _STORE_ORDER = 1 << 5, 1 << 6, 1 << 7
_NAN_FIRST, _SIGNED_ZEROS = 1, 2
_BUCKETS: Final = 256
_INSERTED: Final = 40  # longest row that is sorted by insertion

UNSIGNED, SIGNED, FLOAT, BOOL = range(4)


@dataclass(frozen=True)
class _Formats:
    """The element types of one size, a tuple a property: the code, what kind it is, its bits, and of a float the
    largest magnitude that is no NaN and the canonical NaN."""

    codes: tuple[int, ...]
    kinds: tuple[int, ...]
    bits: tuple[int, ...]
    largest: tuple[int, ...]
    nans: tuple[int, ...]


def _formats(log2: int) -> _Formats:
    dtypes = [by_name(name) for name in DTYPE_CODES if DTYPE_LOG2_BYTES[name] == log2]
    kinds = {"uint": UNSIGNED, "int": SIGNED, "float": FLOAT, "bool": BOOL}
    return _Formats(
        tuple(DTYPE_CODES[dtype.name] for dtype in dtypes),
        tuple(kinds[dtype.kind] for dtype in dtypes),
        tuple(dtype.bits for dtype in dtypes),
        tuple(largest_magnitude(dtype) if dtype.is_float else 0 for dtype in dtypes),
        tuple(canonical_nan(dtype) if dtype.is_float else 0 for dtype in dtypes),
    )


def build_sort(log2: int) -> Callable[[int, int], int]:
    """The SORT engine for elements of 2^log2 bytes."""
    size, wide = 1 << log2, log2 == 3
    load = (memory.load8, memory.load16, memory.load32, memory.load64)[log2]
    store = (memory.store8, memory.store16, memory.store32, memory.store64)[log2]
    formats = _formats(log2)
    codes, kinds, bit_counts, largests, nans = (
        formats.codes, formats.kinds, formats.bits, formats.largest, formats.nans,
    )  # fmt: skip
    width, digits = 8 * size, size
    sign = -(1 << 63) if wide else 1 << (width - 1)
    mask = -1 if wide else (1 << width) - 1
    read_keys = _key_reader(load, store, size, wide, sign, mask)
    sort_keys = _wide_sort if wide else _packed_sort

    @subroutine("void(int64, int64, int64, int64, int64)")
    def sort_row(state, operands, flags, row, format_number):  # type: ignore[no-untyped-def]
        box, sram = state + DMA_BOXES * 8, load_word(state, SRAM)
        inner = box + INNER * BOX_WORDS * 8
        i, j, k = row_indices(box, row)
        count = load_word(inner, 0)
        keys = load_word(state, SCRATCH)
        area = count * (16 if wide else 8)
        copy, counts = keys + 2 * area, keys + 2 * area + (count * size + 63 & -64)
        src = sram + load_word(operands, _SRC_OFF) + place(box, _SRC, i, j, k)
        read_keys(
            src, load_word(inner, _SRC), count, keys, copy, kinds[format_number], bit_counts[format_number],
            largests[format_number], nans[format_number], flags, load_word(operands, _SPECIALS),
        )  # fmt: skip
        found = sort_keys(keys, keys + area, counts, count, digits)
        kept = smaller(larger(load_word(operands, _KEPT), 0), count)
        if flags & _STORE_VALUES:
            values = sram + load_word(operands, _VALUES_OFF) + place(box, _VALUES, i, j, k)
            step = load_word(inner, _VALUES)
            for n in range(kept):
                index = load_word(found, 2 * n + 1) if wide else load_word(found, n) & 0xFFFFFFFF
                store(values + n * step, load(copy + index * size))
        if flags & _STORE_ORDER:
            order = sram + load_word(operands, _ORDER_OFF) + place(box, _ORDER, i, j, k)
            step = load_word(inner, _ORDER)
            for n in range(kept):
                store32(order + n * step, load_word(found, 2 * n + 1) if wide else load_word(found, n))

    @subroutine("int64(int64, int64, int64)")
    def check(operands, state, flags):  # type: ignore[no-untyped-def]
        """Bounds of the tiles; the results have `kept` elements a row."""
        box, inner = state + DMA_BOXES * 8, state + (DMA_BOXES + INNER * BOX_WORDS) * 8
        count, kept = load_word(inner, 0), load_word(operands, _KEPT)
        status = check_elements(state, count_elements(box))
        if status != OK:
            return status
        if count > load_word(state, SRAM_BYTES) // larger(size, 4):
            return oversized(state, count, load_word(state, SRAM_BYTES) // larger(size, 4))
        status = check_tile(state, box, _SRC, load_word(operands, _SRC_OFF), size)
        if status != OK or kept <= 0:
            return status
        store_word(inner, 0, smaller(kept, count))
        if flags & _STORE_VALUES:
            status = check_tile(state, box, _VALUES, load_word(operands, _VALUES_OFF), size)
        if status == OK and flags & _STORE_ORDER:
            status = check_tile(state, box, _ORDER, load_word(operands, _ORDER_OFF), 4)
        store_word(inner, 0, count)
        return status

    def sort_engine(operands, state):  # type: ignore[no-untyped-def]
        flags = load_word(operands, -2) >> 24
        if not read_box(state, operands, flags & 7, _FIRST_DIM, 3):
            return OK
        status = check(operands, state, flags)
        if status != OK:
            return status
        format_number = 0
        for number in range(len(codes)):
            if codes[number] == load_word(operands, _DTYPE):
                format_number = number
        for row in range(count_rows(state + DMA_BOXES * 8)):
            sort_row(state, operands, flags, row, format_number)
        return OK

    return sort_engine


# ---- keys ------------------------------------------------------------------------------------------------------------


def _key_reader(load: Any, store: Any, size: int, wide: bool, sign: int, mask: int) -> Any:
    magnitude_mask = mask ^ sign if not wide else (1 << 63) - 1
    least, most = (-(1 << 63), (1 << 63) - 1) if wide else (-sign, sign - 1)

    @subroutine(f"void({', '.join(['int64'] * 11)})")
    def read_keys(src, step, count, keys, copy, kind, bits, largest, nan, flags, specials):  # type: ignore[no-untyped-def]
        """Copy a row, contiguous and canonical, and make the keys of its elements."""
        descending, signed_zeros = flags & _DESCENDING != 0, specials & _SIGNED_ZEROS != 0
        nan_rank = least if specials & _NAN_FIRST else most
        for i in range(count):
            pattern = load(src + i * step)
            if bits == 4:
                pattern &= 15
            elif kind == BOOL:
                pattern = select(pattern != 0, 1, 0)
            if kind == FLOAT:
                magnitude = pattern & magnitude_mask
                is_low = pattern & sign != 0
                rank = select(is_low, select(signed_zeros, ~magnitude, -magnitude), magnitude)
                rank = select(descending, ~rank, rank)
                is_nan = magnitude > largest
                pattern = select(is_nan, nan, pattern)
                rank = select(is_nan, nan_rank, rank)
            else:
                rank = pattern - sign
                if kind == SIGNED:
                    rank = (pattern ^ (sign if bits != 4 else 8)) - (sign if bits != 4 else 8)
                rank = select(descending, ~rank, rank)
            store(copy + i * size, pattern)
            if wide:
                store_word(keys, 2 * i, rank ^ sign)
                store_word(keys, 2 * i + 1, i)
            else:
                store_word(keys, i, ((rank ^ sign) & mask) << 32 | i)

    return read_keys


# ---- sorting ---------------------------------------------------------------------------------------------------------


@subroutine("void(int64, int64)")
def sums(counts, digit):  # type: ignore[no-untyped-def]
    """Where each bucket of a digit begins, in place of how many elements it has."""
    at = 0
    for bucket in range(digit * _BUCKETS, (digit + 1) * _BUCKETS):
        count = load_word(counts, bucket)
        store_word(counts, bucket, at)
        at += count


@subroutine("void(int64, int64)")
def clear(counts, digits):  # type: ignore[no-untyped-def]
    for i in range(digits * _BUCKETS):
        store_word(counts, i, 0)


@subroutine("int64(int64, int64, int64)", inline=True)
def take_place(counts, bucket, by):  # type: ignore[no-untyped-def]
    """A bucket's number, which grows by `by`."""
    at = load_word(counts, bucket)
    store_word(counts, bucket, at + by)
    return at


@subroutine("int64(int64, int64, int64, int64, int64)")
def _packed_sort(keys, other, counts, count, digits):  # type: ignore[no-untyped-def]
    """Sort words by their upper halves; the address of the sorted array, one of the two given."""
    if count <= _INSERTED:
        for i in range(1, count):
            word, at = load_word(keys, i), i
            while at > 0 and unsigned_at_most(word, load_word(keys, at - 1)):
                store_word(keys, at, load_word(keys, at - 1))
                at -= 1
            store_word(keys, at, word)
        return keys
    clear(counts, digits)
    for i in range(count):
        word = load_word(keys, i)
        for digit in range(digits):
            take_place(counts, digit * _BUCKETS + (word >> (32 + 8 * digit) & 255), 1)
    for digit in range(digits):
        shift, first = 32 + 8 * digit, digit * _BUCKETS
        if load_word(counts, first + (load_word(keys, 0) >> shift & 255)) == count:
            continue
        sums(counts, digit)
        for i in range(count):
            word = load_word(keys, i)
            store_word(other, take_place(counts, first + (word >> shift & 255), 1), word)
        keys, other = other, keys
    return keys


@subroutine("int64(int64, int64, int64, int64, int64)")
def _wide_sort(keys, other, counts, count, digits):  # type: ignore[no-untyped-def]
    """Sort pairs of words by the first; the address of the sorted array, one of the two given."""
    if count <= _INSERTED:
        for i in range(1, count):
            word, index, at = load_word(keys, 2 * i), load_word(keys, 2 * i + 1), i
            while at > 0 and not unsigned_at_most(load_word(keys, 2 * at - 2), word):
                store_word(keys, 2 * at, load_word(keys, 2 * at - 2))
                store_word(keys, 2 * at + 1, load_word(keys, 2 * at - 1))
                at -= 1
            store_word(keys, 2 * at, word)
            store_word(keys, 2 * at + 1, index)
        return keys
    clear(counts, digits)
    for i in range(count):
        word = load_word(keys, 2 * i)
        for digit in range(digits):
            take_place(counts, digit * _BUCKETS + (word >> (8 * digit) & 255), 1)
    for digit in range(digits):
        shift, first = 8 * digit, digit * _BUCKETS
        if load_word(counts, first + (load_word(keys, 0) >> shift & 255)) == count:
            continue
        sums(counts, digit)
        for i in range(count):
            word = load_word(keys, 2 * i)
            to = take_place(counts, first + (word >> shift & 255), 1)
            store_word(other, 2 * to, word)
            store_word(other, 2 * to + 1, load_word(keys, 2 * i + 1))
        keys, other = other, keys
    return keys
