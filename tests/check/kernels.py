"""Kernels with one defect each, in the line that ends in `# bug`: loaded as LTL and as Triton (`seeds`)."""

from __future__ import annotations

from typing import Any

tl: Any
jit: Any


@jit
def load_without_mask(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)  # bug
    tl.store(out + at, value, mask=at < n)


@jit
def store_past_the_end(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + at + 1, value, mask=at < n)  # bug


@jit
def sum_of_masked(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)  # bug
    tl.store(out, tl.sum(value + 1.0, axis=0))


@jit
def largest_of_masked(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)  # bug
    tl.store(out, tl.max(value, axis=0))


@jit
def sum_into_scratch(x, scratch, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    before = tl.load(scratch + at)  # bug
    tl.store(scratch + at, before + tl.load(x + at))
    tl.store(out + at, before)


@jit
def half_written(x, scratch, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(scratch + at, tl.load(x + at), mask=at < BLOCK // 2)
    tl.debug_barrier()
    tl.store(out + at, tl.load(scratch + at))  # bug


@jit
def neighbour_in_place(x, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + at - 1, mask=at > 0, other=0.0)  # bug
    tl.store(x + at, left + 1.0)


@jit
def blocks_that_overlap(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + tl.arange(0, BLOCK)) + tl.program_id(0))  # bug


@jit
def lock_that_stays(lock, out):
    while tl.atomic_cas(lock, 0, 1) == 1:  # bug
        pass
    tl.store(out + tl.program_id(0), 1)


@jit
def wait_for_a_later_program(flag, out):
    pid = tl.program_id(0)
    if pid == 0:
        while tl.atomic_add(flag, 0) == 0:  # bug
            pass
    else:
        tl.atomic_xchg(flag, 1)
    tl.store(out + pid, 1)


@jit
def row_stride_wraps(x, out, stride, BLOCK: tl.constexpr):
    start = tl.program_id(0) * stride  # bug
    at = start + tl.arange(0, BLOCK)
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + at, mask=at < BLOCK, other=0.0))


@jit
def index_wraps(x, index, out, BLOCK: tl.constexpr):
    row = tl.load(index + tl.arange(0, BLOCK))
    at = row * 65536  # bug
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + at, mask=at < BLOCK, other=0.0))


@jit
def division_by_zero(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    quotient = 1.0 / (value - 5.0)  # bug
    tl.store(out + at, tl.exp(quotient * 0.001))


@jit
def variance_below_zero(x, out, BLOCK: tl.constexpr):
    value = tl.load(x + tl.arange(0, BLOCK))
    root = tl.sqrt(tl.sum(value, axis=0) - 1e6)  # bug
    tl.store(out + tl.arange(0, BLOCK), value / root)


@jit
def loads_for_nothing(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    other = tl.load(x + at + BLOCK)  # bug
    tl.store(out + at, tl.load(x + at))


@jit
def multiplies_for_nothing(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    value = tl.load(x + at)
    product = tl.dot(value, value)  # bug
    tl.store(out + at, value)


@jit
def stores_twice(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, 0.0)  # bug
    tl.store(out + at, tl.load(x + at))


@jit
def scaled_sum(x, y, out, n, BLOCK: tl.constexpr):
    """Sound: what is done to its object is wrong."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=0.0)
    b = tl.load(y + at, mask=at < n, other=0.0)
    total = tl.sum(a * b, axis=0)
    tl.store(out + at, a * total + b, mask=at < n)
