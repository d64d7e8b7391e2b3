"""Elementwise functions of the bits of integers."""

from __future__ import annotations

from loom_core.base.dtype import i32
from loom_core.ir.types import TileType
from loom_core.ops.elementwise import IntegerBinary, Unary
from loom_core.ops.references import (
    Array,
    by_kind,
    count_ones,
    leading_zeros,
    multiply_high,
    reverse_bits,
)


class MultiplyHigh(IntegerBinary):
    """The upper half of the product of twice the width; signed or unsigned as the type is."""

    name = "mulhi"
    ref = by_kind(integer=multiply_high)


class BitCount(Unary):
    """How many bits of x are set, i32."""

    name = "popcount"
    allowed = ("int", "uint")

    def ref(self, x: Array) -> Array:
        return count_ones(x).astype("int32")

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_element(i32),)


class LeadingZeros(Unary):
    """How many zero bits stand above the highest bit of x that is set, i32; the width for 0."""

    name = "clz"
    allowed = ("int", "uint")

    def ref(self, x: Array) -> Array:
        return leading_zeros(x).astype("int32")

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_element(i32),)


class ReverseBits(Unary):
    """The bits of x in reverse order."""

    name = "brev"
    ref = by_kind(integer=reverse_bits)
    allowed = ("int", "uint")
