"""Stands in for `jax.numpy` in kernels; outside them the functions are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as _np

import palladium as _lpl
from loom.experimental.pallas.dispatch import dispatched as _dispatched
from loom.experimental.pallas.dispatch import inside as _inside
from palladium import elementwise as _elementwise
from palladium import operators as _operators
from palladium import products as _products
from palladium.values import array as _array_type
from palladium.values import to_array as _to_array

bool_, dtype = _np.bool_, _np.dtype
int8, int16, int32, int64 = _np.int8, _np.int16, _np.int32, _np.int64
uint8, uint16, uint32, uint64 = _np.uint8, _np.uint16, _np.uint32, _np.uint64
float16, float32, float64 = _np.float16, _np.float32, _np.float64
floating, inexact, integer = _np.floating, _np.inexact, _np.integer
signedinteger, unsignedinteger = _np.signedinteger, _np.unsignedinteger
e, inf, nan, newaxis, pi = _np.e, _np.inf, _np.nan, _np.newaxis, _np.pi
bfloat16 = ml_dtypes.bfloat16
float8_e4m3fn = ml_dtypes.float8_e4m3fn
float8_e5m2 = ml_dtypes.float8_e5m2
int4 = ml_dtypes.int4
uint4 = ml_dtypes.uint4
ndarray = _array_type
finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo

_SAME = (
    "abs", "add", "all", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "argmax", "argmin", "broadcast_to", "cbrt", "ceil", "clip", "concatenate", "cos", "cosh", "cumprod", "cumsum",
    "empty_like", "exp", "exp2", "expand_dims", "expm1", "eye", "floor", "floor_divide", "full", "full_like", "hypot",
    "invert", "isfinite", "isinf", "isnan", "left_shift", "log", "log10", "log1p", "log2", "logaddexp", "logical_not",
    "matmul", "max", "maximum", "mean", "min", "minimum", "multiply", "negative", "ones", "ones_like", "power", "prod",
    "ravel", "reciprocal", "remainder", "reshape", "right_shift", "sign", "sin", "sinh", "sort", "split", "sqrt",
    "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "tan", "tanh", "transpose", "tril", "triu",
    "true_divide", "trunc", "var", "where", "zeros", "zeros_like",
)  # fmt: skip
_COMPARISONS = {
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip


def _rint(x: Any) -> Any:
    """The nearest integer as a float, halves to even."""
    return _lpl.round_even(_elementwise.floating(x, "rint"))


def _float_power(x: Any, y: Any) -> Any:
    """x to the power y, of floats: integers become float32."""
    return _lpl.power(_elementwise.floating(x, "float_power"), _elementwise.floating(y, "float_power"))


_OTHER_NAMES: dict[str, Callable[..., Any]] = {
    "absolute": _lpl.abs, "amax": _lpl.max, "amin": _lpl.min, "acos": _lpl.arccos, "asin": _lpl.arcsin,
    "atan": _lpl.arctan, "atan2": _lpl.arctan2, "bitwise_and": _operators.and_, "bitwise_or": _operators.or_,
    "bitwise_xor": _operators.xor, "bitwise_not": _lpl.invert, "bitwise_invert": _lpl.invert,
    "divide": _lpl.true_divide, "mod": _lpl.remainder, "pow": _lpl.power, "rint": _rint,
    "round": _lpl.round_even, "float_power": _float_power, "concat": _lpl.concatenate, "permute_dims": _lpl.transpose,
}  # fmt: skip

for _name in _SAME:
    globals()[_name] = _dispatched(_name, getattr(_lpl, _name))
for _name, _function in _OTHER_NAMES.items():
    globals()[_name] = _dispatched(_name, _function)
for _name, _predicate in _COMPARISONS.items():
    globals()[_name] = _dispatched(_name, lambda x, y, p=_predicate: _operators.compare(p, x, y))
for _kind in ("and", "or", "xor"):
    globals()[f"logical_{_kind}"] = _dispatched(f"logical_{_kind}", lambda x, y, k=_kind: _operators.logical(k, x, y))


def dot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The product of two matrices."""
    if _inside():
        return _products.dot(a, b, preferred_element_type=preferred_element_type)
    result = _np.dot(a, b)
    return result if preferred_element_type is None else result.astype(preferred_element_type)


def array(object: Any, dtype: Any = None) -> Any:
    """A value of a number or tile, or outside kernels a NumPy array."""
    if not _inside():
        return _np.array(object, dtype)
    value = _to_array(object, "array")
    return value if dtype is None else _elementwise.astype(value, dtype)


asarray = array


def astype(x: Any, dtype: Any) -> Any:
    """x in another dtype."""
    return x.astype(dtype)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype is of a kind (`floating`, `integer`, ...); the types of ml_dtypes are floats or integers."""
    own = _np.dtype(arg1)
    if own.type.__module__.startswith("ml_dtypes") and isinstance(arg2, type):
        return issubclass(_np.int8 if "int" in own.name else _np.float32, arg2) or own.type is arg2
    return bool(_np.issubdtype(own, arg2))


def ndim(x: Any) -> int:
    """The number of dimensions."""
    return x.ndim if hasattr(x, "ndim") else _np.ndim(x)


def shape(x: Any) -> tuple[int, ...]:
    """The shape."""
    return tuple(x.shape) if hasattr(x, "shape") else _np.shape(x)


def promote_types(a: Any, b: Any) -> Any:
    """The common dtype of two, by JAX's rules."""
    from palladium.promotion import as_dtype, result_dtype

    return result_dtype([(as_dtype(a), False), (as_dtype(b), False)], "promote_types")[0].numpy
