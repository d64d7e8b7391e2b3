"""The DMA engine's indexed commands: gather, scatter, scatter-reduce, compare-and-swap.

Every element has an address of its own, from the index tile; it is checked where it is used, with the index that was
read for it, so that no write of the command itself (the tiles may lie anywhere) can slip in between. Tiles are checked
as a whole before.

Behind the command's box (`boxes`) the state holds what all rows need to know of the memory that they meet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from loom_sim import memory
from loom_sim.bits import select
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
    reach,
    read_box,
    row_indices,
)
from loom_sim.jit import subroutine
from loom_sim.memory import (
    PRODUCT_LIMIT,
    bounded_product,
    call_element,
    larger,
    load8,
    load32,
    load64,
    load_word,
    move_bytes,
    store_word,
    try_lock,
    unlock,
    unsigned_at_most,
    wrapping_add,
    wrapping_multiply,
    wrapping_subtract,
)
from loom_sim.spaces import check_elements, check_space, out_of_bounds
from loom_sim.state import ATOMIC_LOCK, COMBINES, DMA_BOXES, OK, SPACE_WORDS, SPACES, SRAM

_SIZE, _MEMORY, _TILE, _INDEX, _MASK, _OLD, _EXPECTED = range(7)  # words of a dimension
_ONE, _SPARE, _LOWEST, _SPAN, _BASE, _SCALE, _REACH, _SPACE = range(AFTER_BOX, AFTER_BOX + 8)

_WIDE_INDEX: Final = 1 << 5
_MASKED: Final = 1 << 6
_SKIP: Final = 1 << 7  # of gather
_RETURNS: Final = 1 << 7  # of the others
_ROW_SIGNATURE: Final = f"int64({', '.join(['int64'] * 8)})"


@dataclass(frozen=True)
class _Operands:
    """Where a command's operands stand; -1 where it has none. Those of the dimensions come after them."""

    space: int
    offset: int
    tile: int
    scale: int
    first_dim: int
    arrays: int  # of a dimension: memory, tile, index, mask, then old, then expected
    index: int = 3
    mask: int = 4
    old: int = -1
    expected: int = -1


_GATHER: Final = _Operands(space=0, offset=1, tile=2, scale=5, first_dim=7, arrays=4)
_FILL: Final = 6
_SCATTER: Final = _Operands(space=1, offset=2, tile=0, scale=5, first_dim=6, arrays=4)
_REDUCE: Final = _Operands(space=1, offset=2, tile=0, scale=6, first_dim=8, arrays=5, old=5)
_COMBINE: Final = 7
_SWAP: Final = _Operands(space=1, offset=2, tile=0, scale=6, first_dim=8, arrays=6, old=5, expected=7)


def build_gather(log2: int) -> Callable[[int, int], int]:
    """The GATHER engine for elements of 2^log2 bytes."""
    return _build(log2, _GATHER, False, _gather_row)


def build_scatter(log2: int) -> Callable[[int, int], int]:
    """The SCATTER engine for elements of 2^log2 bytes."""
    return _build(log2, _SCATTER, True, _scatter_row)


def build_scatter_reduce(log2: int) -> Callable[[int, int], int]:
    """The SCATTER_REDUCE engine for elements of 2^log2 bytes."""
    return _build(log2, _REDUCE, True, _reduce_row)


def build_compare_swap(log2: int) -> Callable[[int, int], int]:
    """The COMPARE_SWAP engine for elements of 2^log2 bytes."""
    return _build(log2, _SWAP, True, _swap_row)


