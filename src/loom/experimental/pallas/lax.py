"""Stands in for `jax.lax` in kernels; loops also run outside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import palladium as _lpl
from loom.experimental.pallas.dispatch import dispatched as _dispatched
from loom.experimental.pallas.dispatch import inside as _inside
from palladium import operators as _operators
from palladium import shaping as _shaping
from palladium.reductions import fold as _fold
from palladium.values import to_array as _to_array

_SAME = (
    "abs", "add", "bitcast_convert_type", "broadcast_in_dim", "broadcasted_iota", "cbrt", "ceil", "clamp",
    "concatenate", "cos", "cosh", "cumprod", "cumsum", "digamma", "dot_general", "erf", "erf_inv", "erfc", "exp",
    "exp2", "expand_dims", "expm1", "floor", "full", "full_like", "iota", "lgamma", "log", "log1p", "reciprocal",
    "reshape", "rsqrt", "sign", "sin", "sinh", "sort", "sqrt", "square", "squeeze", "tan", "tanh", "transpose",
)  # fmt: skip
_OTHER_NAMES: dict[str, Callable[..., Any]] = {
    "acos": _lpl.arccos, "asin": _lpl.arcsin, "atan": _lpl.arctan, "atan2": _lpl.arctan2, "acosh": _lpl.arccosh,
    "asinh": _lpl.arcsinh, "atanh": _lpl.arctanh, "bitwise_and": _operators.and_, "bitwise_or": _operators.or_,
    "bitwise_xor": _operators.xor, "bitwise_not": _lpl.invert, "div": _operators.truncated_divide,
    "rem": _operators.truncated_remainder, "integer_pow": _lpl.integer_power, "is_finite": _lpl.isfinite,
    "logistic": _lpl.sigmoid, "max": _lpl.maximum, "min": _lpl.minimum, "mul": _lpl.multiply, "neg": _lpl.negative,
    "pow": _lpl.power, "round": _lpl.round_even, "select": _lpl.where, "shift_left": _lpl.left_shift,
    "shift_right_arithmetic": _lpl.right_shift, "sub": _lpl.subtract, "convert_element_type": _lpl.astype,
    "slice_in_dim": _shaping.slice_in_dim, "while_loop": _lpl.while_loop, "cond": _lpl.cond, "switch": _lpl.switch,
    "scan": _lpl.scan,
}  # fmt: skip
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_FOLDS = {"sum": "sum", "prod": "prod", "max": "maxp", "min": "minp", "and": "and", "or": "or"}

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
    """cases[which], element by element, of two cases."""
    off, on = cases
    return _lpl.where(which, on, off)


def dot(a: Any, b: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The product of two matrices."""
    return _lpl.dot(a, b, preferred_element_type=preferred_element_type)


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
