"""Loads and stores through pointers."""

from __future__ import annotations

from math import isfinite
from typing import Any

from loom_core.ir.value import Value
from loom_core.ops.memory import Load, Store
from loom_core.trace.context import current
from ltl import semantic
from ltl.arguments import static
from ltl.block_pointers import BlockPointer
from ltl.errors import NotPointer, ShapesDiffer, WrongMask, WrongValue, fail
from ltl.tensor import tensor


def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    *,
    boundary_check: Any = (),
    padding_option: Any = "",
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
) -> tensor:
    """The elements that `pointer` (a pointer or a tile of pointers) points to.

    Where `mask` (int1) is false no memory is touched and the result is `other`, 0 if it is not given. `mask` and
    `other` broadcast to the pointer's shape. Of a block pointer: the dimensions in `boundary_check` are bounded, and
    outside the result is 0, or NaN with padding_option "nan". The cache hints of Triton mean nothing here.
    """
    trace = current("ltl.load")
    if isinstance(pointer, BlockPointer):
        return pointer.load(mask, other, boundary_check, padding_option)
    _no_boundary(boundary_check, padding_option, "load")
    target = pointer_operand(pointer, "load")
    flag = mask_operand(mask, "load")
    fill = _fill(other, flag, mask, target)
    target, flag, fill = _fit_load(target, flag, fill)
    value: Value = trace.builder.create(
        Load, target.value, None if flag is None else flag.value, None if fill is None else fill.value
    )
    return tensor(value.type, value)


def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    *,
    boundary_check: Any = (),
    cache_modifier: Any = "",
    eviction_policy: Any = "",
) -> None:
    """Write `value`, converted to the pointee's dtype, where `mask` (int1) is true; elsewhere no memory is touched.

    `value` and `mask` broadcast to the pointer's shape. Through a block pointer: nothing is written outside the
    dimensions in `boundary_check`.
    """
    trace = current("ltl.store")
    if isinstance(pointer, BlockPointer):
        pointer.store(value, mask, boundary_check)
        return
    _no_boundary(boundary_check, "", "store")
    target = pointer_operand(pointer, "store")
    flag = mask_operand(mask, "store")
    data = semantic.to_tensor(value, "store", "value")
    data = semantic.cast(data, target.ir_type.pointee)
    data = to_pointer_shape(data, target, "value", "store")
    if flag is not None:
        flag = to_pointer_shape(flag, target, "mask", "store")
    trace.builder.create(Store, target.value, data.value, None if flag is None else flag.value)


def _no_boundary(boundary_check: Any, padding_option: Any, function: str) -> None:
    for value, argument in ((boundary_check, "boundary_check"), (padding_option, "padding_option")):
        if static(value, f"the {argument} of {function}"):
            expected = "left out: only block pointers have boundaries"
            fail(WrongValue, function=function, argument=argument, given=repr(value), expected=expected)


def pointer_operand(pointer: Any, function: str) -> tensor:
    """A pointer or a tile of pointers. NotPointer for anything else."""
    target = semantic.operand(pointer, function, "pointer")
    if not isinstance(target, tensor) or not target.ir_type.is_pointer:
        fail(NotPointer, function=function, given=str(target.type) if isinstance(target, tensor) else repr(target))
    return target


def mask_operand(mask: Any, function: str) -> tensor | None:
    """The mask as int1; None where there is none or it is known to hold."""
    mask = semantic.unwrap(mask)
    if mask is None:
        return None
    flag = semantic.to_tensor(mask, function, "mask")
    if flag.ir_type.is_pointer or not flag.ir_type.dtype.is_bool:
        if flag.known is None:
            fail(WrongMask, function=function, problem=f"the mask is {flag.type}")
        flag = semantic.truth(flag)
    return None if flag.known else flag


def _fill(other: Any, flag: tensor | None, mask: Any, target: tensor) -> tensor | None:
    other = semantic.unwrap(other)
    if other is None:
        return None
    if semantic.unwrap(mask) is None:
        fail(WrongMask, function="load", problem="`other` is given without `mask`", hint="give a mask, or drop other")
    if flag is None:
        return None
    pointee = target.ir_type.pointee
    fill = semantic.operand(other, "load", "other")
    if isinstance(fill, tensor):
        return semantic.cast(fill, pointee)
    if pointee.is_integer and isinstance(fill, float):
        if not isfinite(fill):
            fail(WrongValue, function="load", argument="other", given=str(fill), expected=f"a value of {pointee}")
        fill = int(fill)
    return semantic.known_scalar(fill, pointee)


def _fit_load(target: tensor, flag: tensor | None, fill: tensor | None) -> tuple[tensor, tensor | None, tensor | None]:
    """Pointer, mask and fill in one shape; a pointer tile widens to a mask's, a scalar pointer does not."""
    if not target.shape:
        for part, what in ((flag, "mask"), (fill, "other")):
            if part is not None and part.shape:
                fail(
                    WrongMask, function="load", problem=f"{what} is a tile of shape {part.shape}, the pointer a scalar"
                )
        return target, flag, fill
    shape: tuple[int, ...] = target.shape
    for part in (flag, fill):
        if part is not None:
            shape = semantic.common_shape(shape, part.shape, "load")
    return (
        semantic.to_shape(target, shape),
        None if flag is None else semantic.to_shape(flag, shape),
        None if fill is None else semantic.to_shape(fill, shape),
    )


def to_pointer_shape(part: tensor, target: tensor, what: str, function: str) -> tensor:
    """A value or mask in the shape of the pointers that it goes with. ShapesDiffer where it has more elements."""
    if semantic.common_shape(part.shape, target.shape, function) != target.shape:
        hint = f"the {what} has more elements than the pointer has addresses; widen the pointer with offsets"
        fail(ShapesDiffer, function=function, first=part.shape, second=target.shape, hint=hint)
    return semantic.to_shape(part, target.shape)


__all__ = ["load", "mask_operand", "pointer_operand", "store", "to_pointer_shape"]
