"""Streams of a running SCE program: what each touches, and the two views of its iteration space.

`STREAM_VIEWS` of the state holds a record of RECORD_WORDS a stream, then the sizes of the body's view and those of the
tail's. Sizes and strides are right-aligned in four dimensions, outermost first.
"""

from __future__ import annotations

from typing import Final

from loom_core.isa.sce import STREAM_IOTA, STREAM_SCALAR
from loom_sim import descriptors as d
from loom_sim.jit import subroutine
from loom_sim.memory import bounded_product, larger, load_word, smaller, store_word, wrapping_add, wrapping_multiply
from loom_sim.spaces import check_range, is_wild, out_of_bounds
from loom_sim.state import MAX_STREAMS, OK, SRAM, STREAM_VIEWS

RECORD_WORDS: Final = 16
# MODE begins as 1 where one element of the stream may stand for all (`descriptors.REPEATING`).
KIND, LOG2, TAIL, MODE, ADDRESS, SLOT, KEEPS, POINTER, STRIDES = range(9)
LOW, HIGH, HOME, ABSENT_BITS = range(12, 16)  # SRAM bytes touched; address there; what is absent of what is read
RANK: Final = 4
INNER: Final = RANK - 1
SIZES: Final = MAX_STREAMS * RECORD_WORDS  # body sizes, then tail sizes
VIEW_WORDS: Final = SIZES + 2 * RANK


@subroutine("void(int64, int64)", inline=True)
def store_stream(record, stream):  # type: ignore[no-untyped-def]
    """Take over what the descriptor says of a stream."""
    store_word(record, KIND, load_word(stream, d.STREAM_KIND))
    store_word(record, LOG2, load_word(stream, d.STREAM_LOG2))
    store_word(record, TAIL, load_word(stream, d.STREAM_TAIL))
    store_word(record, KEEPS, load_word(stream, d.STREAM_KEEPS))
    store_word(record, MODE, load_word(stream, d.STREAM_REPEATS))


@subroutine("int64(int64, int64, int64, int64, int64)", inline=True)
def store_place(state, record, base, low, high):  # type: ignore[no-untyped-def]
    """Bounds check a load or store of SRAM bytes [base + low, base + high), and note where it is: status."""
    status = check_range(state, 0, base, low, high)
    if status == OK:
        address = load_word(state, SRAM) + base
        store_word(record, ADDRESS, address)
        store_word(record, HOME, address)
        store_word(record, LOW, base + low)
        store_word(record, HIGH, base + high)
        store_word(record, ABSENT_BITS, 0)
    return status


@subroutine("int64(int64, int64, int64, int64)")
def read_line(state, operands, descriptor, fold):  # type: ignore[no-untyped-def]
    """`read_streams` of a program of one dimension."""
    views, size = state + STREAM_VIEWS * 8, load_word(operands, 1)
    for dim in range(INNER):
        store_word(views, SIZES + dim, 1)
        store_word(views, SIZES + RANK + dim, 1)
    store_word(views, SIZES + INNER, size)
    store_word(views, SIZES + RANK + INNER, 1)
    stream, record, given = descriptor + d.FIRST_STREAM * 8, views, operands + 2 * 8
    for _ in range(load_word(descriptor, d.STREAM_COUNT)):
        store_stream(record, stream)
        base, stride = load_word(given, 0), load_word(given, 1)
        if fold != 0 and load_word(stream, d.STREAM_TAIL) != 0:
            stride = 0  # a tail without dimensions
        store_word(record, STRIDES + INNER, stride)
        kind = load_word(stream, d.STREAM_KIND)
        if kind in (STREAM_IOTA, STREAM_SCALAR):
            store_word(record, ADDRESS, base)
        else:
            span, element = bounded_product(size - 1, stride), 1 << load_word(stream, d.STREAM_LOG2)
            low, high = smaller(span, 0), larger(span, 0) + element
            if is_wild(span):
                return out_of_bounds(state, 0, base, low, high)
            status = store_place(state, record, base, low, high)
            if status != OK:
                return status
        stream += d.STREAM_WORDS * 8
        record += RECORD_WORDS * 8
        given += 2 * 8
    return OK


@subroutine("int64(int64, int64, int64, int64, int64)")
def read_streams(state, operands, descriptor, ndim, kept):  # type: ignore[no-untyped-def]
    """Fill the records and sizes from the command's operands; bounds check every load and store. `kept`: tail
    dimensions.
    """
    views = state + STREAM_VIEWS * 8
    for dim in range(RANK):
        store_word(views, SIZES + dim, load_word(operands, dim + 1 - (RANK - ndim)) if dim >= RANK - ndim else 1)
        in_tail = dim >= RANK - kept
        store_word(views, SIZES + RANK + dim, load_word(operands, dim + 1 - (RANK - kept)) if in_tail else 1)
    for number in range(load_word(descriptor, d.STREAM_COUNT)):
        stream = descriptor + (d.FIRST_STREAM + number * d.STREAM_WORDS) * 8
        record = views + number * (RECORD_WORDS * 8)
        store_stream(record, stream)
        kind, tail = load_word(stream, d.STREAM_KIND), load_word(stream, d.STREAM_TAIL)
        given = operands + (1 + ndim + number * (1 + ndim)) * 8
        base = load_word(given, 0)
        dims = kept if tail else ndim
        low, high, wild = 0, 1 << load_word(stream, d.STREAM_LOG2), False
        for dim in range(RANK - dims):
            store_word(record, STRIDES + dim, 0)
        for dim in range(dims):
            stride = load_word(given, 1 + dim)
            store_word(record, STRIDES + RANK - dims + dim, stride)
            span = bounded_product(load_word(operands, 1 + dim) - 1, stride)
            wild |= is_wild(span)
            low += smaller(span, 0)
            high += larger(span, 0)
        if kind in (STREAM_IOTA, STREAM_SCALAR):
            store_word(record, ADDRESS, base)
            continue
        if wild:
            return out_of_bounds(state, 0, base, low, high)
        status = store_place(state, record, base, low, high)
        if status != OK:
            return status
    return OK


