"""The DMA engine's COPY: strided boxes between spaces.

Elements outside the valid part of a box are either skipped, and then the valid part is simply a smaller box, or filled,
and then the rest of the destination is at most two boxes a dimension. So everything comes down to copying boxes and
filling boxes whose bounds were checked before.

Boxes live in the state, five dimensions each, outermost first, padded with outer dimensions of size 1. Order of writes,
for boxes that meet themselves: row major, except that a transposing copy goes tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from loom_sim import memory
from loom_sim.elision import ABSENT_IN, before_write, make_absent, make_present, meeting, overwrite, place_of
from loom_sim.jit import subroutine
from loom_sim.lines import move_run
from loom_sim.memory import bounded_product, larger, load_word, smaller, store_word
from loom_sim.spaces import ELEMENT_LIMIT, check_range, check_write, is_wild, out_of_bounds, oversized, space_base
from loom_sim.state import DMA_BOXES, ELIDED_FROM, OK

_DIMS: Final = 5
_SIZE: Final = 0
_SRC: Final = 1
_DST: Final = 2
_DIM_WORDS: Final = 3
_BOX_WORDS: Final = _DIMS * _DIM_WORDS
_COPY_BOX: Final = DMA_BOXES
_FILL_BOX: Final = DMA_BOXES + _BOX_WORDS

# Operands: src_space, src_off, dst_space, dst_off, fill, then a dimension: size, src_stride, dst_stride, lo, hi.
_FIRST_DIM: Final = 5
_DIM_OPERANDS: Final = 5
_TILE: Final = 16  # side of the square that a transposing copy finishes before the next
_TRANSPOSE_FROM: Final = 8  # smaller sides gain nothing


def build_copy(log2: int) -> Callable[[int, int], int]:
    """The COPY engine for elements of 2^log2 bytes."""
    element = 1 << log2
    copy_row, transpose = _element_moves(log2)

    @subroutine("void(int64, int64, int64)")
    def copy_box(box, dst, src):  # type: ignore[no-untyped-def]
        collapse(box)
        transposes = put_transposed_last(box, element)
        row, src_stride, dst_stride = (
            load_word(box, 12 + _SIZE),
            load_word(box, 12 + _SRC),
            load_word(box, 12 + _DST),
        )
        rows, src_rows, dst_rows = load_word(box, 9 + _SIZE), load_word(box, 9 + _SRC), load_word(box, 9 + _DST)
        for i0 in range(load_word(box, _SIZE)):
            src0, dst0 = src + i0 * load_word(box, _SRC), dst + i0 * load_word(box, _DST)
            for i1 in range(load_word(box, 3 + _SIZE)):
                src1, dst1 = src0 + i1 * load_word(box, 3 + _SRC), dst0 + i1 * load_word(box, 3 + _DST)
                for i2 in range(load_word(box, 6 + _SIZE)):
                    src2, dst2 = src1 + i2 * load_word(box, 6 + _SRC), dst1 + i2 * load_word(box, 6 + _DST)
                    if transposes:
                        transpose(dst2, src2, rows, row, dst_rows, src_stride)
                    elif src_stride == element and dst_stride == element:
                        for i3 in range(rows):
                            move_run(dst2 + i3 * dst_rows, src2 + i3 * src_rows, row * element)
                    else:
                        for i3 in range(rows):
                            copy_row(dst2 + i3 * dst_rows, src2 + i3 * src_rows, row, dst_stride, src_stride)

    @subroutine("void(int64, int64, int64, int64)")
    def fill_outside(state, operands, ndim, dst):  # type: ignore[no-untyped-def]
        """Fill what lies before and after the valid part in each dimension, within the valid part of outer ones."""
        box, bits = state + _FILL_BOX * 8, operands + 4 * 8
        for d in range(ndim):
            at = _FIRST_DIM + _DIM_OPERANDS * d
            size, stride = load_word(operands, at), load_word(operands, at + 2)
            lo, hi = clamp_valid(operands, at, size)
            if lo > 0:
                describe_slab(box, operands, ndim, d, lo)
                copy_box(box, dst, bits)
            if hi < size:
                describe_slab(box, operands, ndim, d, size - hi)
                copy_box(box, dst + hi * stride, bits)
            dst += lo * stride

    @subroutine("int64(int64, int64, int64, int64)")
    def copy_any(operands, state, ndim, skip):  # type: ignore[no-untyped-def]
        src_start, src_low, src_high = 0, 0, element
        dst_start, dst_low, dst_high = 0, 0, element
        box = state + _COPY_BOX * 8
        written = 1
        empty, whole, wild = False, True, False
        for d in range(ndim):
            at = _FIRST_DIM + _DIM_OPERANDS * d
            size = load_word(operands, at)
            if size <= 0:
                return OK
            lo, hi = clamp_valid(operands, at, size)
            valid = hi - lo
            covered = valid if skip else size
            empty |= valid == 0
            whole &= valid == size
            written = bounded_product(written, covered)
            src_stride, dst_stride = load_word(operands, at + 1), load_word(operands, at + 2)
            to_first, span = bounded_product(lo, src_stride), bounded_product(larger(valid - 1, 0), src_stride)
            wild |= is_wild(to_first) | is_wild(span)
            src_start += to_first
            src_low += smaller(span, 0)
            src_high += larger(span, 0)
            to_first, span = bounded_product(lo, dst_stride), bounded_product(larger(covered - 1, 0), dst_stride)
            wild |= is_wild(to_first) | is_wild(span)
            dst_start += to_first
            dst_low += smaller(span, 0)
            dst_high += larger(span, 0)
            store_dim(box, _DIMS - ndim + d, valid, src_stride, dst_stride)
        if empty and skip:
            return OK
        if written > ELEMENT_LIMIT:
            return oversized(state, written, ELEMENT_LIMIT)
        src_space, src_offset = load_word(operands, 0), load_word(operands, 1)
        dst_space, dst_offset = load_word(operands, 2), load_word(operands, 3)
        if wild:
            return out_of_bounds(state, dst_space, dst_offset, dst_start + dst_low, dst_start + dst_high)
        first = dst_start if skip else 0  # the first element that is written
        status = check_write(state, dst_space, dst_offset, first + dst_low, first + dst_high)
        if status != OK:
            return status
        if not empty:
            status = check_range(state, src_space, src_offset, src_start + src_low, src_start + src_high)
            if status != OK:
                return status
        if whole:
            pad_outer_dims(box, _DIMS - ndim)
            collapse(box)
            if is_run(box, element):
                count = load_word(box, 12 + _SIZE) * element
                move_between(state, src_space, src_offset, dst_space, dst_offset, count)
                return OK
        before_write(state, dst_space, dst_offset + first + dst_low, dst_offset + first + dst_high)
        if src_space == 0 and not empty:
            low, high = src_offset + src_start + src_low, src_offset + src_start + src_high
            make_present(state, meeting(state, ABSENT_IN, low, high))
        dst = space_base(state, dst_space) + dst_offset
        if not (skip or whole):
            fill_outside(state, operands, ndim, dst)
        if not empty:
            if not whole:
                pad_outer_dims(box, _DIMS - ndim)
            copy_box(box, dst + dst_start, space_base(state, src_space) + src_offset + src_start)
        return OK

    def copy_engine(operands, state):  # type: ignore[no-untyped-def]
        flags = load_word(operands, -2) >> 24
        size = load_word(operands, _FIRST_DIM)
        if (
            flags & 7 == 1
            and load_word(operands, _FIRST_DIM + 1) == element
            and load_word(operands, _FIRST_DIM + 2) == element
            and load_word(operands, _FIRST_DIM + 3) <= 0
            and load_word(operands, _FIRST_DIM + 4) >= size
            and size > 0
            and size <= ELEMENT_LIMIT
        ):
            return copy_run(operands, state, size * element)
        return copy_any(operands, state, flags & 7, flags >> 5 & 1)

    return copy_engine


@subroutine("int64(int64, int64, int64)", inline=True)
def copy_run(operands, state, count):  # type: ignore[no-untyped-def]
    """One contiguous run of `count` bytes: by far the most frequent COPY."""
    src_space, src_offset = load_word(operands, 0), load_word(operands, 1)
    dst_space, dst_offset = load_word(operands, 2), load_word(operands, 3)
    status = check_range(state, src_space, src_offset, 0, count)
    if status != OK:
        return status
    status = check_write(state, dst_space, dst_offset, 0, count)
    if status != OK:
        return status
    move_between(state, src_space, src_offset, dst_space, dst_offset, count)
    return OK


@subroutine("void(int64, int64, int64, int64, int64, int64)")
def move_between(state, src_space, src_offset, dst_space, dst_offset, count):  # type: ignore[no-untyped-def]
    """Move a run of `count` bytes, or note that it would have been moved."""
    src, dst = space_base(state, src_space) + src_offset, space_base(state, dst_space) + dst_offset
    if src_space == 0 or dst_space != 0:
        before_write(state, dst_space, dst_offset, dst_offset + count)
        if src_space == 0:
            absent = meeting(state, ABSENT_IN, src_offset, src_offset + count)
            src = place_of(state, absent, src_offset, src_offset + count)
    else:
        overwrite(state, dst_offset, dst_offset + count)
        shortest = load_word(state, ELIDED_FROM)
        if shortest != 0 and count >= shortest:
            make_absent(state, dst_offset, dst_offset + count, src)
            return
    move_run(dst, src, count)


# ---- boxes -----------------------------------------------------------------------------------------------------------


@subroutine("UniTuple(int64, 2)(int64, int64, int64)", inline=True)
def clamp_valid(operands, at, size):  # type: ignore[no-untyped-def]
    """(lo, hi) of the dimension whose operands begin at `at`, with 0 <= lo <= hi <= size."""
    lo = smaller(larger(load_word(operands, at + 3), 0), size)
    return lo, larger(smaller(load_word(operands, at + 4), size), lo)


@subroutine("void(int64, int64, int64, int64, int64)", inline=True)
def store_dim(box, dim, size, src_stride, dst_stride):  # type: ignore[no-untyped-def]
    store_word(box, dim * _DIM_WORDS + _SIZE, size)
    store_word(box, dim * _DIM_WORDS + _SRC, src_stride)
    store_word(box, dim * _DIM_WORDS + _DST, dst_stride)


@subroutine("void(int64, int64)")
def pad_outer_dims(box, count):  # type: ignore[no-untyped-def]
    for d in range(count):
        store_dim(box, d, 1, 0, 0)


@subroutine("void(int64, int64, int64, int64, int64)")
def describe_slab(box, operands, ndim, axis, count):  # type: ignore[no-untyped-def]
    """Box of `count` indices of dimension `axis`, the valid part of outer dimensions, and all of inner ones.

    Its source strides are 0: a fill is a copy of one element, the operand.
    """
    pad_outer_dims(box, _DIMS - ndim)
    for d in range(ndim):
        at = _FIRST_DIM + _DIM_OPERANDS * d
        size = load_word(operands, at)
        lo, hi = clamp_valid(operands, at, size)
        covered = hi - lo if d < axis else (count if d == axis else size)
        store_dim(box, _DIMS - ndim + d, covered, 0, load_word(operands, at + 2))


@subroutine("void(int64)")
def collapse(box):  # type: ignore[no-untyped-def]
    """Merge dimensions that follow each other on both sides, and move those of size 1 outermost."""
    inner = _DIMS - 1
    for d in range(_DIMS - 2, -1, -1):
        size = load_word(box, d * _DIM_WORDS + _SIZE)
        if size == 1:
            continue
        src, dst = load_word(box, d * _DIM_WORDS + _SRC), load_word(box, d * _DIM_WORDS + _DST)
        at = inner * _DIM_WORDS
        below = load_word(box, at + _SIZE)
        if below == 1:
            store_dim(box, inner, size, src, dst)
        elif src == load_word(box, at + _SRC) * below and dst == load_word(box, at + _DST) * below:
            store_word(box, at + _SIZE, below * size)
        else:
            inner -= 1
            store_dim(box, inner, size, src, dst)
    for d in range(inner):
        store_word(box, d * _DIM_WORDS + _SIZE, 1)


@subroutine("boolean(int64, int64)", inline=True)
def is_run(box, element):  # type: ignore[no-untyped-def]
    """Whether a collapsed box is one contiguous run on both sides."""
    return (
        load_word(box, 9 + _SIZE) == 1 and load_word(box, 12 + _SRC) == element and load_word(box, 12 + _DST) == element
    )


@subroutine("boolean(int64, int64)")
def put_transposed_last(box, element):  # type: ignore[no-untyped-def]
    """If source and destination are contiguous in different dimensions, make these the last two; whether it did."""
    src_dim, dst_dim = -1, -1
    for d in range(_DIMS):
        at = d * _DIM_WORDS
        if load_word(box, at + _SIZE) == 1:
            continue
        if load_word(box, at + _DST) == 0:
            return False  # elements written more than once: the last one in row-major order counts
        if load_word(box, at + _SIZE) >= _TRANSPOSE_FROM:
            if load_word(box, at + _SRC) == element:
                src_dim = d
            if load_word(box, at + _DST) == element:
                dst_dim = d
    if src_dim < 0 or dst_dim < 0 or src_dim == dst_dim:
        return False
    swap_dims(box, dst_dim, _DIMS - 1)
    if src_dim == _DIMS - 1:
        src_dim = dst_dim
    swap_dims(box, src_dim, _DIMS - 2)
    return True


@subroutine("void(int64, int64, int64)")
def swap_dims(box, one, other):  # type: ignore[no-untyped-def]
    for word in range(_DIM_WORDS):
        kept = load_word(box, one * _DIM_WORDS + word)
        store_word(box, one * _DIM_WORDS + word, load_word(box, other * _DIM_WORDS + word))
        store_word(box, other * _DIM_WORDS + word, kept)


# ---- rows ------------------------------------------------------------------------------------------------------------


def _element_moves(log2: int) -> tuple[Any, Any]:
    """(copy_row, transpose) for elements of 2^log2 bytes."""
    element = 1 << log2
    load = (memory.load8, memory.load16, memory.load32, memory.load64)[log2]
    store = (memory.store8, memory.store16, memory.store32, memory.store64)[log2]
    put = (memory.set8, memory.set16, memory.set32, memory.set64)[log2]

    @subroutine("void(int64, int64, int64, int64)")
    def fill_row(dst, count, stride, bits):  # type: ignore[no-untyped-def]
        if stride == element:
            for i in range(count):
                put(dst, i, bits)
        else:
            for i in range(count):
                store(dst + i * stride, bits)

    @subroutine("void(int64, int64, int64, int64, int64)")
    def copy_row(dst, src, count, dst_stride, src_stride):  # type: ignore[no-untyped-def]
        if src_stride == 0:
            fill_row(dst, count, dst_stride, load(src))
        else:
            for i in range(count):
                store(dst + i * dst_stride, load(src + i * src_stride))

    @subroutine("void(int64, int64, int64, int64, int64, int64)")
    def transpose(dst, src, rows, columns, dst_stride, src_stride):  # type: ignore[no-untyped-def]
        """dst[row][column] = src[column][row]; rows of dst and columns of src are contiguous."""
        for row in range(0, rows, _TILE):
            for column in range(0, columns, _TILE):
                for r in range(row, smaller(row + _TILE, rows)):
                    to, source = dst + r * dst_stride, src + r * element
                    for c in range(column, smaller(column + _TILE, columns)):
                        store(to + c * element, load(source + c * src_stride))

    return copy_row, transpose
