"""Shapes of arithmetic, matrix products, literals and rearrangements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorloom.arguments import Issue
from tensorloom.diagnostics import BadMatmul, BadNumberValue, CannotBroadcast, Ragged, WrongShape
from tensorloom.dims import Dim, Shape, Size, add, as_size, floor_divide, may_equal, merge, product, shape_text
from tensorloom.values import UNKNOWN, Tensor


def broadcast(a: Shape, b: Shape) -> Shape:
    """Aligned from the right: sizes are equal, or 1, or may be equal for all that is known."""
    sizes: list[Size] = []
    for i in range(1, max(len(a), len(b)) + 1):
        left = a[-i] if i <= len(a) else 1
        right = b[-i] if i <= len(b) else 1
        if left == 1 or right == 1:
            sizes.append(right if left == 1 else left)
        elif may_equal(left, right):
            sizes.append(merge(left, right))
        else:
            reason = f"sizes {left} and {right} differ"
            raise Issue(CannotBroadcast, left=shape_text(a), right=shape_text(b), reason=reason)
    return tuple(reversed(sizes))


def combine(a: Any, b: Any, dtype: str = "") -> Tensor:
    """The result of an elementwise operation of which at least one operand is a tensor."""
    tensors = [value for value in (a, b) if isinstance(value, Tensor)]
    if not dtype:
        kinds = {value.dtype if isinstance(value, Tensor) else number_kind(value) for value in (a, b)}
        dtype = "" if "" in kinds else next(kind for kind in ("float", "int", "bool") if kind in kinds)
    if len(tensors) == 2:
        left, right = tensors
        if left is right:
            return left if left.shape is None else Tensor(left.shape, dtype)
        if left.shape is None or right.shape is None:
            return Tensor(None, dtype)
        return Tensor(broadcast(left.shape, right.shape), dtype)
    (only,) = tensors
    other = b if only is a else a
    if only.shape is None:
        # A number changes no shape, so the tensor is still there to be refined.
        return only if is_number(other) and dtype in ("", only.dtype) else Tensor(None, dtype)
    return Tensor(only.shape if is_number(other) else None, dtype)


def number_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | Dim):
        return "int"
    return "float" if isinstance(value, float) else ""


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Dim)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """`a @ b` of vectors, matrices and batches of matrices."""
    dtype = a.dtype if a.dtype == b.dtype else ""
    if a.shape is None or b.shape is None:
        return Tensor(None, dtype)
    left, right = a.shape, b.shape
    texts = {"left": shape_text(left), "right": shape_text(right)}
    if not left or not right:
        raise Issue(BadMatmul, reason="a number has no dimension to sum over", **texts)
    inner = right[-2] if len(right) > 1 else right[-1]
    if not may_equal(left[-1], inner):
        raise Issue(BadMatmul, reason=f"the inner sizes {left[-1]} and {inner} differ", **texts)
    batch = broadcast(left[:-2], right[:-2])
    rows = left[-2:-1] if len(left) > 1 else ()
    columns = right[-1:] if len(right) > 1 else ()
    return Tensor((*batch, *rows, *columns), dtype)


def literal(value: Any) -> Tensor:
    """The tensor of nested lists of numbers. Raises Issue where the lists are ragged."""
    shape, kinds = _literal(value)
    if shape is None or "" in kinds or not kinds:
        return Tensor(shape, "" if kinds else "float")
    return Tensor(shape, next(kind for kind in ("float", "int", "bool") if kind in kinds))


def _literal(value: Any) -> tuple[Shape | None, set[str]]:
    if not isinstance(value, list | tuple):
        kind = number_kind(value)
        return (() if kind else None), {kind}
    inner = [_literal(item) for item in value]
    kinds = {kind for _, found in inner for kind in found}
    shapes = {shape for shape, _ in inner}
    if len(shapes) > 1 and None not in shapes:
        lengths = ", ".join(str(shape[0]) if shape else "none" for shape, _ in inner if shape is not None)
        raise Issue(Ragged, lengths=lengths, hint="all rows must have the same length")
    rest = next(iter(shapes), ())
    return (None if rest is None else (len(value), *rest)), kinds


def axis(shape: Shape, value: Any, what: str, extra: int = 0) -> int | None:
    """The dimension that a number stands for, counted from 0; None if the number is not known."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    rank = len(shape) + extra
    if not -rank <= value < rank:
        reason = f"a dimension from {-rank} to {rank - 1}"
        raise Issue(BadNumberValue, what=f"{what}: dim", needed=reason, given=value)
    return value % rank