def _build(log2: int, where: _Operands, writes: bool, make_row: Any) -> Callable[[int, int], int]:
    """`make_row(log2, index)` gives the function of a row: status of (state, operands, origin, tile, index, mask,
    old, expected): the offset in memory of its first element, but for the index, and addresses.
    """
    size = 1 << log2
    narrow_row, wide_row = (subroutine(_ROW_SIGNATURE)(make_row(log2, _index_elements(wide))) for wide in (False, True))
    # Compiled code takes plain integers.
    space_at, offset_at, tile_at, scale_at = where.space, where.offset, where.tile, where.scale
    index_at, mask_at, old_at, expected_at = where.index, where.mask, where.old, where.expected
    first_dim, arrays = where.first_dim, where.arrays

    @subroutine("int64(int64, int64, int64)")
    def check_tiles(operands, state, flags):  # type: ignore[no-untyped-def]
        box = state + DMA_BOXES * 8
        status = check_tile(state, box, _TILE, load_word(operands, tile_at), size)
        if status == OK:
            index_size = 8 if flags & _WIDE_INDEX else 4
            status = check_tile(state, box, _INDEX, load_word(operands, index_at), index_size)
        if status == OK and flags & _MASKED:
            status = check_tile(state, box, _MASK, load_word(operands, mask_at), 1)
        if old_at >= 0 and status == OK and flags & _RETURNS:
            status = check_tile(state, box, _OLD, load_word(operands, old_at), size)
        if expected_at >= 0 and status == OK:
            status = check_tile(state, box, _EXPECTED, load_word(operands, expected_at), size)
        return status

    @subroutine("int64(int64, int64, int64)")
    def run_rows(operands, state, flags):  # type: ignore[no-untyped-def]
        box, sram = state + DMA_BOXES * 8, load_word(state, SRAM)
        tile0, index0 = sram + load_word(operands, tile_at), sram + load_word(operands, index_at)
        mask0 = sram + load_word(operands, mask_at) if flags & _MASKED else state + _ONE * 8
        old0 = sram + load_word(operands, old_at) if old_at >= 0 and flags & _RETURNS else state + _SPARE * 8
        expected0 = sram + load_word(operands, expected_at) if expected_at >= 0 else 0
        offset = load_word(operands, offset_at)
        for row in range(count_rows(box)):
            i, j, k = row_indices(box, row)
            origin, tile = offset + place(box, _MEMORY, i, j, k), tile0 + place(box, _TILE, i, j, k)
            index, mask = index0 + place(box, _INDEX, i, j, k), mask0 + place(box, _MASK, i, j, k)
            old = old0 + place(box, _OLD, i, j, k) if old_at >= 0 else 0
            expected = expected0 + place(box, _EXPECTED, i, j, k) if expected_at >= 0 else 0
            if flags & _WIDE_INDEX:
                status = wide_row(state, operands, origin, tile, index, mask, old, expected)
            else:
                status = narrow_row(state, operands, origin, tile, index, mask, old, expected)
            if status != OK:
                return status
        return OK

    def engine(operands, state):  # type: ignore[no-untyped-def]
        flags = load_word(operands, -2) >> 24
        if not read_box(state, operands, flags & 7, first_dim, arrays):
            return OK
        box = state + DMA_BOXES * 8
        if flags & _MASKED == 0:
            forget(box, _MASK)
        if old_at >= 0 and flags & _RETURNS == 0:
            forget(box, _OLD)
        status = check_elements(state, count_elements(box))
        if status == OK:
            status = check_tiles(operands, state, flags)
        if status == OK:
            status = check_space(state, load_word(operands, space_at), writes)
        if status == OK:
            space, offset, scale = (
                load_word(operands, space_at),
                load_word(operands, offset_at),
                load_word(operands, scale_at),
            )
            status = prepare_memory(state, space, offset, scale, size)
        if status != OK:
            return status
        collapse(box, arrays)
        lock = load_word(state, ATOMIC_LOCK) if old_at >= 0 else 0
        if lock != 0:
            while try_lock(lock) == 0:
                pass
        status = run_rows(operands, state, flags)
        if lock != 0:
            unlock(lock)
        return status

    return engine


# ---- addresses -------------------------------------------------------------------------------------------------------


