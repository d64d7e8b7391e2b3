"""Functions that join, part, pick and order the elements of tiles."""

from __future__ import annotations

from typing import Any

from loom_core.ir.value import Value
from loom_core.ops.rearrange import Concat, Gather, Histogram, Slice, Sort
from loom_core.trace.context import current
from ltl import semantic
from ltl.arguments import axis_argument, static, static_flag, static_int
from ltl.errors import ShapesDiffer, WrongDtype, WrongMask, WrongRank, WrongShape, WrongValue, fail
from ltl.operators import emit
from ltl.reductions import tile_operand
from ltl.shaping import expand_dims, reshape
from ltl.tensor import tensor


def join(a: Any, b: Any) -> tensor:
    """Both tiles side by side in a new last dimension of size 2; of two scalars a tile of two elements."""
    current("ltl.join")
    first, second = semantic.broadcast_pair(*_same_dtype(a, b, "join"), "join")
    rank = len(first.shape)
    return _concat([expand_dims(first, rank), expand_dims(second, rank)], rank)


def split(a: Any) -> tuple[tensor, tensor]:
    """The two halves of a last dimension of size 2, which goes."""
    value = tile_operand(a, "split")
    if value.shape[-1] != 2:
        fail(WrongShape, function="split", problem=f"the last dimension of {value.shape} is not 2")
    rest = value.shape[:-1]
    parts = []
    for i in range(2):
        starts = (*(0 for _ in rest), i)
        part = emit(Slice, value, starts=starts, steps=(1,) * len(starts), shape=(*rest, 1))
        parts.append(reshape(part, rest))
    return parts[0], parts[1]


def interleave(a: Any, b: Any) -> tensor:
    """The elements of both tiles in turn along the last dimension."""
    joined = join(a, b)
    shape = joined.shape
    return joined if len(shape) == 1 else reshape(joined, (*shape[:-2], 2 * shape[-2]))


def cat(input: Any, other: Any, can_reorder: Any = False, dim: Any = 0) -> tensor:
    """The elements of `input`, then those of `other`, along `dim`. The order is kept, whatever `can_reorder` says."""
    current("ltl.cat")
    first, second = _same_dtype(input, other, "cat")
    for value in (first, second):
        if not value.shape:
            fail(WrongRank, function="cat", expected="tiles", given="a scalar")
    axis = axis_argument(dim, len(first.shape), "cat")
    own, their = list(first.shape), list(second.shape)
    if len(own) != len(their) or own[:axis] + own[axis + 1 :] != their[:axis] + their[axis + 1 :]:
        fail(ShapesDiffer, function="cat", first=first.shape, second=second.shape)
    return _concat([first, second], axis)


def _same_dtype(a: Any, b: Any, function: str) -> tuple[tensor, tensor]:
    first, second = semantic.to_tensor(a, function, "the first"), semantic.to_tensor(b, function, "the second")
    if first.ir_type.element != second.ir_type.element:
        given = f"{first.dtype} and {second.dtype}"
        fail(WrongDtype, function=function, given=given, takes="both must have one dtype; use .to(...)")
    return first, second


def _concat(parts: list[tensor], axis: int) -> tensor:
    made: Value = current().builder.create(Concat, [part.value for part in parts], axis=axis)
    return tensor(made.type, made)


