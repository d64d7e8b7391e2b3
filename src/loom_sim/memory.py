"""Memory and calls by address, for compiled code: loads, stores, block moves, engine calls, products that cannot wrap.

An address is an int64. Nothing here checks bounds; engines do that before they come here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I1 = ir.IntType(1)
_I8 = ir.IntType(8)
_I64 = ir.IntType(64)
_Codegen = Callable[[Any, ir.IRBuilder, Any, Sequence[ir.Value]], ir.Value]

PRODUCT_LIMIT: Final = 1 << 58
"""`bounded_product` saturates here: 31 such terms add up without leaving int64."""


def _loads(memory: ir.IntType, signed: bool) -> _Codegen:
    """Code generator: an integer of type `memory` at an address, extended to int64."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        value = builder.load(builder.inttoptr(values[0], memory.as_pointer()), align=1)
        if memory.width == 64:
            return value
        return builder.sext(value, _I64) if signed else builder.zext(value, _I64)

    return generate


def _stores(memory: ir.IntType) -> _Codegen:
    """Code generator: the low bits of an int64 to an address."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        value = values[1] if memory.width == 64 else builder.trunc(values[1], memory)
        builder.store(value, builder.inttoptr(values[0], memory.as_pointer()), align=1)
        return context.get_dummy_value()

    return generate


@intrinsic
def load64(typing_context, address):  # type: ignore[no-untyped-def]
    """The int64 at `address`."""
    return types.int64(types.int64), _loads(_I64, signed=True)


@intrinsic
def load_word(typing_context, base, index):  # type: ignore[no-untyped-def]
    """The int64 at word `index` of the array at address `base`."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        pointer = builder.gep(builder.inttoptr(values[0], _I64.as_pointer()), [values[1]])
        return builder.load(pointer)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def store_word(typing_context, base, index, value):  # type: ignore[no-untyped-def]
    """`value` to word `index` of the array at address `base`."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        builder.store(values[2], builder.gep(builder.inttoptr(values[0], _I64.as_pointer()), [values[1]]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def try_lock(typing_context, address):  # type: ignore[no-untyped-def]
    """1 if the word at `address` was 0 and is 1 now, else 0; what others did before they unlocked it is seen."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        pointer = builder.inttoptr(values[0], _I64.as_pointer())
        result = builder.cmpxchg(pointer, _I64(0), _I64(1), "acquire", "monotonic")
        return builder.zext(builder.extract_value(result, 1), _I64)

    return types.int64(types.int64), generate


@intrinsic
def unlock(typing_context, address):  # type: ignore[no-untyped-def]
    """Make the word at `address` 0, after all that was done before."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        builder.store_atomic(_I64(0), builder.inttoptr(values[0], _I64.as_pointer()), "release", align=8)
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def load32(typing_context, address):  # type: ignore[no-untyped-def]
    """The 32 bits at `address`, zero extended."""
    return types.int64(types.int64), _loads(ir.IntType(32), signed=False)


@intrinsic
def load16(typing_context, address):  # type: ignore[no-untyped-def]
    """The 16 bits at `address`, zero extended."""
    return types.int64(types.int64), _loads(ir.IntType(16), signed=False)


@intrinsic
def load8(typing_context, address):  # type: ignore[no-untyped-def]
    """The byte at `address`, zero extended."""
    return types.int64(types.int64), _loads(_I8, signed=False)


@intrinsic
def store64(typing_context, address, value):  # type: ignore[no-untyped-def]
    """`value` to `address`."""
    return types.void(types.int64, types.int64), _stores(_I64)


@intrinsic
def store32(typing_context, address, value):  # type: ignore[no-untyped-def]
    """The low 32 bits of `value` to `address`."""
    return types.void(types.int64, types.int64), _stores(ir.IntType(32))


@intrinsic
def store16(typing_context, address, value):  # type: ignore[no-untyped-def]
    """The low 16 bits of `value` to `address`."""
    return types.void(types.int64, types.int64), _stores(ir.IntType(16))


@intrinsic
def store8(typing_context, address, value):  # type: ignore[no-untyped-def]
    """The low byte of `value` to `address`."""
    return types.void(types.int64, types.int64), _stores(_I8)


def _indexed_stores(memory: ir.IntType) -> _Codegen:
    """Code generator: the low bits of an int64 to an element of an array, in the form that LLVM vectorises."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        value = values[2] if memory.width == 64 else builder.trunc(values[2], memory)
        builder.store(value, builder.gep(builder.inttoptr(values[0], memory.as_pointer()), [values[1]]), align=1)
        return context.get_dummy_value()

    return generate


