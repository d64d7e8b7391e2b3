"""Functions that change the shape of tiles, and indexing."""

from __future__ import annotations

from types import NoneType
from typing import Any

from loom_core.ir.value import Value
from loom_core.ops.shape import ExpandDims, Reshape, Transpose
from loom_core.trace.context import current
from ltl import semantic
from ltl.arguments import axis_argument, shape_arguments, static, static_int
from ltl.errors import ShapesDiffer, WrongAxis, WrongIndex, WrongRank, WrongShape, fail
from ltl.tensor import tensor


def broadcast(input: Any, other: Any) -> tuple[tensor, tensor]:
    """Both tiles in the shape that they broadcast to."""
    current("ltl.broadcast")
    a, b = semantic.to_tensor(input, "broadcast", "input"), semantic.to_tensor(other, "broadcast", "other")
    return semantic.broadcast_pair(a, b, "broadcast")


def broadcast_to(input: Any, *shape: Any) -> tensor:
    """`input` in `shape` (a tuple or several ints), its dimensions equal to those or 1; a scalar fills any shape."""
    current("ltl.broadcast_to")
    value = semantic.to_tensor(input, "broadcast_to", "input")
    sizes = shape_arguments(shape, "broadcast_to")
    if value.shape and len(value.shape) != len(sizes):
        fail(WrongRank, function="broadcast_to", expected=f"{len(sizes)} dimensions", given=f"shape {value.shape}")
    if semantic.common_shape(value.shape, sizes, "broadcast_to") != sizes:
        fail(ShapesDiffer, function="broadcast_to", first=value.shape, second=sizes)
    return semantic.to_shape(value, sizes)


def expand_dims(input: Any, axis: Any) -> tensor:
    """A dimension of size 1 inserted at `axis`, or at each of several."""
    current("ltl.expand_dims")
    value = semantic.to_tensor(input, "expand_dims", "input")
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = len(value.shape) + len(axes)
    places = sorted(axis_argument(one, rank, "expand_dims") for one in axes)
    if len(set(places)) != len(places):
        fail(WrongAxis, function="expand_dims", axis=tuple(places), rank=rank)
    for place in places:
        value = _insert(value, place)
    return value


def _insert(value: tensor, axis: int) -> tensor:
    if not value.shape:
        return semantic.to_shape(value, (1,))
    made: Value = current().builder.create(ExpandDims, value.value, axis=axis)
    return tensor(made.type, made)


def reshape(input: Any, *shape: Any, can_reorder: Any = False) -> tensor:
    """The same elements in row-major order in `shape` (a tuple or several ints) of as many elements."""
    current("ltl.reshape")
    value = semantic.to_tensor(input, "reshape", "input")
    sizes = shape_arguments(shape, "reshape")
    count = 1
    for size in sizes:
        count *= size
    if count != value.numel:
        problem = f"{value.numel} elements do not fill shape {sizes}"
        fail(WrongShape, function="reshape", problem=problem, hint="the numbers of elements must be equal")
    if value.shape == sizes:
        return value
    if not value.shape:
        return semantic.to_shape(value, sizes)
    made: Value = current().builder.create(Reshape, value.value, shape=sizes)
    return tensor(made.type, made)


def view(input: Any, *shape: Any) -> tensor:
    """`reshape`; upstream's older name."""
    return reshape(input, *shape)


def ravel(x: Any, can_reorder: Any = False) -> tensor:
    """All elements in row-major order, in one dimension."""
    return reshape(x, semantic.to_tensor(x, "ravel", "x").numel)


def unsqueeze(x: Any, dim: Any) -> tensor:
    """A dimension of size 1 inserted at `dim`."""
    return expand_dims(x, dim)


def squeeze(x: Any, dim: Any) -> tensor:
    """Dimension `dim`, which must have size 1, removed."""
    current("ltl.squeeze")
    value = semantic.to_tensor(x, "squeeze", "x")
    axis = axis_argument(dim, len(value.shape), "squeeze")
    if value.shape[axis] != 1:
        fail(WrongShape, function="squeeze", problem=f"dimension {axis} of {value.shape} is not 1")
    return reshape(value, value.shape[:axis] + value.shape[axis + 1 :])


def permute(input: Any, *dims: Any) -> tensor:
    """Dimension i of the result is dimension dims[i] of `input`."""
    current("ltl.permute")
    value = semantic.to_tensor(input, "permute", "input")
    return _permute(value, _dims(dims), "permute")


def trans(input: Any, *dims: Any) -> tensor:
    """`input` with its dimensions permuted by `dims`; without them the last two are exchanged."""
    current("ltl.trans")
    value = semantic.to_tensor(input, "trans", "input")
    if dims:
        return _permute(value, _dims(dims), "trans")
    rank = len(value.shape)
    if rank < 2:
        fail(WrongRank, function="trans", expected="at least two dimensions", given=f"shape {value.shape}")
    return _permute(value, (*range(rank - 2), rank - 1, rank - 2), "trans")


def _dims(dims: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims


def _permute(value: tensor, dims: tuple[Any, ...], function: str) -> tensor:
    order = tuple(static_int(d, function, "permutation") for d in dims)
    rank = len(value.shape)
    if sorted(order) != list(range(rank)):
        problem = f"{order} is no permutation of the {rank} dimensions"
        fail(WrongShape, function=function, problem=problem, hint="give each dimension from 0 on once")
    if order == tuple(range(rank)):
        return value
    made: Value = current().builder.create(Transpose, value.value, permutation=order)
    return tensor(made.type, made)


def getitem(value: tensor, index: Any) -> tensor:
    """x[:, None] and the like: `:` keeps a dimension, None inserts one of size 1; further dimensions are kept."""
    if value.ir_type.is_pointer and not isinstance(index, tuple | slice | NoneType):
        shown = "a tile" if isinstance(index, tensor) and index.shape else "a number"
        fail(
            WrongIndex, what="a pointer", index=shown, hint="load from it, ltl.load(p + i), or ltl.store(p + i, value)"
        )
    items = index if isinstance(index, tuple) else (index,)
    kept = 0
    places = []
    for place, item in enumerate(items):
        item = static(item, "an index")
        if item is None:
            places.append(place)
        elif isinstance(item, slice) and item == slice(None):
            kept += 1
        else:
            fail(WrongIndex, what="a tile", index=item if not isinstance(item, slice) else "a slice with bounds")
    if kept > len(value.shape) and value.shape:
        fail(WrongRank, function="indexing", expected=f"at most {len(value.shape)} `:`", given=str(kept))
    for place in places:
        value = _insert(value, place)
    return value


setattr(tensor, "__getitem__", getitem)  # noqa: B010 - operators are added to the class where they are defined
