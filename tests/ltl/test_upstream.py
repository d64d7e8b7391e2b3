"""Triton's own kernels given to LTL as they are."""

from __future__ import annotations

import numpy as np
import pytest

import ltl
from tests.ltl.kernel_runs import result

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


@triton.jit
def gelu(x):
    return 0.5 * x * (1 + tl.math.erf(x * 0.7071067811865476))


@triton.jit
def upstream(out, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    for _ in tl.static_range(2):
        v = gelu(v)
    blocks = tl.zeros([BLOCK], dtype=tl.float32) + tl.cdiv(n, BLOCK) + triton.cdiv(n, BLOCK)
    tl.store(out + i, tl.maximum(v, tl.max(v, 0) * 0.5) + blocks, mask=i < n)


@ltl.jit
def gelu_here(x):
    return 0.5 * x * (1 + ltl.erf(x * 0.7071067811865476))


@ltl.jit
def native(out, x, n, BLOCK: ltl.constexpr):
    i = ltl.program_id(0) * BLOCK + ltl.arange(0, BLOCK)
    v = ltl.load(x + i, mask=i < n, other=0.0).to(ltl.float32)
    for _ in ltl.static_range(2):
        v = gelu_here(v)
    blocks = ltl.zeros([BLOCK], dtype=ltl.float32) + ltl.cdiv(n, BLOCK) + ltl.cdiv(n, BLOCK)
    ltl.store(out + i, ltl.maximum(v, ltl.max(v, 0) * 0.5) + blocks, mask=i < n)


def test_upstream_source_gives_the_same_ir_and_bits() -> None:
    kernel = ltl.jit(upstream)
    arguments = ("*fp32", "*fp32", "i32", 16)
    assert str(kernel.lower(*arguments)).replace("@upstream", "@native") == str(native.lower(*arguments))
    x = np.linspace(-3, 3, 30, dtype=np.float32)
    ours = result(native, 30, np.float32, x, 30, BLOCK=16, grid=2)
    assert np.array_equal(result(kernel, 30, np.float32, x, 30, BLOCK=16, grid=2), ours)
