"""Pieces of LLVM code that the matrix unit's inner loops are made of: vectors, memory by address, Numba intrinsics.

Addresses and strides are int64, in bytes; no alignment is assumed. Nothing here allocates, raises or checks a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target

WORD_BYTES: Final = 4
LINE_BYTES: Final = 64  # only the number of prefetches depends on it

FLOAT: Final = ir.FloatType()
DOUBLE: Final = ir.DoubleType()
I8: Final = ir.IntType(8)
I16: Final = ir.IntType(16)
I32: Final = ir.IntType(32)
I64: Final = ir.IntType(64)
POINTER: Final = I8.as_pointer()

Emit: TypeAlias = Callable[[ir.IRBuilder, Sequence[ir.Value]], None]
_Codegen: TypeAlias = Callable[[Any, ir.IRBuilder, Any, Sequence[ir.Value]], ir.Value]


# ---- the target ------------------------------------------------------------------------------------------------------


def target_assembly(source: str) -> str:
    """Assembly of LLVM code on the target that Numba is configured for, which need not be the host's own."""
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    return str(machine.emit_assembly(llvm.parse_assembly(f'target triple = "{triple}"\n{source}')))


# ---- vectors and memory ----------------------------------------------------------------------------------------------


def vector(element: ir.Type, lanes: int) -> ir.VectorType:
    """The type of `lanes` elements."""
    return ir.VectorType(element, lanes)


def same_shape(kind: ir.Type, element: ir.Type) -> ir.Type:
    """A scalar or vector type like `kind`, of other elements."""
    return ir.VectorType(element, kind.count) if isinstance(kind, ir.VectorType) else element


def constant(kind: ir.Type, value: float) -> ir.Constant:
    """A scalar, or a vector of equal elements."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def offset(builder: ir.IRBuilder, address: ir.Value, count: ir.Value | int, size: int = 1) -> ir.Value:
    """address + count * size."""
    distance = I64(count * size) if isinstance(count, int) else builder.mul(count, I64(size))
    return builder.add(address, distance)


def load(builder: ir.IRBuilder, address: ir.Value, kind: ir.Type) -> ir.Value:
    """A value of type `kind` at an address."""
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


def store(builder: ir.IRBuilder, value: ir.Value, address: ir.Value) -> None:
    """A value to an address."""
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=1)


def shuffle(builder: ir.IRBuilder, first: ir.Value, second: ir.Value, lanes: Sequence[int]) -> ir.Value:
    """Lanes of two vectors, those of the second numbered after those of the first."""
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes)))


def splat(builder: ir.IRBuilder, scalar: ir.Value, lanes: int) -> ir.Value:
    """A vector of equal elements."""
    undefined = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    single = builder.insert_element(undefined, scalar, I32(0))
    return shuffle(builder, single, undefined, [0] * lanes)


def interleaved(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
    """x0 y0 x1 y1 ... as two vectors."""
    lanes = x.type.count
    order = [lane + side for lane in range(lanes) for side in (0, lanes)]
    return shuffle(builder, x, y, order[:lanes]), shuffle(builder, x, y, order[lanes:])


def widths(count: int, widest: int) -> list[int]:
    """Vector widths, descending powers of two up to `widest`, that add up to `count`."""
    whole, rest = divmod(count, widest)
    return [widest] * whole + [1 << bit for bit in reversed(range(rest.bit_length())) if rest >> bit & 1]


def emit_prefetch(builder: ir.IRBuilder, address: ir.Value) -> None:
    """Fetch the line at `address` into the first-level cache; an address that is not mapped does nothing."""
    kind = ir.FunctionType(ir.VoidType(), [POINTER, I32, I32, I32])
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    for_reading, nearest, data = I32(0), I32(3), I32(1)
    builder.call(fetch, [builder.inttoptr(address, POINTER), for_reading, nearest, data])


# ---- intrinsics ------------------------------------------------------------------------------------------------------


def addresses(count: int) -> Any:
    """Signature void(int64, ...) of `count` arguments."""
    return types.void(*[types.int64] * count)


def inline(emit: Emit) -> _Codegen:
    """Code generator that emits into the caller."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        emit(builder, arguments)
        return context.get_dummy_value()

    return generate


def outlined(name: str, emit: Emit, *attributes: str) -> _Codegen:
    """Code generator that calls a function of its own, whose registers are allocated for it alone."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        function = builder.module.globals.get(name)
        if function is None:
            function = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [I64] * len(arguments)), name)
            function.linkage = "internal"
            for attribute in ("noinline", *attributes):
                function.attributes.add(attribute)
            body = ir.IRBuilder(function.append_basic_block("entry"))
            emit(body, function.args)
            body.ret_void()
        builder.call(function, arguments)
        return context.get_dummy_value()

    return generate
