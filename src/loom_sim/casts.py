"""Casts of the stream engine between all element types, as LLVM operations.

To a float type a value is rounded once: f64 and 64-bit integers go through a rounding to odd where the target is
narrower than the way there. Float to integer clamps first, so that no conversion sees a value that it has no result
for; LLVM's saturating conversions do not vectorise well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir

from loom_core.base.dtype import DType, by_name
from loom_core.isa.sce import SceOp
from loom_sim.element_types import VALUE_TYPES, memory_type, wrapped4
from loom_sim.integers import emitted
from loom_sim.narrow import FORMATS, emit_narrow, emit_narrow_wide, emit_truncate64, emit_widen

_F32 = ir.FloatType()
_F64 = ir.DoubleType()
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_NAN32 = ir.Constant(_F32, float("nan"))
_NAN64 = ir.Constant(_F64, float("nan"))
_MODES: Final = {"cast": "nearest", "cast_sat": "saturate", "cast_rtz": "truncate"}


@dataclass(frozen=True)
class _Cast:
    """One cast under emission."""

    builder: ir.IRBuilder
    source: DType
    result: DType
    mode: str

    def emit(self, value: ir.Value) -> ir.Value:
        if self.source.is_float:
            return self.from_float(value)
        return self.from_integer(value)

    def from_float(self, value: ir.Value) -> ir.Value:
        if self.source.name in FORMATS:
            value = emit_widen(self.builder, FORMATS[self.source.name], value)
        if self.result.is_bool:
            return self.builder.fcmp_unordered("une", value, value.type(0.0))
        if self.result.is_float:
            return self.to_float(value)
        return self.wrapped(self.to_integer(value))

    def from_integer(self, value: ir.Value) -> ir.Value:
        builder, signed = self.builder, self.source.is_signed
        if self.result.is_bool:
            return value if self.source.is_bool else builder.icmp_unsigned("!=", value, value.type(0))
        if not self.result.is_float:
            return self.wrapped(_resized(builder, value, memory_type(self.result.name), signed))
        to_float = builder.sitofp if signed else builder.uitofp
        if self.result.name == "bf16" and value.type.width >= 32:
            return self.to_float(self.odd_integer(value))
        if value.type.width < 32:
            value, to_float = _resized(builder, value, _I32, signed), builder.sitofp
        # f16 and the 8-bit formats overflow long before an integer is too long for f32.
        return self.to_float(to_float(value, _F64 if self.result.name == "f64" else _F32))

    def odd_integer(self, value: ir.Value) -> ir.Value:
        """The f64 of an integer, the low bits of a long one replaced by a last bit that says if any was set."""
        builder, signed = self.builder, self.source.is_signed
        to_float = builder.sitofp if signed else builder.uitofp
        if value.type.width == 32:
            return to_float(value, _F64)
        low = builder.and_(value, _I64(0xFFFF))
        sticky = builder.zext(builder.icmp_unsigned("!=", low, _I64(0)), _I64)
        high = (builder.ashr if signed else builder.lshr)(value, _I64(16))
        long = builder.fmul(to_float(builder.or_(high, sticky), _F64), _F64(65536.0))
        top = (builder.ashr if signed else builder.lshr)(value, _I64(48))
        is_short = builder.icmp_unsigned("==", top, _I64(0))
        if signed:
            is_short = builder.or_(is_short, builder.icmp_signed("==", top, _I64(-1)))
        return builder.select(is_short, to_float(value, _F64), long)

    def to_float(self, value: ir.Value) -> ir.Value:
        """A value of f32 or f64 as the result type."""
        builder, wide = self.builder, value.type == _F64
        form = FORMATS.get(self.result.name)
        if form is not None:
            return (emit_narrow_wide if wide else emit_narrow)(builder, form, value, self.mode)
        if self.result.name == "f64":
            value = value if wide else builder.fpext(value, _F64)
            return builder.select(builder.fcmp_unordered("uno", value, value), _NAN64, value)
        if wide:
            value = emit_truncate64(builder, value) if self.mode == "truncate" else builder.fptrunc(value, _F32)
        return builder.select(builder.fcmp_unordered("uno", value, value), _NAN32, value)

    def to_integer(self, value: ir.Value) -> ir.Value:
        """f32 or f64, truncated and saturated; NaN gives 0."""
        builder, target = self.builder, self.result
        zero = value.type(0.0)
        precision = 53 if value.type == _F64 else 24
        if target.bits - target.is_signed <= precision:
            low, high = value.type(float(target.min_value)), value.type(float(target.max_value))
            value = builder.select(builder.fcmp_ordered(">", value, high), high, value)
            value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
            value = builder.select(builder.fcmp_unordered("uno", value, value), zero, value)
            if target.bits < 32:
                return builder.trunc(builder.fptosi(value, _I32), memory_type(target.name))
            return (builder.fptosi if target.is_signed else builder.fptoui)(value, memory_type(target.name))
        # The first float past the greatest integer is a power of two.
        kind = memory_type(target.name)
        past = value.type(float(target.max_value + 1))
        least = value.type(float(target.min_value))
        inside = builder.and_(builder.fcmp_ordered(">=", value, least), builder.fcmp_ordered("<", value, past))
        convert = builder.fptosi if target.is_signed else builder.fptoui
        result = convert(builder.select(inside, value, zero), kind)
        result = builder.select(builder.fcmp_ordered(">=", value, past), kind(target.max_value), result)
        return builder.select(builder.fcmp_ordered("<", value, least), kind(target.min_value), result)

    def wrapped(self, value: ir.Value) -> ir.Value:
        return wrapped4(self.builder, self.result.name, value) if self.result.bits == 4 else value


def _resized(builder: ir.IRBuilder, value: ir.Value, kind: ir.IntType, signed: bool) -> ir.Value:
    if value.type.width == kind.width:
        return value
    if value.type.width > kind.width:
        return builder.trunc(value, kind)
    return (builder.sext if signed else builder.zext)(value, kind)


def cast_function(op: SceOp) -> Callable[..., Any]:
    """The numba function of a cast."""
    (source,) = op.operands
    mode = _MODES[op.function]

    def emit(builder: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
        return _Cast(builder, by_name(source), by_name(op.result), mode).emit(values[0])

    return emitted(op.result, [VALUE_TYPES[source]], emit)