def reshape(x: Tensor, sizes: Sequence[Any]) -> Tensor:
    """`x` with the same elements in another shape; one size may be -1."""
    wanted = [None if isinstance(size, int) and size == -1 else as_size(size) for size in sizes]
    if x.shape is None or any(size is UNKNOWN for size in sizes):
        return Tensor(tuple(wanted), x.dtype)
    open_places = [i for i, size in enumerate(sizes) if isinstance(size, int) and size == -1]
    total = product(x.shape)
    fixed = product(size for i, size in enumerate(wanted) if i not in open_places)
    if len(open_places) == 1:
        place = open_places[0]
        wanted[place] = _quotient(x.shape, [size for i, size in enumerate(wanted) if i != place], total, fixed)
        fits = not (isinstance(total, int) and isinstance(fixed, int)) or (fixed > 0 and total % fixed == 0)
    else:
        fits = may_equal(total, fixed)
    if not fits:
        needed = f"{total} elements"
        raise Issue(WrongShape, what="reshape", needed=needed, given=shape_text(tuple(as_size(size) for size in sizes)))
    return Tensor(tuple(wanted), x.dtype)


def _quotient(shape: Shape, others: list[Size], total: Size, fixed: Size) -> Size:
    """The size of the open place: the product of the sizes that are not among the others, or a plain quotient."""
    rest = list(shape)
    for size in others:
        if size not in rest or size is None:
            return floor_divide(total, fixed) if isinstance(fixed, int) and fixed > 0 else None
        rest.remove(size)
    return product(rest)


def reduced(x: Tensor, dims: Any, keep: bool, what: str, dtype: str = "") -> Tensor:
    """`x` without the dimensions `dims` (a number or several; None: all)."""
    kind = dtype or x.dtype
    if dims is None:
        return Tensor((), kind)
    if x.shape is None:
        return Tensor(None, kind)
    gone = [axis(x.shape, dim, what) for dim in (dims if isinstance(dims, list | tuple) else [dims])]
    if None in gone:
        return Tensor(None, kind)
    kept = [(1 if i in gone else size) for i, size in enumerate(x.shape) if keep or i not in gone]
    return Tensor(tuple(kept), kind)


def concatenate(items: Any, dim: Any, what: str, new: bool) -> Tensor:
    """`cat` (or, with `new`, `stack`) of a list of tensors."""
    if not isinstance(items, list | tuple) or not all(isinstance(x, Tensor) and x.shape is not None for x in items):
        return Tensor()
    shapes: list[Shape] = [x.shape for x in items]
    if not shapes:
        return Tensor()
    at = axis(shapes[0], dim, what, int(new))
    if at is None:
        return Tensor(None, items[0].dtype)
    first = shapes[0]
    for other in shapes[1:]:
        pairs = zip(first, other, strict=False)
        fits = len(first) == len(other) and all(
            may_equal(a, b) or (i == at and not new) for i, (a, b) in enumerate(pairs)
        )
        if not fits:
            raise Issue(WrongShape, what=what, needed=f"shapes like {shape_text(first)}", given=shape_text(other))
    if new:
        return Tensor((*first[:at], len(shapes), *first[at:]), items[0].dtype)
    total: Size = 0
    for shape in shapes:
        total = add(total, shape[at])
    return Tensor((*first[:at], total, *first[at + 1 :]), items[0].dtype)


