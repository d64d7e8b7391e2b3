"""The stream engine's HISTOGRAM: how often each of the first integers occurs in a tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loom_sim import memory
from loom_sim.boxes import (
    AFTER_BOX,
    BOX_WORDS,
    INNER,
    check_tile,
    collapse,
    count_elements,
    count_rows,
    forget,
    place,
    read_box,
    row_indices,
)
from loom_sim.jit import subroutine
from loom_sim.memory import bounded_product, load8, load32, load_word, store32, store_word, unsigned_less
from loom_sim.spaces import check_elements, check_sram
from loom_sim.state import DMA_BOXES, OK, SRAM

_SRC_OFF, _MASK_OFF, _DST_OFF, _BINS, _FIRST_DIM = range(5)
_SRC, _MASK = 1, 2  # arrays of a dimension
_SIGNED, _MASKED, _ACCUMULATE = 1 << 5, 1 << 6, 1 << 7
_ONE: Final = AFTER_BOX  # a mask that is true


def build_histogram(log2: int) -> Callable[[int, int], int]:
    """The HISTOGRAM engine for elements of 2^log2 bytes."""
    size = 1 << log2
    load = (memory.load8, memory.load16, memory.load32, memory.load64)[log2]
    # Bit patterns from here on are negative numbers of a signed type: no bin is theirs, whatever the number of bins.
    negative = 1 << (8 * size - 1) if log2 < 3 else 0

    @subroutine("int64(int64, int64, int64)")
    def check(operands, state, flags):  # type: ignore[no-untyped-def]
        box = state + DMA_BOXES * 8
        status = check_elements(state, count_elements(box))
        if status == OK:
            status = check_tile(state, box, _SRC, load_word(operands, _SRC_OFF), size)
        if status == OK and flags & _MASKED:
            status = check_tile(state, box, _MASK, load_word(operands, _MASK_OFF), 1)
        return status

    @subroutine("void(int64, int64, int64, int64)")
    def count_row(operands, state, flags, row):  # type: ignore[no-untyped-def]
        box, sram = state + DMA_BOXES * 8, load_word(state, SRAM)
        inner = box + INNER * BOX_WORDS * 8
        i, j, k = row_indices(box, row)
        mask = sram + load_word(operands, _MASK_OFF) + place(box, _MASK, i, j, k)
        if flags & _MASKED == 0:
            mask = state + _ONE * 8
        src, counts = (
            sram + load_word(operands, _SRC_OFF) + place(box, _SRC, i, j, k),
            sram + load_word(operands, _DST_OFF),
        )
        bins, limit = load_word(operands, _BINS), negative if flags & _SIGNED and negative > 0 else (1 << 63) - 1
        for _ in range(load_word(inner, 0)):
            value = load(src)
            if load8(mask) != 0 and unsigned_less(value, bins) and value < limit:
                store32(counts + value * 4, load32(counts + value * 4) + 1)
            src += load_word(inner, _SRC)
            mask += load_word(inner, _MASK)

    def histogram_engine(operands, state):  # type: ignore[no-untyped-def]
        flags, bins = load_word(operands, -2) >> 24, load_word(operands, _BINS)
        if bins <= 0:
            return OK
        status = check_sram(state, load_word(operands, _DST_OFF), bounded_product(bins, 4))
        if status != OK:
            return status
        is_empty = not read_box(state, operands, flags & 7, _FIRST_DIM, 2)
        if not is_empty:
            if flags & _MASKED == 0:
                forget(state + DMA_BOXES * 8, _MASK)
            status = check(operands, state, flags)
            if status != OK:
                return status
        if flags & _ACCUMULATE == 0:
            counts = load_word(state, SRAM) + load_word(operands, _DST_OFF)
            for i in range(bins):
                store32(counts + i * 4, 0)
        if not is_empty:
            store_word(state, _ONE, 1)
            collapse(state + DMA_BOXES * 8, 2)
            for row in range(count_rows(state + DMA_BOXES * 8)):
                count_row(operands, state, flags, row)
        return OK

    return histogram_engine
