"""Scalar building blocks of the engines: numba intrinsics with one fixed meaning on every host.

Each function maps to one LLVM operation (or a handful) without fast-math flags, so LLVM may vectorise a loop over it
but may not change a bit of the result. A fused multiply-add exists only where `fma32` / `fma64` is written. No function
here has undefined behaviour for any input: conversions saturate, quotients never raise.

Suffix 32 means float32 (or a 32-bit pattern), suffix 64 float64. Intrinsics live at module scope because numba's cache
misses on intrinsics captured in closures.

One trap: `canonical32(sqrt32(x))` is not canonical, because LLVM removes "x < 0 ? NaN : sqrt(x)" as redundant although
x86 returns the other NaN. `loom_sim.elementary.sqrtf` asks in a way that stays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_F32 = ir.FloatType()
_F64 = ir.DoubleType()
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)

_Codegen = Callable[[Any, ir.IRBuilder, Any, Sequence[ir.Value]], ir.Value]

# What the arguments are at run time; numba infers them, so to a type checker they are opaque.
Bool: TypeAlias = Any
Float32: TypeAlias = Any
Float64: TypeAlias = Any
Int32: TypeAlias = Any
Int64: TypeAlias = Any

NAN_BITS32 = np.int32(0x7FC00000)
NAN32 = np.float32(np.nan)
NAN64 = np.float64(np.nan)


_Function = TypeVar("_Function", bound=Callable[..., Any])


def scalar(function: _Function) -> _Function:
    """Decorator of the engines' scalar functions: compiled at first use, inlined into every caller, never raising."""
    return cast(_Function, njit(forceinline=True, error_model="numpy")(function))


def _intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast(Callable[..., Any], intrinsic(function))


