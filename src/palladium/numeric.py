"""Elementwise functions of jax.numpy and jax.lax that are composed of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.ops import elementwise as ops
from loom_core.ops import special
from palladium import elementwise, operators, promotion, reductions
from palladium.elementwise import exp2, expm1, floating, isnan, log1p, maximum, minimum
from palladium.errors import WrongDtype, WrongShape, fail
from palladium.operators import add, compare, logical, multiply, select, subtract, true_divide
from palladium.values import array, broadcast, convert, emit, full, known_scalar, promote, to_array

_LN_2: Final = math.log(2.0)


def like(number: float, value: array) -> array:
    """A number of a value's dtype."""
    return known_scalar(number, value.core)


# ---- angles and logarithms -------------------------------------------------------------------------------------------


def radians(x: Any) -> array:
    """Degrees as radians."""
    value = floating(x, "radians")
    return multiply(value, like(math.pi / 180, value))


def degrees(x: Any) -> array:
    """Radians as degrees."""
    value = floating(x, "degrees")
    return multiply(value, like(180 / math.pi, value))


def sinc(x: Any) -> array:
    """sin(pi x) / (pi x), 1 at 0."""
    value = floating(x, "sinc")
    zero = compare("eq", value, 0.0)
    turn = multiply(value, like(math.pi, value))
    safe = select(zero, like(1.0, value), turn)
    return select(zero, like(1.0, value), true_divide(elementwise.sin(safe), safe))


def logaddexp2(x1: Any, x2: Any) -> array:
    """log2(2**x1 + 2**x2), computed by maximum, exp2 and log1p."""
    (a, b), _ = promote("logaddexp2", x1, x2)
    a, b = floating(a, "logaddexp2"), floating(b, "logaddexp2")
    difference = subtract(a, b)
    tail = true_divide(log1p(exp2(operators.negative(elementwise.abs(difference)))), like(_LN_2, a))
    return select(isnan(difference), add(a, b), add(maximum(a, b), tail))


# ---- parts of numbers ------------------------------------------------------------------------------------------------


def signbit(x: Any) -> array:
    """Whether the sign is minus, of -0 and NaN too."""
    value = to_array(x, "signbit")
    if not value.core.is_float:
        return compare("lt", value, like(0, value)) if value.core.kind == "int" else _all(value, False)
    wide = convert(value, core.f32) if value.core.bits < 32 else value
    integer = core.i64 if wide.core.bits == 64 else core.i32
    return compare("lt", elementwise.bitcast_convert_type(wide, integer), known_scalar(0, integer))


def _all(value: array, flag: bool) -> array:
    return full(value.shape, flag, core.bool_)


def _of_floats(kind: Any, x: Any, y: Any, function: str) -> array:
    (a, b), _ = promote(function, x, y)
    return emit(kind, *broadcast([floating(a, function), floating(b, function)], function))


def copysign(x1: Any, x2: Any) -> array:
    """The magnitude of x1 with the sign of x2."""
    return _of_floats(special.CopySign, x1, x2, "copysign")


def nextafter(x: Any, y: Any) -> array:
    """The next number of the dtype after x in the direction of y."""
    return _of_floats(special.NextAfter, x, y, "nextafter")


def ldexp(x1: Any, x2: Any) -> array:
    """x1 * 2**x2, rounded once."""
    value, exponent = floating(x1, "ldexp"), to_array(x2, "ldexp")
    if exponent.core.is_float:
        fail(WrongDtype, function="ldexp", given=str(exponent), takes="exponents are integers")
    a, b = broadcast([value, convert(exponent, core.i32)], "ldexp")
    return emit(special.Ldexp, a, b)


def frexp(x: Any) -> tuple[array, array]:
    """Fraction in [0.5, 1) by magnitude, and exponent, int32: x = fraction * 2**exponent."""
    value = floating(x, "frexp")
    return emit(special.FrexpFraction, value), emit(special.FrexpExponent, value)


def modf(x: Any) -> tuple[array, array]:
    """Fraction and whole part, both with the sign of x."""
    value = floating(x, "modf")
    whole = elementwise.trunc(value)
    return subtract(value, whole), whole


def divmod(x1: Any, x2: Any) -> tuple[array, array]:
    """floor_divide and remainder."""
    return operators.floor_divide(x1, x2), operators.remainder(x1, x2)


def fmod(x1: Any, x2: Any) -> array:
    """The remainder of the truncated division, with the sign of x1; of integers 0 for a divisor of 0."""
    (a, b), _ = promote("fmod", x1, x2)
    truths = a.core.is_bool
    a, b = operators.without_bool(a), operators.without_bool(b)
    if not a.core.is_float and not truths:
        b = select(compare("eq", b, 0), like(1, b), b)
    return operators.truncated_remainder(a, b)


