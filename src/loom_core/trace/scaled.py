"""Operands of products with scales (OCP microscaling formats): decoding, and multiplying by the scales of blocks."""

from __future__ import annotations

from typing import Final

from loom_core.base.dtype import DType, bf16, f16, f32, u8, u16, u32
from loom_core.ir.builder import Builder
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ops
from loom_core.ops.rearrange import Concat
from loom_core.ops.shape import Broadcast, Constant, ExpandDims, Reshape

BLOCK: Final = 32
"""Elements that share a scale."""
NO_SCALE: Final = 0xFF
"""The scale that makes its block NaN."""


def decode_e2m1(builder: Builder, packed: Value, axis: int) -> Value:
    """Pairs of 4-bit floats in bytes, the lower half first, as bf16; dimension `axis` doubles."""
    byte = builder.create(ops.Cast, builder.create(ops.Bitcast, packed, dtype=u8), dtype=u16)
    halves = [byte, builder.create(ops.ShiftRight, byte, _number(builder, byte, 4))]
    parts = [builder.create(ExpandDims, _decoded(builder, half), axis=axis + 1) for half in halves]
    joined = builder.create(Concat, parts, axis=axis + 1)
    shape = packed.type.shape
    wide = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
    return builder.create(Reshape, joined, shape=wide)  # type: ignore[no-any-return]


def _decoded(builder: Builder, nibble: Value) -> Value:
    """The lower four bits, sign, two of exponent and one of mantissa, as the bf16 of the same value."""
    create = builder.create
    magnitude = create(ops.And, nibble, _number(builder, nibble, 7))
    sign = create(ops.ShiftLeft, create(ops.And, nibble, _number(builder, nibble, 8)), _number(builder, nibble, 12))
    shifted = create(ops.ShiftLeft, magnitude, _number(builder, nibble, 6))
    normal = create(ops.Add, shifted, _number(builder, nibble, 126 << 7))
    small = create(ops.Compare, magnitude, _number(builder, nibble, 2), predicate="lt")
    zero = create(ops.Compare, magnitude, _number(builder, nibble, 0), predicate="eq")
    half = create(ops.Select, zero, _number(builder, nibble, 0), _number(builder, nibble, 0x3F00))
    pattern = create(ops.Or, create(ops.Select, small, half, normal), sign)
    return create(ops.Bitcast, pattern, dtype=bf16)  # type: ignore[no-any-return]


def scaled(builder: Builder, value: Value, scale: Value, axis: int, dtype: DType) -> Value:
    """Each block of `BLOCK` elements along `axis` of `value` (of `dtype`, bf16 or f16) times 2 to its scale less 127.

    `scale` has one byte a block, in the shape of `value` but for `axis`. The product is rounded to `dtype`. A scale of
    255 makes NaN; one of 0 is 0 in bf16.
    """
    create = builder.create
    exponent = create(ops.Bitcast, scale, dtype=u8)
    if dtype is bf16:
        wide = create(ops.Cast, exponent, dtype=u16)
        factor = create(ops.Bitcast, create(ops.ShiftLeft, wide, _number(builder, wide, 7)), dtype=bf16)
    else:
        wide = create(ops.Cast, exponent, dtype=u32)
        single = create(ops.Bitcast, create(ops.ShiftLeft, wide, _number(builder, wide, 23)), dtype=f32)
        factor = create(ops.Cast, single, dtype=f16)
    absent = create(ops.Compare, wide, _number(builder, wide, NO_SCALE), predicate="eq")
    product = create(ops.Mul, value, _repeated(builder, factor, axis))
    nan = create(Constant, value=float("nan"), type=product.type)
    return create(ops.Select, _repeated(builder, absent, axis), nan, product)  # type: ignore[no-any-return]


def _repeated(builder: Builder, value: Value, axis: int) -> Value:
    """Each element along `axis`, `BLOCK` times."""
    shape = value.type.shape
    tile = builder.create(ExpandDims, value, axis=axis + 1)
    tile = builder.create(Broadcast, tile, shape=(*shape[: axis + 1], BLOCK, *shape[axis + 1 :]))
    return builder.create(Reshape, tile, shape=(*shape[:axis], BLOCK * shape[axis], *shape[axis + 1 :]))  # type: ignore[no-any-return]


def _number(builder: Builder, like: Value, number: int) -> Value:
    return builder.create(Constant, value=number, type=like.type)  # type: ignore[no-any-return]