def _llvm_call(name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> _Codegen:
    """Code generator that calls the LLVM intrinsic `name` on its arguments."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)
        return builder.call(function, values)

    return generate


def _bitcast_to(result: ir.Type) -> _Codegen:
    """Code generator that reinterprets its only argument as `result`."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return builder.bitcast(values[0], result)

    return generate


@functools.cache
def _fuses_multiply_add(triple: str, cpu: str, features: str) -> bool:
    """Whether a target has an instruction for an fma of float32, asked of LLVM."""
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    source = f"""
        target triple = "{triple}"
        declare float @llvm.fma.f32(float, float, float)
        define float @fused(float %a, float %b, float %c) {{
            %result = call float @llvm.fma.f32(float %a, float %b, float %c)
            ret float %result
        }}
    """
    return "fmaf" not in machine.emit_assembly(llvm.parse_assembly(source))


def _emit_fma32(context: Any, builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a * b + c rounded once: the target's instruction, or its emulation where LLVM would call the C library.

    The emulation: exact product in float64, sum with its error, sum rounded to odd, rounded to float32 (Boldo and
    Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
    """
    if _fuses_multiply_add(*context.codegen().magic_tuple()):
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_F32, [_F32] * 3), "llvm.fma.f32")
        return builder.call(function, [a, b, c])
    product = builder.fmul(builder.fpext(a, _F64), builder.fpext(b, _F64))
    addend = builder.fpext(c, _F64)
    total = builder.fadd(product, addend)
    taken = builder.fsub(total, product)
    error = builder.fadd(builder.fsub(product, builder.fsub(total, taken)), builder.fsub(addend, taken))
    pattern = builder.bitcast(total, _I64)
    # Ordered: where the total is not finite the error is a NaN and must change nothing.
    inexact = builder.fcmp_ordered("!=", error, _F64(0.0))
    even = builder.icmp_signed("==", builder.and_(pattern, _I64(1)), _I64(0))
    rounded_up = builder.icmp_signed("<", builder.xor(pattern, builder.bitcast(error, _I64)), _I64(0))
    step = builder.select(rounded_up, _I64(-1), _I64(1))
    odd = builder.add(pattern, builder.select(builder.and_(inexact, even), step, _I64(0)))
    return builder.fptrunc(builder.bitcast(odd, _F64), _F32)


def _emit_fma64(context: Any, builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a * b + c rounded once. Where a target lacks the instruction LLVM calls C's `fma`, which rounds correctly too."""
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_F64, [_F64] * 3), "llvm.fma.f64")
    return builder.call(function, [a, b, c])


@_intrinsic
def fma32(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """(f32, f32, f32) -> f32: a * b + c rounded once."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return _emit_fma32(context, builder, *values)

    return types.float32(types.float32, types.float32, types.float32), generate


@_intrinsic
def fma64(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """(f64, f64, f64) -> f64: a * b + c rounded once."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return _emit_fma64(context, builder, *values)

    return types.float64(types.float64, types.float64, types.float64), generate


def _horner(emit_fma: Callable[..., ir.Value], count: int) -> _Codegen:
    """Code generator of Horner's rule over (x, tuple of `count` coefficients)."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        x, coefficients = values
        terms = [builder.extract_value(coefficients, index) for index in range(count)]
        result = terms[-1]
        for term in reversed(terms[:-1]):
            result = emit_fma(context, builder, result, x, term)
        return result

    return generate


@_intrinsic
def polynomial32(typing_context: Any, x: Any, coefficients: Any) -> Any:
    """(f32, tuple of n f32, ascending) -> f32: Horner's rule, one `fma32` a step from the highest coefficient down."""
    if not isinstance(coefficients, types.UniTuple) or coefficients.dtype != types.float32:
        return None
    return types.float32(types.float32, coefficients), _horner(_emit_fma32, coefficients.count)


@_intrinsic
def polynomial64(typing_context: Any, x: Any, coefficients: Any) -> Any:
    """(f64, tuple of n f64, ascending) -> f64: Horner's rule, one `fma64` a step from the highest coefficient down."""
    if not isinstance(coefficients, types.UniTuple) or coefficients.dtype != types.float64:
        return None
    return types.float64(types.float64, coefficients), _horner(_emit_fma64, coefficients.count)


@_intrinsic
def div32(typing_context: Any, a: Any, b: Any) -> Any:
    """(f32, f32) -> f32: IEEE quotient; never raises, whatever error model the caller was compiled with."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return builder.fdiv(*values)

    return types.float32(types.float32, types.float32), generate


@_intrinsic
def div64(typing_context: Any, a: Any, b: Any) -> Any:
    """(f64, f64) -> f64: IEEE quotient; never raises."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return builder.fdiv(*values)

    return types.float64(types.float64, types.float64), generate


@_intrinsic
def bits32(typing_context: Any, x: Any) -> Any:
    """f32 -> i32: the bit pattern."""
    return types.int32(types.float32), _bitcast_to(_I32)


@_intrinsic
def float32_from_bits(typing_context: Any, pattern: Any) -> Any:
    """i32 -> f32: the float with this bit pattern."""
    return types.float32(types.int32), _bitcast_to(_F32)


@_intrinsic
def bits64(typing_context: Any, x: Any) -> Any:
    """f64 -> i64: the bit pattern."""
    return types.int64(types.float64), _bitcast_to(_I64)


@_intrinsic
def float64_from_bits(typing_context: Any, pattern: Any) -> Any:
    """i64 -> f64: the float with this bit pattern."""
    return types.float64(types.int64), _bitcast_to(_F64)


@_intrinsic
def select(typing_context: Any, condition: Any, x: Any, y: Any) -> Any:
    """(bool, T, T) -> T: `x` where the condition holds, else `y`; both are evaluated and bits move unchanged.

    No branch is made. T is the type that numba unifies `x` and `y` to: give both the same type where the width matters.
    """
    unified = typing_context.unify_types(types.unliteral(x), types.unliteral(y))
    if unified is None:
        return None

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return builder.select(values[0], values[1], values[2])

    return unified(types.boolean, unified, unified), generate


@_intrinsic
def sqrt32(typing_context: Any, x: Any) -> Any:
    """f32 -> f32: correctly rounded square root; a NaN of either sign below zero, -0 for -0."""
    return types.float32(types.float32), _llvm_call("llvm.sqrt.f32", _F32, [_F32])


@_intrinsic
def sqrt64(typing_context: Any, x: Any) -> Any:
    """f64 -> f64: correctly rounded square root."""
    return types.float64(types.float64), _llvm_call("llvm.sqrt.f64", _F64, [_F64])


@_intrinsic
def abs32(typing_context: Any, x: Any) -> Any:
    """f32 -> f32: the sign bit cleared (of a NaN too)."""
    return types.float32(types.float32), _llvm_call("llvm.fabs.f32", _F32, [_F32])


@_intrinsic
def abs64(typing_context: Any, x: Any) -> Any:
    """f64 -> f64: the sign bit cleared (of a NaN too)."""
    return types.float64(types.float64), _llvm_call("llvm.fabs.f64", _F64, [_F64])


@_intrinsic
def copysign32(typing_context: Any, magnitude: Any, sign: Any) -> Any:
    """(f32, f32) -> f32: the magnitude of the first with the sign bit of the second."""
    return types.float32(types.float32, types.float32), _llvm_call("llvm.copysign.f32", _F32, [_F32] * 2)


# Rounding to an integral value is exact: a target without the instruction may call any correct routine, the bits cannot
# differ.
@_intrinsic
def floor32(typing_context: Any, x: Any) -> Any:
    """f32 -> f32: largest integral value <= x, sign of zero kept."""
    return types.float32(types.float32), _llvm_call("llvm.floor.f32", _F32, [_F32])


@_intrinsic
def ceil32(typing_context: Any, x: Any) -> Any:
    """f32 -> f32: smallest integral value >= x, sign of zero kept."""
    return types.float32(types.float32), _llvm_call("llvm.ceil.f32", _F32, [_F32])


@_intrinsic
def rint32(typing_context: Any, x: Any) -> Any:
    """f32 -> f32: nearest integral value, ties to even, sign of zero kept."""
    return types.float32(types.float32), _llvm_call("llvm.rint.f32", _F32, [_F32])


@_intrinsic
def trunc32(typing_context: Any, x: Any) -> Any:
    """f32 -> f32: x without its fraction, sign of zero kept."""
    return types.float32(types.float32), _llvm_call("llvm.trunc.f32", _F32, [_F32])


@_intrinsic
def rint64(typing_context: Any, x: Any) -> Any:
    """f64 -> f64: nearest integral value, ties to even, sign of zero kept."""
    return types.float64(types.float64), _llvm_call("llvm.rint.f64", _F64, [_F64])


@_intrinsic
def floor64(typing_context: Any, x: Any) -> Any:
    """f64 -> f64: largest integral value <= x, sign of zero kept."""
    return types.float64(types.float64), _llvm_call("llvm.floor.f64", _F64, [_F64])


@_intrinsic
def ceil64(typing_context: Any, x: Any) -> Any:
    """f64 -> f64: smallest integral value >= x, sign of zero kept."""
    return types.float64(types.float64), _llvm_call("llvm.ceil.f64", _F64, [_F64])


@_intrinsic
def trunc64(typing_context: Any, x: Any) -> Any:
    """f64 -> f64: x without its fraction, sign of zero kept."""
    return types.float64(types.float64), _llvm_call("llvm.trunc.f64", _F64, [_F64])


@_intrinsic
def copysign64(typing_context: Any, magnitude: Any, sign: Any) -> Any:
    """(f64, f64) -> f64: the magnitude of the first with the sign bit of the second."""
    return types.float64(types.float64, types.float64), _llvm_call("llvm.copysign.f64", _F64, [_F64] * 2)


@_intrinsic
def i32_to_f32(typing_context: Any, x: Any) -> Any:
    """i32 -> f32: rounded to nearest even."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return builder.sitofp(values[0], _F32)

    return types.float32(types.int32), generate


@scalar
def canonical32(x: Float32) -> Float32:
    """f32 -> f32: every NaN becomes 0x7fc00000, every other value keeps its bits."""
    return select(x != x, NAN32, x)


@scalar
def propagate_nan32(x: Float32, result: Float32) -> Float32:
    """(f32, f32) -> f32: the canonical NaN where `x` is a NaN, else `result` (which must not be one)."""
    return select(x != x, NAN32, result)


@scalar
def canonical64(x: Float64) -> Float64:
    """f64 -> f64: every NaN becomes 0x7ff8000000000000, every other value keeps its bits."""
    return select(x != x, NAN64, x)


@scalar
def propagate_nan64(x: Float64, result: Float64) -> Float64:
    """(f64, f64) -> f64: the canonical NaN where `x` is a NaN, else `result` (which must not be one)."""
    return select(x != x, NAN64, result)