@subroutine("boolean(int64, int64, int64, int64, int64)")
def dims_follow(views, streams, tail, outer, inner):  # type: ignore[no-untyped-def]
    """Whether, in every stream of a view, a step of dimension `outer` is as far as all of dimension `inner`."""
    size = load_word(views, SIZES + tail * RANK + inner)
    for number in range(streams):
        record = views + number * (RECORD_WORDS * 8)
        if load_word(record, TAIL) != tail or load_word(record, KIND) == STREAM_SCALAR:
            continue
        if load_word(record, STRIDES + outer) != wrapping_multiply(load_word(record, STRIDES + inner), size):
            return False
    return True


@subroutine("void(int64, int64, int64, int64)")
def collapse_view(state, streams, tail, dims):  # type: ignore[no-untyped-def]
    """Merge dimensions of a view that follow each other in all its streams; those that vanish get size 1, outermost."""
    views = state + STREAM_VIEWS * 8
    sizes = views + (SIZES + tail * RANK) * 8
    inner = INNER
    for dim in range(INNER - 1, INNER - dims, -1):
        size = load_word(sizes, dim)
        if size == 1:
            continue
        below = load_word(sizes, inner)
        if below != 1 and dims_follow(views, streams, tail, dim, inner):
            store_word(sizes, inner, below * size)
            continue
        if below != 1:
            inner -= 1
        store_word(sizes, inner, size)
        for number in range(streams):
            record = views + number * (RECORD_WORDS * 8)
            if load_word(record, TAIL) == tail:
                store_word(record, STRIDES + inner, load_word(record, STRIDES + dim))
    for dim in range(inner):
        store_word(sizes, dim, 1)


@subroutine("boolean(int64, int64, int64)")
def is_contiguous(record, sizes, element):  # type: ignore[no-untyped-def]
    for dim in range(INNER, -1, -1):
        size = load_word(sizes, dim)
        if size != 1:
            if load_word(record, STRIDES + dim) != element:
                return False
            element *= size
    return True


@subroutine("boolean(int64, int64, int64)")
def repeats(record, sizes, grain):  # type: ignore[no-untyped-def]
    """Whether all chunks that begin at multiples of `grain` elements of a view see the same elements of a stream."""
    for dim in range(INNER):
        if load_word(sizes, dim) != 1 and load_word(record, STRIDES + dim) != 0:
            return False
    inner = load_word(sizes, INNER)
    return load_word(record, STRIDES + INNER) == 0 or inner == 1 or grain % inner == 0


@subroutine("boolean(int64, int64, boolean)")
def is_one(record, sizes, in_rows):  # type: ignore[no-untyped-def]
    """Whether a stream shows one element throughout, or, `in_rows`, in each row."""
    for dim in range(INNER if in_rows else 0, RANK):
        if load_word(sizes, dim) != 1 and load_word(record, STRIDES + dim) != 0:
            return False
    return True


@subroutine("boolean(int64, int64)")
def is_overwritten(views, record):  # type: ignore[no-untyped-def]
    """Whether a load is one and the same stream as a store that comes before one of its reads."""
    stores, number = load_word(record, KEEPS), 0
    while stores != 0:
        if stores & 1 != 0 and load_word(views, number * RECORD_WORDS + ADDRESS) == load_word(record, ADDRESS):
            return True
        stores >>= 1
        number += 1
    return False


@subroutine("boolean(int64, int64)")
def is_dense(views, record):  # type: ignore[no-untyped-def]
    """Whether a stream touches each element of its range once, in order."""
    sizes = views + (SIZES + load_word(record, TAIL) * RANK) * 8
    return is_contiguous(record, sizes, 1 << load_word(record, LOG2))


@subroutine("int64(int64, int64, int64)")
def row_offset(record, sizes, row):  # type: ignore[no-untyped-def]
    """Sum of stride * index over the outer dimensions, wrapped (iota strides are free), for the row (run of the
    innermost dimension) number `row`.
    """
    size = load_word(sizes, 2)
    if row < size:
        return wrapping_multiply(row, load_word(record, STRIDES + 2))
    rest, middle = row // size, load_word(sizes, 1)
    inner = wrapping_multiply(row % size, load_word(record, STRIDES + 2))
    outer = wrapping_multiply(rest // middle, load_word(record, STRIDES))
    return wrapping_add(wrapping_add(inner, outer), wrapping_multiply(rest % middle, load_word(record, STRIDES + 1)))
