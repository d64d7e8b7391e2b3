"""Arithmetic, comparison and logic, by JAX's rules: integer `/` is float32, `//` and `%` floor, integers wrap."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.ir.op import Op
from loom_core.ops import elementwise as ops
from loom_core.ops import special
from palladium.errors import NotRead, WrongDtype, fail
from palladium.values import (
    Interval,
    array,
    broadcast,
    convert,
    emit,
    fits,
    full,
    known_scalar,
    promote,
    to_array,
    wrap,
)

_EXACT: Final[dict[type[Op], Callable[[int, int], int]]] = {
    ops.Add: operator.add, ops.Sub: operator.sub, ops.Mul: operator.mul, ops.FloorDiv: operator.floordiv,
    ops.And: operator.and_, ops.Or: operator.or_, ops.Xor: operator.xor, ops.Min: min, ops.Max: max,
}  # fmt: skip
_ON_BOOLS: Final[dict[type[Op], type[Op]]] = {
    ops.Add: ops.Or, ops.Mul: ops.And, ops.Min: ops.And, ops.Max: ops.Or,
    ops.MinPropagate: ops.And, ops.MaxPropagate: ops.Or,
}  # fmt: skip
_INTEGER_FORM: Final[dict[type[Op], type[Op]]] = {ops.MinPropagate: ops.Min, ops.MaxPropagate: ops.Max}
_MONOTONE: Final = (ops.Add, ops.Sub, ops.Mul, ops.Min, ops.Max)
"""Operations whose extremes over a box of operands lie at its corners."""

PREDICATES: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def binary(kind: type[Op], x: Any, y: Any, function: str) -> array:
    """An elementwise operation of two operands in their common dtype and shape."""
    (a, b), weak = promote(function, x, y)
    return combine(kind, a, b, function, weak)


def combine(kind: type[Op], a: array, b: array, function: str, weak: bool = False) -> array:
    """An elementwise operation of operands of one dtype; known integers fold, ranges of scalars are followed."""
    dtype = a.core
    if dtype.is_bool:
        if kind is ops.Sub:
            fail(WrongDtype, function=function, given="bool", takes="use ^, or convert with astype()")
        kind = _ON_BOOLS.get(kind, kind)
    elif not dtype.is_float:
        kind = _INTEGER_FORM.get(kind, kind)
    folded = _fold(kind, a, b, weak)
    if folded is not None:
        return folded
    a, b = broadcast([a, b], function)
    made = emit(kind, a, b)
    made.weak = weak
    if not made.shape and dtype.is_integer:
        made.interval = _range(kind, a.interval, b.interval, dtype)
    return made


def _fold(kind: type[Op], a: array, b: array, weak: bool) -> array | None:
    """The result of known integers; None where it has to be computed."""
    dtype = a.core
    if a.known is None or b.known is None or kind not in _EXACT or dtype.is_float:
        return None
    if kind is ops.FloorDiv and not b.known:
        return None
    number = _EXACT[kind](int(a.known), int(b.known))
    return known_scalar(bool(number) if dtype.is_bool else wrap(number, dtype), dtype, weak)


def _range(kind: type[Op], a: Interval | None, b: Interval | None, dtype: DType) -> Interval | None:
    if a is None or b is None:
        return None
    if kind in _MONOTONE:
        corners = [_EXACT[kind](x, y) for x in a for y in b]
    elif kind is ops.FloorDiv and b[0] == b[1] > 0:
        corners = [x // b[0] for x in a]
    elif kind is ops.Rem and b[0] == b[1] > 0 and a[0] >= 0:
        corners = [0, b[0] - 1]
    elif kind is ops.Div and b[0] == b[1] > 0 and a[0] >= 0:
        corners = [x // b[0] for x in a]
    else:
        return None
    found = min(corners), max(corners)
    return found if fits(found, dtype) else None


def add(x: Any, y: Any) -> array:
    """x + y."""
    return binary(ops.Add, x, y, "add")


def subtract(x: Any, y: Any) -> array:
    """x - y."""
    return binary(ops.Sub, x, y, "subtract")


def multiply(x: Any, y: Any) -> array:
    """x * y."""
    return binary(ops.Mul, x, y, "multiply")


def without_bool(value: array) -> array:
    """Truth values as int32, others as they are."""
    return convert(value, core.i32) if value.core.is_bool else value


def _numbers(function: str, x: Any, y: Any) -> tuple[list[array], bool]:
    """Operands in their common dtype, of bools int32; and whether that is weak."""
    values, weak = promote(function, x, y)
    return [without_bool(value) for value in values], weak


def true_divide(x: Any, y: Any) -> array:
    """x / y rounded once; of integers in float32."""
    (a, b), weak = promote("true_divide", x, y)
    if not a.core.is_float:
        wide = core.f64 if a.core.bits == 64 else core.f32
        a, b = convert(a, wide), convert(b, wide)
    return combine(ops.Div, a, b, "true_divide", weak)


def floor_divide(x: Any, y: Any) -> array:
    """The largest integer not above x / y; of signed integers x // 0 is -2, 0 // 0 is -1."""
    (a, b), weak = _numbers("floor_divide", x, y)
    if not a.core.is_float:
        return _floor_quotient(a, b, weak)
    quotient, _ = _float_divmod(*broadcast([a, b], "floor_divide"))
    return quotient


