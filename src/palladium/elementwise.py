"""Elementwise functions, with the names of jax.numpy and jax.lax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loom_core.base import dtype as core
from loom_core.ir.op import Op
from loom_core.ops import elementwise as ops
from loom_core.ops import special
from palladium import operators, promotion
from palladium.errors import WrongDtype, fail
from palladium.values import array, broadcast, convert, emit, full, known_scalar, promote, to_array


def floating(x: Any, function: str) -> array:
    """An operand as a float; integers and bool become float32."""
    value = to_array(x, function)
    return value if value.core.is_float else convert(value, core.f64 if value.core.bits == 64 else core.f32)


def float_unary(kind: type[Op], x: Any, function: str) -> array:
    """A function of floats; of 16 bits and less computed in float32 and rounded once."""
    value = floating(x, function)
    dtype, weak = value.core, value.weak
    made = emit(kind, convert(value, core.f32) if dtype.bits < 32 else value)
    result = convert(made, dtype)
    result.weak = weak
    return result


def _define(name: str, kind: type[Op], text: str) -> Callable[[Any], array]:
    def function(x: Any) -> array:
        return float_unary(kind, x, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text} Elementwise; integers become float32."
    return function


exp = _define("exp", ops.Exp, "e to the power x.")
exp2 = _define("exp2", ops.Exp2, "2 to the power x.")
expm1 = _define("expm1", special.Expm1, "exp(x) - 1, exact near 0.")
log = _define("log", ops.Log, "The natural logarithm of x.")
log2 = _define("log2", ops.Log2, "The logarithm of x to base 2.")
log10 = _define("log10", special.Log10, "The logarithm of x to base 10.")
log1p = _define("log1p", special.Log1p, "log(1 + x), exact near 0.")
sqrt = _define("sqrt", ops.Sqrt, "The square root of x, correctly rounded.")
rsqrt = _define("rsqrt", ops.Rsqrt, "1 / sqrt(x), both roundings done.")
cbrt = _define("cbrt", special.CubeRoot, "The cube root of x.")
sin = _define("sin", ops.Sin, "The sine of x radians.")
cos = _define("cos", ops.Cos, "The cosine of x radians.")
tan = _define("tan", special.Tan, "The tangent of x radians.")
arcsin = _define("arcsin", special.Asin, "The angle in radians whose sine is x.")
arccos = _define("arccos", special.Acos, "The angle in radians whose cosine is x.")
arctan = _define("arctan", special.Atan, "The angle in radians whose tangent is x.")
sinh = _define("sinh", special.Sinh, "The hyperbolic sine of x.")
cosh = _define("cosh", special.Cosh, "The hyperbolic cosine of x.")
tanh = _define("tanh", ops.Tanh, "The hyperbolic tangent of x.")
arcsinh = _define("arcsinh", special.Asinh, "The inverse of sinh.")
arccosh = _define("arccosh", special.Acosh, "The inverse of cosh.")
arctanh = _define("arctanh", special.Atanh, "The inverse of tanh.")
sigmoid = _define("sigmoid", ops.Sigmoid, "1 / (1 + exp(-x)).")
erf = _define("erf", ops.Erf, "The error function of x.")
erfc = _define("erfc", special.Erfc, "1 - erf(x), exact where erf(x) is near 1.")
erf_inv = _define("erf_inv", special.ErfInverse, "The inverse of erf.")
lgamma = _define("lgamma", special.LogGamma, "The logarithm of |gamma(x)|.")


def digamma(x: Any) -> array:
    """The derivative of lgamma; NaN at 0 and the negative integers. Elementwise; integers become float32."""
    value = floating(x, "digamma")
    pole = operators.compare("eq", value, known_scalar(0.0, value.core))
    return operators.select(pole, float("nan"), float_unary(special.Digamma, value, "digamma"))


def _rounding(kind: type[Op], x: Any, function: str) -> array:
    """A function of floats that leaves integers and bool as they are."""
    value = to_array(x, function)
    return float_unary(kind, value, function) if value.core.is_float else value


def floor(x: Any) -> array:
    """The largest integer not above x."""
    return _rounding(ops.Floor, x, "floor")


def ceil(x: Any) -> array:
    """The smallest integer not below x."""
    return _rounding(ops.Ceil, x, "ceil")


def trunc(x: Any) -> array:
    """x without its fraction."""
    return _rounding(ops.Truncate, x, "trunc")


def round_even(x: Any, decimals: int = 0) -> array:
    """The nearest number with so many decimals, halves to even; with decimals it is round(x * 10**n) / 10**n."""
    value = to_array(x, "round")
    if decimals == 0 or (decimals > 0 and not value.core.is_float):
        return _rounding(ops.RoundEven, value, "round")
    if not value.core.is_float:
        fail(WrongDtype, function="round", given=f"{value} and decimals={decimals}", takes="convert it to a float")
    wide = convert(value, core.f32) if value.core.bits < 32 else value
    factor = known_scalar(10.0**decimals, wide.core)
    rounded = _rounding(ops.RoundEven, operators.multiply(wide, factor), "round")
    return convert(operators.true_divide(rounded, factor), value.core)


def round_away(x: Any) -> array:
    """The nearest integer, halves away from 0."""
    value = to_array(x, "round")
    whole = trunc(value)
    if not value.core.is_float:
        return whole
    half = operators.compare("ge", abs(operators.subtract(value, whole)), 0.5)
    step = operators.select(operators.compare("lt", value, 0.0), -1.0, 1.0)
    return operators.select(half, operators.add(whole, step), whole)


def abs(x: Any) -> array:
    """|x|; the smallest signed integer stays itself."""
    value = to_array(x, "abs")
    return value if value.core.kind in ("uint", "bool") else emit(ops.Abs, value)


def sign(x: Any) -> array:
    """-1, 0 or 1 by the sign of x; NaN and -0 stay."""
    value = to_array(x, "sign")
    zero = known_scalar(0, value.core)
    one = known_scalar(1, value.core)
    if value.core.kind in ("uint", "bool"):
        return operators.select(operators.compare("ne", value, zero), one, zero)
    nonzero = operators.select(operators.compare("lt", value, zero), known_scalar(-1, value.core), one)
    special_case = operators.compare("eq", value, zero)
    if value.core.is_float:
        special_case = operators.logical("or", special_case, isnan(value))
    return operators.select(special_case, value, nonzero)


def square(x: Any) -> array:
    """x * x."""
    value = operators.without_bool(to_array(x, "square"))
    return operators.multiply(value, value)


def reciprocal(x: Any, approx: Any = False, full_range: Any = False) -> array:
    """1 / x, correctly rounded: `approx` means nothing here."""
    value = floating(x, "reciprocal")
    return operators.true_divide(known_scalar(1.0, core.f32, weak=True), value)


def isnan(x: Any) -> array:
    """Whether x is NaN."""
    value = to_array(x, "isnan")
    return emit(ops.IsNan, value) if value.core.is_float else full_like_bool(value, False)


def isinf(x: Any) -> array:
    """Whether x is infinite."""
    value = floating(x, "isinf")
    return operators.compare("eq", abs(value), known_scalar(float("inf"), value.core))


def isfinite(x: Any) -> array:
    """Whether x is neither infinite nor NaN."""
    value = floating(x, "isfinite")
    return operators.compare("lt", abs(value), known_scalar(float("inf"), value.core))


def full_like_bool(value: array, flag: bool) -> array:
    """A bool in the shape of a value."""
    return full(value.shape, flag, core.bool_)


def maximum(x: Any, y: Any) -> array:
    """The larger of x and y; NaN where one of them is."""
    return operators.binary(ops.MaxPropagate, x, y, "maximum")


def minimum(x: Any, y: Any) -> array:
    """The smaller of x and y; NaN where one of them is."""
    return operators.binary(ops.MinPropagate, x, y, "minimum")


def clip(x: Any, min: Any = None, max: Any = None) -> array:
    """x limited to [min, max]; None leaves a side open."""
    value = to_array(x, "clip")
    if min is not None:
        value = maximum(min, value)
    return value if max is None else minimum(max, value)


def clamp(min: Any, x: Any, max: Any) -> array:
    """x limited to [min, max] (lax.clamp)."""
    return minimum(maximum(min, x), max)


def where(condition: Any, x: Any = None, y: Any = None) -> array:
    """x where the condition holds, else y; both are computed."""
    if x is None or y is None:
        fail(WrongDtype, function="where", given="a condition alone", takes="give what it chooses from: where(c, x, y)")
    return operators.select(condition, x, y)


def logical_not(x: Any) -> array:
    """Whether x is 0."""
    return operators.invert(convert(to_array(x, "logical_not"), core.bool_))


def fma(x: Any, y: Any, z: Any) -> array:
    """x * y + z rounded once, of floats."""
    (a, b, c), _ = promote("fma", x, y, z)
    if not a.core.is_float:
        fail(WrongDtype, function="fma", given=str(a), takes="it takes floats")
    return emit(ops.Fma, *broadcast([a, b, c], "fma"))


def float_binary(kind: type[Op], x: Any, y: Any, function: str) -> array:
    """A function of two floats; of 16 bits and less computed in float32 and rounded once."""
    (a, b), _ = promote(function, x, y)
    a, b = floating(a, function), floating(b, function)
    dtype = a.core
    if dtype.bits < 32:
        a, b = convert(a, core.f32), convert(b, core.f32)
    return convert(operators.combine(kind, a, b, function), dtype)


def arctan2(y: Any, x: Any) -> array:
    """The angle of the point (x, y)."""
    return float_binary(special.Atan2, y, x, "arctan2")


def hypot(x: Any, y: Any) -> array:
    """sqrt(x*x + y*y) without overflow inside."""
    return float_binary(special.Hypot, x, y, "hypot")


def logaddexp(x: Any, y: Any) -> array:
    """log(exp(x) + exp(y)), computed by maximum, exp and log1p."""
    (a, b), _ = promote("logaddexp", x, y)
    a, b = floating(a, "logaddexp"), floating(b, "logaddexp")
    top = maximum(a, b)
    difference = operators.subtract(a, b)
    total = operators.add(top, log1p(exp(operators.negative(abs(difference)))))
    return operators.select(isnan(difference), operators.add(a, b), total)


def astype(x: Any, dtype: Any) -> array:
    """x in another dtype: floats round to nearest even, float to integer truncates and saturates."""
    return convert(to_array(x, "astype"), promotion.as_dtype(dtype))


def bitcast_convert_type(x: Any, dtype: Any) -> array:
    """The same bits as another dtype of equal width."""
    value, target = to_array(x, "bitcast"), promotion.as_dtype(dtype)
    if value.core.bits != target.bits:
        fail(WrongDtype, function="a bitcast", given=f"{value.core.name} to {target.name}", takes="their widths differ")
    return value if value.core is target else emit(ops.Bitcast, value, dtype=target)


# ---- activations -----------------------------------------------------------------------------------------------------


def relu(x: Any) -> array:
    """max(x, 0)."""
    return maximum(x, 0)


def silu(x: Any) -> array:
    """x * sigmoid(x)."""
    return operators.multiply(x, float_unary(ops.Sigmoid, x, "sigmoid"))


def softplus(x: Any) -> array:
    """log(1 + exp(x))."""
    return logaddexp(x, 0)


def gelu(x: Any, approximate: Any = True) -> array:
    """The Gaussian error linear unit, by tanh (JAX's default) or, with approximate=False, by erfc."""
    value = floating(x, "gelu")
    if approximate:
        inner = operators.multiply(
            0.7978845608028654, operators.add(value, operators.multiply(0.044715, operators.power(value, 3)))
        )
        cdf = operators.multiply(0.5, operators.add(1.0, float_unary(ops.Tanh, inner, "tanh")))
        return operators.multiply(value, cdf)
    scaled = operators.multiply(operators.negative(value), 0.7071067811865476)
    return operators.multiply(operators.multiply(0.5, value), float_unary(special.Erfc, scaled, "erfc"))
