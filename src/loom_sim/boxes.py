"""Boxes of up to four dimensions over several strided arrays: what indexed DMA commands, sort and histogram share.

A command's box lives in the state: BOX_WORDS for each dimension, outermost first, padded with outer dimensions of size
1: the size, then the strides of the arrays in the order of a dimension's operands. A row is a run of the innermost
dimension.
"""

from __future__ import annotations

from typing import Final

from loom_sim.jit import subroutine
from loom_sim.memory import (
    PRODUCT_LIMIT,
    bounded_product,
    larger,
    load_word,
    smaller,
    store_word,
    wrapping_multiply,
)
from loom_sim.spaces import check_range, is_wild
from loom_sim.state import DMA_BOXES

RANK: Final = 4
INNER: Final = RANK - 1
BOX_WORDS: Final = 8
AFTER_BOX: Final = DMA_BOXES + RANK * BOX_WORDS  # first word of the state behind a box


@subroutine("boolean(int64, int64, int64, int64, int64)")
def read_box(state, operands, ndim, first, arrays):  # type: ignore[no-untyped-def]
    """Copy sizes and strides to the box; False if there is no element."""
    box = state + DMA_BOXES * 8
    for dim in range(RANK - ndim):
        store_word(box, dim * BOX_WORDS, 1)
        for word in range(1, 1 + arrays):
            store_word(box, dim * BOX_WORDS + word, 0)
    for dim in range(ndim):
        given, kept = first + dim * (1 + arrays), (RANK - ndim + dim) * BOX_WORDS
        if load_word(operands, given) <= 0:
            return False
        for word in range(1 + arrays):
            store_word(box, kept + word, load_word(operands, given + word))
    return True


@subroutine("void(int64, int64)")
def forget(box, array):  # type: ignore[no-untyped-def]
    """Strides of 0 for an array that a command does not use."""
    for dim in range(RANK):
        store_word(box, dim * BOX_WORDS + array, 0)


@subroutine("int64(int64)")
def count_elements(box):  # type: ignore[no-untyped-def]
    total = 1
    for dim in range(RANK):
        total = bounded_product(total, load_word(box, dim * BOX_WORDS))
    return total


@subroutine("UniTuple(int64, 2)(int64, int64)")
def reach(box, array):  # type: ignore[no-untyped-def]
    """(low, high): the least and largest sum of an array's strides; beyond PRODUCT_LIMIT where one is no distance."""
    low, high = 0, 0
    for dim in range(RANK):
        at = dim * BOX_WORDS
        span = bounded_product(load_word(box, at) - 1, load_word(box, at + array))
        if is_wild(span):
            return -2 * PRODUCT_LIMIT, 2 * PRODUCT_LIMIT
        low += smaller(span, 0)
        high += larger(span, 0)
    return low, high


@subroutine("int64(int64, int64, int64, int64, int64)")
def check_tile(state, box, array, offset, size):  # type: ignore[no-untyped-def]
    """OK if all elements of a tile in SRAM exist."""
    low, high = reach(box, array)
    return check_range(state, 0, offset, low, high + size)


@subroutine("void(int64, int64)")
def collapse(box, arrays):  # type: ignore[no-untyped-def]
    """Merge dimensions that follow each other in every array, and move those of size 1 outermost."""
    inner = INNER
    for dim in range(INNER - 1, -1, -1):
        at, to = dim * BOX_WORDS, inner * BOX_WORDS
        size, below = load_word(box, at), load_word(box, to)
        if size == 1:
            continue
        follows = below != 1
        for word in range(1, 1 + arrays):
            follows &= load_word(box, at + word) == wrapping_multiply(load_word(box, to + word), below)
        if follows:
            store_word(box, to, below * size)
            continue
        if below != 1:
            inner -= 1
        for word in range(1 + arrays):
            store_word(box, inner * BOX_WORDS + word, load_word(box, at + word))
    for dim in range(inner):
        store_word(box, dim * BOX_WORDS, 1)


@subroutine("int64(int64, int64, int64, int64, int64)", inline=True)
def place(box, array, i, j, k):  # type: ignore[no-untyped-def]
    """Distance of a row from the first one."""
    outer = i * load_word(box, array) + j * load_word(box, BOX_WORDS + array)
    return outer + k * load_word(box, 2 * BOX_WORDS + array)


@subroutine("int64(int64)", inline=True)
def count_rows(box):  # type: ignore[no-untyped-def]
    return load_word(box, 0) * load_word(box, BOX_WORDS) * load_word(box, 2 * BOX_WORDS)


@subroutine("UniTuple(int64, 3)(int64, int64)", inline=True)
def row_indices(box, row):  # type: ignore[no-untyped-def]
    """Indices of the outer dimensions of row number `row`."""
    middle, inner = load_word(box, BOX_WORDS), load_word(box, 2 * BOX_WORDS)
    rest = row // inner
    return rest // middle, rest % middle, row % inner
