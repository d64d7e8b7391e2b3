"""Floats of 8 and 16 bits: their widening to f32 and the rounding of f32 and f64 to them, as LLVM operations.

Every emitter takes a scalar or a vector. Only integer operations and IEEE operations of f32 are emitted, whatever
conversion instructions a target has: the bits are the same everywhere, and no target calls a library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir

from loom_core.base.dtype import by_name
from loom_core.isa.sce import SceOp
from loom_sim.element_types import VALUE_TYPES
from loom_sim.integers import emitted

_I1 = ir.IntType(1)
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_F32 = ir.FloatType()
_F64 = ir.DoubleType()
_NAN32 = 0x7FC00000
_INFINITY32 = 0x7F800000
_MAGNITUDE32 = 0x7FFFFFFF


@dataclass(frozen=True)
class Format:
    """A float format: `bits` in all, `mantissa` of them explicit; patterns without the sign bit.

    `nan` is the canonical NaN, `infinity` None where the format has none: then it has no NaN but the last pattern.
    """

    name: str
    bits: int
    mantissa: int
    bias: int
    largest: int
    infinity: int | None
    nan: int

    @property
    def kind(self) -> ir.IntType:
        return ir.IntType(self.bits)

    @property
    def overflow(self) -> int:
        """What a value too large becomes."""
        return self.nan if self.infinity is None else self.infinity

    @property
    def rebias(self) -> int:
        """Difference of the exponent biases of f32 and this format."""
        return 127 - self.bias


def _ieee(name: str) -> Format:
    dtype = by_name(name)
    exponent = dtype.bits - 1 - dtype.mantissa
    infinity = ((1 << exponent) - 1) << dtype.mantissa
    nan = infinity | 1 << (dtype.mantissa - 1)
    return Format(name, dtype.bits, dtype.mantissa, (1 << (exponent - 1)) - 1, infinity - 1, infinity, nan)


FORMATS: Final[dict[str, Format]] = {
    "f16": _ieee("f16"),
    "bf16": _ieee("bf16"),
    "f8e5m2": _ieee("f8e5m2"),
    "f8e4m3": Format("f8e4m3", 8, 3, 7, largest=0x7E, infinity=None, nan=0x7F),
}


def like(kind: ir.Type, value: ir.Value) -> ir.Type:
    """`kind`, or the vector of it with as many elements as `value`."""
    return ir.VectorType(kind, value.type.count) if isinstance(value.type, ir.VectorType) else kind


def filled(kind: ir.Type, value: float | int) -> ir.Constant:
    """The constant of a scalar or vector type."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def constant_like(kind: ir.Type, number: float | int, value: ir.Value) -> ir.Constant:
    return filled(like(kind, value), number)


# ---- to f32 ----------------------------------------------------------------------------------------------------------


def emit_widen(builder: ir.IRBuilder, form: Format, pattern: ir.Value) -> ir.Value:
    """The f32 of a pattern, exact; NaNs stay NaNs of some kind."""
    whole = builder.zext(pattern, like(_I32, pattern))

    def number(value: int) -> ir.Constant:
        return constant_like(_I32, value, pattern)

    if form.name == "bf16":
        return builder.bitcast(builder.shl(whole, number(16)), like(_F32, pattern))
    sign = builder.shl(builder.and_(whole, number(1 << (form.bits - 1))), number(32 - form.bits))
    magnitude = builder.and_(whole, number((1 << (form.bits - 1)) - 1))
    normal = builder.add(builder.shl(magnitude, number(23 - form.mantissa)), number(form.rebias << 23))
    # Subnormal numbers are integers times the smallest one.
    smallest = constant_like(_F32, 2.0 ** (1 - form.bias - form.mantissa), pattern)
    subnormal = builder.fmul(builder.sitofp(magnitude, like(_F32, pattern)), smallest)
    is_subnormal = builder.icmp_unsigned("<", magnitude, number(1 << form.mantissa))
    result = builder.select(is_subnormal, builder.bitcast(subnormal, like(_I32, pattern)), normal)
    if form.infinity is None:
        result = builder.select(builder.icmp_unsigned("==", magnitude, number(form.nan)), number(_NAN32), result)
    else:
        special = builder.or_(builder.shl(magnitude, number(23 - form.mantissa)), number(_INFINITY32))
        result = builder.select(builder.icmp_unsigned(">=", magnitude, number(form.infinity)), special, result)
    return builder.bitcast(builder.or_(result, sign), like(_F32, pattern))


# ---- from f32 --------------------------------------------------------------------------------------------------------