def _indexed_loads(memory: ir.IntType) -> _Codegen:
    """Code generator: an element of an array, zero extended, in the form that LLVM vectorises."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        pointer = builder.gep(builder.inttoptr(values[0], memory.as_pointer()), [values[1]])
        return builder.zext(builder.load(pointer, align=1), _I64)

    return generate


@intrinsic
def get32(typing_context, base, index):  # type: ignore[no-untyped-def]
    """4-byte element `index` of the array at `base`, zero extended."""
    return types.int64(types.int64, types.int64), _indexed_loads(ir.IntType(32))


@intrinsic
def get8(typing_context, base, index):  # type: ignore[no-untyped-def]
    """Byte `index` of the array at `base`, zero extended."""
    return types.int64(types.int64, types.int64), _indexed_loads(_I8)


@intrinsic
def set64(typing_context, base, index, value):  # type: ignore[no-untyped-def]
    """`value` to 8-byte element `index` of the array at `base`, of any alignment."""
    return types.void(types.int64, types.int64, types.int64), _indexed_stores(_I64)


@intrinsic
def set32(typing_context, base, index, value):  # type: ignore[no-untyped-def]
    """The low 32 bits of `value` to 4-byte element `index` of the array at `base`."""
    return types.void(types.int64, types.int64, types.int64), _indexed_stores(ir.IntType(32))


@intrinsic
def set16(typing_context, base, index, value):  # type: ignore[no-untyped-def]
    """The low 16 bits of `value` to 2-byte element `index` of the array at `base`."""
    return types.void(types.int64, types.int64, types.int64), _indexed_stores(ir.IntType(16))


@intrinsic
def set8(typing_context, base, index, value):  # type: ignore[no-untyped-def]
    """The low byte of `value` to byte `index` of the array at `base`."""
    return types.void(types.int64, types.int64, types.int64), _indexed_stores(_I8)


@intrinsic
def move_bytes(typing_context, dst, src, count):  # type: ignore[no-untyped-def]
    """`count` bytes from `src` to `dst`; the two may overlap."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        pointer = _I8.as_pointer()
        # memmove, not memcpy: overlapping commands then have one result on every host.
        move = builder.module.declare_intrinsic("llvm.memmove", [pointer, pointer, _I64])
        dst, src, count = values
        builder.call(move, [builder.inttoptr(dst, pointer), builder.inttoptr(src, pointer), count, _I1(0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def word_pointer(typing_context, address):  # type: ignore[no-untyped-def]
    """The words at `address`, for functions that index an array."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return builder.inttoptr(values[0], _I64.as_pointer())

    return types.CPointer(types.int64)(types.int64), generate


@intrinsic
def call_engine(typing_context, function, operands, state):  # type: ignore[no-untyped-def]
    """Status of the engine at address `function`, an int64(int64 operands, int64 state)."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        kind = ir.FunctionType(_I64, [_I64, _I64])
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), values[1:])

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def call_element(typing_context, function, dst, a, b, c, count):  # type: ignore[no-untyped-def]
    """Run the element engine at address `function`, a void(dst, a, b, c, count) of int64."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        kind = ir.FunctionType(ir.VoidType(), [_I64] * 5)
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), values[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), generate


@intrinsic
def bounded_product(typing_context, a, b):  # type: ignore[no-untyped-def]
    """a * b, or PRODUCT_LIMIT of its sign where the product's magnitude is larger."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        pair = ir.LiteralStructType([_I64, _I1])
        multiply = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(pair, [_I64, _I64]), "llvm.smul.with.overflow.i64"
        )
        result = builder.call(multiply, values)
        product = builder.extract_value(result, 0)
        high, low = _I64(PRODUCT_LIMIT), _I64(-PRODUCT_LIMIT)
        clamped = builder.select(builder.icmp_signed(">", product, high), high, product)
        clamped = builder.select(builder.icmp_signed("<", clamped, low), low, clamped)
        negative = builder.icmp_signed("<", builder.xor(values[0], values[1]), _I64(0))
        return builder.select(builder.extract_value(result, 1), builder.select(negative, low, high), clamped)

    return types.int64(types.int64, types.int64), generate


