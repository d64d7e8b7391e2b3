"""Integer and bool functions of the stream engine, for every width: total, wrapping, no host faults.

A row of `INTEGER` emits a function for operands of one type; it is generic in width and, where that matters, asks for
the sign. Written as LLVM operations because numba's own promote to 64 bits and promise LLVM not to overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from loom_core.isa.sce import SceOp
from loom_sim.element_types import VALUE_TYPES, is_signed

_I1 = ir.IntType(1)
_I32 = ir.IntType(32)
_F32 = ir.FloatType()
_F64 = ir.DoubleType()


@dataclass(frozen=True)
class Operands:
    """What an emitter gets: where to emit, the operands, and whether their type is signed."""

    builder: ir.IRBuilder
    values: Sequence[ir.Value]
    signed: bool

    @property
    def kind(self) -> ir.IntType:
        """Type of the last operand, which is never a select's condition."""
        return self.values[-1].type

    def constant(self, value: int) -> ir.Constant:
        return ir.Constant(self.kind, value)

    def compare(self, predicate: str, x: ir.Value, y: ir.Value, signed: bool | None = None) -> ir.Value:
        by_sign = self.signed if signed is None else signed
        return (self.builder.icmp_signed if by_sign else self.builder.icmp_unsigned)(predicate, x, y)


Emit = Callable[[Operands], ir.Value]


def _plain(operation: str) -> Emit:
    """The LLVM operation of this name."""
    return lambda o: getattr(o.builder, operation)(*o.values)


def _compare(predicate: str, signed: bool | None = None) -> Emit:
    return lambda o: o.compare(predicate, o.values[0], o.values[1], signed)


def _extreme(predicate: str) -> Emit:
    return lambda o: o.builder.select(o.compare(predicate, o.values[0], o.values[1]), *o.values)


def _quotient(o: Operands) -> ir.Value:
    """a / b truncated: a / 0 is all ones, least / -1 is least.

    Up to 32 bits by a float division, which vectorises: the distance of a quotient from the next integer, 1 / |b| or 0,
    is more than the rounding error of a float with as many bits again as the operands.
    """
    builder, (a, b), kind = o.builder, o.values, o.kind
    by_zero = builder.icmp_signed("==", b, o.constant(0))
    unsafe = by_zero
    if o.signed:
        least = builder.icmp_signed("==", a, o.constant(-1 << (kind.width - 1)))
        unsafe = builder.or_(by_zero, builder.and_(least, builder.icmp_signed("==", b, o.constant(-1))))
    # Divided by 1, the least integer gives what the machine gives for -1.
    divisor = builder.select(unsafe, o.constant(1), b)
    if kind.width == 64:
        result = (builder.sdiv if o.signed else builder.udiv)(a, divisor)
    else:
        result = _float_quotient(o, a, divisor)
    return builder.select(by_zero, o.constant(-1), result)


def _float_quotient(o: Operands, a: ir.Value, divisor: ir.Value) -> ir.Value:
    builder, kind = o.builder, o.kind
    wide = _F32 if kind.width < 32 else _F64
    to_float, to_integer, extend = (
        (builder.sitofp, builder.fptosi, builder.sext) if o.signed else (builder.uitofp, builder.fptoui, builder.zext)
    )
    if kind.width == 32:
        return to_integer(builder.fdiv(to_float(a, wide), to_float(divisor, wide)), kind)
    whole = builder.fdiv(*(builder.sitofp(extend(value, _I32), wide) for value in (a, divisor)))
    return builder.trunc(builder.fptosi(whole, _I32), kind)


def _remainder(o: Operands) -> ir.Value:
    """a - b * quotient; a where b is 0."""
    builder, (a, b) = o.builder, o.values
    return builder.sub(a, builder.mul(_quotient(o), b))


def _shift(operation: str, fills_with_sign: bool = False) -> Emit:
    """A shift by 0..bits-1; any other count shifts everything out."""

    def emit(o: Operands) -> ir.Value:
        builder, (a, count) = o.builder, o.values
        inside = builder.icmp_unsigned("<", count, o.constant(o.kind.width))
        if fills_with_sign:
            return builder.ashr(a, builder.select(inside, count, o.constant(o.kind.width - 1)))
        shifted = getattr(builder, operation)(a, builder.and_(count, o.constant(o.kind.width - 1)))
        return builder.select(inside, shifted, o.constant(0))

    return emit


