"""Kernels with one defect each. `MENDED`: the wrong text of each, and the right one."""

from __future__ import annotations

import loom.triton.language as ltl


@ltl.jit
def no_mask(x, out, n, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    value = ltl.load(x + at)
    ltl.store(out + at, value * 2, mask=at < n)


@ltl.jit
def no_mask_at_the_store(x, out, n, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    ltl.store(out + at, ltl.load(x + at, mask=at < n, other=0) + 1)


@ltl.jit
def wrong_stride(x, out, rows, columns, x_row, x_column, out_row, BLOCK: ltl.constexpr):
    column = ltl.arange(0, BLOCK)
    row = ltl.program_id(0)
    value = ltl.load(x + row * x_row + column, mask=column < columns, other=0)
    ltl.store(out + row * out_row + column, value, mask=column < columns)


@ltl.jit
def larger(x, y, out, n, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    a, b = ltl.load(x + at, mask=at < n, other=0), ltl.load(y + at, mask=at < n, other=0)
    ltl.store(out + at, ltl.where(a > b, a, b), mask=at < n)


@ltl.jit
def reversed_in_place(x, out, n, BLOCK: ltl.constexpr):
    for start in range(0, n, BLOCK):
        at = start + ltl.arange(0, BLOCK)
        value = ltl.load(x + n - 1 - at, mask=at < n, other=0)
        ltl.store(out + at, value, mask=at < n)


@ltl.jit
def rounds_twice(x, y, out, n, BLOCK: ltl.constexpr):
    at = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    product = ltl.load(x + at, mask=at < n, other=0).to(ltl.float32) * ltl.load(y + at, mask=at < n, other=0)
    ltl.store(out + at, product.to(ltl.bfloat16).to(ltl.float16), mask=at < n)


MENDED = {
    "no_mask": ("value = ltl.load(x + at)", "value = ltl.load(x + at, mask=at < n)"),
    "no_mask_at_the_store": ("mask=at < n, other=0) + 1)", "mask=at < n, other=0) + 1, mask=at < n)"),
    "wrong_stride": ("row * x_row + column,", "row * x_row + column * x_column,"),
    "larger": ("ltl.where(a > b, a, b)", "ltl.where((a > b) | (a != a), a, b)"),
    "reversed_in_place": (
        "range(0, n, BLOCK):\n        at = start + ltl.arange(0, BLOCK)",
        "range(0, 1):\n        at = start + ltl.arange(0, 16)",
    ),
    "rounds_twice": ("product.to(ltl.bfloat16).to(ltl.float16)", "product.to(ltl.float16)"),
}
