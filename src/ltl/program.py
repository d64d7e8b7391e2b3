"""Position in the grid, and tiles made from nothing."""

from __future__ import annotations

from typing import Any

from loom_core.base.dtype import i32
from loom_core.ir.value import Value
from loom_core.ops.control import NumPrograms, ProgramId
from loom_core.ops.shape import Iota
from loom_core.trace.context import current
from ltl import semantic
from ltl.arguments import dtype_argument, shape_argument, static_int
from ltl.errors import WrongShape, WrongValue, fail
from ltl.tensor import tensor


def program_id(axis: Any) -> tensor:
    """The index of this program along dimension `axis` (0, 1 or 2) of the grid, int32."""
    return _grid_value(ProgramId, axis, "program_id")


def num_programs(axis: Any) -> tensor:
    """The number of programs along dimension `axis` (0, 1 or 2) of the grid, int32."""
    return _grid_value(NumPrograms, axis, "num_programs")


def _grid_value(kind: type[ProgramId] | type[NumPrograms], axis: Any, function: str) -> tensor:
    trace = current(f"ltl.{function}")
    plain = static_int(axis, function, "axis")
    if plain not in (0, 1, 2):
        fail(WrongValue, function=function, argument="axis", given=plain, expected="0, 1 or 2")
    value: Value = trace.builder.create(kind, axis=plain)
    return tensor(value.type, value)


def arange(start: Any, end: Any) -> tensor:
    """start, start + 1, ... end - 1 as int32. Any length, not only powers of two as in Triton."""
    trace = current("ltl.arange")
    first, last = static_int(start, "arange", "start"), static_int(end, "arange", "end")
    if last <= first:
        fail(WrongShape, function="arange", problem=f"end {last} is not above start {first}")
    if not i32.min_value <= first <= last <= i32.max_value:
        fail(WrongShape, function="arange", problem=f"{first} to {last} does not fit int32")
    value: Value = trace.builder.create(Iota, start=first, end=last)
    return tensor(value.type, value)


def full(shape: Any, value: Any, dtype: Any) -> tensor:
    """A tile of `shape` and `dtype` with `value`, a number or a scalar, in every element."""
    current("ltl.full")
    sizes = shape_argument(shape, "full")
    core = dtype_argument(dtype, "full")
    fill = semantic.operand(value, "full", "value")
    if isinstance(fill, tensor):
        if fill.numel != 1:
            fail(WrongShape, function="full", problem=f"the value is a tile of shape {fill.shape}")
        from ltl.shaping import reshape

        scalar = reshape(fill, ()) if fill.shape else fill
        return semantic.to_shape(semantic.cast(scalar, core), sizes)
    if core.is_integer and isinstance(fill, float) and fill != int(fill):
        fail(WrongValue, function="full", argument="value", given=fill, expected=f"an integer for {core.name}")
    return semantic.full(fill, core, sizes)


def zeros(shape: Any, dtype: Any) -> tensor:
    """A tile of `shape` and `dtype` filled with 0."""
    current("ltl.zeros")
    return semantic.full(0, dtype_argument(dtype, "zeros"), shape_argument(shape, "zeros"))


def zeros_like(input: Any) -> tensor:
    """A tile of the shape and dtype of `input` filled with 0."""
    current("ltl.zeros_like")
    like = semantic.to_tensor(input, "zeros_like", "input")
    return semantic.full(0, like.ir_type.dtype, like.shape)


def to_tensor(x: Any) -> tensor:
    """A number as a scalar of its own dtype; a tensor as it is."""
    current("ltl.to_tensor")
    return semantic.to_tensor(x, "to_tensor", "x")
