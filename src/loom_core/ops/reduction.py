"""Reductions and scans along one axis: by a named function, or by a region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from loom_core.ir.block import Block
from loom_core.ir.op import Op, attribute, operand, variadic_operand
from loom_core.ir.types import TileType
from loom_core.ops import elementwise
from loom_core.ops.formats import canonical, is_float
from loom_core.ops.references import Array
from loom_core.ops.regions import evaluate_region, only_operation, verify_region
from loom_core.reference import reduce

_FLOAT: dict[str, Callable[[Array, int], Array]] = {
    "sum": reduce.sum32,
    "prod": reduce.prod32,
    "max": reduce.max32_over,
    "min": reduce.min32_over,
    "maxp": lambda x, axis: reduce.max32_over(x, axis, propagate_nan=True),
    "minp": lambda x, axis: reduce.min32_over(x, axis, propagate_nan=True),
}
_INTEGER: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
COMBINES: dict[str, type[Op]] = {
    "sum": elementwise.Add,
    "prod": elementwise.Mul,
    "max": elementwise.Max,
    "min": elementwise.Min,
    "maxp": elementwise.MaxPropagate,
    "minp": elementwise.MinPropagate,
    "and": elementwise.And,
    "or": elementwise.Or,
    "xor": elementwise.Xor,
}
"""The elementwise operation that each kind folds with."""
KINDS = tuple(COMBINES)
_KIND_OF = {operation: kind for kind, operation in COMBINES.items()}


def recognised(block: Block) -> str | None:
    """The kind whose operation is all that the region does, or None."""
    op = only_operation(block)
    return None if op is None else _KIND_OF.get(type(op))


def combine_arrays(kind: str, a: Array, b: Array) -> Array:
    """One step of a fold of `kind`, by the reference of its elementwise operation."""
    return np.asarray(COMBINES[kind].ref(COMBINES[kind], a, b))  # type: ignore[misc]


def ordered_fold(x: Array, combine: Callable[[Array, Array], Array]) -> Array:
    """The last axis folded in the order of docs/numerics.md, by any function of two arrays."""
    while x.shape[-1] > 1:
        starts = range(0, x.shape[-1], reduce.BLOCK)
        x = np.stack([_fold_block(x[..., start : start + reduce.BLOCK], combine) for start in starts], axis=-1)
    return x[..., 0]


def _fold_block(block: Array, combine: Callable[[Array, Array], Array]) -> Array:
    lanes = block[..., : reduce.LANES].copy()
    for start in range(reduce.LANES, block.shape[-1], reduce.LANES):
        row = block[..., start : start + reduce.LANES]
        lanes[..., : row.shape[-1]] = combine(lanes[..., : row.shape[-1]], row)
    half = reduce.LANES // 2
    while half:
        if lanes.shape[-1] > half:
            width = lanes.shape[-1] - half
            lanes[..., :width] = combine(lanes[..., :width], lanes[..., half:])
            lanes = lanes[..., :half]
        half //= 2
    return lanes[..., 0]


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


class Reduce(Op):
    """Folds dimension `axis` by `kind`; sums and products of floats in the fixed order of docs/numerics.md.

    Narrow floats round after each step, as their elementwise operations do. max and min prefer numbers to NaN, maxp and
    minp propagate NaN.
    """

    name = "reduce"
    operand = operand()
    kind = attribute()
    axis = attribute()

    def ref(self, x: Array) -> Array:
        if x.dtype == np.float32:
            return np.asarray(_FLOAT[self.kind](x, self.axis))
        if is_float(x):
            moved = np.moveaxis(canonical(x), self.axis, -1)
            return np.asarray(ordered_fold(moved, lambda a, b: combine_arrays(self.kind, a, b)))
        return np.asarray(_INTEGER[self.kind].reduce(x, axis=self.axis)).astype(x.dtype)

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type.with_shape(_without(self.operand.type.shape, self.axis)),)

    def verify(self) -> str | None:
        return _verify_kind(self, self.operand.type)


class Scan(Op):
    """The folds by `kind` of each prefix along `axis` (of each suffix if `reverse`), element after element in order."""

    name = "scan"
    operand = operand()
    kind = attribute()
    axis = attribute()
    reverse = attribute(False)

    def ref(self, x: Array) -> Array:
        (result,) = scan_arrays([x], self.axis, self.reverse, lambda a, b: [combine_arrays(self.kind, a[0], b[0])])
        return result

    def infer(self) -> tuple[TileType, ...]:
        return (self.operand.type,)

    def verify(self) -> str | None:
        return _verify_kind(self, self.operand.type)


def _verify_kind(op: Any, type: TileType) -> str | None:
    if not 0 <= op.axis < len(type.shape):
        return f"axis {op.axis} is out of range for {type}"
    if op.kind not in KINDS:
        return f"unknown reduction {op.kind!r}"
    return None


Combine = Callable[[list[Array], list[Array]], Sequence[Array]]


def scan_arrays(arrays: Sequence[Array], axis: int, reverse: bool, combine: Combine) -> list[Array]:
    """Inclusive scan of several arrays together; `combine` takes what is carried and the next elements."""
    moved = [np.moveaxis(canonical(x), axis, 0) for x in arrays]
    results = [np.empty_like(x) for x in moved]
    order = range(moved[0].shape[0])
    carried: list[Array] | None = None
    for index in reversed(order) if reverse else order:
        elements = [np.asarray(x[index]) for x in moved]
        carried = elements if carried is None else [np.asarray(v) for v in combine(carried, elements)]
        for result, value in zip(results, carried, strict=True):
            result[index] = value
    return [np.moveaxis(result, 0, axis) for result in results]


def tree_arrays(arrays: Sequence[Array], axis: int, combine: Combine) -> list[Array]:
    """Fold several arrays together by the adjacent tree: neighbours 0 and 1, 2 and 3, ..., a last odd one stays."""
    moved = [np.moveaxis(canonical(x), axis, -1) for x in arrays]
    while moved[0].shape[-1] > 1:
        even = moved[0].shape[-1] // 2 * 2
        left, right = ([x[..., first:even:2] for x in moved] for first in (0, 1))
        paired = [np.asarray(value) for value in combine(left, right)]
        moved = [np.concatenate([new, old[..., even:]], axis=-1) for new, old in zip(paired, moved, strict=True)]
    return [x[..., 0] for x in moved]


class RegionFold(Op):
    """Family base of folds whose step is a region: of what is folded so far and the next elements, to the new ones.

    The operands have one shape; the region takes a scalar of each for the left and again for the right, and yields one
    of each.
    """

    region_count = 1
    isolated = True
    inputs = variadic_operand()
    axis = attribute()

    def combine(self, left: list[Array], right: list[Array]) -> list[Array]:
        """One step, on arrays of one shape."""
        return evaluate_region(self.regions[0], [*left, *right])

    def verify(self) -> str | None:
        if not self.operands:
            return "nothing to fold"
        first = self.operands[0].type
        if not 0 <= self.axis < len(first.shape):
            return f"axis {self.axis} is out of range for {first}"
        if any(value.type.shape != first.shape for value in self.operands):
            return "the operands differ in shape"
        scalars = [TileType(value.type.element) for value in self.operands]
        return verify_region(self.regions[0], [*scalars, *scalars], scalars)


class ReduceRegion(RegionFold):
    """Folds dimension `axis` of several tiles together by a region, as an adjacent tree that keeps the order.

    Neighbours 0 and 1, 2 and 3, ... combine, the lower on the left; an odd last element stays; and so on.
    """

    name = "reduce_region"

    def ref(self, *arrays: Array) -> list[Array]:
        return tree_arrays(arrays, self.axis, self.combine)

    def infer(self) -> tuple[TileType, ...]:
        return tuple(value.type.with_shape(_without(value.type.shape, self.axis)) for value in self.operands)


class ScanRegion(RegionFold):
    """Inclusive scan of several tiles together by a region, along `axis`, sequential, from the end if `reverse`."""

    name = "scan_region"
    reverse = attribute(False)

    def ref(self, *arrays: Array) -> list[Array]:
        return scan_arrays(arrays, self.axis, self.reverse, self.combine)

    def infer(self) -> tuple[TileType, ...]:
        return tuple(value.type for value in self.operands)
