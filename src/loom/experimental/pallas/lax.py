"""Stands in for `jax.lax` in kernels; loops also run outside them."""

from __future__ import annotations

from builtins import map as _map
from builtins import slice as _slice
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import palladium as _lpl
from loom.experimental.pallas.dispatch import everywhere as _dispatched
from loom.experimental.pallas.dispatch import inside as _inside
from palladium import arranging as _arranging
from palladium import elementwise as _elementwise
from palladium import numeric as _numeric
from palladium import operators as _operators
from palladium import ordering as _ordering
from palladium import products as _products
from palladium import reductions as _reductions
from palladium import shaping as _shaping
from palladium import staging as _staging
from palladium.errors import WrongShape as _WrongShape
from palladium.errors import fail as _fail
from palladium.reductions import fold as _fold
from palladium.values import common_shape as _common_shape
from palladium.values import to_array as _to_array

_SAME = (
    "abs", "add", "bitcast_convert_type", "broadcast_in_dim", "broadcasted_iota", "cbrt", "ceil", "clamp",
    "cos", "cosh", "digamma", "dot_general", "erf", "erf_inv", "erfc", "exp",
    "exp2", "expand_dims", "expm1", "floor", "full", "full_like", "iota", "lgamma", "log", "log1p", "reciprocal",
    "reshape", "rsqrt", "sign", "sin", "sinh", "sqrt", "square", "squeeze", "tan", "tanh", "transpose",
)  # fmt: skip
_OTHER_NAMES: dict[str, Callable[..., Any]] = {
    "acos": _lpl.arccos, "asin": _lpl.arcsin, "atan": _lpl.arctan, "atan2": _lpl.arctan2, "acosh": _lpl.arccosh,
    "asinh": _lpl.arcsinh, "atanh": _lpl.arctanh, "bitwise_and": _operators.and_, "bitwise_or": _operators.or_,
    "bitwise_xor": _operators.xor, "bitwise_not": _lpl.invert, "div": _operators.truncated_divide,
    "rem": _operators.truncated_remainder, "integer_pow": _lpl.integer_power, "is_finite": _lpl.isfinite,
    "logistic": _lpl.sigmoid, "max": _lpl.maximum, "min": _lpl.minimum, "mul": _lpl.multiply, "neg": _lpl.negative,
    "pow": _lpl.power, "select": _lpl.where, "shift_left": _lpl.left_shift,
    "shift_right_arithmetic": _operators.right_shift_arithmetic, "sub": _lpl.subtract,
    "convert_element_type": _lpl.astype,
    "slice_in_dim": _shaping.slice_in_dim, "while_loop": _lpl.while_loop, "cond": _lpl.cond, "switch": _lpl.switch,
    "scan": _lpl.scan, "batch_matmul": _products.matmul, "clz": _numeric.clz, "cummax": _reductions.cummax,
    "cummin": _reductions.cummin, "dynamic_index_in_dim": _staging.dynamic_index_in_dim,
    "dynamic_slice": _staging.dynamic_slice, "dynamic_slice_in_dim": _staging.dynamic_slice_in_dim,
    "dynamic_update_index_in_dim": _staging.dynamic_update_index_in_dim,
    "dynamic_update_slice": _staging.dynamic_update_slice,
    "dynamic_update_slice_in_dim": _staging.dynamic_update_slice_in_dim, "mulhi": _numeric.mulhi,
    "nextafter": _numeric.nextafter, "pad": _arranging.pad, "population_count": _numeric.population_count,
    "reduce_precision": _numeric.reduce_precision, "rev": _arranging.rev,
    "shift_right_logical": _numeric.shift_right_logical, "sort_key_val": _ordering.sort_key_val,
    "split": _arranging.lax_split, "tile": _arranging.tile, "top_k": _ordering.top_k,
}  # fmt: skip
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_FOLDS = {"sum": "sum", "prod": "prod", "max": "maxp", "min": "minp", "and": "and", "or": "or", "xor": "xor"}

for _name in _SAME:
    globals()[_name] = _dispatched(_name, getattr(_lpl, _name))
for _name, _function in _OTHER_NAMES.items():
    globals()[_name] = _dispatched(_name, _function)
for _predicate in _COMPARISONS:
    globals()[_predicate] = _dispatched(_predicate, lambda x, y, p=_predicate: _operators.compare(p, x, y))


def _reduction(kind: str) -> Callable[..., Any]:
    def function(operand: Any, axes: Sequence[int]) -> Any:
        value = _to_array(operand, f"reduce_{kind}")
        plain = not value.core.is_float and kind in ("max", "min")
        return _fold(value, kind if plain else _FOLDS[kind], tuple(axes), False, f"reduce_{kind}")

    function.__name__ = function.__qualname__ = f"reduce_{kind}"
    function.__doc__ = f"The {kind} along axes."
    return function


for _kind in _FOLDS:
    globals()[f"reduce_{_kind}"] = _reduction(_kind)


