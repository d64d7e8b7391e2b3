"""Operators on tensors, with Triton's meaning: integer division and remainder truncate, `/` of integers is float32."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ops
from loom_core.ops.memory import AddPointer
from loom_core.ops.special import Fmod
from loom_core.trace.context import current
from ltl.errors import Refused, WrongDtype, fail
from ltl.semantic import (
    broadcast_pair,
    cast,
    known_scalar,
    operand,
    promote,
    to_shape,
    to_tensor,
    truth,
    wrap,
)
from ltl.tensor import tensor


def emit(kind: type[Op], /, *operands: tensor, **attributes: Any) -> tensor:
    """Make an operation with one result."""
    value: Value = current().builder.create(kind, *(o.value for o in operands), **attributes)
    return tensor(value.type, value)


# ---- known integers --------------------------------------------------------------------------------------------------


def _truncated_quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_EXACT: Final[dict[type[Op], Callable[[int, int], int]]] = {
    ops.Add: operator.add,
    ops.Sub: operator.sub,
    ops.Mul: operator.mul,
    ops.Div: _truncated_quotient,
    ops.Rem: lambda a, b: a - b * _truncated_quotient(a, b),
    ops.And: operator.and_,
    ops.Or: operator.or_,
    ops.Xor: operator.xor,
    ops.Min: min,
    ops.Max: max,
}
_DIVISIONS: Final = (ops.Div, ops.Rem)
_ON_BOOLS: Final[dict[type[Op], type[Op]]] = {ops.Add: ops.Xor, ops.Sub: ops.Xor, ops.Mul: ops.And}
"""Arithmetic modulo 2 in terms of logic, for int1."""

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def _fold(kind: type[Op], a: tensor, b: tensor, dtype: DType) -> tensor | None:
    """The result where both are known integers; None where it has to be computed."""
    if a.known is None or b.known is None or dtype.is_float or kind not in _EXACT:
        return None
    if kind in _DIVISIONS and b.known == 0:
        return None
    result = _EXACT[kind](int(a.known), int(b.known))
    return known_scalar(bool(result & 1) if dtype.is_bool else wrap(result, dtype), dtype)


def _binary(kind: type[Op], a: tensor, b: tensor) -> tensor:
    dtype = a.ir_type.dtype
    if dtype.is_bool:
        kind = _ON_BOOLS.get(kind, kind)
    folded = _fold(kind, a, b, dtype)
    return folded if folded is not None else emit(kind, a, b)


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def _is_pointer(value: Any) -> bool:
    return isinstance(value, tensor) and value.ir_type.is_pointer


def offset_pointer(pointer: tensor, offset: Any, function: str) -> tensor:
    """pointer + offset, in elements."""
    offset = to_tensor(offset, function, "the offset")
    if offset.ir_type.is_pointer or not offset.ir_type.dtype.is_integer:
        fail(WrongDtype, function="adding to a pointer", given=str(offset.type), takes="an offset is an integer")
    pointer, offset = broadcast_pair(pointer, offset, function)
    return emit(AddPointer, pointer, offset)


def add(x: Any, y: Any) -> Any:
    """x + y; integers wrap. A pointer plus an integer moves by that many elements."""
    if _is_pointer(x):
        return offset_pointer(x, y, "+")
    if _is_pointer(y):
        return offset_pointer(y, x, "+")
    return _binary(ops.Add, *promote(x, y, "+"))


def sub(x: Any, y: Any) -> Any:
    """x - y; integers wrap. A pointer minus an integer moves back by that many elements."""
    if _is_pointer(x) and not _is_pointer(y):
        return offset_pointer(x, neg(to_tensor(y, "-", "the offset")), "-")
    return _binary(ops.Sub, *promote(x, y, "-"))


def mul(x: Any, y: Any) -> Any:
    """x * y; integers wrap."""
    return _binary(ops.Mul, *promote(x, y, "*"))


def truediv(x: Any, y: Any) -> tensor:
    """x / y rounded once; of two integers the quotient in float32."""
    a, b = promote(x, y, "/", division=True)
    if not a.ir_type.dtype.is_float:
        a, b = cast(a, core.f32), cast(b, core.f32)
    return emit(ops.Div, a, b)


def floordiv(x: Any, y: Any) -> tensor:
    """The quotient of two integers, truncated towards zero (not floored, as in Triton)."""
    a, b = promote(x, y, "//", division=True)
    _require_integers(a, "//", "use / and floor() for floats")
    return _binary(ops.Div, a, b)


def mod(x: Any, y: Any) -> tensor:
    """The remainder of the truncated division; it has the sign of x. Of floats it is exact."""
    a, b = promote(x, y, "%", division=True)
    if a.ir_type.dtype.is_float:
        return emit(Fmod, a, b)
    _require_integers(a, "%", "convert to an integer dtype first")
    return _binary(ops.Rem, a, b)


def _require_integers(value: tensor, function: str, takes: str) -> None:
    if not value.ir_type.dtype.is_integer:
        fail(WrongDtype, function=function, given=str(value.type), takes=takes)


def neg(x: tensor) -> tensor:
    """-x; integers wrap."""
    dtype = _dtype(x, "-")
    if x.known is not None and dtype.is_integer:
        return known_scalar(wrap(-int(x.known), dtype), dtype)
    if dtype.is_bool:
        return x
    return emit(ops.Negate, x)


def pos(x: tensor) -> tensor:
    """x."""
    return x


def invert(x: tensor) -> tensor:
    """Every bit of an integer or int1 inverted."""
    dtype = _dtype(x, "~")
    if dtype.is_float:
        fail(WrongDtype, function="~", given=str(x.type), takes="it takes integers and int1")
    if x.known is not None:
        known = not x.known if dtype.is_bool else wrap(~int(x.known), dtype)
        return known_scalar(known, dtype)
    return emit(ops.Not, x)


def _dtype(x: tensor, function: str) -> DType:
    if x.ir_type.is_pointer:
        fail(WrongDtype, function=function, given="a pointer", takes="load from it first")
    return x.ir_type.dtype


# ---- bits ------------------------------------------------------------------------------------------------------------


def _bitwise(kind: type[Op], x: Any, y: Any, function: str) -> tensor:
    a, b = promote(x, y, function)
    if a.ir_type.dtype.is_float:
        fail(WrongDtype, function=function, given=str(a.type), takes="it takes integers and int1")
    return _binary(kind, a, b)


def and_(x: Any, y: Any) -> tensor:
    """Bitwise and."""
    return _bitwise(ops.And, x, y, "&")


def or_(x: Any, y: Any) -> tensor:
    """Bitwise or."""
    return _bitwise(ops.Or, x, y, "|")


def xor(x: Any, y: Any) -> tensor:
    """Bitwise exclusive or."""
    return _bitwise(ops.Xor, x, y, "^")


def shl(x: Any, y: Any) -> tensor:
    """x << y; 0 where y is not in [0, bits)."""
    a, b = promote(x, y, "<<")
    _require_integers(a, "<<", "it takes integers")
    return emit(ops.ShiftLeft, a, b)


def shr(x: Any, y: Any) -> tensor:
    """x >> y: of signed integers with sign, of unsigned ones with zeros."""
    a, b = promote(x, y, ">>")
    _require_integers(a, ">>", "it takes integers")
    return emit(ops.ShiftRight, a, b)


# ---- comparison and logic --------------------------------------------------------------------------------------------


def compare(predicate: str, x: Any, y: Any) -> tensor:
    """x (eq | ne | lt | le | gt | ge) y as int1; comparisons with NaN are false, except ne."""
    a, b = promote(x, y, f"comparison {predicate}")
    dtype = a.ir_type.dtype
    if a.known is not None and b.known is not None and not dtype.is_float:
        return known_scalar(_COMPARE[predicate](a.known, b.known), core.bool_)
    return emit(ops.Compare, a, b, predicate=predicate)


def logical(symbol: str, operands: tuple[Any, ...]) -> tensor:
    """`and`, `or` or `not` of values of which at least one is known only at run time."""
    flags = [truth(to_tensor(value, symbol, "an operand")) for value in operands]
    if symbol == "not":
        return invert(flags[0])
    return (and_ if symbol == "and" else or_)(flags[0], flags[1])


def where(condition: Any, x: Any, y: Any) -> tensor:
    """x where condition, else y; both are evaluated. `condition` is int1 (other dtypes: not 0)."""
    flag = truth(to_tensor(condition, "where", "condition"))
    a, b = _choices(x, y)
    if flag.shape or a.shape:
        flag, a = broadcast_pair(flag, a, "where")
        b = to_shape(b, a.shape)
    if flag.known is not None:
        return a if flag.known else b
    return emit(ops.Select, flag, a, b)


def _choices(x: Any, y: Any) -> tuple[tensor, tensor]:
    x, y = operand(x, "where", "x"), operand(y, "where", "y")
    if _is_pointer(x) and _is_pointer(y) and x.ir_type.element == y.ir_type.element:
        return broadcast_pair(x, y, "where")
    return promote(x, y, "where")


# ---- the table of Python's operators ---------------------------------------------------------------------------------


def swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The operator with its operands exchanged."""

    def reflected(self: Any, other: Any) -> Any:
        return function(other, self)

    return reflected


