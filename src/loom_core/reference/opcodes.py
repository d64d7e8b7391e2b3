"""The reference of every opcode of the stream engine: what `isa.sce` promises, as functions of NumPy arrays.

Operands have the NumPy types of the row's dtypes (`DType.numpy`; bools are bool arrays), broadcast, and the result is
of the row's result type. A reduction takes one array and folds its last axis; a scan works along the last axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loom_core.base.dtype import by_name
from loom_core.isa.sce import SceOp
from loom_core.reference import arith, fold, order, reduce
from loom_core.reference.cast import cast
from loom_core.reference.double import REFERENCE_F64
from loom_core.reference.elementary import REFERENCE_F32
from loom_core.reference.integers import BOOL, INTEGER
from loom_core.reference.narrow import FORMATS, NARROW, Rounding

Array = NDArray[Any]
Reference = Callable[..., Array]

_ROUNDINGS: Final[dict[str, Rounding]] = {"cast": "nearest", "cast_sat": "saturate", "cast_rtz": "truncate"}
_FLOAT32: Final[dict[str, Callable[..., Any]]] = {
    **REFERENCE_F32,
    "mov": arith.canonical32,
    "add": arith.add32,
    "sub": arith.sub32,
    "mul": arith.mul32,
    "div": arith.div32,
    "fma": arith.fma32,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def functions_of(dtype: str) -> dict[str, Callable[..., Any]]:
    """Function name -> reference of a dtype's family, reductions excluded."""
    if dtype in FORMATS:
        return NARROW
    return {"f32": _FLOAT32, "f64": REFERENCE_F64, "bool": BOOL}.get(dtype, INTEGER)


def reference_of(op: SceOp) -> Reference:
    """The reference of an opcode; KeyError if it has none, which a test excludes."""
    if op.function in _ROUNDINGS:
        return lambda x: cast(x, by_name(op.result), _ROUNDINGS[op.function])
    if op.function == "round_mantissa":
        return round_mantissa
    if op.operands[0].isdigit():
        return np.copy
    family = op.mnemonic.rpartition(".")[2]
    if op.is_argument:
        return _argument(op.function.removeprefix("reduce_arg"))
    if op.is_scan:
        return lambda x, reverse=False: scan_last(op.function.removeprefix("scan_"), x, family, reverse)
    if op.is_reduction:
        return lambda x: reduce_last(op.function.removeprefix("reduce_"), x, family)
    function = functions_of(family)[op.function]
    return lambda *arguments: np.asarray(function(*arguments))


def round_mantissa(x: ArrayLike, bits: ArrayLike) -> NDArray[np.float32]:
    """float32 rounded to `bits` mantissa bits, to nearest even; where `bits` is not in 0..22, x itself."""
    value, kept = np.broadcast_arrays(arith.f32(x), np.asarray(bits, np.int32))
    inside = (kept >= 0) & (kept < 23) & np.isfinite(value)
    magnitude = np.abs(value).astype(np.float64)
    _, exponent = np.frexp(magnitude)
    # The last place of a subnormal number is that of the smallest normal one.
    place = np.maximum(exponent - 1, -126) - np.where(inside, kept, 23)
    rounded = np.ldexp(np.rint(np.ldexp(magnitude, -place)), place)
    with np.errstate(over="ignore"):
        result = np.copysign(rounded, value).astype(np.float32)
    return arith.canonical32(np.where(inside, result, value))


_UNORDERED: Final[dict[str, np.ufunc]] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_COMBINES: Final = {"sum": "add", "prod": "mul"}


def reduce_last(function: str, x: ArrayLike, dtype: str) -> Array:
    """The last axis folded by sum, prod, min, max, minp, maxp (floats) or sum, prod, min, max, and, or, xor."""
    array = np.asarray(x)
    if not by_name(dtype).is_float:
        with np.errstate(over="ignore"):
            return np.asarray(_UNORDERED[function].reduce(array, axis=-1, dtype=array.dtype))
    functions = functions_of(dtype)
    return reduce.fold_last(functions["mov"](array), functions[_COMBINES.get(function, function)])


def scan_last(function: str, x: ArrayLike, dtype: str, reverse: bool = False) -> Array:
    """Inclusive scan of the last axis, element after element; functions are those of `reduce_last`."""
    functions = functions_of(dtype)
    combine = functions[_COMBINES.get(function, function)]
    with np.errstate(all="ignore"):
        (result,) = fold.scan([functions["mov"](np.asarray(x))], lambda a, b: [combine(a[0], b[0])], reverse)
    return result


def _argument(name: str) -> Reference:
    """max, min, maxp or minp, with or without `_last`."""
    kind = name.removesuffix("_last")
    return lambda x: order.argument(np.asarray(x), kind.startswith("max"), kind.endswith("p"), name.endswith("_last"))


__all__: Sequence[str] = ["Reference", "functions_of", "reduce_last", "reference_of", "round_mantissa", "scan_last"]
