"""Memory in lines of 64 bytes, of any alignment: a vector or a few of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from loom_sim.jit import subroutine
from loom_sim.memory import move_bytes, unsigned_less, wrapping_subtract

LINE: Final = 64
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


def splat(builder: ir.IRBuilder, value: ir.Value, count: int) -> ir.Value:
    kind = ir.VectorType(value.type, count)
    single = builder.insert_element(ir.Constant(kind, ir.Undefined), value, _I32(0))
    zeros = ir.Constant(ir.VectorType(_I32, count), [0] * count)
    return builder.shuffle_vector(single, ir.Constant(kind, ir.Undefined), zeros)


@intrinsic
def fill_line(typing_context, address, pattern):  # type: ignore[no-untyped-def]
    """The 64 bits of `pattern` eight times to `address`."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        vector = splat(builder, values[1], LINE // 8)
        builder.store(vector, builder.inttoptr(values[0], vector.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def copy_line(typing_context, dst, src):  # type: ignore[no-untyped-def]
    """64 bytes from `src` to `dst`."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        pointer = ir.VectorType(_I64, LINE // 8).as_pointer()
        dst, src = (builder.inttoptr(value, pointer) for value in values)
        builder.store(builder.load(src, align=1), dst, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@subroutine("void(int64, int64, int64)")
def move_run(dst, src, count):  # type: ignore[no-untyped-def]
    """`move_bytes` in lines, which for data in a cache beats the C library from some hundred bytes on."""
    # Lines ascend, so that the destination may overlap the source from below, but not from above.
    whole = 0 if unsigned_less(wrapping_subtract(dst, src), count) else count & -LINE
    for at in range(0, whole, LINE):
        copy_line(dst + at, src + at)
    if whole != count:
        move_bytes(dst + whole, src + whole, count - whole)
