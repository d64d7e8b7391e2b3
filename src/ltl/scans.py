"""Scans: the folds of every prefix along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loom_core.ir.value import Value
from loom_core.ops.reduction import ScanRegion, recognised
from loom_core.trace.context import current
from loom_core.trace.scans import scan
from ltl.arguments import axis_argument, static_flag
from ltl.combining import combine_region, scalars, tiles_of
from ltl.errors import ShapesDiffer, WrongValue, fail
from ltl.reductions import sum_operand, tile_operand
from ltl.tensor import tensor


def associative_scan(input: Any, axis: Any, combine_fn: Callable[..., Any], reverse: Any = False) -> Any:
    """Inclusive scan of `input`, a tile or a tuple of tiles of one shape, along `axis` by `combine_fn`.

    Element i of the result is what the elements up to i (from i on if `reverse`) fold to, element after element in
    order. `combine_fn` is as in `reduce`: what is carried comes first.
    """
    current("ltl.associative_scan")
    single = not isinstance(input, (tuple, list))
    values = [tile_operand(value, "associative_scan") for value in ((input,) if single else input)]
    if not values:
        given = "an empty tuple"
        fail(WrongValue, function="associative_scan", argument="input", given=given, expected="one tile or more")
    for value in values:
        if value.shape != values[0].shape:
            hint = "tiles that are scanned together have one shape"
            fail(ShapesDiffer, function="associative_scan", first=values[0].shape, second=value.shape, hint=hint)
    place = axis_argument(axis, len(values[0].shape), "associative_scan")
    backwards = static_flag(reverse, "associative_scan", "reverse")
    block = combine_region(combine_fn, scalars(values), "associative_scan")
    kind = recognised(block) if len(values) == 1 else None
    if kind is not None:
        return _result(_known(values[0], kind, place, backwards), single=single)
    operands = [value.value for value in values]
    made: Any = current().builder.create(ScanRegion, operands, regions=[block], axis=place, reverse=backwards)
    return _result(*tiles_of([made] if isinstance(made, Value) else made), single=single)


def _result(*tiles: tensor, single: bool) -> Any:
    return tiles[0] if single else tiles


def cumsum(input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None) -> tensor:
    """Sums of the elements up to each along `axis` (from each on if `reverse`), added one after another.

    The result is of `dtype`, by default that of `input`, int32 or uint32 for narrower integers. Floats narrower than
    float32 are added in float32, and each sum is rounded once.
    """
    return _scan(sum_operand(input, dtype, "cumsum"), "sum", axis, reverse, "cumsum")


def cumprod(input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None) -> tensor:
    """Products of the elements up to each along `axis` (from each on if `reverse`); else as `cumsum`."""
    return _scan(sum_operand(input, dtype, "cumprod"), "prod", axis, reverse, "cumprod")


def _scan(value: tensor, kind: str, axis: Any, reverse: Any, function: str) -> tensor:
    place = axis_argument(axis, len(value.shape), function)
    return _known(value, kind, place, static_flag(reverse, function, "reverse"))


def _known(value: tensor, kind: str, axis: int, reverse: bool) -> tensor:
    made = scan(current().builder, value.value, kind, axis, reverse)
    return tensor(made.type, made)


__all__ = ["associative_scan", "cumprod", "cumsum"]