def emit_narrow(builder: ir.IRBuilder, form: Format, value: ir.Value, mode: str = "nearest") -> ir.Value:
    """The pattern of an f32 rounded once; `mode` "nearest" (ties to even), "saturate" (the same, but what is too large
    becomes the largest finite value) or "truncate" (towards zero)."""
    pattern = builder.bitcast(value, like(_I32, value))

    def number(constant: int) -> ir.Constant:
        return constant_like(_I32, constant, value)

    magnitude = builder.and_(pattern, number(_MAGNITUDE32))
    result = (_truncated if mode == "truncate" else _rounded)(builder, form, magnitude)
    limit = form.overflow if mode == "nearest" else form.largest
    result = builder.select(builder.icmp_unsigned(">", result, number(form.largest)), number(limit), result)
    if mode == "truncate":
        is_infinite = builder.icmp_unsigned("==", magnitude, number(_INFINITY32))
        result = builder.select(is_infinite, number(form.overflow), result)
    sign = builder.and_(builder.lshr(pattern, number(32 - form.bits)), number(1 << (form.bits - 1)))
    result = builder.or_(result, sign)
    is_nan = builder.icmp_unsigned(">", magnitude, number(_INFINITY32))
    if form.infinity is None:  # an overflow is a NaN too, and has no sign then
        overflowed = builder.icmp_unsigned("==", builder.and_(result, number(form.nan)), number(form.nan))
        is_nan = builder.or_(is_nan, overflowed)
    return builder.trunc(builder.select(is_nan, number(form.nan), result), like(form.kind, value))


def _rounded(builder: ir.IRBuilder, form: Format, magnitude: ir.Value) -> ir.Value:
    """A non-negative f32 pattern rounded to nearest even; beyond the largest finite pattern where it is too large."""

    def number(constant: int) -> ir.Constant:
        return constant_like(_I32, constant, magnitude)

    dropped = 23 - form.mantissa
    odd = builder.and_(builder.lshr(magnitude, number(dropped)), number(1))
    raised = builder.add(builder.add(magnitude, number((1 << (dropped - 1)) - 1)), odd)
    normal = builder.sub(builder.lshr(raised, number(dropped)), number(form.rebias << form.mantissa))
    if form.rebias == 0:
        return normal
    # Added to the power of two whose last place is the smallest subnormal, a float is rounded to a multiple of it.
    grid = 2.0 ** (1 - form.bias - form.mantissa + 23)
    total = builder.fadd(builder.bitcast(magnitude, like(_F32, magnitude)), constant_like(_F32, grid, magnitude))
    grid_bits = (127 + 24 - form.bias - form.mantissa) << 23
    subnormal = builder.sub(builder.bitcast(total, like(_I32, magnitude)), number(grid_bits))
    is_small = builder.icmp_unsigned("<", magnitude, number((form.rebias + 1) << 23))
    return builder.select(is_small, subnormal, normal)


def _truncated(builder: ir.IRBuilder, form: Format, magnitude: ir.Value) -> ir.Value:
    """The same towards zero."""

    def number(constant: int) -> ir.Constant:
        return constant_like(_I32, constant, magnitude)

    kept = builder.lshr(magnitude, number(23 - form.mantissa))
    normal = builder.sub(kept, number(form.rebias << form.mantissa))
    if form.rebias == 0:
        return normal
    limit = (form.rebias + 1) << 23
    is_small = builder.icmp_unsigned("<", magnitude, number(limit))
    # Limited, because a conversion of a large float to an integer has no value.
    small = builder.select(is_small, magnitude, number(limit))
    scale = constant_like(_F32, 2.0 ** (form.bias + form.mantissa - 1), magnitude)
    scaled = builder.fmul(builder.bitcast(small, like(_F32, magnitude)), scale)
    return builder.select(is_small, builder.fptosi(scaled, like(_I32, magnitude)), normal)


# ---- from f64 --------------------------------------------------------------------------------------------------------


def emit_narrow_wide(builder: ir.IRBuilder, form: Format, value: ir.Value, mode: str = "nearest") -> ir.Value:
    """The pattern of an f64 rounded once; `mode` as in `emit_narrow`."""
    middle = emit_truncate64(builder, value) if mode == "truncate" else _emit_odd64(builder, value)
    return emit_narrow(builder, form, middle, mode)


