"""Launching kernels: what their arguments and grids are; `loom_core.launch` compiles and runs.

`fastpath` repeats what `JitFunction.launch` does for calls of a kind seen before, in generated code; everything that is
not plain comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from libloom.arrays import ArrayView, UnusableArray, view_array
from loom_core.base.dtype import DType
from loom_core.base.location import UNKNOWN
from loom_core.trace.context import caller
from ltl.constant import constexpr
from ltl.host_descriptor import is_descriptor
from ltl.jit_errors import (
    ConstexprValue,
    ScalarOutOfRange,
    UnsupportedArgument,
    WrongArguments,
    WrongGrid,
)
from ltl.signature import (
    DescriptorSpec,
    Parameter,
    PointerSpec,
    ScalarSpec,
    Spec,
    StaticSpec,
    TupleSpec,
    number_spec,
    plain_number,
    runtime_leaves,
    spec_from_text,
    static_spec,
)

LAUNCH_OPTIONS: Final = frozenset(
    {"num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "debug", "stream", "device", "warmup",
     "launch_cooperative_grid", "launch_pdl", "cluster_dims", "sanitize_overflow", "allow_fp8e4nv", "extern_libs",
     "waves_per_eu", "matrix_instr_nonkdim", "kpack", "num_buffers_warp_spec", "num_consumer_groups"}
)  # fmt: skip
"""Options of Triton launches that say how a GPU should run a kernel: accepted, and without meaning here."""
SILENT_OPTIONS: Final = LAUNCH_OPTIONS - {"debug"}
"""Those that change nothing at all."""


class Missing:
    """The class of the mark for an argument that was not given."""

    def __repr__(self) -> str:
        return "not given"


MISSING: Final = Missing()


@dataclass
class Argument:
    """One argument of a launch: its spec and its run-time leaves (arrays as views, numbers as they are)."""

    spec: Spec
    leaves: list[ArrayView | bool | int | float] = field(default_factory=list)


# ---- arguments -------------------------------------------------------------------------------------------------------


def bind(name: str, parameters: Sequence[Parameter], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """One value for each parameter. WrongArguments for missing, doubled or unknown ones."""
    shown = ", ".join(p.name for p in parameters)

    def wrong(problem: str) -> WrongArguments:
        return WrongArguments(caller(), function=name, problem=problem, parameters=shown)

    if len(args) > len(parameters):
        raise wrong(f"{len(args)} positional arguments given, it has {len(parameters)} parameters")
    known = {parameter.name for parameter in parameters}
    for key in kwargs:
        if key not in known and key not in LAUNCH_OPTIONS:
            raise wrong(f"there is no parameter {key!r}")
    values = list(args) + [MISSING] * (len(parameters) - len(args))
    for i, parameter in enumerate(parameters):
        if parameter.name in kwargs:
            if values[i] is not MISSING:
                raise wrong(f"{parameter.name} is given twice")
            values[i] = kwargs[parameter.name]
        elif values[i] is MISSING and not parameter.required:
            values[i] = parameter.default
    missing = [p.name for p, value in zip(parameters, values, strict=True) if value is MISSING]
    if missing:
        raise wrong(f"no value for {', '.join(missing)}")
    return values


def read_argument(parameter: Parameter, value: Any) -> Argument:
    """The spec and the run-time leaves of one argument. A diagnostic at the caller for what kernels cannot take."""
    if parameter.static:
        return Argument(_static(parameter.name, value))
    return _read_runtime(parameter, value)


def _static(name: str, value: Any) -> StaticSpec:
    plain = plain_number(value)
    if isinstance(plain, np.ndarray) or view_array_or_none(plain) is not None:
        given, reason = "an array", "its contents are known only at run time"
        raise ConstexprValue(caller(), name=name, given=given, reason=reason)
    if isinstance(plain, list):
        plain = tuple(plain)
    try:
        return static_spec(plain)
    except TypeError:
        given = f"of type {type(plain).__name__}"
        raise ConstexprValue(caller(), name=name, given=given, reason="it cannot be hashed") from None


def view_array_or_none(value: Any) -> ArrayView | None:
    """`view_array` where it does not matter why an array cannot be used."""
    try:
        return view_array(value)
    except UnusableArray:
        return None


def _read_runtime(parameter: Parameter, value: Any) -> Argument:
    if isinstance(value, constexpr):
        return Argument(_static(parameter.name, value.value))
    if value is None:
        return Argument(static_spec(None))
    if isinstance(value, tuple):
        items = [_read_runtime(parameter, item) for item in value]
        spec = TupleSpec(type(value), tuple(item.spec for item in items))
        return Argument(spec, [leaf for item in items for leaf in item.leaves])
    number = plain_number(value)
    if isinstance(number, (bool, int, float)):
        return _read_number(parameter, number)
    if is_descriptor(value):
        return _read_descriptor(parameter, value)
    if isinstance(value, str):
        raise UnsupportedArgument(
            caller(), name=parameter.name, given="a string", reason="declare the parameter constexpr to pass one"
        )
    try:
        view = view_array(value)
    except UnusableArray as problem:
        raise UnsupportedArgument(
            caller(), name=parameter.name, given=f"of type {type(value).__name__}", reason=str(problem)
        ) from None
    if view is None:
        given = f"of type {type(value).__name__}"
        raise UnsupportedArgument(caller(), name=parameter.name, given=given, reason="kernels cannot take it")
    return Argument(PointerSpec(view.dtype), [view])


def _read_descriptor(parameter: Parameter, value: Any) -> Argument:
    base = _read_runtime(parameter, value.base)
    if not isinstance(base.spec, PointerSpec):
        given = f"a tensor descriptor of a {type(value.base).__name__}"
        raise UnsupportedArgument(caller(), name=parameter.name, given=given, reason="its base is no array")
    padding = getattr(value, "padding", "zero")
    spec = DescriptorSpec(base.spec.dtype, tuple(int(size) for size in value.block_shape), padding)
    return Argument(spec, [*base.leaves, *(int(size) for size in value.shape), *(int(step) for step in value.strides)])


def _read_number(parameter: Parameter, number: bool | int | float) -> Argument:
    spec = number_spec(number, parameter, UNKNOWN if _fits_64(number) else caller())
    if isinstance(spec, StaticSpec):
        return Argument(spec)
    assert isinstance(spec, ScalarSpec)
    dtype = spec.dtype
    if not dtype.is_float and (isinstance(number, float) or not dtype.min_value <= number <= dtype.max_value):
        raise ScalarOutOfRange(caller(), name=parameter.name, value=number, dtype=dtype.name)
    return Argument(spec, [number])


def _fits_64(number: bool | int | float) -> bool:
    return isinstance(number, float) or -(1 << 63) <= number < 1 << 64


def read_description(parameter: Parameter, value: Any) -> Spec:
    """The spec for an argument given as a value or, to `compile` and `lower`, as text such as "*fp32" or "i32"."""
    if isinstance(value, (PointerSpec, ScalarSpec, StaticSpec, TupleSpec, DescriptorSpec)):
        return value
    if isinstance(value, str) and not parameter.static:
        spec = spec_from_text(value)
        if spec is None:
            reason = 'a type is spelled "*fp32" (a pointer), "i32", "fp32"'
            raise UnsupportedArgument(caller(), name=parameter.name, given=repr(value), reason=reason)
        return spec
    return read_argument(parameter, value).spec


# ---- grids -----------------------------------------------------------------------------------------------------------


def read_grid(grid: Any, name: str, arguments: Callable[[], dict[str, Any]]) -> tuple[int, int, int]:
    """The grid as three sizes; a callable is given the arguments by name. WrongGrid for what is none."""
    shown = grid

    def wrong(problem: str) -> WrongGrid:
        return WrongGrid(caller(), function=name, grid=shown, problem=problem)

    if callable(grid):
        given = arguments()
        try:
            shown = grid = grid(given)
        except KeyError as error:
            key = error.args[0] if error.args else None
            if not isinstance(key, str) or key in given:
                raise
            shown = "a function"
            raise wrong(f"it asks for {key!r}, and the arguments are {', '.join(given)}") from None
    sizes = list(grid) if isinstance(grid, (tuple, list)) else [grid]

    if not 1 <= len(sizes) <= 3:
        raise wrong(f"it has {len(sizes)} dimensions")
    plain = []
    for size in sizes:
        size = plain_number(size)
        if isinstance(size, constexpr):
            size = size.value
        if isinstance(size, bool) or not isinstance(size, int):
            raise wrong(f"{size!r} is not an int")
        if size < 0:
            raise wrong(f"{size} is negative")
        if size > 0x7FFF_FFFF:
            raise wrong(f"{size} does not fit 32 bits")
        plain.append(size)
    x, y, z = plain + [1] * (3 - len(plain))
    return x, y, z


# ---- runs ------------------------------------------------------------------------------------------------------------


def split_leaves(
    parameters: Sequence[Parameter], arguments: Sequence[Argument]
) -> tuple[list[ArrayView], list[tuple[DType, bool | int | float]]]:
    """Arrays, and scalars with their dtypes, in the order of the kernel's IR parameters."""
    views: list[ArrayView] = []
    scalars: list[tuple[DType, bool | int | float]] = []
    for parameter, argument in zip(parameters, arguments, strict=True):
        specs = [spec for _, spec in runtime_leaves(parameter.name, argument.spec)]
        for spec, leaf in zip(specs, argument.leaves, strict=True):
            if isinstance(leaf, ArrayView):
                views.append(leaf)
            else:
                scalars.append((spec.dtype, leaf))
    return views, scalars
