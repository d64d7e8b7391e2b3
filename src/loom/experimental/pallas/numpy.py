"""Stands in for `jax.numpy` in kernels; outside them the functions are NumPy's."""

from __future__ import annotations

from builtins import bool as _truth
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as _np

import palladium as _lpl
from loom.experimental.pallas.dispatch import dispatched as _dispatched
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
from palladium.errors import Refused as _Refused
from palladium.errors import fail as _fail
from palladium.values import array as _array_type
from palladium.values import to_array as _to_array

bool_, dtype = _np.bool_, _np.dtype
int8, int16, int32, int64 = _np.int8, _np.int16, _np.int32, _np.int64
uint8, uint16, uint32, uint64 = _np.uint8, _np.uint16, _np.uint32, _np.uint64
float16, float32, float64 = _np.float16, _np.float32, _np.float64
floating, inexact, integer, number = _np.floating, _np.inexact, _np.integer, _np.number
signedinteger, unsignedinteger = _np.signedinteger, _np.unsignedinteger
e, euler_gamma, inf, nan, newaxis, pi = _np.e, _np.euler_gamma, _np.inf, _np.nan, _np.newaxis, _np.pi
bool = _np.bool_
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
_OF_MODULES: dict[Any, tuple[str, ...]] = {
    _arranging: (
        "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "column_stack", "diag",
        "diagflat", "diagonal", "dsplit", "dstack", "flip", "fliplr", "flipud", "hsplit", "hstack", "identity",
        "indices", "linspace", "matrix_transpose", "meshgrid", "moveaxis", "roll", "rollaxis", "rot90",
        "tile", "trace", "tri", "unstack", "vsplit", "vstack",
    ),
    _numeric: (
        "allclose", "array_equal", "bitwise_count", "copysign", "degrees", "divmod", "fabs", "fmax", "fmin", "fmod",
        "frexp", "gcd", "heaviside", "isclose", "isneginf", "isposinf", "lcm", "ldexp", "logaddexp2", "modf",
        "nan_to_num", "nextafter", "radians", "signbit", "sinc",
    ),
    _ordering: ("argsort", "count_nonzero", "median", "searchsorted"),
    _products: ("einsum", "tensordot"),
    _reductions: ("average", "ptp"),
    _staging: ("take", "take_along_axis"),
}  # fmt: skip
_COMPARISONS = {
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip


def _rint(x: Any) -> Any:
    """The nearest integer as a float, halves to even."""
    return _lpl.round_even(_elementwise.floating(x, "rint"))


def _float_power(x: Any, y: Any) -> Any:
    """x to the power y, of floats: integers become float32."""
    return _lpl.power(_elementwise.floating(x, "float_power"), _elementwise.floating(y, "float_power"))


def _diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """The differences of neighbours along an axis, n times."""
    value = _to_array(a, "diff")
    place = _shaping.axis_of(axis, value.ndim, "diff")
    for _ in range(n):
        before: tuple[Any, ...] = (slice(None),) * place
        later, earlier = value[(*before, slice(1, None))], value[(*before, slice(None, -1))]
        value = later - earlier if not value.core.is_bool else _operators.xor(later, earlier)
    return value


def _outer(a: Any, b: Any) -> Any:
    """All products of an element of a and one of b."""
    left, right = (_shaping.ravel(one) for one in (a, b))
    return _lpl.multiply(_shaping.expand_dims(left, 1), _shaping.expand_dims(right, 0))


def _inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sums of products over the last dimensions."""
    left, right = _to_array(a, "inner"), _to_array(b, "inner")
    if not left.shape or not right.shape:
        return _lpl.multiply(left, right)
    axes = ((left.ndim - 1,), (right.ndim - 1,))
    return _products.contract(left, right, axes, ((), ()), preferred_element_type, "inner")


def _vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of products of all elements."""
    return _products.dot(_shaping.ravel(a), _shaping.ravel(b), preferred_element_type=preferred_element_type)


def _letters(text: str) -> Callable[..., Any]:
    def function(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
        return _products.einsum(text, x1, x2, preferred_element_type=preferred_element_type)

    return function


def _nan_fold(kind: str) -> Callable[..., Any]:
    def function(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return _ordering.nan_reduction(kind, a, axis, keepdims)

    return function


def _cumulative(fold: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: Any, /, *, axis: Any = None, dtype: Any = None) -> Any:
        value = _to_array(x, "cumulative_sum")
        if dtype is None and not value.core.is_float and value.core.bits < 32:
            dtype = uint32 if value.core.kind == "uint" else int32
        return fold(value, axis, dtype)

    return function


def _copy(a: Any) -> Any:
    """a."""
    return _to_array(a, "copy")


def _positive(x: Any) -> Any:
    """+x."""
    return _operators.positive(x)


_OTHER_NAMES: dict[str, Callable[..., Any]] = {
    "absolute": _lpl.abs, "amax": _lpl.max, "amin": _lpl.min, "acos": _lpl.arccos, "acosh": _lpl.arccosh,
    "asin": _lpl.arcsin, "asinh": _lpl.arcsinh, "around": _lpl.round_even, "atan": _lpl.arctan, "atanh": _lpl.arctanh,
    "atan2": _lpl.arctan2, "bitwise_and": _operators.and_, "bitwise_or": _operators.or_,
    "bitwise_xor": _operators.xor, "bitwise_not": _lpl.invert, "bitwise_invert": _lpl.invert,
    "bitwise_left_shift": _lpl.left_shift, "bitwise_right_shift": _lpl.right_shift, "copy": _copy,
    "cumulative_prod": _cumulative(_lpl.cumprod), "cumulative_sum": _cumulative(_lpl.cumsum),
    "deg2rad": _numeric.radians, "diff": _diff, "divide": _lpl.true_divide, "inner": _inner,
    "matvec": _letters("...mk,...k->...m"), "mod": _lpl.remainder,
    "nanmax": _nan_fold("max"), "nanmin": _nan_fold("min"), "nanprod": _nan_fold("prod"), "nansum": _nan_fold("sum"),
    "outer": _outer, "pad": _arranging.numpy_pad, "positive": _positive, "pow": _lpl.power,
    "rad2deg": _numeric.degrees, "rint": _rint, "round": _lpl.round_even, "select": _numeric.choose_by_conditions,
    "float_power": _float_power, "concat": _lpl.concatenate, "permute_dims": _lpl.transpose, "vdot": _vdot,
    "vecdot": _letters("...k,...k->..."), "vecmat": _letters("...k,...kn->...n"),
}  # fmt: skip

for _module, _names in _OF_MODULES.items():
    for _name in _names:
        globals()[_name] = _dispatched(_name, getattr(_module, _name))
for _name in _SAME:
    globals()[_name] = _dispatched(_name, getattr(_lpl, _name))
for _name, _function in _OTHER_NAMES.items():
    globals()[_name] = _dispatched(_name, _function)
for _name, _predicate in _COMPARISONS.items():
    globals()[_name] = _dispatched(_name, lambda x, y, p=_predicate: _operators.compare(p, x, y))
for _kind in ("and", "or", "xor"):
    globals()[f"logical_{_kind}"] = _dispatched(f"logical_{_kind}", lambda x, y, k=_kind: _operators.logical(k, x, y))


def _repeat_outside(a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None) -> Any:
    """NumPy's repeat, then cut or continued with the last element to a length."""
    found = _np.repeat(a, repeats, axis)
    if total_repeat_length is None:
        return found
    index = _np.minimum(_np.arange(total_repeat_length), found.shape[axis or 0] - 1)
    return _np.take(found, index, axis or 0)


def _histogram(*args: Any, **kwargs: Any) -> Any:
    """Refused in kernels."""
    instead = "count with comparisons and sums, or before the kernel"
    _fail(_Refused, what="jnp.histogram in a kernel", reason="it is not there", instead=instead)


histogram = _dispatched("histogram", _histogram)
repeat = _dispatched("repeat", _arranging.repeat, _repeat_outside)


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


def issubdtype(arg1: Any, arg2: Any) -> _truth:
    """Whether a dtype is of a kind (`floating`, `integer`, ...); the types of ml_dtypes are floats or integers."""
    own = _np.dtype(arg1)
    if own.type.__module__.startswith("ml_dtypes") and isinstance(arg2, type):
        return issubclass(_np.int8 if "int" in own.name else _np.float32, arg2) or own.type is arg2
    return _truth(_np.issubdtype(own, arg2))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that all broadcast to."""
    return _np.broadcast_shapes(*shapes)


def empty(shape: Any, dtype: Any = None) -> Any:
    """Unspecified elements: zeros."""
    return globals()["zeros"](shape, float32 if dtype is None else dtype)


def isscalar(element: Any) -> _truth:
    """Whether it is a number, or has no dimensions."""
    return element.ndim == 0 if hasattr(element, "ndim") else _truth(_np.isscalar(element))


def result_type(*args: Any) -> Any:
    """The dtype that values, dtypes and numbers promote to, by JAX's rules."""
    return _numeric.result_type(*args)


def size(a: Any, axis: int | None = None) -> int:
    """The number of elements, or of indices along an axis."""
    sizes = shape(a)
    return int(_np.prod(sizes, dtype=_np.int64)) if axis is None else sizes[axis]


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
