"""Tiles of more dimensions than an engine walks become tiles of fewer, with the same elements in row-major order.

  same       add %a, %b : tile<2x2x2x2x2xf32>     ->  reshape (add (reshape %a), (reshape %b) : tile<32xf32>)
  axis       reduce %a {axis = 2}                 ->  reduce (reshape %a : tile<4x2x4xf32>) {axis = 1}
  broadcast  %a : tile<2x1x2x1x2> to <2x2x2x2x2>  ->  one after another: (reshape %a : tile<2x1x4>) to <2x2x4>, ...
  groups     transpose, slice                     ->  dimensions that stay together are one

What a rule leaves has the shape that suits it; reshapes between them that change nothing are gone with `simplify`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from loom_core.ir.block import Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import rearrange, reduction, shape
from loom_core.passes.log import log_rewrite

MOST: Final = 4
"""What every engine walks."""

Shape = tuple[int, ...]


def lower_ranks(function: Function) -> Function:
    """Rewrite the operations on tiles of more than `MOST` dimensions, as far as there are rules."""
    lowering = _Lowering()
    for op in list(function.walk()):
        values = [*op.operands, *op.results]
        if any(len(value.type.shape) > MOST for value in values):
            lowering.operation(op)
    return function


class _Lowering:
    """`low` holds, for tiles that were made here, one of fewer dimensions with the same elements."""

    def __init__(self) -> None:
        self.low: dict[Value, Value] = {}
        self.builder: Builder

    def operation(self, op: Op) -> None:
        rule = _RULES.get(type(op)) or (_same if op.elementwise else None)
        if rule is None or op.parent is None:
            return
        self.builder = Builder(op.parent)
        self.builder.anchor, self.builder.location = op, op.location
        made = rule(self, op)
        if made is None:
            return
        log_rewrite(rule.__name__.strip("_"), op)
        for old, low in zip(op.results, made, strict=True):
            new = self.shaped(low, old.type.shape)
            new.name = old.name
            self.low[new] = low
            old.replace_all_uses(new)
        op.erase()

    def create(self, kind: type[Op], /, *operands: Any, **attributes: Any) -> Value:
        """An operation with one result."""
        made: Value = self.builder.create(kind, *operands, **attributes)
        return made

    def shaped(self, value: Value, wanted: Shape) -> Value:
        """The elements of a tile under another shape."""
        source = self.low.get(value, value)
        return source if source.type.shape == wanted else self.create(shape.Reshape, source, shape=wanted)

    def flat(self, value: Value) -> Value:
        return self.shaped(value, (value.type.size,))


Rule = Callable[[_Lowering, Any], "list[Value] | None"]


def _same(lowering: _Lowering, op: Op) -> list[Value]:
    return [lowering.create(type(op), *map(lowering.flat, op.operands), **op.attributes)]


def _constant(lowering: _Lowering, op: shape.Constant) -> list[Value]:
    type = op.type.with_shape((op.type.size,))
    return [lowering.create(shape.Constant, value=op.value, type=type)]


def _splat(lowering: _Lowering, op: shape.Splat) -> list[Value]:
    return [lowering.create(shape.Splat, op.operand, shape=(op.result.type.size,))]


def _view(lowering: _Lowering, op: shape.Reshape | shape.ExpandDims) -> list[Value]:
    result = op.result.type.shape
    return [lowering.shaped(op.operand, result) if len(result) <= MOST else lowering.flat(op.operand)]


def _affine(lowering: _Lowering, op: shape.AffineTile) -> list[Value] | None:
    kept = [d for d, size in enumerate(op.shape) if size != 1]
    if len(kept) > MOST:
        return None
    sizes, strides = tuple(op.shape[d] for d in kept), [op.strides[d] for d in kept]
    if not kept:
        sizes, strides = (1,), [op.strides[0]]
    return [lowering.create(shape.AffineTile, op.offset, strides, shape=sizes, dtype=op.dtype)]


def _broadcast(lowering: _Lowering, op: shape.Broadcast) -> list[Value]:
    old, new = op.operand.type.shape, op.result.type.shape
    groups = _groups(new, [a != b for a, b in zip(old, new, strict=True)])
    repeated = [old[group[0]] != new[group[0]] for group in groups]
    targets = [prod(new[d] for d in group) for group in groups]
    sizes = [1 if again else target for again, target in zip(repeated, targets, strict=True)]
    value = op.operand
    if len(groups) <= MOST:
        value = lowering.shaped(value, tuple(sizes))
        return [lowering.create(shape.Broadcast, value, shape=tuple(targets))]
    for place, target in enumerate(targets):
        if repeated[place]:
            before, after = prod(sizes[:place]), prod(sizes[place + 1 :])
            value = lowering.shaped(value, (before, 1, after))
            value = lowering.create(shape.Broadcast, value, shape=(before, target, after))
            sizes[place] = target
    return [value]


def _transpose(lowering: _Lowering, op: shape.Transpose) -> list[Value] | None:
    """Dimensions that follow each other before and after are one."""
    sizes, order = op.operand.type.shape, op.permutation
    runs: list[list[int]] = []
    for d in (d for d in order if sizes[d] != 1):
        between = range(runs[-1][-1] + 1, d) if runs else ()
        if runs and d > runs[-1][-1] and all(sizes[e] == 1 for e in between):
            runs[-1].append(d)
        else:
            runs.append([d])
    if len(runs) > MOST:
        return None
    ranked = sorted(runs)
    value = lowering.shaped(op.operand, tuple(prod(sizes[d] for d in run) for run in ranked) or (1,))
    places = tuple(ranked.index(run) for run in runs)
    return [lowering.create(shape.Transpose, value, permutation=places) if runs else value]


def _slice(lowering: _Lowering, op: rearrange.Slice) -> list[Value] | None:
    sizes = op.operand.type.shape
    whole = [s == 0 and step == 1 and n == size for s, step, n, size in zip(op.starts, op.steps, op.shape, sizes, strict=True)]  # fmt: skip  # noqa: E501
    groups = _groups(sizes, [None if all_ else d for d, all_ in enumerate(whole)])
    if len(groups) > MOST:
        return None
    value = lowering.shaped(op.operand, tuple(prod(sizes[d] for d in group) for group in groups))
    starts, steps = (tuple(numbers[g[0]] for g in groups) for numbers in (op.starts, op.steps))
    counts = tuple(prod(op.shape[d] for d in group) for group in groups)
    return [lowering.create(rearrange.Slice, value, starts=starts, steps=steps, shape=counts)]


def _groups(sizes: Shape, marks: Sequence[Any]) -> list[list[int]]:
    """Dimensions with equal marks that follow each other, as groups; a dimension of size 1 joins any group."""
    groups: list[list[int]] = []
    for d in range(len(sizes)):
        if groups and (marks[d] == marks[groups[-1][0]] or (sizes[d] == 1 and marks[d] is False)):
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


def _around(sizes: Shape, axis: int) -> Shape:
    """One dimension, and all before and behind it as one each."""
    return prod(sizes[:axis]), sizes[axis], prod(sizes[axis + 1 :])


def _along_axis(lowering: _Lowering, op: Any) -> list[Value]:
    """Operations that work along one dimension; the results keep it or lose it."""
    operands = [lowering.shaped(value, _around(value.type.shape, op.axis)) for value in op.operands]
    attributes = {**op.attributes, "axis": 1}
    regions = list(op.regions)
    if isinstance(op, reduction.RegionFold | rearrange.Concat):
        made = lowering.builder.create_op(type(op), operands, regions=regions, **attributes)
    else:
        made = lowering.builder.create_op(type(op), *operands, **attributes)
    return list(made.results)


def _sort(lowering: _Lowering, op: rearrange.Sort) -> list[Value]:
    sizes = op.operand.type.shape
    value = lowering.shaped(op.operand, (prod(sizes[:-1]), sizes[-1]))
    return [lowering.create(rearrange.Sort, value, **op.attributes)]


_RULES: Final[dict[type[Op], Rule]] = {
    shape.Constant: _constant,
    shape.Splat: _splat,
    shape.Reshape: _view,
    shape.ExpandDims: _view,
    shape.AffineTile: _affine,
    shape.Broadcast: _broadcast,
    shape.Transpose: _transpose,
    rearrange.Slice: _slice,
    rearrange.Concat: _along_axis,
    rearrange.Gather: _along_axis,
    rearrange.Sort: _sort,
    reduction.Reduce: _along_axis,
    reduction.Scan: _along_axis,
    reduction.ReduceRegion: _along_axis,
    reduction.ScanRegion: _along_axis,
}