def _shift_right(o: Operands) -> ir.Value:
    return _shift("ashr", fills_with_sign=True)(o) if o.signed else _shift("lshr")(o)


def _multiply_high(o: Operands) -> ir.Value:
    builder, double = o.builder, ir.IntType(2 * o.kind.width)
    a, b = ((builder.sext if o.signed else builder.zext)(value, double) for value in o.values)
    product = builder.mul(a, b)
    return builder.trunc(builder.lshr(product, double(o.kind.width)), o.kind)


def _absolute(o: Operands) -> ir.Value:
    (a,) = o.values
    if not o.signed:
        return a
    return o.builder.select(o.builder.icmp_signed("<", a, o.constant(0)), o.builder.neg(a), a)


def _intrinsic_of(name: str, *more: ir.Constant) -> Emit:
    """The LLVM intrinsic of this name on the operand."""

    def emit(o: Operands) -> ir.Value:
        kind = ir.FunctionType(o.kind, [o.kind, *(constant.type for constant in more)])
        function = cgutils.get_or_insert_function(o.builder.module, kind, f"llvm.{name}.i{o.kind.width}")
        return o.builder.call(function, [*o.values, *more])

    return emit


def _count(counted: Emit) -> Emit:
    """A count of bits as an i32."""

    def emit(o: Operands) -> ir.Value:
        value = counted(o)
        if o.kind.width == 32:
            return value
        return o.builder.zext(value, _I32) if o.kind.width < 32 else o.builder.trunc(value, _I32)

    return emit


INTEGER: Final[dict[str, Emit]] = {
    "mov": lambda o: o.values[0],
    "add": _plain("add"),
    "sub": _plain("sub"),
    "mul": _plain("mul"),
    "div": _quotient,
    "rem": _remainder,
    "min": _extreme("<"),
    "max": _extreme(">"),
    "and": _plain("and_"),
    "or": _plain("or_"),
    "xor": _plain("xor"),
    "not": _plain("not_"),
    "shl": _shift("shl"),
    "shr": _shift_right,
    "shru": _shift("lshr"),
    "neg": _plain("neg"),
    "abs": _absolute,
    "eq": _compare("=="),
    "ne": _compare("!="),
    "lt": _compare("<"),
    "le": _compare("<="),
    "gt": _compare(">"),
    "ge": _compare(">="),
    "ltu": _compare("<", signed=False),
    "leu": _compare("<=", signed=False),
    "select": _plain("select"),
    "mulhi": _multiply_high,
    "popcount": _count(_intrinsic_of("ctpop")),
    "clz": _count(_intrinsic_of("ctlz", _I1(0))),
    "brev": _intrinsic_of("bitreverse"),
}
"""Function -> what emits it. The rows that bools have hold for them too, as 1-bit unsigned integers."""


def integer_function(op: SceOp) -> Callable[..., Any]:
    """The numba function of an integer or bool opcode that is no reduction."""
    return _function(op.function, op.operands, op.result, op.operands[-1])


def combine_function(function: str, dtype: str) -> Callable[..., Any]:
    """The numba function of two integers or bools that a reduction folds with."""
    return _function(function, (dtype, dtype), dtype, dtype)


def _function(function: str, operands: Sequence[str], result: str, dtype: str) -> Callable[..., Any]:
    arguments = tuple(VALUE_TYPES[name] for name in operands)
    signed = not dtype.isdigit() and is_signed(dtype)
    return emitted(result, arguments, lambda builder, values: INTEGER[function](Operands(builder, values, signed)))


def emitted(
    result: str, arguments: Sequence[Any], emit: Callable[[ir.IRBuilder, Sequence[ir.Value]], ir.Value]
) -> Callable[..., Any]:
    """A numba function of one to three arguments that `emit` writes."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return emit(builder, values)

    signature = VALUE_TYPES[result](*arguments)

    def one(typing_context, a):  # type: ignore[no-untyped-def]
        return signature, generate

    def two(typing_context, a, b):  # type: ignore[no-untyped-def]
        return signature, generate

    def three(typing_context, a, b, c):  # type: ignore[no-untyped-def]
        return signature, generate

    made: Callable[..., Any] = intrinsic((one, two, three)[len(arguments) - 1])
    return made
