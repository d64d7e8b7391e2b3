"""The memory that a command may touch: the space table, and bounds checks that arithmetic cannot fool.

A strided access touches bytes [offset + low, offset + high) of its space, where low and high are sums of products of
counts and strides. Products saturate at PRODUCT_LIMIT and offsets are compared with it, so that sums cannot wrap; and a
product that did saturate (`is_wild`) is a fault whatever the sum, because another term could bring the sum back into
the space.
"""

from __future__ import annotations

from typing import Final

from loom_sim.jit import subroutine
from loom_sim.memory import PRODUCT_LIMIT, larger, load_word, smaller, store_word
from loom_sim.state import (
    FAULT_HIGH,
    FAULT_LOW,
    FAULT_SPACE,
    FAULT_VALUE,
    OK,
    OUT_OF_BOUNDS,
    OVERSIZED,
    READ_ONLY,
    SPACE_COUNT,
    SPACE_WORDS,
    SPACES,
    SRAM_BYTES,
    UNKNOWN_SPACE,
)

ELEMENT_LIMIT: Final = 1 << 32
"""Elements that one DMA command may cover: some seconds of host time, since a command cannot be interrupted."""
ELEMENT_ALLOWANCE: Final = 1 << 24
"""Elements beyond as many as SRAM has bytes that a command may cover whose tiles lie in SRAM: strides may be 0."""


@subroutine("int64(int64, int64, int64, int64, int64)")
def out_of_bounds(state, space, offset, low, high):  # type: ignore[no-untyped-def]
    """The fault of an access to bytes [offset + low, offset + high) of a space, or of a space that does not exist."""
    if space < 0 or space >= load_word(state, SPACE_COUNT):
        store_word(state, FAULT_SPACE, space)
        return UNKNOWN_SPACE
    bounded = smaller(larger(offset, -PRODUCT_LIMIT), PRODUCT_LIMIT)
    store_word(state, FAULT_SPACE, space)
    store_word(state, FAULT_LOW, bounded + low)
    store_word(state, FAULT_HIGH, bounded + high)
    return OUT_OF_BOUNDS


@subroutine("int64(int64, int64, int64, int64, int64)", inline=True)
def check_range(state, space, offset, low, high):  # type: ignore[no-untyped-def]
    """OK if bytes [offset + low, offset + high) of a space exist; low <= high, each a sum of at most 16 bounded
    products.

    Otherwise a fault, with its fields set.
    """
    if space < 0 or space >= load_word(state, SPACE_COUNT):
        return out_of_bounds(state, space, offset, low, high)
    entry = SPACES + space * SPACE_WORDS
    if (
        offset < -PRODUCT_LIMIT
        or offset > PRODUCT_LIMIT
        or offset + low < load_word(state, entry + 1)
        or offset + high > load_word(state, entry + 2)
    ):
        return out_of_bounds(state, space, offset, low, high)
    return OK


@subroutine("int64(int64, int64, int64, int64, int64)", inline=True)
def check_write(state, space, offset, low, high):  # type: ignore[no-untyped-def]
    """`check_range` for an access that writes: the space must also be writable."""
    status = check_range(state, space, offset, low, high)
    if status == OK and load_word(state, SPACES + space * SPACE_WORDS + 3) == 0:
        store_word(state, FAULT_SPACE, space)
        return READ_ONLY
    return status


@subroutine("int64(int64, int64, boolean)", inline=True)
def check_space(state, space, writes):  # type: ignore[no-untyped-def]
    """OK if a space exists, and may be written where `writes`."""
    if space < 0 or space >= load_word(state, SPACE_COUNT):
        return out_of_bounds(state, space, 0, 0, 0)
    if writes and load_word(state, SPACES + space * SPACE_WORDS + 3) == 0:
        store_word(state, FAULT_SPACE, space)
        return READ_ONLY
    return OK


@subroutine("boolean(int64)", inline=True)
def is_wild(product):  # type: ignore[no-untyped-def]
    """Whether a bounded product saturated: no space is that large."""
    return product >= PRODUCT_LIMIT or product <= -PRODUCT_LIMIT


@subroutine("int64(int64, int64, int64)", inline=True)
def check_sram(state, offset, count):  # type: ignore[no-untyped-def]
    """OK if SRAM bytes [offset, offset + count) exist; count >= 0."""
    if offset < 0 or count > load_word(state, SRAM_BYTES) - offset:
        return out_of_bounds(state, 0, offset, 0, count)
    return OK


@subroutine("int64(int64, int64, int64)")
def oversized(state, elements, limit):  # type: ignore[no-untyped-def]
    """The fault of a command that covers too many elements."""
    store_word(state, FAULT_VALUE, elements)
    store_word(state, FAULT_HIGH, limit)
    return OVERSIZED


@subroutine("int64(int64, int64)")
def check_elements(state, total):  # type: ignore[no-untyped-def]
    """OK if a command whose tiles lie in SRAM may cover so many elements."""
    limit = ELEMENT_ALLOWANCE + load_word(state, SRAM_BYTES)
    return oversized(state, total, limit) if total > limit else OK


@subroutine("int64(int64, int64)", inline=True)
def space_base(state, space):  # type: ignore[no-untyped-def]
    """Host address of byte 0 of a space that `check_range` accepted."""
    return load_word(state, SPACES + space * SPACE_WORDS)