def _floor_quotient(a: array, b: array, weak: bool) -> array:
    folded = _fold(ops.FloorDiv, a, b, weak)
    if folded is not None:
        return folded
    truncated = combine(ops.Div, a, b, "floor_divide", weak)
    natural = a.interval is not None and a.interval[0] >= 0 and b.interval is not None and b.interval[0] > 0
    if natural or a.core.kind == "uint":
        return truncated
    rest = combine(ops.Rem, a, b, "floor_divide", weak)
    zero = known_scalar(0, a.core)
    opposite = _opposite(rest, b, zero)
    if not _never_zero(b):
        by_zero = logical("and", compare("eq", b, zero), compare("ne", a, zero))
        opposite = logical("or", opposite, by_zero)
    lower = combine(ops.Sub, truncated, known_scalar(1, a.core), "floor_divide")
    chosen = select(opposite, lower, truncated)
    if not chosen.shape:
        chosen.interval = _range(ops.FloorDiv, a.interval, b.interval, a.core)
    return chosen


def remainder(x: Any, y: Any) -> array:
    """x - y * floor(x / y): it has the sign of y; of integers x % 0 is 0."""
    (a, b), weak = _numbers("remainder", x, y)
    if a.core.is_float:
        _, rest = _float_divmod(*broadcast([a, b], "remainder"))
        return rest
    if not _never_zero(b):
        b = select(compare("eq", b, known_scalar(0, b.core)), known_scalar(1, b.core), b)
    truncated = combine(ops.Rem, a, b, "remainder", weak)
    if a.core.kind == "uint" or (truncated.interval is not None and b.interval is not None and b.interval[0] > 0):
        return truncated
    opposite = _opposite(truncated, b, known_scalar(0, a.core))
    return select(opposite, combine(ops.Add, truncated, b, "remainder"), truncated)


def _never_zero(divisor: array) -> bool:
    return divisor.interval is not None and not divisor.interval[0] <= 0 <= divisor.interval[1]


def _opposite(rest: array, divisor: array, zero: array) -> array:
    """Where a remainder is not 0 and has another sign than the divisor."""
    differ = compare("ne", compare("lt", rest, zero), compare("lt", divisor, zero))
    return logical("and", compare("ne", rest, zero), differ)


def _float_divmod(a: array, b: array) -> tuple[array, array]:
    from palladium.elementwise import round_even

    rest = emit(special.Fmod, a, b)
    exact = combine(ops.Sub, a, rest, "divmod")
    quotient = combine(ops.Div, select(compare("eq", b, 0), a, exact), b, "divmod")
    opposite = _opposite(rest, b, known_scalar(0.0, a.core))
    rest = select(opposite, combine(ops.Add, rest, b, "divmod"), rest)
    one = known_scalar(1.0, a.core)
    quotient = select(opposite, combine(ops.Sub, quotient, one, "divmod"), quotient)
    return round_even(quotient), rest


def truncated_divide(x: Any, y: Any) -> array:
    """x / y of one dtype; of integers truncated towards zero (lax.div)."""
    (a, b), weak = promote("div", x, y)
    return combine(ops.Div, a, b, "div", weak)


def truncated_remainder(x: Any, y: Any) -> array:
    """The remainder of the truncated division, with the sign of x (lax.rem)."""
    (a, b), weak = promote("rem", x, y)
    return combine(special.Fmod if a.core.is_float else ops.Rem, a, b, "rem", weak)


