"""How the elements of each operand type of `isa.sce` look to compiled code: in memory, and as a value.

Floats of 8 and 16 bits are unsigned integers, their bit patterns. A four-bit integer is the low half of a byte in
memory, as in ml_dtypes, and extended to a byte otherwise; a bool is a byte in memory and a truth value otherwise.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba import types

from loom_core.base.dtype import by_name

VALUE_TYPES: Final[dict[str, Any]] = {
    "f64": types.float64,
    "f32": types.float32,
    "f16": types.uint16,
    "bf16": types.uint16,
    "f8e4m3": types.uint8,
    "f8e5m2": types.uint8,
    "i64": types.int64,
    "i32": types.int32,
    "i16": types.int16,
    "i8": types.int8,
    "i4": types.int8,
    "u64": types.uint64,
    "u32": types.uint32,
    "u16": types.uint16,
    "u8": types.uint8,
    "u4": types.uint8,
    "bool": types.boolean,
    "64": types.int64,
    "32": types.int32,
    "16": types.int16,
    "8": types.int8,
}
"""Operand type -> numba's type of a value."""


def memory_type(name: str) -> ir.Type:
    """LLVM type of an element in memory."""
    kind = VALUE_TYPES[name]
    if kind == types.float32:
        return ir.FloatType()
    if kind == types.float64:
        return ir.DoubleType()
    return ir.IntType(8 if kind == types.boolean else kind.bitwidth)


def value_type(name: str) -> ir.Type:
    """LLVM type of a value."""
    return ir.IntType(1) if name == "bool" else memory_type(name)


def is_signed(name: str) -> bool:
    """Whether an integer type is signed."""
    return by_name(name).kind == "int"


def after_load(builder: ir.IRBuilder, name: str, memory: ir.Value) -> ir.Value:
    """The value of an element as it lies in memory."""
    if name == "bool":
        return builder.icmp_unsigned("!=", memory, memory.type(0))
    return wrapped4(builder, name, memory) if name in ("i4", "u4") else memory


def before_store(builder: ir.IRBuilder, name: str, value: ir.Value) -> ir.Value:
    """The element in memory of a value."""
    if name == "bool":
        return builder.zext(value, memory_type(name))
    return builder.and_(value, value.type(15)) if name in ("i4", "u4") else value


def wrapped4(builder: ir.IRBuilder, name: str, byte: ir.Value) -> ir.Value:
    """The low four bits of a byte as an i4 or u4."""
    if name == "u4":
        return builder.and_(byte, byte.type(15))
    return builder.ashr(builder.shl(byte, byte.type(4)), byte.type(4))