def _emit_odd64(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """f64 -> f32 rounded to odd: towards zero, and the last bit set if anything was lost.

    One rounding of that to a format of at least two bits less equals one rounding of the exact value (S. Boldo, G.
    Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    truncated = emit_truncate64(builder, value)
    inexact = builder.fcmp_ordered("!=", builder.fpext(truncated, like(_F64, value)), value)
    pattern = builder.bitcast(truncated, like(_I32, value))
    odd = builder.or_(pattern, builder.zext(inexact, like(_I32, value)))
    return builder.bitcast(odd, like(_F32, value))


def emit_truncate64(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """f64 -> f32 towards zero: no finite value becomes infinite."""
    nearest = builder.fptrunc(value, like(_F32, value))
    pattern = builder.bitcast(nearest, like(_I32, value))
    magnitude = builder.and_(pattern, constant_like(_I32, _MAGNITUDE32, value))
    back = builder.fpext(builder.bitcast(magnitude, like(_F32, value)), like(_F64, value))
    exact = builder.bitcast(
        builder.and_(builder.bitcast(value, like(_I64, value)), constant_like(_I64, 0x7FFFFFFFFFFFFFFF, value)),
        like(_F64, value),
    )
    too_large = builder.fcmp_ordered(">", back, exact)
    lowered = builder.sub(pattern, builder.zext(too_large, like(_I32, value)))
    return builder.bitcast(lowered, like(_F32, value))


# ---- functions that need no f32 --------------------------------------------------------------------------------------


def emit_canonical(builder: ir.IRBuilder, form: Format, pattern: ir.Value) -> ir.Value:
    """Every NaN becomes the canonical one."""
    return builder.select(emit_is_nan(builder, form, pattern), filled(pattern.type, form.nan), pattern)


def emit_is_nan(builder: ir.IRBuilder, form: Format, pattern: ir.Value) -> ir.Value:
    magnitude = builder.and_(pattern, filled(pattern.type, (1 << (form.bits - 1)) - 1))
    last_number = form.largest if form.infinity is None else form.infinity
    return builder.icmp_unsigned(">", magnitude, filled(pattern.type, last_number))


def _emit_sign(builder: ir.IRBuilder, form: Format, operation: str, pattern: ir.Value) -> ir.Value:
    sign = filled(pattern.type, 1 << (form.bits - 1))
    if operation == "neg":
        return builder.xor(pattern, sign)
    return builder.and_(pattern, builder.not_(sign))


def _emit_copysign(builder: ir.IRBuilder, form: Format, pattern: ir.Value, other: ir.Value) -> ir.Value:
    sign = filled(pattern.type, 1 << (form.bits - 1))
    return builder.or_(_emit_sign(builder, form, "abs", pattern), builder.and_(other, sign))


def _emit_next(builder: ir.IRBuilder, form: Format, x: ir.Value, y: ir.Value) -> ir.Value:
    """The pattern next to x in the direction of y; y where they are equal; the smallest of y's sign from a zero."""
    wide_x, wide_y = emit_widen(builder, form, x), emit_widen(builder, form, y)
    positive = builder.icmp_signed(">=", x, filled(x.type, 0))
    upward = builder.fcmp_ordered("<", wide_x, wide_y)
    outward = builder.icmp_unsigned("==", upward, positive)
    stepped = builder.add(x, builder.select(outward, filled(x.type, 1), filled(x.type, -1)))
    smallest = builder.or_(builder.and_(y, filled(x.type, 1 << (form.bits - 1))), filled(x.type, 1))
    is_zero = builder.fcmp_ordered("==", wide_x, constant_like(_F32, 0.0, x))
    moved = builder.select(is_zero, smallest, stepped)
    result = builder.select(builder.fcmp_ordered("==", wide_x, wide_y), y, moved)
    is_nan = builder.fcmp_unordered("uno", wide_x, wide_y)
    return builder.select(is_nan, filled(x.type, form.nan), result)


def emit_fma(builder: ir.IRBuilder, form: Format, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a * b + c rounded once: the product is exact in f64, the sum rounded to odd there."""
    wide = [builder.fpext(emit_widen(builder, form, value), like(_F64, value)) for value in (a, b, c)]
    product = builder.fmul(wide[0], wide[1])
    total = builder.fadd(product, wide[2])
    back = builder.fsub(total, product)
    error = builder.fadd(builder.fsub(product, builder.fsub(total, back)), builder.fsub(wide[2], back))
    long = like(_I64, a)
    pattern = builder.bitcast(total, long)
    # Ordered: where the total is not finite the error is a NaN and must change nothing.
    inexact = builder.fcmp_ordered("!=", error, constant_like(_F64, 0.0, a))
    even = builder.icmp_signed("==", builder.and_(pattern, filled(long, 1)), filled(long, 0))
    too_far = builder.icmp_signed("<", builder.xor(pattern, builder.bitcast(error, long)), filled(long, 0))
    step = builder.select(too_far, filled(long, -1), filled(long, 1))
    odd = builder.add(pattern, builder.select(builder.and_(inexact, even), step, filled(long, 0)))
    return emit_narrow_wide(builder, form, builder.bitcast(odd, like(_F64, a)))


_DIRECT: Final[dict[str, Any]] = {
    "mov": lambda builder, form, values: values[0],
    "neg": lambda builder, form, values: _emit_sign(builder, form, "neg", *values),
    "abs": lambda builder, form, values: _emit_sign(builder, form, "abs", *values),
    "copysign": lambda builder, form, values: _emit_copysign(builder, form, *values),
    "select": lambda builder, form, values: builder.select(*values),
}
_WHOLE: Final[dict[str, Any]] = {
    "fma": lambda builder, form, values: emit_fma(builder, form, *values),
    "nextafter": lambda builder, form, values: _emit_next(builder, form, *values),
    "isnan": lambda builder, form, values: emit_is_nan(builder, form, *values),
}


def direct_function(op: SceOp, form: Format) -> Any | None:
    """The numba function of an opcode of this format that does not go through f32; None for all others."""
    arguments = [VALUE_TYPES[name] for name in op.operands]
    if op.function in _WHOLE:
        return emitted(op.result, arguments, lambda builder, values: _WHOLE[op.function](builder, form, values))
    if op.function in _DIRECT:
        return emitted(
            op.result,
            arguments,
            lambda builder, values: emit_canonical(builder, form, _DIRECT[op.function](builder, form, values)),
        )
    return None
