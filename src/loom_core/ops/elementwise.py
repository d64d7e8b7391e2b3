"""Elementwise operations: result element i depends on the operands' elements i alone.

All operands of one operation have the same shape; frontends splat and broadcast before. Integer operands of the
arithmetic operations share one dtype, which is the result's: promotion is the frontend's business.
"""

from __future__ import annotations

from loom_core.base.dtype import DType, bool_
from loom_core.ir.op import Op, attribute, operand
from loom_core.ir.types import TileType

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


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


class Sub(Binary):
    """lhs - rhs; integers wrap."""

    name = "sub"


class Mul(Binary):
    """lhs * rhs; integers wrap."""

    name = "mul"


class Div(Binary):
    """lhs / rhs: IEEE for floats, truncated for integers (x / 0 is all ones, INT_MIN / -1 is INT_MIN)."""

    name = "div"


class FloorDiv(IntegerBinary):
    """Quotient rounded towards minus infinity; x / 0 is all ones."""

    name = "floordiv"


class Rem(IntegerBinary):
    """Remainder of the truncated division; has the sign of lhs; x % 0 is x."""

    name = "rem"


class Min(Binary):
    """The smaller; for floats a NaN loses to a number and -0 < +0."""

    name = "min"


class Max(Binary):
    """The larger; for floats a NaN loses to a number and -0 < +0."""

    name = "max"


class MinPropagate(Binary):
    """The smaller float; NaN where either operand is NaN; -0 < +0."""

    name = "minp"
    allowed = ("float",)


class MaxPropagate(Binary):
    """The larger float; NaN where either operand is NaN; -0 < +0."""

    name = "maxp"
    allowed = ("float",)


class And(LogicalBinary):
    """Bitwise and."""

    name = "and"


class Or(LogicalBinary):
    """Bitwise or."""

    name = "or"


class Xor(LogicalBinary):
    """Bitwise exclusive or."""

    name = "xor"


class ShiftLeft(IntegerBinary):
    """lhs << rhs; 0 where rhs is not in [0, bits)."""

    name = "shl"


class ShiftRight(IntegerBinary):
    """lhs >> rhs, arithmetic for signed, logical for unsigned dtypes."""

    name = "shr"


class Not(Unary):
    """Bitwise complement; logical for bool."""

    name = "not"
    allowed = ("int", "uint", "bool")


class Negate(Unary):
    """-x; integers wrap."""

    name = "neg"


class Abs(Unary):
    """|x|; the smallest integer stays itself."""

    name = "abs"


class Copy(Unary):
    """The same elements in storage of their own."""

    name = "copy"
    allowed = ("float", "int", "uint", "bool")


class Sqrt(FloatUnary):
    """IEEE square root."""

    name = "sqrt"


class Rsqrt(FloatUnary):
    """1 / sqrt(x): square root rounded, then the quotient rounded."""

    name = "rsqrt"


class Reciprocal(FloatUnary):
    """1 / x, rounded once."""

    name = "recip"


class Exp(FloatUnary):
    """e to the power x."""

    name = "exp"


class Exp2(FloatUnary):
    """2 to the power x."""

    name = "exp2"


class Log(FloatUnary):
    """Natural logarithm."""

    name = "log"


class Log2(FloatUnary):
    """Logarithm to base 2."""

    name = "log2"


class Tanh(FloatUnary):
    """Hyperbolic tangent."""

    name = "tanh"


class Sigmoid(FloatUnary):
    """1 / (1 + exp(-x))."""

    name = "sigmoid"


class Erf(FloatUnary):
    """Error function."""

    name = "erf"


class Gelu(FloatUnary):
    """x times the normal distribution function of x, accurate in the negative tail."""

    name = "gelu"


class Sin(FloatUnary):
    """Sine of x radians."""

    name = "sin"


class Cos(FloatUnary):
    """Cosine of x radians."""

    name = "cos"


class Floor(FloatUnary):
    """Largest integer not above x."""

    name = "floor"


class Ceil(FloatUnary):
    """Smallest integer not below x."""

    name = "ceil"


class RoundEven(FloatUnary):
    """Nearest integer, halves to even."""

    name = "rint"


class Truncate(FloatUnary):
    """Integer part."""

    name = "trunc"


class Fma(Elementwise):
    """a * b + c, rounded once."""

    name = "fma"
    allowed = ("float",)
    a = operand()
    b = operand()
    c = operand()


class IsNan(Unary):
    """Whether x is NaN."""

    name = "isnan"
    allowed = ("float",)

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_element(bool_),)


class Compare(Binary):
    """Comparison by `predicate`, one of eq ne lt le gt ge; ordered, except that `ne` is true for NaN."""

    name = "cmp"
    allowed = ("float", "int", "uint", "bool")
    predicate = attribute()

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

    def infer(self) -> tuple[TileType, ...]:
        return (self.on_true.type,)

    def verify(self) -> str | None:
        if self.on_true.type != self.on_false.type:
            return f"branches differ: {self.on_true.type} and {self.on_false.type}"
        if self.condition.type != self.on_true.type.with_element(bool_):
            return f"condition is {self.condition.type}, a bool of shape {self.on_true.type.shape} is needed"
        return None


class Cast(Op):
    """Convert to `dtype`: rounds to nearest even; float to integer truncates and saturates, NaN to 0; integers wrap."""

    name = "cast"
    elementwise = True
    operand = operand()
    dtype = attribute()

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

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_element(self.dtype),)

    def verify(self) -> str | None:
        if self.operand.type.dtype.bits != self.dtype.bits:
            return f"{self.operand.type.dtype.name} and {self.dtype.name} differ in width"
        return None
