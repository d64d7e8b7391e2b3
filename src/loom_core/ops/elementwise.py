"""Elementwise operations: result element i depends on the operands' elements i alone.

All operands of one operation have the same shape; frontends splat and broadcast before. Integer operands of the
arithmetic operations share one dtype, which is the result's: promotion is the frontend's business.
"""

from __future__ import annotations

import operator

import numpy as np

from loom_core.base.dtype import DType, bool_
from loom_core.ir.op import Op, attribute, operand
from loom_core.ir.types import TileType
from loom_core.ops.formats import canonical, convert, dtype_of, round_float, widen
from loom_core.ops.references import (
    Array,
    by_kind,
    divide,
    floor_divide,
    on_floats,
    remainder,
    shift_left,
    shift_right,
)
from loom_core.reference import arith
from loom_core.reference.elementary import REFERENCE_F32

_COMPARE = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
COMPARISONS = tuple(_COMPARE)


class Elementwise(Op):
    """Family base: the result has the type of the first operand."""

    elementwise = True
    allowed: tuple[str, ...] = ("float", "int", "uint")

    def infer(self) -> tuple[TileType, ...]:
        return (self.operands[0].type,)

    def verify(self) -> str | None:
        first = self.operands[0].type
        for value in self.operands[1:]:
            if value.type != first:
                return f"operands differ: {first} and {value.type}"
        if first.is_pointer or first.dtype.kind not in self.allowed:
            return f"{self.name} does not take {first}"
        return None


class Unary(Elementwise):
    operand = operand()


class FloatUnary(Unary):
    """A function of one float."""

    allowed = ("float",)


class Binary(Elementwise):
    lhs = operand()
    rhs = operand()


class IntegerBinary(Binary):
    allowed = ("int", "uint")


class LogicalBinary(Binary):
    allowed = ("int", "uint", "bool")


class Add(Binary):
    """lhs + rhs; integers wrap."""

    name = "add"
    ref = by_kind(arith.add32, integer=np.add)


class Sub(Binary):
    """lhs - rhs; integers wrap."""

    name = "sub"
    ref = by_kind(arith.sub32, integer=np.subtract)


class Mul(Binary):
    """lhs * rhs; integers wrap."""

    name = "mul"
    ref = by_kind(arith.mul32, integer=np.multiply)


class Div(Binary):
    """lhs / rhs: IEEE for floats, truncated for integers (x / 0 is all ones, INT_MIN / -1 is INT_MIN)."""

    name = "div"
    ref = by_kind(arith.div32, integer=divide)


class FloorDiv(IntegerBinary):
    """Quotient rounded towards minus infinity; x / 0 is all ones."""

    name = "floordiv"
    ref = by_kind(integer=floor_divide)


class Rem(IntegerBinary):
    """Remainder of the truncated division; has the sign of lhs; x % 0 is x."""

    name = "rem"
    ref = by_kind(integer=remainder)


class Min(Binary):
    """The smaller; for floats a NaN loses to a number and -0 < +0."""

    name = "min"
    ref = by_kind(arith.min32, integer=np.minimum)


class Max(Binary):
    """The larger; for floats a NaN loses to a number and -0 < +0."""

    name = "max"
    ref = by_kind(arith.max32, integer=np.maximum)


class MinPropagate(Binary):
    """The smaller float; NaN where either operand is NaN; -0 < +0."""

    name = "minp"
    ref = by_kind(arith.minp32)
    allowed = ("float",)


class MaxPropagate(Binary):
    """The larger float; NaN where either operand is NaN; -0 < +0."""

    name = "maxp"
    ref = by_kind(arith.maxp32)
    allowed = ("float",)


class And(LogicalBinary):
    """Bitwise and."""

    name = "and"
    ref = by_kind(integer=np.bitwise_and, boolean=np.logical_and)


class Or(LogicalBinary):
    """Bitwise or."""

    name = "or"
    ref = by_kind(integer=np.bitwise_or, boolean=np.logical_or)


