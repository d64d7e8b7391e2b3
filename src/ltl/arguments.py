"""Reading the arguments of LTL functions: what must be static, shapes, axes, dtypes."""

from __future__ import annotations

from typing import Any

from loom_core.base.dtype import DType
from loom_core.trace.errors import RuntimeValueNeeded
from ltl import dtypes
from ltl.constant import constexpr
from ltl.errors import Refused, WrongAxis, WrongDtype, WrongShape, WrongValue, fail, here
from ltl.tensor import tensor


def static(value: Any, what: str) -> Any:
    """The plain Python value of `value`. RuntimeValueNeeded, naming `what`, for a run-time one."""
    if isinstance(value, constexpr):
        return value.value
    if isinstance(value, tensor):
        if value.known is not None:
            return value.known
        raise RuntimeValueNeeded(here(), what=what)
    return value


def static_int(value: Any, function: str, argument: str) -> int:
    """An integer known when the kernel is compiled."""
    plain = static(value, f"the {argument} of {function}")
    if isinstance(plain, bool) or not hasattr(plain, "__index__"):
        fail(WrongValue, function=function, argument=argument, given=repr(plain), expected="an int")
    return int(plain.__index__())


def static_flag(value: Any, function: str, argument: str) -> bool:
    """A truth value known when the kernel is compiled."""
    return bool(static(value, f"the {argument} of {function}"))


def shape_argument(shape: Any, function: str) -> tuple[int, ...]:
    """A shape: an int or a tuple or list of positive static ints; () is a scalar's."""
    if isinstance(shape, (tensor, constexpr, int)):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        fail(WrongShape, function=function, problem=f"the shape is a {type(shape).__name__}")
    sizes = []
    for size in shape:
        plain = static(size, f"the shape of {function}")
        if isinstance(plain, bool) or not isinstance(plain, int) or plain <= 0:
            fail(WrongShape, function=function, problem=f"{plain!r} is no size of a dimension")
        sizes.append(plain)
    return tuple(sizes)


def shape_arguments(shape: tuple[Any, ...], function: str) -> tuple[int, ...]:
    """A shape given as one tuple or as several ints."""
    only = shape[0] if len(shape) == 1 else shape
    return shape_argument(only, function)


def axis_argument(axis: Any, rank: int, function: str) -> int:
    """An axis counted from the front. WrongAxis if it is out of range."""
    plain = static_int(axis, function, "axis")
    if not -rank <= plain < rank:
        fail(WrongAxis, function=function, axis=plain, rank=rank)
    return plain % rank


def dtype_argument(value: Any, function: str) -> DType:
    """A dtype of LTL (or its name, or a NumPy type)."""
    plain = static(value, f"the dtype of {function}")
    if isinstance(plain, dtypes.RefusedType):
        fail(Refused, what=f"the type {plain.name}", reason=plain.reason, instead="float8e4nv and float8e5 are there")
    found = dtypes.as_dtype(plain)
    if found is None:
        fail(WrongDtype, function=function, given=repr(plain), takes="dtypes are ltl.float32, ltl.int32 and so on")
    return found.core
