"""Matrix products."""

from __future__ import annotations

from typing import Any

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.ops.matmul import Dot
from palladium import promotion, shaping
from palladium.errors import Refused, ShapesDiffer, WrongDtype, fail
from palladium.operators import multiply
from palladium.values import array, convert, emit, to_array

OPERANDS = (core.f32, core.f16, core.bf16, core.f64, core.i8, core.u8, core.f8e4m3, core.f8e5m2)


def dot(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> array:
    """a[M, K] times b[K, N]; a row or a column may stand for a matrix.

    Accumulates in float32 (int32 for 8-bit integers) in the order of docs/numerics.md, whatever `precision` says, and
    rounds once to `preferred_element_type`, by default the operands' dtype.
    """
    return product(a, b, preferred_element_type, "dot")


matmul = dot


def product(a: Any, b: Any, dtype: Any, function: str) -> array:
    """`dot` with its result in `dtype`."""
    left, right = to_array(a, function), to_array(b, function)
    if not left.shape or not right.shape:
        return multiply(left, right)
    common, _ = promotion.result_dtype([(left.core, left.weak), (right.core, right.weak)], function)
    eights = all(value.core.is_float and value.core.bits == 8 for value in (left, right))
    if not eights:
        left, right = convert(left, common), convert(right, common)
    rows, columns = left.ndim == 1, right.ndim == 1
    if rows:
        left = shaping.expand_dims(left, 0)
    if columns:
        right = shaping.expand_dims(right, 1)
    result = _multiply(left, right, common if dtype is None else promotion.as_dtype(dtype), function)
    if rows or columns:
        kept = tuple(size for size, dropped in zip(result.shape[-2:], (rows, columns), strict=True) if not dropped)
        result = shaping.reshape(result, kept)
    return result


def accumulator_dtype(dtype: DType) -> DType:
    """What products of a dtype add up in."""
    if dtype is core.f64:
        return core.f64
    return core.f32 if dtype.is_float else core.i32


def _multiply(left: array, right: array, dtype: DType, function: str) -> array:
    for value in (left, right):
        if value.core not in OPERANDS:
            names = ", ".join(one.name for one in OPERANDS)
            fail(WrongDtype, function=function, given=str(value), takes=f"it takes {names}")
    if (
        left.ndim != right.ndim
        or left.ndim > 3
        or left.shape[-1] != right.shape[-2]
        or left.shape[:-2] != right.shape[:-2]
    ):
        fail(ShapesDiffer, function=function, first=left.shape, second=right.shape)
    inner = accumulator_dtype(left.core)
    return convert(emit(Dot, left, right, dtype=inner), dtype)


def dot_general(
    a: Any,
    b: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> array:
    """lax.dot_general with one contracted dimension, and at most one batch dimension in front."""
    (contract_a, contract_b), (batch_a, batch_b) = dimension_numbers
    left, right = to_array(a, "dot_general"), to_array(b, "dot_general")
    plain = len(contract_a) == len(contract_b) == 1 and tuple(batch_a) == tuple(batch_b) in ((), (0,))
    if not plain or any(value.ndim != 2 + len(batch_a) for value in (left, right)):
        reason = f"dimension numbers {dimension_numbers} of ranks {left.ndim} and {right.ndim}"
        fail(Refused, what="this dot_general", reason=reason, instead="transpose and reshape the operands to matrices")
    rank = left.ndim
    left = left if contract_a[0] % rank == rank - 1 else shaping.swapaxes(left, rank - 2, rank - 1)
    right = right if contract_b[0] % rank == rank - 2 else shaping.swapaxes(right, rank - 2, rank - 1)
    return product(left, right, preferred_element_type, "dot_general")


def kernel_dot(
    a: Any, b: Any, trans_a: bool = False, trans_b: bool = False, allow_tf32: Any = None, precision: Any = None
) -> array:
    """Pallas's dot: a times b, either of them transposed, accumulated and given in float32 (int32 for integers)."""
    left, right = to_array(a, "dot"), to_array(b, "dot")
    left = shaping.transpose(left) if trans_a else left
    right = shaping.transpose(right) if trans_b else right
    return product(left, right, accumulator_dtype(left.core), "dot")
