"""Values of workitems as Tile IR values: scalars where all workitems agree, tiles of one element each where not."""

from __future__ import annotations

from typing import Any, Final

from loom_core.base.dtype import (
    DType,
    bf16,
    bool_,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)  # fmt: skip
from loom_core.interchange.types import ScalarTypeKind
from loom_core.ir.block import Block
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.elementwise import And, Bitcast, Cast, Not, Select
from loom_core.ops.reduction import Reduce
from loom_core.ops.shape import Constant, Iota, Splat

DTYPES: Final[dict[ScalarTypeKind, DType]] = dict(
    zip(ScalarTypeKind, (i64, i64, bool_, i8, i16, i32, i64, f8e4m3, f8e5m2, f16, bf16, f32, f64), strict=True)
)
"""Integers are signed in Tile IR; operations that are not take them as `UNSIGNED` for a moment."""
UNSIGNED: Final = {i8: u8, i16: u16, i32: u32, i64: u64}


BOOLS_ARE_NO_NUMBERS: Final = "arithmetic of i1 has no counterpart; andi, ori and xori have"


class Unmapped(Exception):
    """There is no counterpart; the text says why."""


class Lanes:
    """Builds Tile IR for `count` workitems. `mask` (a bool tile, None for all) says which of them run."""

    def __init__(self, block: Block, count: int) -> None:
        self.builder = Builder(block)
        self.count = count
        self.shape = (count,)
        self.mask: Value | None = None

    def make(self, kind: type[Op], /, *operands: Any, **attributes: Any) -> Any:
        return self.builder.create(kind, *operands, **attributes)

    def constant(self, value: Any, dtype: DType) -> Value:
        found: Value = self.make(Constant, value=value, type=TileType(dtype))
        return found

    def spread(self, value: Value) -> Value:
        """The value as a tile."""
        found: Value = self.make(Splat, value, shape=self.shape) if value.type.is_scalar else value
        return found

    def alike(self, *values: Value) -> tuple[Value, ...]:
        """All as scalars, or all as tiles."""
        if all(value.type.is_scalar for value in values):
            return values
        return tuple(map(self.spread, values))

    def like(self, number: Any, value: Value) -> Value:
        """A constant of the type of `value`."""
        found: Value = self.make(Constant, value=number, type=value.type)
        return found

    def lane(self) -> Value:
        """The number of each workitem, i64."""
        found: Value = self.make(Cast, self.make(Iota, start=0, end=self.count), dtype=i64)
        return found

    def cast(self, value: Value, dtype: DType) -> Value:
        found: Value = value if value.type.dtype is dtype else self.make(Cast, value, dtype=dtype)
        return found

    def unsigned(self, value: Value) -> Value:
        """The same bits as an unsigned integer. Unmapped for a bool."""
        if value.type.dtype not in UNSIGNED:
            raise Unmapped(BOOLS_ARE_NO_NUMBERS)
        found: Value = self.make(Bitcast, value, dtype=UNSIGNED[value.type.dtype])
        return found

    def bits_as(self, value: Value, dtype: DType) -> Value:
        found: Value = value if value.type.dtype is dtype else self.make(Bitcast, value, dtype=dtype)
        return found

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        condition, a, b = self.alike(condition, a, b)
        found: Value = self.make(Select, condition, a, b)
        return found

    # ---- masks ----

    def active(self) -> Value:
        """Which workitems run, as a tile."""
        return self.mask if self.mask is not None else self.spread(self.constant(True, bool_))

    def narrowed(self, condition: Value) -> Value:
        """Those of the running workitems for which `condition` holds."""
        condition = self.spread(condition)
        found: Value = condition if self.mask is None else self.make(And, self.mask, condition)
        return found

    def negated(self, condition: Value) -> Value:
        found: Value = self.make(Not, condition)
        return found

    def any(self, tile: Value) -> Value:
        """Whether some element of a bool tile holds, a scalar."""
        found: Value = self.make(Reduce, tile, kind="or", axis=0)
        return found
