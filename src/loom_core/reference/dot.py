"""The dot rule: fused multiply-adds with k ascending, in passes of 128; integers exact modulo 2^32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loom_core.base import dtype
from loom_core.reference.arith import Float32s, add32, f32, fma32

PASS_DEPTH = 128


def dot32(a: ArrayLike, b: ArrayLike, acc: ArrayLike | None = None) -> Float32s:
    """acc + a @ b as the matrix unit computes it; shapes (..., m, k), (..., k, n), (..., m, n), leading axes broadcast.

    Operands are float32 or types that widen exactly. The result starts as `acc`, else as +0. For each pass of 128
    values of k: t = +0; t = fma(a, b, t), k ascending; result = result + t. NaN results are canonical.
    """
    left, right = f32(a), f32(b)
    if left.ndim < 2 or right.ndim < 2 or left.shape[-1] != right.shape[-2]:
        raise ValueError(f"shapes {left.shape} and {right.shape} do not multiply")
    depth = left.shape[-1]
    shape = (*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1])
    result = np.zeros(shape, np.float32) if acc is None else np.broadcast_to(f32(acc), shape)
    for start in range(0, depth, PASS_DEPTH):
        t = np.zeros(shape, np.float32)
        for k in range(start, min(start + PASS_DEPTH, depth)):
            t = fma32(left[..., :, k, None], right[..., None, k, :], t)
        result = add32(result, t)
    return np.array(result)


def dot_i32(a: ArrayLike, b: ArrayLike, acc: ArrayLike | None = None) -> NDArray[np.int32]:
    """acc + a @ b modulo 2^32, in two's complement; shapes as for `dot32`, integers of any types and signs."""
    left, right = (np.asarray(x).astype(np.int64) for x in (a, b))
    if left.ndim < 2 or right.ndim < 2 or left.shape[-1] != right.shape[-2]:
        raise ValueError(f"shapes {left.shape} and {right.shape} do not multiply")
    # int64 wraps modulo 2^64, which 2^32 divides.
    total = left @ right + (0 if acc is None else np.asarray(acc).astype(np.int64))
    return np.asarray(total).astype(np.int32)


def dot(a: ArrayLike, b: ArrayLike, acc: ArrayLike | None = None) -> NDArray[Any]:
    """The product by its operands' types: integers (`dot_i32`), or floats of at most 32 bits, which widen exactly.

    The two may be of different types of one kind. TypeError for others.
    """
    left, right = np.asarray(a), np.asarray(b)
    kinds = [dtype.from_numpy(x.dtype) for x in (left, right)]
    if all(kind.is_integer for kind in kinds):
        return dot_i32(left, right, acc)
    if all(kind.is_float and kind.bits <= 32 for kind in kinds):
        return dot32(left.astype(np.float32), right.astype(np.float32), acc)
    raise TypeError(f"no product of {left.dtype} and {right.dtype}")