def power(x: Any, y: Any) -> array:
    """x to the power y; an integer y that is known is repeated multiplication; integers stay integers."""
    if isinstance(y, int) and not isinstance(y, bool):
        return integer_power(without_bool(to_array(x, "power")), y)
    (a, b), _ = _numbers("power", x, y)
    if not a.core.is_float:
        return _power_of_integers(a, b)
    dtype = a.core
    if dtype.bits < 32:
        a, b = convert(a, core.f32), convert(b, core.f32)
    return convert(combine(special.Power, a, b, "power"), dtype)


def _power_of_integers(base: array, exponent: array) -> array:
    """By squaring, over the 6 bits of an exponent that jax.numpy looks at: above, integers have long wrapped."""
    one = known_scalar(1, base.core)
    result: array = one
    for bit in range(6):
        odd = compare("ne", and_(right_shift(exponent, bit), 1), 0)
        result = multiply(result, select(odd, base, one))
        base = multiply(base, base)
    return result


def integer_power(x: Any, y: int) -> array:
    """x to an integer power by squaring."""
    base = to_array(x, "integer_pow")
    if y == 0:
        return array(full(base.shape, 1, base.core).value)
    result: array | None = None
    remaining, factor = abs(y), base
    while True:
        if remaining & 1:
            result = factor if result is None else multiply(result, factor)
        remaining >>= 1
        if not remaining:
            break
        factor = multiply(factor, factor)
    assert result is not None
    return true_divide(known_scalar(1.0, core.f32, weak=True), result) if y < 0 else result


def negative(x: Any) -> array:
    """-x."""
    value = to_array(x, "negative")
    if value.known is not None and not value.core.is_bool:
        number = -value.known if value.core.is_float else wrap(-int(value.known), value.core)
        return known_scalar(number, value.core, value.weak)
    made = emit(ops.Negate, value)
    made.weak = value.weak
    return made


def positive(x: Any) -> array:
    """x."""
    return to_array(x, "positive")


def invert(x: Any) -> array:
    """Every bit inverted; of bool the negation."""
    value = to_array(x, "invert")
    if value.core.is_float:
        fail(WrongDtype, function="invert", given=str(value), takes="it takes integers and bool")
    if value.known is not None:
        return known_scalar(not value.known if value.core.is_bool else ~int(value.known), value.core, value.weak)
    return emit(ops.Not, value)


def bitwise(kind: type[Op], x: Any, y: Any, function: str) -> array:
    """An operation on bits."""
    (a, b), weak = promote(function, x, y)
    if a.core.is_float:
        fail(WrongDtype, function=function, given=str(a), takes="it takes integers and bool")
    return combine(kind, a, b, function, weak)


def and_(x: Any, y: Any) -> array:
    """x & y."""
    return bitwise(ops.And, x, y, "bitwise_and")


def or_(x: Any, y: Any) -> array:
    """x | y."""
    return bitwise(ops.Or, x, y, "bitwise_or")


def xor(x: Any, y: Any) -> array:
    """x ^ y."""
    return bitwise(ops.Xor, x, y, "bitwise_xor")


def left_shift(x: Any, y: Any) -> array:
    """x << y."""
    (a, b), _ = _numbers("left_shift", x, y)
    return bitwise(ops.ShiftLeft, a, b, "left_shift")


def right_shift(x: Any, y: Any) -> array:
    """x >> y, with the sign of signed integers."""
    (a, b), _ = _numbers("right_shift", x, y)
    return bitwise(ops.ShiftRight, a, b, "right_shift")


def right_shift_arithmetic(x: Any, y: Any) -> array:
    """x >> y that repeats the highest bit, of unsigned integers too (lax.shift_right_arithmetic)."""
    (a, b), _ = promote("shift_right_arithmetic", x, y)
    if a.core.kind != "uint":
        return bitwise(ops.ShiftRight, a, b, "shift_right_arithmetic")
    own, signed = a.core, getattr(core, f"i{a.core.bits}")
    return convert(bitwise(ops.ShiftRight, convert(a, signed), convert(b, signed), "shift_right_arithmetic"), own)


