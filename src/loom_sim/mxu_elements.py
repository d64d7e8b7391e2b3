"""Element types of matrix operands: how an element in memory becomes part of a 4-byte word of a panel.

A float of any width is one word, its exact float32; so a word holds one step of k. An integer becomes 16 bits, and a
word holds two steps of k, the first in its low half.

The `widen` functions emit code for an integer value or a vector of them and need no instruction beyond the target's
first: small floats are taken apart by integer operations, unless the target converts half precision by itself.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from llvmlite import ir

from loom_sim.mxu_emission import FLOAT, I16, I32, constant, same_shape, target_assembly

_Widen = Callable[[ir.IRBuilder, ir.Value], ir.Value]

_F32_EXPONENT_BIAS: Final = 127
_F32_MANTISSA: Final = 23
_F32_INFINITY: Final = 0x7F800000
_F32_NAN: Final = 0x7FC00000


@dataclass(frozen=True)
class PanelElement:
    """How elements of one type get into a panel.

    name    the type's name in `loom_core.base.dtype`
    bytes   of one element in memory
    steps   of k in one word of a panel: 1 for floats, 2 for integers
    widen   from integers of `bytes` to the bits of float32, or to 16-bit integers; exact
    """

    name: str
    bytes: int
    steps: int
    widen: _Widen

    @property
    def memory(self) -> ir.IntType:
        """The integer type of an element's bits."""
        return ir.IntType(8 * self.bytes)


# ---- floats ----------------------------------------------------------------------------------------------------------

_CONVERTS_HALVES = re.compile(r"^\s*(?:vcvtph2ps|fcvtl)", re.MULTILINE)


@functools.cache
def target_converts_halves() -> bool:
    """Whether the target widens half precision by instructions; elsewhere LLVM would call a library."""
    source = """
        define <4 x float> @widen(<4 x half> %x) {
            %result = fpext <4 x half> %x to <4 x float>
            ret <4 x float> %result
        }
    """
    return bool(_CONVERTS_HALVES.search(target_assembly(source)))


def _emit_small_float(
    builder: ir.IRBuilder, value: ir.Value, exponent: int, mantissa: int, *, finite: bool
) -> ir.Value:
    """float32 bits of a float of 1 + exponent + mantissa bits; the value is zero extended to 32.

    `finite`: no infinities, and NaN only where exponent and mantissa are all ones; else as in IEEE 754, payload kept.
    """
    kind = value.type
    whole = (1 << (exponent + mantissa)) - 1
    shift = _F32_MANTISSA - mantissa
    rebias = _F32_EXPONENT_BIAS - ((1 << (exponent - 1)) - 1)
    magnitude = builder.and_(value, constant(kind, whole))
    sign = builder.shl(builder.and_(value, constant(kind, whole + 1)), constant(kind, 31 - exponent - mantissa))
    shifted = builder.shl(magnitude, constant(kind, shift))
    normal = builder.add(shifted, constant(kind, rebias << _F32_MANTISSA))
    # A subnormal m is (1 + m) - 1 in units of the least normal number: exact, and no operand is subnormal in float32,
    # where some processors are slow.
    floats = same_shape(kind, FLOAT)
    least_normal = constant(kind, (rebias + 1) << _F32_MANTISSA)
    above = builder.bitcast(builder.add(shifted, least_normal), floats)
    subnormal = builder.bitcast(builder.fsub(above, builder.bitcast(least_normal, floats)), kind)
    is_subnormal = builder.icmp_unsigned("<", magnitude, constant(kind, 1 << mantissa))
    result = builder.select(is_subnormal, subnormal, normal)
    if finite:
        is_special = builder.icmp_unsigned("==", magnitude, constant(kind, whole))
        special: ir.Value = constant(kind, _F32_NAN)
    else:
        is_special = builder.icmp_unsigned(">=", magnitude, constant(kind, whole + 1 - (1 << mantissa)))
        special = builder.or_(shifted, constant(kind, _F32_INFINITY))
    return builder.or_(builder.select(is_special, special, result), sign)


def _widen_f32(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return value


def _widen_bf16(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    kind = same_shape(value.type, I32)
    return builder.shl(builder.zext(value, kind), constant(kind, 16))


def _widen_f16(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    kind = same_shape(value.type, I32)
    if target_converts_halves():
        halves = builder.bitcast(value, same_shape(value.type, ir.HalfType()))
        return builder.bitcast(builder.fpext(halves, same_shape(value.type, FLOAT)), kind)
    return _emit_small_float(builder, builder.zext(value, kind), 5, 10, finite=False)


def _widen_f8e4m3(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return _emit_small_float(builder, builder.zext(value, same_shape(value.type, I32)), 4, 3, finite=True)


def _widen_f8e5m2(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    # The upper byte of a half.
    halves = same_shape(value.type, I16)
    return _widen_f16(builder, builder.shl(builder.zext(value, halves), constant(halves, 8)))


# ---- integers --------------------------------------------------------------------------------------------------------


def _widen_i8(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return builder.sext(value, same_shape(value.type, I16))


def _widen_u8(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return builder.zext(value, same_shape(value.type, I16))


def _widen_i4(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """The low half of a byte with its sign; the high half may be anything."""
    kind = same_shape(value.type, I16)
    return builder.ashr(builder.shl(builder.zext(value, kind), constant(kind, 12)), constant(kind, 12))


def _widen_u4(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    kind = same_shape(value.type, I16)
    return builder.and_(builder.zext(value, kind), constant(kind, 15))


ELEMENTS: Final = {
    element.name: element
    for element in (
        PanelElement("f32", 4, 1, _widen_f32),
        PanelElement("bf16", 2, 1, _widen_bf16),
        PanelElement("f16", 2, 1, _widen_f16),
        PanelElement("f8e4m3", 1, 1, _widen_f8e4m3),
        PanelElement("f8e5m2", 1, 1, _widen_f8e5m2),
        PanelElement("i8", 1, 2, _widen_i8),
        PanelElement("u8", 1, 2, _widen_u8),
        PanelElement("i4", 1, 2, _widen_i4),
        PanelElement("u4", 1, 2, _widen_u4),
    )
}
