"""Tensor descriptors made outside kernels, under the names of `loom.triton`."""

from __future__ import annotations

import numpy as np

import loom.triton as triton
import loom.triton.language as tl


@triton.jit
def doubled(source, target, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS
    target.store([row, 0], source.load([row, 0]) * 2)


def test_descriptors_are_arguments() -> None:
    triton.set_allocator(lambda size, alignment, stream: None)
    x = np.arange(7 * 5, dtype=np.float32).reshape(7, 5)
    out = np.zeros_like(x)
    source, target = (triton.TensorDescriptor.from_tensor(array, [4, 8]) for array in (x, out))
    doubled[(2,)](source, target, ROWS=4)
    assert np.array_equal(out, x * 2)