def compare(predicate: str, x: Any, y: Any) -> array:
    """x (eq | ne | lt | le | gt | ge) y; comparisons with NaN are false, except ne."""
    (a, b), _ = promote(predicate, x, y)
    if a.known is not None and b.known is not None:
        return known_scalar(PREDICATES[predicate](a.known, b.known), core.bool_)
    a, b = broadcast([a, b], predicate)
    return emit(ops.Compare, a, b, predicate=predicate)


def logical(kind: str, x: Any, y: Any) -> array:
    """`and`, `or` or `xor` of truth values."""
    a, b = (convert(to_array(value, f"logical_{kind}"), core.bool_) for value in (x, y))
    return combine({"and": ops.And, "or": ops.Or, "xor": ops.Xor}[kind], a, b, f"logical_{kind}")


def select(condition: Any, x: Any, y: Any) -> array:
    """x where the condition holds, else y."""
    flag = convert(to_array(condition, "where"), core.bool_)
    (a, b), weak = promote("where", x, y)
    flag, a, b = broadcast([flag, a, b], "where")
    if flag.known is not None:
        return a if flag.known else b
    made = emit(ops.Select, flag, a, b)
    made.weak = weak
    return made


# ---- the table of Python's operators ---------------------------------------------------------------------------------

_BINARY: Final[dict[str, Callable[[Any, Any], array]]] = {
    "add": add, "sub": subtract, "mul": multiply, "truediv": true_divide, "floordiv": floor_divide, "mod": remainder,
    "pow": power, "and": and_, "or": or_, "xor": xor, "lshift": left_shift, "rshift": right_shift,
}  # fmt: skip


_OF_NUMPY: Final[dict[str, Callable[[Any, Any], array]]] = {
    "add": add, "subtract": subtract, "multiply": multiply, "divide": true_divide, "floor_divide": floor_divide,
    "remainder": remainder, "power": power, "bitwise_and": and_, "bitwise_or": or_, "bitwise_xor": xor,
    "left_shift": left_shift, "right_shift": right_shift, "equal": partial(compare, "eq"),
    "not_equal": partial(compare, "ne"), "less": partial(compare, "lt"), "less_equal": partial(compare, "le"),
    "greater": partial(compare, "gt"), "greater_equal": partial(compare, "ge"),
}  # fmt: skip
"""NumPy's names of operators: what a NumPy number left of a tile asks for."""


def array_ufunc(self: Any, ufunc: Any, method: str, *operands: Any, **options: Any) -> array:
    """A NumPy function of tiles: an operator of a number and a tile; no other has a meaning."""
    function = _OF_NUMPY.get(ufunc.__name__)
    if function is None or method != "__call__" or options:
        takes = "NumPy computes before the kernel runs: use Palladium's function, or in ported kernels jnp's"
        fail(WrongDtype, function=f"np.{ufunc.__name__}", given="a value of a kernel", takes=takes)
    return function(*operands)


def install(kind: type) -> None:
    """Give a class Python's operators."""
    kind.__array_ufunc__ = array_ufunc  # type: ignore[attr-defined]
    for name, function in _BINARY.items():
        setattr(kind, f"__{name}__", _as_method(function))
        setattr(kind, f"__r{name}__", _reflected(function))
    for name, unary in {"neg": negative, "pos": positive, "invert": invert}.items():
        setattr(kind, f"__{name}__", unary)
    for predicate in PREDICATES:
        setattr(kind, f"__{predicate}__", _comparison(predicate))


def install_refusals(kind: type) -> None:
    """Let Python's operators on a class say that it has to be read first."""
    kind.__array_ufunc__ = None  # type: ignore[attr-defined]
    for name in (*_BINARY, "matmul"):
        for method in (f"__{name}__", f"__r{name}__"):
            setattr(kind, method, _refusal(name))
    for name in ("neg", "pos", "invert", "abs", "lt", "le", "gt", "ge"):
        setattr(kind, f"__{name}__", _refusal(name))


def _refusal(name: str) -> Callable[..., array]:
    def method(self: Any, *others: Any) -> array:
        fail(NotRead, function=f"the operator {name}", name=self.shown)

    return method


def _as_method(function: Callable[[Any, Any], array]) -> Callable[[Any, Any], array]:
    return lambda self, other: function(self, other)


def _reflected(function: Callable[[Any, Any], array]) -> Callable[[Any, Any], array]:
    return lambda self, other: function(other, self)


def _comparison(predicate: str) -> Callable[[Any, Any], array]:
    return lambda self, other: compare(predicate, self, other)