def transpose(x: Tensor, first: Any, second: Any) -> Tensor:
    if x.shape is None:
        return Tensor(None, x.dtype)
    a, b = axis(x.shape, first, "transpose"), axis(x.shape, second, "transpose")
    if a is None or b is None:
        return Tensor(None, x.dtype)
    sizes = list(x.shape)
    sizes[a], sizes[b] = sizes[b], sizes[a]
    return Tensor(tuple(sizes), x.dtype)


def permute(x: Tensor, order: Sequence[Any]) -> Tensor:
    if x.shape is None:
        return Tensor(None, x.dtype)
    axes = [axis(x.shape, dim, "permute") for dim in order]
    if None in axes:
        return Tensor(None, x.dtype)
    if sorted(dim for dim in axes if dim is not None) != list(range(len(x.shape))):
        raise Issue(WrongShape, what="permute", needed="each dimension once", given=str(list(order)))
    return Tensor(tuple(x.shape[dim] for dim in axes if dim is not None), x.dtype)


def unsqueeze(x: Tensor, dim: Any) -> Tensor:
    at = None if x.shape is None else axis(x.shape, dim, "unsqueeze", 1)
    if x.shape is None or at is None:
        return Tensor(None, x.dtype)
    return Tensor((*x.shape[:at], 1, *x.shape[at:]), x.dtype)


def squeeze(x: Tensor, dim: Any) -> Tensor:
    if x.shape is None or any(size is None for size in x.shape):
        return Tensor(None, x.dtype)
    if dim is None:
        return Tensor(tuple(size for size in x.shape if size != 1), x.dtype)
    at = axis(x.shape, dim, "squeeze")
    if at is None:
        return Tensor(None, x.dtype)
    return Tensor((*x.shape[:at], *x.shape[at + 1 :]) if x.shape[at] == 1 else x.shape, x.dtype)


def index(x: Tensor, items: Sequence[Any]) -> Tensor:
    """`x[items]`: numbers remove a dimension, slices shorten it; anything else makes the shape unknown."""
    if x.shape is None:
        return Tensor(None, x.dtype)
    if len(items) > len(x.shape):
        needed = f"at most {len(x.shape)} indices"
        raise Issue(WrongShape, what="this index", needed=needed, given=f"{len(items)} for {shape_text(x.shape)}")
    sizes: list[Size] = []
    for size, item in zip(x.shape, items, strict=False):
        if isinstance(item, slice):
            sizes.append(_sliced(size, item))
        elif isinstance(item, int | Dim) and not isinstance(item, bool):
            if isinstance(item, int) and isinstance(size, int) and not -size <= item < size:
                raise Issue(BadNumberValue, what="the index", needed=f"less than the size {size}", given=item)
        else:
            return Tensor(None, x.dtype)
    return Tensor((*sizes, *x.shape[len(items) :]), x.dtype)


def _sliced(size: Size, part: slice) -> Size:
    if part == slice(None):
        return size
    if isinstance(size, int) and all(
        bound is None or isinstance(bound, int) for bound in (part.start, part.stop, part.step)
    ):
        if part.step is not None and part.step <= 0:
            raise Issue(BadNumberValue, what="the step of a slice", needed="positive", given=part.step)
        return len(range(*part.indices(size)))
    if part.start in (None, 0) and part.step in (None, 1) and isinstance(part.stop, Dim):
        return part.stop
    return None


def merged(values: Sequence[Any]) -> Any:
    """What is known of a value that is one of several."""
    first = values[0]
    if all(value is first for value in values[1:]):
        return first
    if all(isinstance(value, Tensor) for value in values):
        shapes = [value.shape for value in values]
        dtypes = {value.dtype for value in values}
        dtype = dtypes.pop() if len(dtypes) == 1 else ""
        if None in shapes or len({len(shape) for shape in shapes}) != 1:
            return Tensor(None, dtype)
        sizes = (sizes[0] if all(size == sizes[0] for size in sizes) else None for sizes in zip(*shapes, strict=True))
        return Tensor(tuple(sizes), dtype)
    same = all(type(value) is type(first) and value == first for value in values)
    return first if same and isinstance(first, bool | int | float | str | Dim) else UNKNOWN