class Precision(Enum):
    """Accepted by products, which are exact to float32 here in any case."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: Any = None) -> Any:
    """`for i in range(lower, upper): value = body_fun(i, value)`."""
    if _inside():
        return _lpl.fori(lower, upper, body_fun, init_val, unroll=unroll)
    value = init_val
    for i in range(lower, upper):
        value = body_fun(i, value)
    return value


def select_n(which: Any, *cases: Any) -> Any:
    """cases[which], element by element; an index outside is the nearest one."""
    if not cases:
        _fail(_WrongShape, function="select_n", problem="no cases are given")
    chosen = cases[0]
    for number, case in enumerate(cases[1:], 1):
        chosen = _lpl.where(which if len(cases) == 2 else _operators.compare("ge", which, number), case, chosen)
    return _to_array(chosen, "select_n")


class RoundingMethod(Enum):
    """Where halves go."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _round(x: Any, rounding_method: Any = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest integer, halves away from 0 unless told otherwise."""
    even = int(getattr(rounding_method, "value", rounding_method)) == RoundingMethod.TO_NEAREST_EVEN.value
    return _lpl.round_even(x) if even else _elementwise.round_away(x)


def _cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The sums of all prefixes along an axis, or with `reverse` of all suffixes."""
    return _lpl.cumsum(operand, axis, reverse=reverse)


def _cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The products of all prefixes along an axis, or with `reverse` of all suffixes."""
    return _lpl.cumprod(operand, axis, reverse=reverse)


def _sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """The elements of a tile along a dimension in order; of several tiles, by the first `num_keys` of them."""
    if isinstance(operand, (tuple, list)):
        return tuple(_ordering.sort_together(operand, dimension, num_keys))
    if num_keys != 1:
        _fail(_WrongShape, function="sort", problem=f"num_keys is {num_keys} of 1 tile")
    return _lpl.sort(operand, dimension)


def _concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Tiles behind each other along a dimension."""
    return _lpl.concatenate(operands, dimension)


_OWN: dict[str, Callable[..., Any]] = {
    "round": _round, "cumsum": _cumsum, "cumprod": _cumprod, "sort": _sort, "concatenate": _concatenate,
}  # fmt: skip
for _name, _function in _OWN.items():
    globals()[_name] = _dispatched(_name, _function)


def dot(
    a: Any, b: Any, *, dimension_numbers: Any = None, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """The product of two matrices, or what `dimension_numbers` says of any two tiles."""
    if dimension_numbers is not None:
        return _lpl.dot_general(a, b, dimension_numbers, preferred_element_type=preferred_element_type)
    return _lpl.dot(a, b, preferred_element_type=preferred_element_type)


def slice(operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Any = None) -> Any:
    """The part from start to limit, in steps, along each dimension; all known."""
    steps = strides if strides is not None else (1,) * len(start_indices)
    return operand[tuple(_map(_slice, start_indices, limit_indices, steps))]


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """One index of a dimension, known."""
    value = _to_array(operand, "index_in_dim")
    place = _shaping.axis_of(axis, value.ndim, "index_in_dim")
    part = index % value.shape[place]
    return value[(*(_slice(None),) * place, _slice(part, part + 1) if keepdims else part)]


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """Dimensions from start to before stop as one."""
    sizes = tuple(operand.shape)
    first, stop, _ = _slice(start_dimension, stop_dimension).indices(len(sizes))
    merged = 1
    for size in sizes[first:stop]:
        merged *= size
    return operand.reshape((*sizes[:first], merged, *sizes[stop:]))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that all broadcast to."""
    return _common_shape([tuple(shape) for shape in shapes], "broadcast_shapes")


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """New dimensions of size 1 in front, up to a rank."""
    value = _to_array(x, "broadcast_to_rank")
    return _lpl.reshape(value, (*(1,) * (rank - value.ndim), *value.shape))


def empty(shape: Any, dtype: Any) -> Any:
    """Unspecified elements: zeros."""
    return _lpl.zeros(shape, dtype)


def stack(operands: Sequence[Any], dimension: int = 0) -> Any:
    """Tiles side by side in a new dimension."""
    return _lpl.stack(operands, dimension)


def unstack(operand: Any, axis: int = 0) -> Any:
    """The parts of a dimension, without it."""
    return _arranging.unstack(operand, axis=axis)


def optimization_barrier(operand: Any) -> Any:
    """The operand: nothing here is rounded differently for being merged."""
    return operand


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: Any = None) -> Any:
    """f of each part along the first dimension, the results one behind the other."""
    _, results = _lpl.scan(lambda carry, x: (carry, f(x)), (), xs)
    return results


def axis_index(axis_name: Any) -> Any:
    """The index along a named axis of the grid, or of the cores."""
    return _lpl.program_id(axis_name)


def axis_size(axis_name: Any) -> Any:
    """The size of a named axis of the grid, or of the cores."""
    return _lpl.num_programs(axis_name)


def stop_gradient(x: Any) -> Any:
    """x."""
    return x


def broadcast(operand: Any, sizes: Sequence[int]) -> Any:
    """New dimensions in front."""
    value = _to_array(operand, "broadcast")
    return _lpl.broadcast_to(value, (*sizes, *value.shape))


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the first largest element."""
    return _lpl.argmax(operand, axis).astype(index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the first smallest element."""
    return _lpl.argmin(operand, axis).astype(index_dtype)