def fmax(x1: Any, x2: Any) -> array:
    """The larger of x1 and x2; a number rather than NaN."""
    return operators.binary(ops.Max, x1, x2, "fmax")


def fmin(x1: Any, x2: Any) -> array:
    """The smaller of x1 and x2; a number rather than NaN."""
    return operators.binary(ops.Min, x1, x2, "fmin")


def fabs(x: Any) -> array:
    """|x| as a float."""
    return elementwise.abs(floating(x, "fabs"))


def heaviside(x1: Any, x2: Any) -> array:
    """0 below 0, 1 above, x2 at 0; NaN stays."""
    (a, b), _ = promote("heaviside", x1, x2)
    a, b = floating(a, "heaviside"), floating(b, "heaviside")
    at_zero = select(isnan(a), a, b)
    above = select(compare("gt", a, 0.0), like(1.0, a), at_zero)
    return select(compare("lt", a, 0.0), like(0.0, a), above)


def isposinf(x: Any) -> array:
    """Whether x is +infinity."""
    value = to_array(x, "isposinf")
    return compare("eq", value, like(math.inf, value)) if value.core.is_float else _all(value, False)


def isneginf(x: Any) -> array:
    """Whether x is -infinity."""
    value = to_array(x, "isneginf")
    return compare("eq", value, like(-math.inf, value)) if value.core.is_float else _all(value, False)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> array:
    """NaN as `nan`, infinities as the largest numbers of the dtype or what is given."""
    value = to_array(x, "nan_to_num")
    if not value.core.is_float:
        return value
    limits: Any = ml_dtypes.finfo(value.core.numpy)  # type: ignore[no-untyped-call]
    high, low = float(limits.max) if posinf is None else posinf, float(limits.min) if neginf is None else neginf
    found = select(isnan(value), convert(to_array(nan, "nan_to_num"), value.core), value)
    found = select(isposinf(found), convert(to_array(high, "nan_to_num"), value.core), found)
    return select(isneginf(found), convert(to_array(low, "nan_to_num"), value.core), found)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> array:
    """Whether |a - b| <= atol + rtol * |b|, or a and b are equal."""
    (x, y), _ = promote("isclose", a, b)
    x, y = floating(x, "isclose"), floating(y, "isclose")
    relative, absolute = (convert(to_array(one, "isclose"), x.core) for one in (rtol, atol))
    near = compare("le", elementwise.abs(subtract(x, y)), add(absolute, multiply(relative, elementwise.abs(y))))
    found = logical("or", compare("eq", x, y), logical("and", elementwise.isfinite(y), near))
    return logical("or", found, logical("and", isnan(x), isnan(y))) if equal_nan else found


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> array:
    """Whether all elements are close."""
    return reductions.all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> array:
    """Whether shapes and all elements are equal."""
    x, y = to_array(a1, "array_equal"), to_array(a2, "array_equal")
    if x.shape != y.shape:
        return known_scalar(False, core.bool_)
    same = compare("eq", x, y)
    if equal_nan and x.core.is_float and y.core.is_float:
        same = logical("or", same, logical("and", isnan(x), isnan(y)))
    return reductions.all(same)


