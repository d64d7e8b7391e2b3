"""What a kernel is specialised on: one hashable spec per argument.

Pointers are keyed by dtype alone and run-time numbers by type alone, except that the integer 1 is a constant (as in
Triton, so that unit strides fold). Compile-time values are keyed exactly, with their type: 1, 1.0 and True differ.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from loom_core.base import dtype as core
from loom_core.base.dtype import DType
from loom_core.base.location import Location
from loom_core.ir.types import PointerType, TileType
from loom_core.trace.values import rebuild_tuple
from ltl import dtypes, semantic
from ltl.block_pointers import tensor_descriptor
from ltl.constant import constexpr
from ltl.jit_errors import BadSignature, UnsupportedArgument
from ltl.tensor import tensor


@dataclass(frozen=True)
class PointerSpec:
    """An array: its address at run time."""

    dtype: DType

    def __str__(self) -> str:
        return f"*{self.dtype.name}"


@dataclass(frozen=True)
class ScalarSpec:
    """A number known at run time."""

    dtype: DType

    def __str__(self) -> str:
        return self.dtype.name


@dataclass(frozen=True)
class StaticSpec:
    """A value known when the kernel is compiled. `kind` and `text` tell apart what Python takes to be equal."""

    value: Any
    kind: type
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TupleSpec:
    """A tuple (or named tuple) of arguments."""

    kind: type
    items: tuple[Spec, ...]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.items)) + ")"


@dataclass(frozen=True)
class DescriptorSpec:
    """A tensor descriptor made outside: a pointer, then sizes (i32) and strides (i64) for each dimension."""

    dtype: DType
    block_shape: tuple[int, ...]
    padding: str

    @property
    def items(self) -> tuple[PointerSpec | ScalarSpec, ...]:
        """The specs of the run-time values."""
        rank = len(self.block_shape)
        return PointerSpec(self.dtype), *[ScalarSpec(core.i32)] * rank, *[ScalarSpec(core.i64)] * rank

    def __str__(self) -> str:
        return f"tensordesc<{self.dtype.name}{list(self.block_shape)}>"


_DESCRIPTOR_TEXT: Final = re.compile(r"tensordesc<(\w+)\[([\d,\s]+)\]>")

Spec = PointerSpec | ScalarSpec | StaticSpec | TupleSpec | DescriptorSpec
ONE: Final = StaticSpec(1, int, "1")


def static_spec(value: Any) -> StaticSpec:
    """The spec of a compile-time value. TypeError if it cannot be hashed."""
    plain = value.value if isinstance(value, constexpr) else value
    hash(plain)
    return StaticSpec(plain, type(plain), _exact_text(plain))


def _exact_text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{type(value).__name__}({', '.join(f'{type(v).__name__}:{_exact_text(v)}' for v in value)})"
    return repr(value)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel as it was declared."""

    name: str
    static: bool
    default: Any
    forced: dtypes.dtype | None
    specialise: bool

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


def read_parameters(
    function: Callable[..., Any], where: Location, is_constexpr: Callable[[Any], bool], unspecialised: Sequence[Any]
) -> tuple[Parameter, ...]:
    """The parameters of a kernel. BadSignature for *args and **kwargs, which kernels cannot take."""
    parameters = []
    for index, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise BadSignature(where, function=function.__name__, problem=f"it takes {parameter}")
        annotation = parameter.annotation
        forced = annotation if isinstance(annotation, dtypes.dtype) else None
        if isinstance(annotation, str):
            named = dtypes.from_text(annotation.rsplit(".", 1)[-1].strip())
            forced = named if isinstance(named, dtypes.dtype) else None
        parameters.append(
            Parameter(
                parameter.name,
                is_constexpr(annotation),
                parameter.default,
                forced,
                not (parameter.name in unspecialised or index in unspecialised),
            )
        )
    return tuple(parameters)


def number_spec(value: Any, parameter: Parameter, where: Location) -> Spec:
    """The spec of a Python number given for a run-time parameter."""
    if parameter.forced is not None:
        return ScalarSpec(parameter.forced.core)
    if isinstance(value, bool):
        return ScalarSpec(core.bool_)
    if isinstance(value, float):
        return ScalarSpec(core.f32)
    if value == 1 and parameter.specialise:
        return ONE
    for dtype in (core.i32, core.i64, core.u64):
        if dtype.min_value <= value <= dtype.max_value:
            return ScalarSpec(dtype)
    raise UnsupportedArgument(where, name=parameter.name, given=f"the integer {value}", reason="it exceeds 64 bits")


def spec_from_text(text: str) -> Spec | None:
    """The spec that a text such as "*fp32", "i32", "f32" or "tensordesc<fp16[64, 32]>" stands for; None for no type."""
    descriptor = _DESCRIPTOR_TEXT.fullmatch(text.strip())
    if descriptor is not None:
        element = dtypes.from_text(descriptor[1])
        if not isinstance(element, dtypes.dtype):
            return None
        return DescriptorSpec(element.core, tuple(int(size) for size in descriptor[2].split(",")), "zero")
    found = dtypes.from_text(text.strip())
    if isinstance(found, dtypes.pointer_type):
        return PointerSpec(found.element_ty.core)
    return None if found is None else ScalarSpec(found.core)


def runtime_leaves(name: str, spec: Spec) -> Iterator[tuple[str, PointerSpec | ScalarSpec]]:
    """Names and specs of the run-time values in one argument, in order: the kernel's IR parameters."""
    if isinstance(spec, DescriptorSpec):
        rank = range(len(spec.block_shape))
        parts = ["base", *(f"size{d}" for d in rank), *(f"stride{d}" for d in rank)]
        yield from ((f"{name}_{part}", item) for part, item in zip(parts, spec.items, strict=True))
    elif isinstance(spec, TupleSpec):
        for i, item in enumerate(spec.items):
            yield from runtime_leaves(f"{name}_{i}", item)
    elif not isinstance(spec, StaticSpec):
        yield name, spec


def ir_type(spec: PointerSpec | ScalarSpec) -> TileType:
    """The type of the IR parameter for a run-time value."""
    return TileType(PointerType(spec.dtype)) if isinstance(spec, PointerSpec) else TileType(spec.dtype)


def fill_arguments(specs: Sequence[Spec], parameters: list[tensor]) -> list[Any]:
    """The arguments of the Python function: run-time parameters in their places, and the static values."""
    remaining = iter(parameters)

    def fill(spec: Spec) -> Any:
        if isinstance(spec, StaticSpec):
            return spec.value
        if isinstance(spec, TupleSpec):
            return rebuild_tuple(_example(spec.kind), [fill(item) for item in spec.items])
        if isinstance(spec, DescriptorSpec):
            return _descriptor(spec, [next(remaining) for _ in spec.items])
        return next(remaining)

    return [fill(spec) for spec in specs]


def _descriptor(spec: DescriptorSpec, parts: list[tensor]) -> tensor_descriptor:
    rank = len(spec.block_shape)
    sizes = [semantic.cast(part, core.i64) for part in parts[1 : 1 + rank]]
    return tensor_descriptor(parts[0], sizes, parts[1 + rank :], spec.block_shape, spec.padding)


def _example(kind: type) -> Any:
    # `rebuild_tuple` reads only the class of its example.
    return tuple.__new__(kind)


def plain_number(value: Any) -> Any:
    """A NumPy scalar as the Python number of the same value; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