def unpacked(value: tensor, count: int) -> list[tensor]:
    """The elements of a tile in `count` 1-D tiles: element i of tile j is element i * count + j."""
    rows = reshape(value, (value.numel // count, count))
    parts = []
    for j in range(count):
        part = emit(Slice, rows, starts=(0, j), steps=(1, 1), shape=(rows.shape[0], 1))
        parts.append(reshape(part, (rows.shape[0],)))
    return parts


def packed(parts: list[tensor]) -> tensor:
    """What `unpacked` parts, in one 1-D tile."""
    joined = _concat([expand_dims(part, 1) for part in parts], 1)
    return reshape(joined, joined.numel)


def flip(x: Any, dim: Any = None) -> tensor:
    """The elements in reverse order along `dim`, by default the last."""
    value = tile_operand(x, "flip")
    wanted = static(dim, "the dim of flip")
    axis = axis_argument(-1 if wanted is None else wanted, len(value.shape), "flip")
    starts = tuple(size - 1 if d == axis else 0 for d, size in enumerate(value.shape))
    steps = tuple(-1 if d == axis else 1 for d in range(len(starts)))
    return emit(Slice, value, starts=starts, steps=steps, shape=tuple(value.shape))


def gather(src: Any, index: Any, axis: Any) -> tensor:
    """The elements of `src` at the indices `index` along `axis`; the other dimensions are equal.

    Where an index is outside `src`, the result is 0.
    """
    source, picks = tile_operand(src, "gather"), tile_operand(index, "gather")
    if not picks.ir_type.dtype.is_integer:
        fail(WrongDtype, function="gather", given=f"an index of {picks.dtype}", takes="indices are integers")
    if len(source.shape) != len(picks.shape):
        given = f"{source.shape} and {picks.shape}"
        fail(WrongRank, function="gather", expected="src and index of equal rank", given=given)
    place = axis_argument(axis, len(source.shape), "gather")
    if any(a != b for d, (a, b) in enumerate(zip(source.shape, picks.shape, strict=True)) if d != place):
        hint = f"dimensions other than {place} must be equal"
        fail(ShapesDiffer, function="gather", first=source.shape, second=picks.shape, hint=hint)
    return emit(Gather, source, picks, axis=place)


def histogram(input: Any, num_bins: Any, mask: Any = None) -> tensor:
    """How often 0, 1, ... num_bins - 1 occur in a 1-D tile of integers, int32; where `mask` holds.

    Elements outside are not counted.
    """
    value = tile_operand(input, "histogram")
    if len(value.shape) != 1 or not value.ir_type.dtype.is_integer:
        fail(WrongRank, function="histogram", expected="a 1-D tile of integers", given=str(value.type))
    bins = static_int(num_bins, "histogram", "num_bins")
    if bins < 1:
        fail(WrongValue, function="histogram", argument="num_bins", given=bins, expected="at least 1")
    flag = None if semantic.unwrap(mask) is None else semantic.to_tensor(mask, "histogram", "mask")
    if flag is not None:
        if flag.ir_type.is_pointer or not flag.ir_type.dtype.is_bool:
            fail(WrongMask, function="histogram", problem=f"the mask is {flag.type}")
        flag = semantic.to_shape(flag, value.shape)
    made: Value = current().builder.create(Histogram, value.value, None if flag is None else flag.value, bins=bins)
    return tensor(made.type, made)


def sort(x: Any, dim: Any = None, descending: Any = False) -> tensor:
    """The elements in order along the last dimension (the only one there is a choice of).

    The order is total: -0 before +0, NaN above every number, so last in ascending order.
    """
    return _sorted(x, dim, descending, "sort")


def topk(x: Any, k: Any, dim: Any = None, descending: Any = True) -> tensor:
    """The `k` largest elements along the last dimension in descending order; the smallest, ascending, if not."""
    ordered = _sorted(x, dim, descending, "topk")
    count, shape = static_int(k, "topk", "k"), ordered.shape
    if not 0 < count <= shape[-1]:
        fail(WrongValue, function="topk", argument="k", given=count, expected=f"from 1 to {shape[-1]}")
    zeros = (0,) * len(shape)
    return emit(Slice, ordered, starts=zeros, steps=(1,) * len(shape), shape=(*shape[:-1], count))


def bitonic_merge(x: Any, dim: Any = None, descending: Any = False) -> tensor:
    """The elements along the last dimension, a bitonic sequence, in order: here the same as `sort`."""
    return _sorted(x, dim, descending, "bitonic_merge")


def _sorted(x: Any, dim: Any, descending: Any, function: str) -> tensor:
    value = tile_operand(x, function)
    wanted = static(dim, f"the dim of {function}")
    axis = axis_argument(-1 if wanted is None else wanted, len(value.shape), function)
    if axis != len(value.shape) - 1:
        expected = f"the last dimension, {len(value.shape) - 1}; use trans or permute before"
        fail(WrongValue, function=function, argument="dim", given=axis, expected=expected)
    return emit(Sort, value, descending=static_flag(descending, function, "descending"))


def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
    """Indices of a row-major size_i x size_j matrix as those of one that is column-major in groups of size_g rows."""
    from ltl.functions import minimum

    at = i * size_j + j
    group_size = size_g * size_j
    first = at // group_size * size_g
    rows = minimum(size_i - first, size_g)
    within = at % group_size
    return first + within % rows, within // rows


__all__ = [
    "bitonic_merge", "cat", "flip", "gather", "histogram", "interleave", "join", "sort", "split",
    "swizzle2d", "topk",
]  # fmt: skip