class Xor(LogicalBinary):
    """Bitwise exclusive or."""

    name = "xor"
    ref = by_kind(integer=np.bitwise_xor, boolean=np.logical_xor)


class ShiftLeft(IntegerBinary):
    """lhs << rhs; 0 where rhs is not in [0, bits)."""

    name = "shl"
    ref = by_kind(integer=shift_left)


class ShiftRight(IntegerBinary):
    """lhs >> rhs, arithmetic for signed, logical for unsigned dtypes."""

    name = "shr"
    ref = by_kind(integer=shift_right)


class Not(Unary):
    """Bitwise complement; logical for bool."""

    name = "not"
    ref = by_kind(integer=np.bitwise_not, boolean=np.logical_not)
    allowed = ("int", "uint", "bool")


class Negate(Unary):
    """-x; integers wrap."""

    name = "neg"
    ref = by_kind(arith.neg32, integer=np.negative)


class Abs(Unary):
    """|x|; the smallest integer stays itself."""

    name = "abs"
    ref = by_kind(arith.abs32, integer=np.abs)


class Copy(Unary):
    """The same elements in storage of their own."""

    name = "copy"
    ref = by_kind(arith.canonical32, integer=np.positive, boolean=np.copy)
    allowed = ("float", "int", "uint", "bool")


class Sqrt(FloatUnary):
    """IEEE square root."""

    name = "sqrt"
    ref = by_kind(arith.sqrt32)


class Rsqrt(FloatUnary):
    """1 / sqrt(x): square root rounded, then the quotient rounded."""

    name = "rsqrt"
    ref = by_kind(arith.rsqrt32)


class Reciprocal(FloatUnary):
    """1 / x, rounded once."""

    name = "recip"
    ref = by_kind(arith.recip32)


class Exp(FloatUnary):
    """e to the power x."""

    name = "exp"
    ref = by_kind(REFERENCE_F32["exp"])


class Exp2(FloatUnary):
    """2 to the power x."""

    name = "exp2"
    ref = by_kind(REFERENCE_F32["exp2"])


class Log(FloatUnary):
    """Natural logarithm."""

    name = "log"
    ref = by_kind(REFERENCE_F32["log"])


class Log2(FloatUnary):
    """Logarithm to base 2."""

    name = "log2"
    ref = by_kind(REFERENCE_F32["log2"])


class Tanh(FloatUnary):
    """Hyperbolic tangent."""

    name = "tanh"
    ref = by_kind(REFERENCE_F32["tanh"])


class Sigmoid(FloatUnary):
    """1 / (1 + exp(-x))."""

    name = "sigmoid"
    ref = by_kind(REFERENCE_F32["sigmoid"])


class Erf(FloatUnary):
    """Error function."""

    name = "erf"
    ref = by_kind(REFERENCE_F32["erf"])


class Gelu(FloatUnary):
    """x times the normal distribution function of x, accurate in the negative tail."""

    name = "gelu"
    ref = by_kind(REFERENCE_F32["gelu"])


class Sin(FloatUnary):
    """Sine of x radians."""

    name = "sin"
    ref = by_kind(REFERENCE_F32["sin"])


class Cos(FloatUnary):
    """Cosine of x radians."""

    name = "cos"
    ref = by_kind(REFERENCE_F32["cos"])


class Floor(FloatUnary):
    """Largest integer not above x."""

    name = "floor"
    ref = by_kind(arith.floor32)


class Ceil(FloatUnary):
    """Smallest integer not below x."""

    name = "ceil"
    ref = by_kind(arith.ceil32)


class RoundEven(FloatUnary):
    """Nearest integer, halves to even."""

    name = "rint"
    ref = by_kind(arith.rint32)


class Truncate(FloatUnary):
    """Integer part."""

    name = "trunc"
    ref = by_kind(arith.trunc32)