def choose_by_conditions(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> array:
    """The choice of the first condition that holds (jnp.select)."""
    if len(condlist) != len(choicelist) or not condlist:
        problem = f"{len(condlist)} conditions for {len(choicelist)} choices"
        fail(WrongShape, function="select", problem=problem)
    (first, *_), _ = promote("select", *choicelist, default)
    found: Any = convert(to_array(default, "select"), first.core)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = select(condition, choice, found)
    return to_array(found, "select")


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> array:
    """The nearest number of a float format with so many bits; beyond its largest one infinite, below its normal ones 0.

    Formats of 8 exponent bits are there.
    """
    value = floating(operand, "reduce_precision")
    wide = convert(value, core.f32) if value.core.bits < 32 else value
    if exponent_bits != 8 or not 1 <= mantissa_bits <= 23 or wide.core is not core.f32:
        takes = "8 exponent bits and up to 23 mantissa bits of 32-bit floats are there"
        fail(WrongDtype, function="reduce_precision", given=f"({exponent_bits}, {mantissa_bits})", takes=takes)
    if mantissa_bits == 23:
        return value
    return convert(emit(special.RoundMantissa, wide, bits=mantissa_bits), value.core)


# ---- bits ------------------------------------------------------------------------------------------------------------


def _bits(x: Any, function: str) -> tuple[array, array, DType]:
    """An integer, its bits as an unsigned one of 32 or 64 bits, and the dtype of that."""
    value = to_array(x, function)
    if value.core.is_float or value.core.is_bool:
        fail(WrongDtype, function=function, given=str(value), takes="it takes integers")
    wide = core.u64 if value.core.bits == 64 else core.u32
    unsigned = value
    if value.core.kind == "int":
        unsigned = convert(value, core.by_name(f"u{value.core.bits}"))
    return value, convert(unsigned, wide), wide


def population_count(x: Any) -> array:
    """How many bits are 1."""
    value, bits, wide = _bits(x, "population_count")
    pairs = (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F)
    cut = (1 << wide.bits) - 1
    for shift, mask in zip((1, 2, 4), pairs, strict=True):
        low = known_scalar(mask & cut, wide)
        bits = add(operators.and_(bits, low), operators.and_(operators.right_shift(bits, _word(shift, wide)), low))
    for shift in (8, 16, 32)[: 2 if wide is core.u32 else 3]:
        bits = add(bits, operators.right_shift(bits, _word(shift, wide)))
    return convert(operators.and_(bits, _word(0x7F, wide)), value.core)


def bitwise_count(x: Any) -> array:
    """How many bits of |x| are 1, uint8."""
    value = to_array(x, "bitwise_count")
    return convert(population_count(convert(value, core.u8) if value.core.is_bool else elementwise.abs(value)), core.u8)


def _word(number: int, dtype: DType) -> array:
    return known_scalar(number, dtype)


def clz(x: Any) -> array:
    """How many bits above the highest 1 are 0."""
    value, bits, wide = _bits(x, "clz")
    for shift in (1, 2, 4, 8, 16, 32)[: 5 if wide is core.u32 else 6]:
        bits = operators.or_(bits, operators.right_shift(bits, _word(shift, wide)))
    ones = convert(population_count(bits), value.core)
    return subtract(known_scalar(value.core.bits, value.core), ones)


def mulhi(x: Any, y: Any) -> array:
    """The upper half of the product of two integers of 32 bits or less."""
    (a, b), _ = promote("mulhi", x, y)
    if a.core.is_float or a.core.bits > 32 or a.core.is_bool:
        fail(WrongDtype, function="mulhi", given=str(a), takes="it takes integers of 32 bits and less")
    wide = core.i64 if a.core.kind == "int" else core.u64
    product = multiply(convert(a, wide), convert(b, wide))
    return convert(operators.right_shift(product, _word(a.core.bits, wide)), a.core)


def shift_right_logical(x: Any, y: Any) -> array:
    """x >> y with zeros shifted in, of signed integers too."""
    (a, b), _ = promote("shift_right_logical", x, y)
    if a.core.kind != "int":
        return operators.right_shift(a, b)
    unsigned = core.by_name(f"u{a.core.bits}")
    return convert(operators.right_shift(convert(a, unsigned), convert(b, unsigned)), a.core)


def gcd(x1: Any, x2: Any) -> array:
    """The greatest common divisor of two integers, not negative."""
    (a, b), _ = promote("gcd", x1, x2)
    if a.core.is_float or a.core.is_bool:
        fail(WrongDtype, function="gcd", given=str(a), takes="it takes integers")
    a, b = (elementwise.abs(value) for value in broadcast([a, b], "gcd"))
    for _ in range(_EUCLID_STEPS[a.core.bits]):
        none = compare("eq", b, like(0, b))
        rest = operators.truncated_remainder(a, select(none, like(1, b), b))
        a, b = select(none, a, b), select(none, b, rest)
    return a


_EUCLID_STEPS: Final = {8: 12, 16: 23, 32: 46, 64: 92}
"""Steps of Euclid's algorithm after which two integers of so many bits are done (the index of a Fibonacci number)."""


def lcm(x1: Any, x2: Any) -> array:
    """The least common multiple of two integers, not negative."""
    divisor = gcd(x1, x2)
    (a, b), _ = promote("lcm", x1, x2)
    one = select(compare("eq", divisor, like(0, divisor)), like(1, divisor), divisor)
    return multiply(elementwise.abs(a), operators.truncated_divide(elementwise.abs(b), one))


def result_type(*args: Any) -> Any:
    """The dtype that values, dtypes and numbers promote to."""
    given = []
    for one in args:
        if isinstance(one, type) or not (hasattr(one, "dtype") or isinstance(one, (bool, int, float))):
            given.append((promotion.as_dtype(one), False))
        elif hasattr(one, "dtype") and not isinstance(one, array):
            given.append((promotion.as_dtype(one.dtype), False))
        else:
            value = to_array(one, "result_type")
            given.append((value.core, value.weak))
    return promotion.result_dtype(given, "result_type")[0].numpy


# ---- activations -----------------------------------------------------------------------------------------------------


def relu6(x: Any) -> array:
    """x limited to [0, 6]."""
    return minimum(maximum(x, 0), 6.0)


def hard_sigmoid(x: Any) -> array:
    """relu6(x + 3) / 6."""
    return true_divide(relu6(add(x, 3.0)), 6.0)


def hard_silu(x: Any) -> array:
    """x * hard_sigmoid(x)."""
    return multiply(x, hard_sigmoid(x))


def hard_tanh(x: Any) -> array:
    """x limited to [-1, 1]; NaN stays."""
    return select(compare("gt", x, 1), 1, select(compare("lt", x, -1), -1, x))


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> array:
    """x where it is not negative, else negative_slope * x."""
    value = to_array(x, "leaky_relu")
    return select(compare("ge", value, 0), value, multiply(negative_slope, value))


def elu(x: Any, alpha: Any = 1.0) -> array:
    """x above 0, else alpha * (exp(x) - 1)."""
    value = to_array(x, "elu")
    above = compare("gt", value, 0)
    return select(above, value, multiply(alpha, expm1(select(above, 0.0, value))))


def celu(x: Any, alpha: Any = 1.0) -> array:
    """max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)."""
    return add(maximum(x, 0.0), multiply(alpha, expm1(true_divide(minimum(x, 0.0), alpha))))


def selu(x: Any) -> array:
    """1.05070 * elu(x, 1.67326), with the constants to full precision."""
    return multiply(1.0507009873554804934193349852946, elu(x, 1.6732632423543772848170429916717))


def log_sigmoid(x: Any) -> array:
    """log(sigmoid(x))."""
    return operators.negative(elementwise.softplus(operators.negative(x)))


def mish(x: Any) -> array:
    """x * tanh(softplus(x))."""
    return multiply(x, elementwise.tanh(elementwise.softplus(x)))


def soft_sign(x: Any) -> array:
    """x / (|x| + 1)."""
    return true_divide(x, add(elementwise.abs(x), 1))


def squareplus(x: Any, b: Any = 4) -> array:
    """(x + sqrt(x*x + b)) / 2."""
    return true_divide(add(x, elementwise.sqrt(add(elementwise.square(x), b))), 2)


def sparse_plus(x: Any) -> array:
    """0 up to -1, x from 1, between them (x + 1)**2 / 4."""
    middle = true_divide(operators.integer_power(add(x, 1.0), 2), 4)
    return select(compare("le", x, -1.0), 0.0, select(compare("ge", x, 1.0), x, middle))


def sparse_sigmoid(x: Any) -> array:
    """(x + 1) / 2 limited to [0, 1]."""
    return multiply(0.5, elementwise.clip(add(x, 1.0), 0.0, 2.0))


def glu(x: Any, axis: int = -1) -> array:
    """The first half along an axis times the sigmoid of the second."""
    from palladium.shaping import axis_of, split

    value = to_array(x, "glu")
    first, second = split(value, 2, axis_of(axis, value.ndim, "glu"))
    return multiply(first, elementwise.sigmoid(second))


def log1mexp(x: Any) -> array:
    """log(1 - exp(-x)), by the form that is exact."""
    value = to_array(x, "log1mexp")
    small = elementwise.log(operators.negative(expm1(operators.negative(value))))
    large = log1p(operators.negative(elementwise.exp(operators.negative(value))))
    return select(compare("lt", value, _LN_2), small, large)


def log_softmax(x: Any, axis: Any = -1) -> array:
    """x - max - log(sum(exp(x - max))) along an axis."""
    value = operators.without_bool(to_array(x, "log_softmax"))
    shifted = subtract(value, reductions.max(value, axis, keepdims=True))
    return subtract(shifted, elementwise.log(reductions.sum(elementwise.exp(shifted), axis, keepdims=True)))


def logmeanexp(x: Any, axis: Any = None, keepdims: bool = False) -> array:
    """log(mean(exp(x))) along axes."""
    value = floating(x, "logmeanexp")
    total = reductions.logsumexp(value, axis, keepdims)
    count = value.size // max(total.size, 1)
    return subtract(total, elementwise.log(convert(to_array(float(count), "logmeanexp"), total.core)))


def standardize(x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5, *,
                algorithm: str = "fast") -> array:  # fmt: skip
    """(x - mean) / sqrt(variance + epsilon); the variance is mean(x*x) - mean*mean, or ("stable") that of x - mean."""
    value = to_array(x, "standardize")
    centre = reductions.mean(value, axis, keepdims=True) if mean is None else mean
    if variance is None and algorithm == "stable":
        variance = reductions.mean(elementwise.square(subtract(value, centre)), axis, keepdims=True)
    elif variance is None:
        squares = reductions.mean(elementwise.square(value), axis, keepdims=True)
        variance = elementwise.clip(subtract(squares, elementwise.square(centre)), 0)
    return multiply(subtract(value, centre), elementwise.rsqrt(add(variance, epsilon)))
