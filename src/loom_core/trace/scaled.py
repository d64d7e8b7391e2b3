"""Operands of products with scales (OCP microscaling formats): decoding, and multiplying by the scales of blocks."""

from __future__ import annotations

from typing import Final

from loom_core.base.dtype import DType, bf16, f8e4m3, f8e5m2, f16, f32, i8, u8, u16, u32
from loom_core.ir.builder import Builder
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ops
from loom_core.ops.rearrange import Concat
from loom_core.ops.shape import Broadcast, Constant, ExpandDims, Reshape, Transpose

FORMATS: Final[dict[str, DType]] = {"e2m1": u8, "e4m3": f8e4m3, "e5m2": f8e5m2, "bf16": bf16, "fp16": f16}
"""What operands may be written in, and the dtype that holds it: pairs of 4-bit floats are bytes."""
BLOCKS: Final = (16, 32)
"""How many elements may share a scale."""
NO_SCALE: Final = 0xFF
"""The scale that makes its block NaN."""


def product_dtype(names: tuple[str, str]) -> DType:
    """What both operands of a product are taken as: bf16, or f16 where one of them is that."""
    return f16 if "fp16" in names else bf16


def operand_problem(value: TileType, name: str, scale: TileType | None, axis: int, along: bool) -> str | None:
    """What keeps a tile from being an operand in the format `name`, summed along `axis`; None if nothing does.

    `along`: pairs of 4-bit floats follow each other along `axis`, and not along the other dimension. A scale has bytes
    (or 8-bit floats, which are taken as they are) in the operand's shape with the summed dimension last and in blocks.
    """
    if len(value.shape) not in (2, 3):
        return f"{value} has not two or three dimensions"
    if name != "e2m1" and not along:
        return f"only pairs of 4-bit floats may lie along the other dimension, not {name}"
    if scale is None:
        return None
    wide = unpacked_shape(value.shape, name, axis, along)
    depth, rows = wide[axis], wide[_other(len(wide), axis)]
    wanted = [(*wide[:-2], rows, depth // block) for block in BLOCKS if depth % block == 0]
    if scale.element not in (i8, u8, f8e4m3) or scale.shape not in wanted:
        return f"scales of {scale} do not fit {value}"
    return None


def unpacked_shape(shape: tuple[int, ...], name: str, axis: int, along: bool) -> tuple[int, ...]:
    """The shape of an operand's elements."""
    if name != "e2m1":
        return shape
    pairs = axis if along else _other(len(shape), axis)
    return (*shape[:pairs], 2 * shape[pairs], *shape[pairs + 1 :])


def _other(rank: int, axis: int) -> int:
    """The one of the last two dimensions that is not `axis`."""
    return 2 * rank - 3 - axis


def scaled_operand(
    builder: Builder, value: Value, name: str, scale: Value | None, axis: int, along: bool, dtype: DType
) -> Value:
    """An operand without an `operand_problem`, decoded and scaled, in `dtype` (bf16 or f16)."""
    if name == "e2m1":
        value = decode_e2m1(builder, value, axis if along else _other(len(value.type.shape), axis))
    if value.type.element is not dtype:
        value = builder.create(ops.Cast, value, dtype=dtype)
    if scale is None:
        return value
    rank = len(scale.type.shape)
    if axis != rank - 1:
        turned = (*range(rank - 2), rank - 1, rank - 2)
        scale = builder.create(Transpose, scale, permutation=turned)
    return scaled(builder, value, scale, axis, dtype)


def decode_e2m1(builder: Builder, packed: Value, axis: int) -> Value:
    """Pairs of 4-bit floats in bytes, the lower half first, as bf16; dimension `axis` doubles."""
    bytes_ = packed if packed.type.element is u8 else builder.create(ops.Bitcast, packed, dtype=u8)
    byte = builder.create(ops.Cast, bytes_, dtype=u16)
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
    """Each block of elements along `axis` of `value` (of `dtype`, bf16 or f16) times 2 to its scale less 127.

    `scale` has one byte a block, in the shape of `value` but for `axis`. The product is rounded to `dtype`. A scale of
    255 makes NaN; one of 0 is 0 in bf16. Scales that are floats are multiplied as they are.
    """
    create = builder.create
    block = value.type.shape[axis] // scale.type.shape[axis]
    if scale.type.dtype.is_float:
        factor = create(ops.Cast, scale, dtype=dtype)
        return create(ops.Mul, value, _repeated(builder, factor, axis, block))  # type: ignore[no-any-return]
    exponent = create(ops.Bitcast, scale, dtype=u8) if scale.type.element is not u8 else scale
    if dtype is bf16:
        wide = create(ops.Cast, exponent, dtype=u16)
        factor = create(ops.Bitcast, create(ops.ShiftLeft, wide, _number(builder, wide, 7)), dtype=bf16)
    else:
        wide = create(ops.Cast, exponent, dtype=u32)
        single = create(ops.Bitcast, create(ops.ShiftLeft, wide, _number(builder, wide, 23)), dtype=f32)
        factor = create(ops.Cast, single, dtype=f16)
    absent = create(ops.Compare, wide, _number(builder, wide, NO_SCALE), predicate="eq")
    product = create(ops.Mul, value, _repeated(builder, factor, axis, block))
    nan = create(Constant, value=float("nan"), type=product.type)
    return create(ops.Select, _repeated(builder, absent, axis, block), nan, product)  # type: ignore[no-any-return]


def _repeated(builder: Builder, value: Value, axis: int, block: int) -> Value:
    """Each element along `axis`, `block` times."""
    shape = value.type.shape
    tile = builder.create(ExpandDims, value, axis=axis + 1)
    tile = builder.create(Broadcast, tile, shape=(*shape[: axis + 1], block, *shape[axis + 1 :]))
    return builder.create(Reshape, tile, shape=(*shape[:axis], block * shape[axis], *shape[axis + 1 :]))  # type: ignore[no-any-return]


def _number(builder: Builder, like: Value, number: int) -> Value:
    return builder.create(Constant, value=number, type=like.type)  # type: ignore[no-any-return]