class Fma(Elementwise):
    """a * b + c, rounded once."""

    name = "fma"
    allowed = ("float",)
    a = operand()
    b = operand()
    c = operand()

    def ref(self, a: Array, b: Array, c: Array) -> Array:
        dtype = dtype_of(a)
        if dtype.itemsize >= 4:
            return on_floats(self.name, arith.fma32, (a, b, c))
        # The product of two narrow floats is exact in float64, which fma64 then rounds to odd: one rounding in all.
        exact = odd_fma(*(widen(value).astype(np.float64) for value in (a, b, c)))
        return round_float(exact, dtype, saturate=False)


def odd_fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of float64 whose product is exact, rounded to odd in float64."""
    with np.errstate(all="ignore"):
        product = a * b
        total = product + c
        back = total - product
        error = (product - (total - back)) + (c - back)
        pattern = np.asarray(total).view(np.int64)
        inexact = np.isfinite(total) & (error != 0) & (pattern & 1 == 0)
        step = np.where(np.signbit(error) == np.signbit(total), 1, -1)
        return np.asarray(np.where(inexact, pattern + step, pattern)).view(np.float64)


class IsNan(Unary):
    """Whether x is NaN."""

    name = "isnan"
    ref = by_kind(arith.isnan32)
    allowed = ("float",)

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_element(bool_),)


class Compare(Binary):
    """Comparison by `predicate`, one of eq ne lt le gt ge; ordered, except that `ne` is true for NaN."""

    name = "cmp"
    allowed = ("float", "int", "uint", "bool")
    predicate = attribute()

    def ref(self, lhs: Array, rhs: Array) -> Array:
        return np.asarray(_COMPARE[self.predicate](widen(lhs), widen(rhs)))

    def infer(self) -> tuple[TileType, ...]:
        return (self.lhs.type.with_element(bool_),)

    def verify(self) -> str | None:
        if self.predicate not in COMPARISONS:
            return f"unknown predicate {self.predicate!r}"
        return super().verify()


class Select(Op):
    """on_true where condition, else on_false."""

    name = "select"
    elementwise = True
    condition = operand()
    on_true = operand()
    on_false = operand()

    def ref(self, condition: Array, on_true: Array, on_false: Array) -> Array:
        return canonical(np.where(condition, on_true, on_false))

    def infer(self) -> tuple[TileType, ...]:
        return (self.on_true.type,)

    def verify(self) -> str | None:
        if self.on_true.type != self.on_false.type:
            return f"branches differ: {self.on_true.type} and {self.on_false.type}"
        if self.condition.type != self.on_true.type.with_element(bool_):
            return f"condition is {self.condition.type}, a bool of shape {self.on_true.type.shape} is needed"
        return None


class Cast(Op):
    """Convert to `dtype`: rounds to nearest even; float to integer truncates and saturates, NaN to 0; integers wrap.

    To the 8-bit float formats: values beyond the largest finite one become it if `saturate`, else infinite or NaN as
    the format has it.
    """

    name = "cast"
    elementwise = True
    operand = operand()
    dtype = attribute()
    saturate = attribute(True)

    def ref(self, x: Array) -> Array:
        return convert(x, self.dtype, saturate=self.saturate)

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_element(self.dtype),)

    def verify(self) -> str | None:
        if self.operand.type.is_pointer or not isinstance(self.dtype, DType):
            return "casts a pointer, or to something that is not a dtype"
        return None


class Bitcast(Op):
    """The same bits as another dtype of equal width; NaNs are canonical first."""

    name = "bitcast"
    elementwise = True
    operand = operand()
    dtype = attribute()

    def ref(self, x: Array) -> Array:
        return np.ascontiguousarray(canonical(x)).reshape(x.shape).view(self.dtype.numpy)

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_element(self.dtype),)

    def verify(self) -> str | None:
        if self.operand.type.dtype.bits != self.dtype.bits:
            return f"{self.operand.type.dtype.name} and {self.dtype.name} differ in width"
        return None
