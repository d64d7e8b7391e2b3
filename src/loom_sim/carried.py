"""Engines of the functions of rows that carry a state: scans, and the places of extreme elements.

void(dst, a, carry, row, count) for `count` rows of `row` elements each; `row` is negative where scans go from the last
element to the first. A scan writes an element for each of `a`, a place is one i32 a row.

`carry` is 0 where rows are whole. Else `count` is 1 and the row comes in blocks, in any order of blocks for a place, in
the direction of the scan for a scan; `carry` is then the address of a record that lasts from one block to the next:

    word 0  1 once a block has been seen, 0 before the first
    word 1  the carried value, or the key (`order`) of the extreme so far
    word 2  the index of that extreme within the row
    word 3  the index of the block's first element within the row
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from loom_core.isa.sce import DTYPE_LOG2_BYTES, SCE_OPS, SceOp
from loom_sim.jit import subroutine
from loom_sim.memory import larger, load_word, store_word
from loom_sim.order import make_key
from loom_sim.scalars import scalar_of

SEEN, VALUE, INDEX, FIRST = range(4)

_ELEMENTWISE: Final = {"sum": "add", "prod": "mul"}


def build_scan(op: SceOp, load: Any, store: Any) -> Callable[..., None]:
    """The Python function of a scan's engine; `load`, `store`: access to element i of an array."""
    dtype = op.result
    name = op.function.removeprefix("scan_")
    combine = scalar_of(SCE_OPS[f"{_ELEMENTWISE.get(name, name)}.{dtype}"])
    canonical = scalar_of(SCE_OPS[f"mov.{dtype}"])

    def one_row(dst, a, first, row, step, carry):  # type: ignore[no-untyped-def]
        index, done = first, 0
        if carry != 0 and load_word(carry, SEEN) != 0:
            value = load(carry + VALUE * 8, 0)
        else:
            value, done = canonical(load(a, index)), 1
            store(dst, index, value)
            index += step
        for _ in range(done, row):
            value = combine(value, load(a, index))
            store(dst, index, value)
            index += step
        if carry != 0:
            store(carry + VALUE * 8, 0, value)
            store_word(carry, SEEN, 1)

    # Four rows at once: one addition a row waits for the one before it.
    def four_rows(dst, a, first, row, step, length):  # type: ignore[no-untyped-def]
        i0, i1, i2, i3 = first, first + length, first + 2 * length, first + 3 * length
        v0, v1 = canonical(load(a, i0)), canonical(load(a, i1))
        v2, v3 = canonical(load(a, i2)), canonical(load(a, i3))
        at = 0
        for i in range(row):
            if i != 0:
                v0, v1 = combine(v0, load(a, i0 + at)), combine(v1, load(a, i1 + at))
                v2, v3 = combine(v2, load(a, i2 + at)), combine(v3, load(a, i3 + at))
            store(dst, i0 + at, v0)
            store(dst, i1 + at, v1)
            store(dst, i2 + at, v2)
            store(dst, i3 + at, v3)
            at += step

    one, four = (subroutine("void(int64, int64, int64, int64, int64, int64)")(f) for f in (one_row, four_rows))

    def engine(dst, a, carry, row, count):  # type: ignore[no-untyped-def]
        step, start = 1, 0
        if row < 0:
            row = -row
            step, start = -1, row - 1
        done = 0
        if carry == 0:
            while count - done >= 4:
                four(dst, a, done * row + start, row, step, row)
                done += 4
        for r in range(done, count):
            one(dst, a, r * row + start, row, step, carry)

    return engine


def build_argument(op: SceOp, load_pattern: Any, store_index: Any) -> Callable[..., None]:
    """The Python function of the engine of a reduce_arg...: where the extreme element of each row stands.

    `load_pattern` reads an element as a signed integer of its width.
    """
    dtype = op.operands[0]
    size = 1 << DTYPE_LOG2_BYTES[dtype]
    name = op.function.removeprefix("reduce_arg")
    takes_last = name.endswith("_last")
    name = name.removesuffix("_last")
    key = make_key(dtype, largest=name.startswith("max"), nan_leads=name.endswith("p"))

    @subroutine("int64(int64, int64)")
    def place(a, row):  # type: ignore[no-untyped-def]
        best, index = key(load_pattern(a, 0)), 0
        for i in range(1, row):
            x = key(load_pattern(a, i))
            if x >= best if takes_last else x > best:
                best, index = x, i
        return index

    @subroutine("int64(int64, int64, int64)")
    def merged(carry, a, index):  # type: ignore[no-untyped-def]
        """The index after a block whose extreme is element `index` of `a`."""
        best, found = np.int64(key(load_pattern(a, index))), load_word(carry, FIRST) + index
        if load_word(carry, SEEN) != 0:
            before, known = load_word(carry, VALUE), load_word(carry, INDEX)
            if best < before or (best == before and (found > known) != takes_last):
                return known
        store_word(carry, SEEN, 1)
        store_word(carry, VALUE, best)
        store_word(carry, INDEX, found)
        return found

    def engine(dst, a, carry, row, count):  # type: ignore[no-untyped-def]
        row = larger(row, -row)
        for r in range(count):
            start = a + r * row * size
            index = place(start, row)
            if carry != 0:
                index = merged(carry, start, index)
            store_index(dst, r, index)

    return engine