def _comparison(predicate: str) -> Callable[[Any, Any], Any]:
    def compared(self: Any, other: Any) -> Any:
        return compare(predicate, self, other)

    return compared


_BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "truediv": truediv, "floordiv": floordiv, "mod": mod,
    "and": and_, "or": or_, "xor": xor, "lshift": shl, "rshift": shr,
}  # fmt: skip
_UNARY: Final[dict[str, Callable[[Any], Any]]] = {"neg": neg, "pos": pos, "invert": invert}

_NO_OPERATORS: Final[dict[str, tuple[str, str]]] = {
    "pow": ("** of tiles", "write x * x, or use ltl.extra.libdevice.pow(x, y)"),
    "matmul": ("@ of tiles", "use ltl.dot(a, b)"),
    "divmod": ("divmod of tiles", "use // and %"),
}
"""Operators of Python that Triton's tiles do not have, and what to write."""


def _refused(what: str, instead: str) -> Callable[..., Any]:
    def operator(self: Any, other: Any, *more: Any) -> Any:
        fail(Refused, what=what, reason="Triton has no such operator", instead=instead)

    return operator


for _name, (_what, _instead) in _NO_OPERATORS.items():
    setattr(tensor, f"__{_name}__", _refused(_what, _instead))
    setattr(tensor, f"__r{_name}__", _refused(_what, _instead))
for _name, _function in _BINARY.items():
    setattr(tensor, f"__{_name}__", _function)
    setattr(tensor, f"__r{_name}__", swapped(_function))
for _name, _unary in _UNARY.items():
    setattr(tensor, f"__{_name}__", _unary)
for _name in _COMPARE:
    setattr(tensor, f"__{_name}__", _comparison(_name))

__all__ = [
    "add", "and_", "compare", "emit", "floordiv", "invert", "logical", "mod", "mul", "neg", "offset_pointer",
    "or_", "shl", "shr", "sub", "swapped", "truediv", "where", "xor",
]  # fmt: skip