def _chooses(comparison: str) -> _Codegen:
    """Code generator: the first of two int64 if it compares so with the second, else the second."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return builder.select(builder.icmp_signed(comparison, *values), *values)

    return generate


# Numba's own min and max are compiled functions: each use costs 30 ms of compile time.
@intrinsic
def smaller(typing_context, a, b):  # type: ignore[no-untyped-def]
    """The smaller of two int64."""
    return types.int64(types.int64, types.int64), _chooses("<")


@intrinsic
def larger(typing_context, a, b):  # type: ignore[no-untyped-def]
    """The larger of two int64."""
    return types.int64(types.int64, types.int64), _chooses(">")


def _compares_unsigned(comparison: str) -> _Codegen:
    """Code generator: a comparison of two int64 as unsigned numbers."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return builder.icmp_unsigned(comparison, *values)

    return generate


@intrinsic
def unsigned_at_most(typing_context, a, b):  # type: ignore[no-untyped-def]
    """a <= b of two int64 read as unsigned numbers."""
    return types.boolean(types.int64, types.int64), _compares_unsigned("<=")


@intrinsic
def unsigned_less(typing_context, a, b):  # type: ignore[no-untyped-def]
    """a < b of two int64 read as unsigned numbers."""
    return types.boolean(types.int64, types.int64), _compares_unsigned("<")


def _wraps(operation: str) -> _Codegen:
    """Code generator of an int64 operation modulo 2^64. Numba's own +, - and * promise LLVM not to overflow."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return getattr(builder, operation)(*values)

    return generate


@intrinsic
def wrapping_add(typing_context, a, b):  # type: ignore[no-untyped-def]
    """a + b of int64, modulo 2^64."""
    return types.int64(types.int64, types.int64), _wraps("add")


@intrinsic
def wrapping_subtract(typing_context, a, b):  # type: ignore[no-untyped-def]
    """a - b of int64, modulo 2^64."""
    return types.int64(types.int64, types.int64), _wraps("sub")


@intrinsic
def wrapping_multiply(typing_context, a, b):  # type: ignore[no-untyped-def]
    """a * b of int64, modulo 2^64."""
    return types.int64(types.int64, types.int64), _wraps("mul")


def _guarded_division(operation: str) -> _Codegen:
    """Code generator of the machine's quotient ("sdiv") or remainder ("srem"): total, no host fault."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        a, b = values
        kind = a.type
        by_zero = builder.icmp_signed("==", b, kind(0))
        least = builder.icmp_signed("==", a, kind(-1 << (kind.width - 1)))
        overflows = builder.and_(least, builder.icmp_signed("==", b, kind(-1)))
        # Divided by 1, the smallest integer gives what the machine gives for -1: itself, remainder 0.
        result = getattr(builder, operation)(a, builder.select(builder.or_(by_zero, overflows), kind(1), b))
        return builder.select(by_zero, kind(-1) if operation == "sdiv" else a, result)

    return generate


@intrinsic
def divide(typing_context, a, b):  # type: ignore[no-untyped-def]
    """a / b truncated, on int32 or int64: a / 0 = -1, least / -1 = least."""
    if a != b or a not in (types.int32, types.int64):
        return None
    return a(a, a), _guarded_division("sdiv")


@intrinsic
def remainder(typing_context, a, b):  # type: ignore[no-untyped-def]
    """a - b * divide(a, b), on int32 or int64: a % 0 = a, least % -1 = 0."""
    if a != b or a not in (types.int32, types.int64):
        return None
    return a(a, a), _guarded_division("srem")
