"""Elementwise functions."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from loom_core.base import dtype as core
from loom_core.ir.op import Op
from loom_core.ir.types import PointerType
from loom_core.ops import bits, special
from loom_core.ops import elementwise as ops
from loom_core.trace.context import active, current
from ltl import semantic
from ltl.arguments import dtype_argument, static, static_flag, static_int
from ltl.dtypes import pointer_type
from ltl.errors import WrongDtype, WrongFunction, WrongValue, fail
from ltl.operators import compare, emit, floordiv, invert, or_, truediv
from ltl.tensor import tensor


class PropagateNan(Enum):
    """What minimum, maximum and clamp do with NaN: NONE prefers the number, ALL gives NaN."""

    NONE = 0
    ALL = 0xFFFF


def _float_function(name: str, kind: type[Op], doc: str) -> Callable[[Any], tensor]:
    def function(x: Any) -> tensor:
        current(f"ltl.{name}")
        value = semantic.to_tensor(x, name, "x")
        if value.ir_type.is_pointer or value.ir_type.dtype not in (core.f32, core.f64):
            fail(WrongDtype, function=name, given=str(value.type), takes="it takes float32 and float64; use .to(...)")
        return emit(kind, value)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc} Elementwise, of float32 or float64."
    return function


exp = _float_function("exp", ops.Exp, "e to the power x.")
exp2 = _float_function("exp2", ops.Exp2, "2 to the power x.")
log = _float_function("log", ops.Log, "The natural logarithm of x.")
log2 = _float_function("log2", ops.Log2, "The logarithm of x to base 2.")
sin = _float_function("sin", ops.Sin, "The sine of x radians.")
cos = _float_function("cos", ops.Cos, "The cosine of x radians.")
sqrt = _float_function("sqrt", ops.Sqrt, "The square root of x, correctly rounded.")
sqrt_rn = _float_function("sqrt_rn", ops.Sqrt, "The square root of x, correctly rounded.")
rsqrt = _float_function("rsqrt", ops.Rsqrt, "1 / sqrt(x), both roundings done.")
erf = _float_function("erf", ops.Erf, "The error function of x.")
tanh = _float_function("tanh", ops.Tanh, "The hyperbolic tangent of x.")
floor = _float_function("floor", ops.Floor, "The largest integer not above x.")
ceil = _float_function("ceil", ops.Ceil, "The smallest integer not below x.")


def abs(x: Any) -> tensor:
    """|x|; the smallest signed integer stays itself."""
    current("ltl.abs")
    value = semantic.to_tensor(x, "abs", "x")
    if value.ir_type.is_pointer:
        fail(WrongDtype, function="abs", given="a pointer", takes="it takes numbers")
    return value if value.ir_type.dtype.kind in ("uint", "bool") else emit(ops.Abs, value)


def sigmoid(x: Any) -> tensor:
    """1 / (1 + exp(-x)), computed by just these operations."""
    value = semantic.to_tensor(x, "sigmoid", "x")
    return truediv(1, 1 + exp(-value))


def _extremum(x: Any, y: Any, propagate_nan: Any, name: str, kinds: tuple[type[Op], type[Op], type[Op]]) -> tensor:
    a, b = semantic.promote(x, y, name)
    plain, propagating, of_bools = kinds
    if a.ir_type.dtype.kind == "bool":
        return emit(of_bools, a, b)
    if not a.ir_type.dtype.is_float:
        return emit(plain, a, b)
    mode = static(propagate_nan, f"propagate_nan of {name}")
    if getattr(mode, "name", None) not in PropagateNan.__members__:
        fail(WrongValue, function=name, argument="propagate_nan", given=repr(mode), expected="a PropagateNan")
    return emit(propagating if mode.name == "ALL" else plain, a, b)


def minimum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """The smaller of x and y, elementwise; NaN as `propagate_nan` says."""
    current("ltl.minimum")
    return _extremum(x, y, propagate_nan, "minimum", (ops.Min, ops.MinPropagate, ops.And))


def maximum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """The larger of x and y, elementwise; NaN as `propagate_nan` says."""
    current("ltl.maximum")
    return _extremum(x, y, propagate_nan, "maximum", (ops.Max, ops.MaxPropagate, ops.Or))


def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """x limited to [min, max], elementwise; NaN as `propagate_nan` says."""
    current("ltl.clamp")
    value, low, high = semantic.promote_three(x, min, max, "clamp")
    return minimum(maximum(value, low, propagate_nan), high, propagate_nan)


def fma(x: Any, y: Any, z: Any) -> tensor:
    """x * y + z rounded once, elementwise, of floats."""
    current("ltl.fma")
    a, b, c = semantic.promote_three(x, y, z, "fma")
    if not a.ir_type.dtype.is_float:
        fail(WrongDtype, function="fma", given=str(a.type), takes="it takes floats")
    return emit(ops.Fma, a, b, c)


def fdiv(x: Any, y: Any, ieee_rounding: Any = False, approx: Any = False) -> tensor:
    """x / y of floats, always correctly rounded here."""
    current("ltl.fdiv")
    if static_flag(ieee_rounding, "fdiv", "ieee_rounding") and static_flag(approx, "fdiv", "approx"):
        fail(WrongValue, function="fdiv", argument="approx", given=True, expected="False with ieee_rounding")
    a, b = semantic.promote(x, y, "fdiv", division=True)
    if not a.ir_type.dtype.is_float:
        fail(WrongDtype, function="fdiv", given=str(a.type), takes="it takes floats; use / for integers")
    return emit(ops.Div, a, b)


def div_rn(x: Any, y: Any) -> tensor:
    """x / y of floats, correctly rounded."""
    return fdiv(x, y, ieee_rounding=True)


def cdiv(x: Any, div: Any) -> Any:
    """x / div rounded up: (x + (div - 1)) // div. Of two Python ints an int, also outside kernels."""
    x, div = semantic.unwrap(x), semantic.unwrap(div)
    if isinstance(x, tensor) or isinstance(div, tensor):
        return floordiv(x + (div - 1), div)
    if not (isinstance(x, int) and isinstance(div, int)):
        kinds = f"{type(x).__name__} and {type(div).__name__}"
        fail(WrongValue, function="cdiv", argument="one operand", given=kinds, expected="two ints or integer tiles")
    return -(-x // div)


def cast(input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> tensor:
    """`input` converted to `dtype`, or with `bitcast` its bits taken for that dtype.

    Floats round to nearest even, or towards zero with fp_downcast_rounding "rtz"; 8-bit floats saturate; floats to
    integers truncate, saturate, and give 0 for NaN; integers wrap; to int1 is `!= 0`.
    """
    current("ltl.cast")
    value = semantic.to_tensor(input, "cast", "input")
    if isinstance(semantic.unwrap(dtype), pointer_type):
        return _cast_pointer(value, semantic.unwrap(dtype))
    target = dtype_argument(dtype, "cast")
    rounding = static(fp_downcast_rounding, "fp_downcast_rounding of cast")
    if rounding is not None:
        _check_rounding(value, target, rounding)
    if static_flag(bitcast, "cast", "bitcast"):
        return semantic.bitcast(value, target)
    if rounding == "rtz" and value.ir_type.element != target:
        return emit(special.CastTowardZero, value, dtype=target)
    return semantic.cast(value, target)


def _check_rounding(value: tensor, target: core.DType, rounding: Any) -> None:
    if rounding not in ("rtne", "rtz"):
        expected = '"rtne" or "rtz"'
        fail(WrongValue, function="cast", argument="fp_downcast_rounding", given=repr(rounding), expected=expected)
    source = value.ir_type.element
    if source == target:
        return
    if isinstance(source, PointerType) or not (source.is_float and target.is_float and target.bits < source.bits):
        expected = "left out: only conversions to a narrower float type round"
        fail(WrongValue, function="cast", argument="fp_downcast_rounding", given=repr(rounding), expected=expected)


def _cast_pointer(value: tensor, target: pointer_type) -> tensor:
    if value.ir_type.element != target.element:
        given = f"{value.type} to {target}"
        takes = "pointers keep their type here: pass the array with the dtype that the kernel reads"
        fail(WrongDtype, function="cast", given=given, takes=takes)
    return value


def umulhi(x: Any, y: Any) -> tensor:
    """The upper half of the product of twice the width, of 32- or 64-bit integers.

    Signed integers are taken by their bits for unsigned ones, as Triton does; `libdevice.mulhi` keeps the signs.
    """
    current("ltl.umulhi")
    a, b = semantic.promote(x, y, "umulhi")
    dtype = a.ir_type.dtype
    if not dtype.is_integer or dtype.bits < 32:
        fail(WrongDtype, function="umulhi", given=str(a.type), takes="it takes 32- and 64-bit integers")
    unsigned = core.u32 if dtype.bits == 32 else core.u64
    upper = emit(bits.MultiplyHigh, semantic.bitcast(a, unsigned), semantic.bitcast(b, unsigned))
    return semantic.bitcast(upper, dtype)


def expect_zero(x: Any, mask: Any) -> Any:
    """`x`: a hint that it is 0 where `mask` holds, which debug builds of kernels check."""
    from ltl.control import device_assert

    value = semantic.operand(x, "expect_zero", "x")
    zero = compare("eq", value, 0)
    device_assert(or_(zero, invert(semantic.truth(semantic.to_tensor(mask)))), "expected 0 where the mask holds")
    return value


def map_elementwise(scalar_fn: Callable[..., Any], *args: Any, pack: Any = 1) -> Any:
    """`scalar_fn` applied to the elements of tiles, which broadcast; one tile for each scalar that it returns.

    With `pack` n > 1 it takes n neighbouring elements of each tile, and returns n results for each output. Branches in
    it are computed on both sides and selected.
    """
    from ltl import combining
    from ltl.shaping import reshape

    current("ltl.map_elementwise")
    if not args:
        fail(WrongValue, function="map_elementwise", argument="args", given="nothing", expected="one tile or more")
    tiles = [semantic.to_tensor(value, "map_elementwise", "an argument") for value in args]
    tiles = semantic.broadcast_all(tiles, "map_elementwise")
    count = static_int(pack, "map_elementwise", "pack")
    shape = tiles[0].shape
    if count < 1 or tiles[0].numel % count:
        expected = f"a divisor of the {tiles[0].numel} elements"
        fail(WrongValue, function="map_elementwise", argument="pack", given=count, expected=expected)
    elements = [element for element in combining.scalars(tiles) for _ in range(count)]
    block, types = combining.region_of(scalar_fn, elements, "map_elementwise")
    if len(types) % count:
        problem = f"it returns {len(types)} scalars, which is no multiple of pack {count}"
        fail(WrongFunction, function=getattr(scalar_fn, "__name__", "?"), use="map_elementwise", problem=problem)
    if count == 1:
        results = combining.apply_region(block, tiles)
    else:
        from ltl.rearranging import packed, unpacked

        lanes = [lane for tile in tiles for lane in unpacked(tile, count)]
        made = combining.apply_region(block, lanes)
        groups = [made[i : i + count] for i in range(0, len(made), count)]
        results = [reshape(packed(group), shape) for group in groups]
    return results[0] if len(results) == 1 else tuple(results)


def _pairwise(values: tuple[Any, ...], name: str, runtime: Callable[[Any, Any], Any], plain: Callable[..., Any]) -> Any:
    items = values[0] if len(values) == 1 and isinstance(values[0], (tuple, list)) else values
    items = [semantic.unwrap(item) for item in items]
    if not any(isinstance(item, tensor) for item in items):
        return plain(items)
    result = items[0]
    for item in items[1:]:
        result = runtime(result, item)
    return result


def builtin_min(*values: Any) -> Any:
    """Python's `min` inside kernels: of numbers a number, else the elementwise minimum."""
    import builtins

    return _pairwise(values, "min", minimum, builtins.min)


def builtin_max(*values: Any) -> Any:
    """Python's `max` inside kernels: of numbers a number, else the elementwise maximum."""
    import builtins

    return _pairwise(values, "max", maximum, builtins.max)


def builtin_abs(value: Any) -> Any:
    """Python's `abs` inside kernels."""
    import builtins

    plain = semantic.unwrap(value)
    return abs(plain) if isinstance(plain, tensor) and active() is not None else builtins.abs(plain)


__all__ = [
    "PropagateNan", "abs", "builtin_abs", "builtin_max", "builtin_min", "cast", "cdiv", "ceil", "clamp",
    "cos", "div_rn", "erf", "exp", "exp2", "expect_zero", "fdiv", "floor", "fma", "log", "log2", "map_elementwise",
    "maximum", "minimum", "rsqrt", "sigmoid", "sin", "sqrt", "sqrt_rn", "tanh", "umulhi",
]  # fmt: skip