@subroutine("int64(int64, int64, int64, int64, int64)")
def prepare_memory(state, space, offset, scale, size):  # type: ignore[no-untyped-def]
    """Note what rows need to check and to reach the elements of a space that exists."""
    low, high = reach(state + DMA_BOXES * 8, _MEMORY)
    if low < -PRODUCT_LIMIT or high > PRODUCT_LIMIT or offset < -PRODUCT_LIMIT or offset > PRODUCT_LIMIT:
        return out_of_bounds(state, space, offset, low, high)
    entry = SPACES + space * SPACE_WORDS
    lowest, end = load_word(state, entry + 1), load_word(state, entry + 2)
    magnitude = larger(larger(scale, wrapping_subtract(0, scale)), 1)
    store_word(state, _LOWEST, lowest)
    store_word(state, _SPAN, end - lowest - size)  # the last legal offset, counted from the lowest
    store_word(state, _BASE, load_word(state, entry))
    store_word(state, _SCALE, scale)
    # Indices beyond this are out of bounds whatever the rest: their product with the scale might wrap.
    store_word(state, _REACH, 0 if scale == -(1 << 63) else PRODUCT_LIMIT // magnitude)
    store_word(state, _SPACE, space)
    store_word(state, _ONE, 1)
    return OK


@subroutine("boolean(int64, int64, int64, int64, int64)", inline=True)
def is_legal(position, reach, offset, lowest, span):  # type: ignore[no-untyped-def]
    """Whether the element at a byte offset, to which index `position` led, is inside the space."""
    near = (position <= reach) & (position >= -reach) & (span >= 0)
    return near & unsigned_at_most(wrapping_subtract(offset, lowest), span)


@subroutine("int64(int64, int64, int64, int64)")
def index_fault(state, origin, position, size):  # type: ignore[no-untyped-def]
    """The fault of the element that index `position` leads to from byte `origin`."""
    distance = bounded_product(position, load_word(state, _SCALE))
    return out_of_bounds(state, load_word(state, _SPACE), origin, distance, distance + size)


@subroutine("UniTuple(int64, 2)(int64, int64, int64, int64)")
def legal_indices(origin, scale, lowest, span):  # type: ignore[no-untyped-def]
    """(first, count - 1): the indices with which origin + scale * index is a legal offset; scale > 0, span >= 0."""
    first = -((origin - lowest) // scale)
    return first, (lowest + span - origin) // scale - first


@dataclass(frozen=True)
class _Index:
    """Elements of an index tile: their bytes, and the subroutine that loads one from an address, sign extended."""

    size: int
    load: Any


def _index_elements(wide: bool) -> _Index:
    @subroutine("int64(int64)", inline=True)
    def load_index(address):  # type: ignore[no-untyped-def]
        return load64(address) if wide else (load32(address) ^ 0x80000000) - 0x80000000

    return _Index(8 if wide else 4, load_index)


# ---- rows ------------------------------------------------------------------------------------------------------------


def _element(log2: int) -> tuple[Any, Any]:
    """Load and store of an element of 2^log2 bytes at an address."""
    loads = (memory.load8, memory.load16, memory.load32, memory.load64)
    stores = (memory.store8, memory.store16, memory.store32, memory.store64)
    return loads[log2], stores[log2]


def _plain_row(log2: int, indices: _Index, gathers: bool) -> Any:
    """The most frequent row: no mask, contiguous tiles, addresses by the indices alone."""
    size, index_size, load_index = 1 << log2, indices.size, indices.load
    load, store = _element(log2)

    @subroutine("int64(int64, int64, int64, int64, int64)")
    def plain_row(state, origin, tile, index, count):  # type: ignore[no-untyped-def]
        scale = load_word(state, _SCALE)
        first, width = legal_indices(origin, scale, load_word(state, _LOWEST), load_word(state, _SPAN))
        start = wrapping_add(load_word(state, _BASE), origin)
        for i in range(count):
            position = load_index(index + i * index_size)
            if width < 0 or not unsigned_at_most(wrapping_subtract(position, first), width):
                return index_fault(state, origin, position, size)
            place = start + position * scale
            if gathers:
                store(tile + i * size, load(place))
            else:
                store(place, load(tile + i * size))
        return OK

    return plain_row


def _gather_row(log2: int, indices: _Index) -> Any:
    size, load_index = 1 << log2, indices.load
    load, store = _element(log2)
    index_size, plain_row = indices.size, _plain_row(log2, indices, gathers=True)

    def row(state, operands, origin, tile, index, mask, old, expected):  # type: ignore[no-untyped-def]
        inner = state + (DMA_BOXES + INNER * BOX_WORDS) * 8
        count, step, tile_step = load_word(inner, _SIZE), load_word(inner, _MEMORY), load_word(inner, _TILE)
        index_step, mask_step = load_word(inner, _INDEX), load_word(inner, _MASK)
        lowest, span, base = load_word(state, _LOWEST), load_word(state, _SPAN), load_word(state, _BASE)
        scale, reach, fill = load_word(state, _SCALE), load_word(state, _REACH), operands + _FILL * 8
        flags = load_word(operands, -2) >> 24
        skip = flags & _SKIP != 0
        plain = flags & _MASKED == 0 and step == 0 and tile_step == size and index_step == index_size
        if plain and scale > 0 and span >= 0:
            return plain_row(state, origin, tile, index, count)
        if index_step == 0 and mask_step == 0 and step == size and tile_step == size and load8(mask) != 0:
            position = load_index(index)
            offset = wrapping_add(origin, wrapping_multiply(position, scale))
            if is_legal(position, reach, offset, lowest, span - (count - 1) * size):
                move_bytes(tile, base + offset, count * size)
                return OK
        for _ in range(count):
            position, live = load_index(index), load8(mask) != 0
            offset = wrapping_add(origin, wrapping_multiply(position, scale))
            if live and not is_legal(position, reach, offset, lowest, span):
                return index_fault(state, origin, position, size)
            store(tile, load(select(live, wrapping_add(base, offset), select(skip, tile, fill))))
            origin += step
            tile += tile_step
            index += index_step
            mask += mask_step
        return OK

    return row


def _scatter_row(log2: int, indices: _Index) -> Any:
    size, load_index = 1 << log2, indices.load
    load, store = _element(log2)
    index_size, plain_row = indices.size, _plain_row(log2, indices, gathers=False)

    def row(state, operands, origin, tile, index, mask, old, expected):  # type: ignore[no-untyped-def]
        inner = state + (DMA_BOXES + INNER * BOX_WORDS) * 8
        count, step, tile_step = load_word(inner, _SIZE), load_word(inner, _MEMORY), load_word(inner, _TILE)
        index_step, mask_step = load_word(inner, _INDEX), load_word(inner, _MASK)
        lowest, span, base = load_word(state, _LOWEST), load_word(state, _SPAN), load_word(state, _BASE)
        scale, reach, spare = load_word(state, _SCALE), load_word(state, _REACH), state + _SPARE * 8
        plain = load_word(operands, -2) >> 24 & _MASKED == 0 and step == 0
        if plain and tile_step == size and index_step == index_size and scale > 0 and span >= 0:
            return plain_row(state, origin, tile, index, count)
        for _ in range(count):
            position, live = load_index(index), load8(mask) != 0
            offset = wrapping_add(origin, wrapping_multiply(position, scale))
            if live and not is_legal(position, reach, offset, lowest, span):
                return index_fault(state, origin, position, size)
            store(select(live, wrapping_add(base, offset), spare), load(tile))
            origin += step
            tile += tile_step
            index += index_step
            mask += mask_step
        return OK

    return row


def _reduce_row(log2: int, indices: _Index) -> Any:
    size, load_index = 1 << log2, indices.load
    load, store = _element(log2)

    def row(state, operands, origin, tile, index, mask, old, expected):  # type: ignore[no-untyped-def]
        inner = state + (DMA_BOXES + INNER * BOX_WORDS) * 8
        lowest, span, base = load_word(state, _LOWEST), load_word(state, _SPAN), load_word(state, _BASE)
        scale, reach, opcode = load_word(state, _SCALE), load_word(state, _REACH), load_word(operands, _COMBINE)
        combine = load_word(load_word(state, COMBINES), opcode) if opcode != 0 else 0
        for _ in range(load_word(inner, _SIZE)):
            before = 0
            if load8(mask) != 0:
                position = load_index(index)
                offset = wrapping_add(origin, wrapping_multiply(position, scale))
                if not is_legal(position, reach, offset, lowest, span):
                    return index_fault(state, origin, position, size)
                target = base + offset
                before = load(target)
                if combine == 0:
                    store(target, load(tile))
                else:
                    call_element(combine, target, target, tile, 0, 1)
            store(old, before)
            origin += load_word(inner, _MEMORY)
            tile += load_word(inner, _TILE)
            index += load_word(inner, _INDEX)
            mask += load_word(inner, _MASK)
            old += load_word(inner, _OLD)
        return OK

    return row


def _swap_row(log2: int, indices: _Index) -> Any:
    size, load_index = 1 << log2, indices.load
    load, store = _element(log2)

    def row(state, operands, origin, tile, index, mask, old, expected):  # type: ignore[no-untyped-def]
        inner = state + (DMA_BOXES + INNER * BOX_WORDS) * 8
        lowest, span, base = load_word(state, _LOWEST), load_word(state, _SPAN), load_word(state, _BASE)
        scale, reach = load_word(state, _SCALE), load_word(state, _REACH)
        for _ in range(load_word(inner, _SIZE)):
            before = 0
            if load8(mask) != 0:
                position = load_index(index)
                offset = wrapping_add(origin, wrapping_multiply(position, scale))
                if not is_legal(position, reach, offset, lowest, span):
                    return index_fault(state, origin, position, size)
                before = load(base + offset)
                if before == load(expected):
                    store(base + offset, load(tile))
            store(old, before)
            origin += load_word(inner, _MEMORY)
            tile += load_word(inner, _TILE)
            index += load_word(inner, _INDEX)
            mask += load_word(inner, _MASK)
            old += load_word(inner, _OLD)
            expected += load_word(inner, _EXPECTED)
        return OK

    return row
