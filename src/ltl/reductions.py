"""Reductions along an axis, and what is composed of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.ir.value import Value
from loom_core.ops.reduction import Reduce, ReduceRegion, recognised
from loom_core.ops.shape import Iota
from loom_core.trace.context import current
from ltl import functions, semantic
from ltl.arguments import axis_argument, dtype_argument, static, static_flag
from ltl.combining import combine_region, scalars, tiles_of
from ltl.errors import ShapesDiffer, WrongDtype, WrongRank, WrongValue, fail
from ltl.operators import compare, emit, where
from ltl.shaping import expand_dims, reshape
from ltl.tensor import tensor


def reduce(input: Any, axis: Any, combine_fn: Callable[..., Any], keep_dims: Any = False) -> Any:
    """Fold `input`, a tile or a tuple of tiles of one shape, along `axis` (all elements if it is None) by `combine_fn`.

    `combine_fn` takes one scalar of each tile, and again one of each, and returns one of each. A function that only
    adds, multiplies, takes a minimum, maximum, and, or, exclusive or is folded as `sum` and its kin are; others as a
    tree of neighbours (docs/numerics.md).
    """
    current("ltl.reduce")
    single = not isinstance(input, (tuple, list))
    values = [tile_operand(value, "reduce") for value in ((input,) if single else input)]
    place, values, shape = _along(axis, values, "reduce")
    block = combine_region(combine_fn, scalars(values), "reduce")
    kind = recognised(block) if len(values) == 1 else None
    create = current().builder.create
    if kind is not None:
        made: Any = create(Reduce, values[0].value, kind=kind, axis=place)
    else:
        made = create(ReduceRegion, [value.value for value in values], regions=[block], axis=place)
    results = tiles_of([made] if isinstance(made, Value) else made)
    keep = static_flag(keep_dims, "reduce", "keep_dims")
    kept = [_kept(result, axis, place, shape) if keep else result for result in results]
    return kept[0] if single else tuple(kept)


def _along(axis: Any, values: list[tensor], function: str) -> tuple[int, list[tensor], tuple[int, ...]]:
    """The axis to fold, the tiles (flattened where all elements fold), and their shape before."""
    if not values:
        fail(WrongValue, function=function, argument="input", given="an empty tuple", expected="one tile or more")
    shape = values[0].shape
    for value in values:
        if value.shape != shape:
            hint = "tiles that are folded together have one shape"
            fail(ShapesDiffer, function=function, first=shape, second=value.shape, hint=hint)
    if static(axis, f"the axis of {function}") is None:
        return 0, [reshape(value, value.numel) for value in values], shape
    return axis_argument(axis, len(shape), function), values, shape


def _kept(result: tensor, axis: Any, place: int, shape: tuple[int, ...]) -> tensor:
    """A folded tile with the folded dimensions back, of size 1."""
    if static(axis, "the axis") is None:
        return semantic.to_shape(result, (1,) * len(shape))
    return expand_dims(result, place)


def sum(input: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None) -> tensor:
    """The sum along `axis` (of all elements if it is None).

    Computes in `dtype`, by default that of `input`, int32 or uint32 for narrower integers. Floats are added in the
    fixed order of docs/numerics.md.
    """
    return _reduce(sum_operand(input, dtype, "sum"), "sum", axis, keep_dims, "sum")


def sum_operand(input: Any, dtype: Any, function: str) -> tensor:
    """What sums and products run over: `input` in `dtype`, by default its own, narrow integers in 32 bits."""
    value = tile_operand(input, function)
    wanted = static(dtype, f"the dtype of {function}")
    target = _wide_dtype(value.ir_type.dtype) if wanted is None else dtype_argument(wanted, function)
    return semantic.cast(value, target)


def _wide_dtype(dtype: DType) -> DType:
    if dtype.is_float or dtype.bits >= 32:
        return dtype
    return core.i32 if dtype.kind == "int" else core.u32


def prod(input: Any, axis: Any = None, keep_dims: Any = False) -> tensor:
    """The product along `axis` (of all elements if it is None); floats in the fixed order of docs/numerics.md."""
    return _reduce(tile_operand(input, "prod"), "prod", axis, keep_dims, "prod")


def max(
    input: Any,
    axis: Any = None,
    return_indices: Any = False,
    return_indices_tie_break_left: Any = True,
    keep_dims: Any = False,
) -> Any:
    """The maximum along `axis` (of all elements if it is None), and with `return_indices` also where it stands.

    Numbers win over NaN. Without indices, narrow dtypes become 32-bit. The index is that of the first of equal
    elements, whatever `return_indices_tie_break_left` says, and 0 where all elements are NaN.
    """
    return _extremum(input, axis, return_indices, keep_dims, "max")


def min(
    input: Any,
    axis: Any = None,
    return_indices: Any = False,
    return_indices_tie_break_left: Any = True,
    keep_dims: Any = False,
) -> Any:
    """The minimum along `axis` (of all elements if it is None); else as `max`."""
    return _extremum(input, axis, return_indices, keep_dims, "min")


def argmax(input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> tensor:
    """Where the maximum along `axis` stands, int32; the first of equal elements. Numbers win over NaN."""
    _, index = max(input, axis, True, tie_break_left, keep_dims)
    return index  # type: ignore[no-any-return]


def argmin(input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> tensor:
    """Where the minimum along `axis` stands, int32; the first of equal elements. Numbers win over NaN."""
    _, index = min(input, axis, True, tie_break_left, keep_dims)
    return index  # type: ignore[no-any-return]


def _extremum(input: Any, axis: Any, return_indices: Any, keep_dims: Any, function: str) -> Any:
    value = tile_operand(input, function)
    if static_flag(return_indices, function, "return_indices"):
        return extremum_with_index(value, axis, keep_dims, function)
    dtype = value.ir_type.dtype
    if dtype.bits < 32:
        value = semantic.cast(value, core.f32 if dtype.is_float else core.i32)
    return _reduce(value, function, axis, keep_dims, function)


def extremum_with_index(value: tensor, axis: Any, keep_dims: Any, kind: str) -> tuple[tensor, tensor]:
    """The extreme element and the first index at which it stands."""
    place, (tile,), shape = _along(axis, [value], kind)
    extreme = _fold(tile, kind, place)
    size = tile.shape[place]
    positions = along_axis(iota(size), place, tile.shape)
    hit = compare("eq", tile, expand_dims(extreme, place))
    # A tile of NaN alone equals nothing: its index would be `size`.
    first = _fold(where(hit, positions, size), "min", place)
    index = where(compare("eq", first, size), 0, first)
    if static_flag(keep_dims, kind, "keep_dims"):
        return _kept(extreme, axis, place, shape), _kept(index, axis, place, shape)
    return extreme, index


def iota(size: int) -> tensor:
    """0, 1, ... size - 1 as int32."""
    made: Value = current().builder.create(Iota, start=0, end=size)
    return tensor(made.type, made)


def along_axis(row: tensor, axis: int, shape: tuple[int, ...]) -> tensor:
    """A tile of `shape` whose elements are those of `row` by their index along `axis`."""
    sizes = [1] * len(shape)
    sizes[axis] = shape[axis]
    return semantic.to_shape(reshape(row, tuple(sizes)), shape)


def xor_sum(input: Any, axis: Any = None, keep_dims: Any = False) -> tensor:
    """The exclusive or of the integers along `axis` (of all elements if it is None)."""
    return _reduce(_integers(input, "xor_sum"), "xor", axis, keep_dims, "xor_sum")


def reduce_or(input: Any, axis: Any, keep_dims: Any = False) -> tensor:
    """The bitwise or of the integers along `axis` (of all elements if it is None)."""
    return _reduce(_integers(input, "reduce_or"), "or", axis, keep_dims, "reduce_or")


def _integers(input: Any, function: str) -> tensor:
    value = tile_operand(input, function)
    if value.ir_type.dtype.is_float:
        fail(WrongDtype, function=function, given=str(value.type), takes="it takes integers")
    return value


def tile_operand(input: Any, function: str) -> tensor:
    """A tile of numbers. Diagnostics for pointers and scalars."""
    current(f"ltl.{function}")
    value = semantic.to_tensor(input, function, "input")
    if value.ir_type.is_pointer:
        fail(WrongDtype, function=function, given="pointers", takes="load from them first")
    if not value.shape:
        fail(WrongRank, function=function, expected="a tile", given="a scalar")
    return value


def _fold(value: tensor, kind: str, axis: int) -> tensor:
    # Sums and products of truth values are those of the integers modulo 2.
    if value.ir_type.dtype.is_bool:
        kind = {"sum": "xor", "prod": "and", "max": "or", "min": "and"}.get(kind, kind)
    return emit(Reduce, value, kind=kind, axis=axis)


def _reduce(value: tensor, kind: str, axis: Any, keep_dims: Any, function: str) -> tensor:
    place, (tile,), shape = _along(axis, [value], function)
    result = _fold(tile, kind, place)
    return _kept(result, axis, place, shape) if static_flag(keep_dims, function, "keep_dims") else result


def softmax(x: Any, dim: Any = None, *, keep_dims: Any = None, ieee_rounding: Any = False) -> tensor:
    """exp(x - max) / sum(exp(x - max)) along `dim`, by default 0 (not the last dimension)."""
    value = tile_operand(x, "softmax")
    wanted = static(dim, "the dim of softmax")
    axis = 0 if wanted is None else wanted
    shifted = value - max(value, axis, keep_dims=True)
    weights = functions.exp(shifted)
    return functions.fdiv(weights, sum(weights, axis, keep_dims=True))


__all__ = [
    "argmax", "argmin", "extremum_with_index", "max", "min", "prod", "reduce", "reduce_or", "softmax", "sum", "xor_sum",
]  # fmt: skip
