"""Reductions along an axis, and what is composed of them."""

from __future__ import annotations

from typing import Any

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.ir.value import Value
from loom_core.ops.reduction import Reduce
from loom_core.trace.context import current
from ltl import functions, semantic
from ltl.arguments import axis_argument, dtype_argument, static, static_flag
from ltl.errors import NotYet, WrongDtype, WrongRank, fail
from ltl.shaping import expand_dims, reshape
from ltl.tensor import tensor


def sum(input: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None) -> tensor:
    """The sum along `axis` (of all elements if it is None).

    Computes in `dtype`, by default that of `input`, int32 or uint32 for narrower integers. Floats are added in the
    fixed order of docs/numerics.md.
    """
    value = _input(input, "sum")
    wanted = static(dtype, "the dtype of sum")
    target = _sum_dtype(value.ir_type.dtype) if wanted is None else dtype_argument(wanted, "sum")
    return _reduce(semantic.cast(value, target), "sum", axis, keep_dims, "sum")


def _sum_dtype(dtype: DType) -> DType:
    if dtype.is_float or dtype.bits >= 32:
        return dtype
    return core.i32 if dtype.kind == "int" else core.u32


def prod(input: Any, axis: Any = None, keep_dims: Any = False) -> tensor:
    """The product along `axis` (of all elements if it is None); floats in the fixed order of docs/numerics.md."""
    value = _input(input, "prod")
    return _reduce(value, "prod", axis, keep_dims, "prod")


def max(
    input: Any,
    axis: Any = None,
    return_indices: Any = False,
    return_indices_tie_break_left: Any = True,
    keep_dims: Any = False,
) -> tensor:
    """The maximum along `axis` (of all elements if it is None); NaN loses to numbers. Narrow dtypes become 32-bit."""
    return _extremum(input, axis, return_indices, keep_dims, "max")


def min(
    input: Any,
    axis: Any = None,
    return_indices: Any = False,
    return_indices_tie_break_left: Any = True,
    keep_dims: Any = False,
) -> tensor:
    """The minimum along `axis` (of all elements if it is None); NaN loses to numbers. Narrow dtypes become 32-bit."""
    return _extremum(input, axis, return_indices, keep_dims, "min")


def _extremum(input: Any, axis: Any, return_indices: Any, keep_dims: Any, function: str) -> tensor:
    value = _input(input, function)
    if static_flag(return_indices, function, "return_indices"):
        fail(NotYet, what=f"{function} with return_indices", instead="only the values can be had")
    dtype = value.ir_type.dtype
    if dtype.bits < 32:
        value = semantic.cast(value, core.f32 if dtype.is_float else core.i32)
    return _reduce(value, function, axis, keep_dims, function)


def xor_sum(input: Any, axis: Any = None, keep_dims: Any = False) -> tensor:
    """The exclusive or of the integers along `axis` (of all elements if it is None)."""
    value = _input(input, "xor_sum")
    if value.ir_type.dtype.is_float:
        fail(WrongDtype, function="xor_sum", given=str(value.type), takes="it takes integers")
    return _reduce(value, "xor", axis, keep_dims, "xor_sum")


def reduce_or(input: Any, axis: Any = None, keep_dims: Any = False) -> tensor:
    """The bitwise or of the integers along `axis` (of all elements if it is None)."""
    value = _input(input, "reduce_or")
    if value.ir_type.dtype.is_float:
        fail(WrongDtype, function="reduce_or", given=str(value.type), takes="it takes integers")
    return _reduce(value, "or", axis, keep_dims, "reduce_or")


def _input(input: Any, function: str) -> tensor:
    current(f"ltl.{function}")
    value = semantic.to_tensor(input, function, "input")
    if value.ir_type.is_pointer:
        fail(WrongDtype, function=function, given="pointers", takes="load from them first")
    if not value.shape:
        fail(WrongRank, function=function, expected="a tile", given="a scalar")
    return value


def _reduce(value: tensor, kind: str, axis: Any, keep_dims: Any, function: str) -> tensor:
    shape = value.shape
    keep = static_flag(keep_dims, function, "keep_dims")
    wanted = static(axis, f"the axis of {function}")
    if wanted is None:
        place, value = 0, reshape(value, value.numel)
    else:
        place = axis_argument(wanted, len(shape), function)
    made: Value = current().builder.create(Reduce, value.value, kind=kind, axis=place)
    result = tensor(made.type, made)
    if not keep:
        return result
    if wanted is None:
        return semantic.to_shape(result, (1,) * len(shape))
    return expand_dims(result, place)


def softmax(x: Any, dim: Any = None, *, keep_dims: Any = None, ieee_rounding: Any = False) -> tensor:
    """exp(x - max) / sum(exp(x - max)) along `dim`, by default 0 (not the last dimension)."""
    value = _input(x, "softmax")
    wanted = static(dim, "the dim of softmax")
    axis = 0 if wanted is None else wanted
    shifted = value - max(value, axis, keep_dims=True)
    weights = functions.exp(shifted)
    return functions.fdiv(weights, sum(weights, axis, keep_dims=True))
