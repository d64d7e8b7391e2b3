"""Kernels in Palladium with one defect each, in the line that ends in `# bug`."""

from __future__ import annotations

import numpy as np

from loom.experimental import palladium as lpl

N, BLOCK = 32, 8
VECTOR = lpl.ShapeDtypeStruct((N,), lpl.float32)
BY_BLOCK = lpl.BlockSpec((BLOCK,), lambda i: (i,))
ONE_MORE = lpl.BlockSpec((BLOCK,), lambda i: (i + 1,))  # bug of next_block
X = np.arange(N, dtype=np.float32)


def _copied(x_ref, out_ref):
    out_ref[...] = x_ref[...]


def next_block():
    lpl.call(_copied, out_shape=VECTOR, grid=(4,), in_specs=[ONE_MORE], out_specs=BY_BLOCK)(X)


def _named(index_ref, x_ref, out_ref):
    out_ref[...] = x_ref[...]


NAMED = lpl.BlockSpec((BLOCK,), lambda i, index: (index[i],))  # bug of named_block
AT_ITS_PLACE = lpl.BlockSpec((BLOCK,), lambda i, index: (i,))


def named_block():
    spec = lpl.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,), in_specs=[NAMED], out_specs=AT_ITS_PLACE)
    lpl.call(_named, out_shape=VECTOR, grid_spec=spec)(np.array([0, 1, 2, 4], np.int32), X)


def _divides(x_ref, out_ref):
    quotient = 1.0 / (x_ref[...] - 5.0)  # bug of division_by_zero
    out_ref[...] = lpl.exp(quotient * 0.001)


def division_by_zero():
    lpl.call(_divides, out_shape=VECTOR, grid=(4,), in_specs=[BY_BLOCK], out_specs=BY_BLOCK)(X)


def _logarithm(x_ref, out_ref):
    out_ref[...] = lpl.log(x_ref[...] - 100.0)  # bug of logarithm


def logarithm():
    lpl.call(_logarithm, out_shape=VECTOR, grid=(4,), in_specs=[BY_BLOCK], out_specs=BY_BLOCK)(X)


def _reads_for_nothing(x_ref, out_ref):
    x_ref[...]  # bug of reads_for_nothing
    out_ref[...] = lpl.zeros_like(out_ref)


def reads_for_nothing():
    lpl.call(_reads_for_nothing, out_shape=VECTOR, grid=(4,), in_specs=[BY_BLOCK], out_specs=BY_BLOCK)(X)


def _multiplies_for_nothing(x_ref, out_ref):
    value = x_ref[...]
    lpl.dot(value, value)  # bug of multiplies_for_nothing
    out_ref[...] = value


def multiplies_for_nothing():
    shape = lpl.ShapeDtypeStruct((16, 16), lpl.float32)
    lpl.call(_multiplies_for_nothing, out_shape=shape)(np.ones((16, 16), np.float32))


def _waits_for_a_change(x_ref, out_ref):
    def goes_on(value):
        return value < 1.0

    lpl.while_loop(goes_on, lambda value: x_ref[0], 0.0)  # bug of waits_for_a_change
    out_ref[...] = x_ref[...]


def waits_for_a_change():
    lpl.call(_waits_for_a_change, out_shape=VECTOR)(X * 0)


def _counts_to_nowhere(x_ref, out_ref):
    last = lpl.while_loop(lambda i: i < 4, lambda i: i * 2, 0)  # bug of counts_to_nowhere
    out_ref[...] = x_ref[...] + last.astype(lpl.float32)


def counts_to_nowhere():
    lpl.call(_counts_to_nowhere, out_shape=VECTOR)(X)


def _scaled_sum(x_ref, y_ref, out_ref):
    a = x_ref[...]
    b = y_ref[...]
    total = lpl.sum(a * b)
    out_ref[...] = a * total + b


SCALED_SUM = lpl.call(_scaled_sum, out_shape=VECTOR, grid=(4,), in_specs=[BY_BLOCK, BY_BLOCK], out_specs=BY_BLOCK)
"""Sound: what is done to its object is wrong."""


def _row_wraps(index_ref, x_ref, out_ref):
    row = index_ref[lpl.program_id(0)] * 65536  # bug of row_wraps
    out_ref[...] = x_ref[lpl.ds(row, BLOCK)]


def row_wraps():
    whole = lpl.BlockSpec(memory_space=lpl.ANY)
    spec = lpl.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,), in_specs=[whole], out_specs=AT_ITS_PLACE)
    lpl.call(_row_wraps, out_shape=VECTOR, grid_spec=spec)(np.array([0, 0, 0, 65536], np.int32), X)


def _square_wraps(index_ref, x_ref, out_ref):
    place = index_ref[lpl.program_id(0)] * index_ref[0]  # bug of square_wraps
    out_ref[...] = x_ref[lpl.ds(place, BLOCK)]


def square_wraps():
    whole = lpl.BlockSpec(memory_space=lpl.ANY)
    spec = lpl.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,), in_specs=[whole], out_specs=AT_ITS_PLACE)
    lpl.call(_square_wraps, out_shape=VECTOR, grid_spec=spec)(np.array([100_000, 0, 0, 100_000], np.int32), X)


def _stores_twice(x_ref, out_ref):
    out_ref[...] = lpl.zeros_like(out_ref)  # bug of stores_twice
    out_ref[...] = x_ref[...]


def stores_twice():
    lpl.call(_stores_twice, out_shape=VECTOR)(X)
