"""Kernels imported from Triton IR text: launched, compiled and looked into as those that are traced from source."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property, partial
from itertools import compress
from typing import TYPE_CHECKING, Any, Final

from loom_core.base.dtype import DType
from loom_core.base.knobs import knobs
from loom_core.importers.ttir import ImportedFunction, import_ttir
from loom_core.ir.block import Function
from loom_core.ir.value import Value
from loom_core.launch import Variant, interpret_variant, quiet, run_variant, trace_variant
from loom_core.trace.context import Frontend, caller
from ltl import dtypes, launch, libdevice, semantic
from ltl.fastpath import KnownCalls
from ltl.frontend import FRONTEND
from ltl.jit_errors import ScalarOutOfRange, UnsupportedArgument, WrongArguments
from ltl.signature import Parameter, PointerSpec, ScalarSpec, plain_number
from ltl.tensor import tensor

if TYPE_CHECKING:
    from libloom.arrays import ArrayView
    from loom_core.isa.machine import MachineConfig
    from loom_core.objfile import LoomObject

_GRIDS_KEPT: Final = 4096
_SYMBOL: Final = re.compile(r"__nv_(\w+)")
_SAME: Final[dict[str, Callable[..., Any]]] = {
    "fabs": libdevice.abs, "llabs": libdevice.abs, "fmin": lambda a, b: _extreme(a, b, "min"),
    "fmax": lambda a, b: _extreme(a, b, "max"), "powi": libdevice.pow, "min": lambda a, b: _extreme(a, b, "min"),
    "max": lambda a, b: _extreme(a, b, "max"), "llmin": lambda a, b: _extreme(a, b, "min"),
    "llmax": lambda a, b: _extreme(a, b, "max"),
}  # fmt: skip
"""Functions whose symbol is not the name of one of `libdevice`, nor that with the letter of its type."""


def _extreme(a: Any, b: Any, which: str) -> Any:
    from ltl import functions

    return functions.minimum(a, b) if which == "min" else functions.maximum(a, b)


class _Library:
    """The math functions of Triton IR: those of `ltl.extra.libdevice`."""

    frontend: Frontend = FRONTEND

    def call(self, symbol: str, operands: Sequence[Value]) -> Value | None:
        """The function of a symbol (`__nv_expf`) applied to values; None where there is none."""
        function = function_of(symbol)
        if function is None:
            return None
        result: Value = semantic.to_tensor(function(*(tensor(value.type, value) for value in operands))).value
        return result


def function_of(symbol: str) -> Callable[..., Any] | None:
    """The LTL function that a symbol of the device's library means."""
    found = _SYMBOL.fullmatch(symbol)
    if found is None:
        return None
    name = found.group(1)
    # `expf` and `exp`, `clzll` and `clz`, `isnand` and `isnan`, `fadd_rn` and `add_rn`.
    shorter = [name, *(name.removesuffix(end) for end in ("f", "d", "ll")), name[1:]]
    for candidate in shorter:
        if candidate in _SAME:
            return _SAME[candidate]
        if candidate in libdevice.__all__ or candidate in libdevice.REFUSED:
            function: Callable[..., Any] = getattr(libdevice, candidate)
            return function
    return None


class ImportedKernel:
    """A kernel of a Triton IR module. `kernel[grid](...)` takes its run-time arguments, in order.

    text: the module; file: what diagnostics call it; name: which function, by default the only public one; machine: by
    default the preset L1; assertions: whether device assertions are checked.
    """

    def __init__(
        self,
        text: str,
        file: str = "<ttir>",
        *,
        name: str | None = None,
        machine: MachineConfig | None = None,
        assertions: bool = False,
    ) -> None:
        self._import = partial(import_ttir, text, _Library(), file=file, name=name, assertions=assertions)
        self._imported = self._import()
        self._machine = machine
        self._padded: dict[frozenset[str], ImportedKernel] = {frozenset(): self}
        self._grids: dict[Any, tuple[int, int, int]] = {}

    @property
    def function(self) -> Function:
        """The Tile IR."""
        return self._imported.function

    @property
    def imported(self) -> ImportedFunction:
        """What the importer made of the text."""
        return self._imported

    @property
    def name(self) -> str:
        return self.function.name

    def __repr__(self) -> str:
        return repr(self.function).replace("<func @", "<imported kernel ", 1)

    def _repr_html_(self) -> str:
        return self.function._repr_html_()

    @cached_property
    def variant(self) -> Variant:
        """The function with its objects."""
        from loom_core.isa.machine import L1

        types = tuple(str(value.type) for value in self.function.arguments)
        return Variant(types, self.function, [], self._machine or L1, self.name)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return partial(self._launch_over, grid)

    def _launch_over(self, grid: Any, *args: Any) -> None:
        self.launch(launch.read_grid(grid, self.name, dict), args)

    def _read_grid(self, grid: tuple[int, int, int]) -> tuple[int, int, int]:
        if len(self._grids) >= _GRIDS_KEPT:
            self._grids.clear()
        return self._grids.setdefault(grid, launch.read_grid(grid, self.name, dict))

    def launch(self, grid: tuple[int, int, int], args: Sequence[Any]) -> None:
        """Launch over a grid of three sizes."""
        sizes = self._grids.get(grid) or self._read_grid(grid)
        match = self._known.matches.get(tuple(map(type, args)))
        if match is None or not quiet():
            self._launch(sizes, args, {})
        else:
            match(sizes, sizes, *args)

    def _launch(self, sizes: tuple[int, int, int], args: Sequence[Any], options: dict[str, Any]) -> None:
        """The launches that `KnownCalls` does not handle."""
        padded = self._padded_as(args)
        if padded is not self:
            padded._launch(sizes, args, options)
            return
        views, scalars = self.leaves(args, {})
        run = interpret_variant if knobs.interpret else run_variant
        run(self.variant, views, scalars, sizes)
        given = [number for number in args if isinstance(number, (bool, int, float))]
        if given == [number for _, number in scalars] and len(args) == len(self.specs):
            arguments = [launch.Argument(spec) for spec in self.specs]
            self._known.remember(args, arguments, self.variant)

    def _padded_as(self, args: Sequence[Any]) -> ImportedKernel:
        """This kernel for the padding of the descriptors that it is given: NaN is no part of its text."""
        if not any(self._imported.ranks):
            return self
        names = [name for name, _ in self._imported.source.arguments]
        if len(args) != len(names):
            names = list(compress(names, self._imported.given))
        wanted = frozenset(
            name for name, arg in zip(names, args, strict=False) if getattr(arg, "padding", "zero") == "nan"
        )
        if wanted not in self._padded:
            made = copy(self)
            for cached in ("variant", "specs", "_known"):
                made.__dict__.pop(cached, None)
            made._imported = self._import(nan_padded=wanted)
            made._padded = {wanted: made}
            self._padded[wanted] = made
        return self._padded[wanted]

    @cached_property
    def specs(self) -> list[PointerSpec | ScalarSpec]:
        """The types of the parameters, those of descriptors taken apart."""
        types = [value.type for value in self.function.arguments]
        return [PointerSpec(type.pointee) if type.is_pointer else ScalarSpec(type.dtype) for type in types]

    @cached_property
    def _known(self) -> KnownCalls:
        forced = [dtypes.of_core(spec.dtype) if isinstance(spec, ScalarSpec) else None for spec in self.specs]
        return KnownCalls([Parameter("", False, None, dtype, False) for dtype in forced], self._launch)

    def trace(self, *args: Any, grid: Any) -> Any:
        """Run under the cycle model of the machine; gives the simulator's trace."""
        padded = self._padded_as(args)
        views, scalars = padded.leaves(args, {})
        return trace_variant(padded.variant, views, scalars, launch.read_grid(grid, self.name, dict))

    def lower(self, *args: Any) -> Function:
        """The Tile IR, which does not depend on arguments."""
        return self.function

    def compile(self) -> LoomObject:
        """The object."""
        return self.variant.compile({})

    def leaves(
        self, args: Sequence[Any], kwargs: Any
    ) -> tuple[list[ArrayView], list[tuple[DType, bool | int | float]]]:
        """The arrays of a launch as views, and its numbers with their dtypes, in the order of the IR parameters."""
        given = self._imported.given
        ranks = tuple(compress(self._imported.ranks, given))
        if len(args) == len(given):
            args = tuple(compress(args, given))
        if len(args) != len(ranks):
            names = ", ".join(name[1:] for name, _ in compress(self._imported.source.arguments, given))
            problem = f"{len(args)} arguments given, it has {len(ranks)} parameters"
            raise WrongArguments(caller(), function=self.name, problem=problem, parameters=names)
        views: list[ArrayView] = []
        scalars: list[tuple[DType, bool | int | float]] = []
        parameters = iter(self.function.arguments)
        for arg, rank in zip(args, ranks, strict=True):
            items = [arg] if not rank else [arg.base, *map(int, arg.shape), *map(int, arg.strides)]
            for item in items:
                parameter = next(parameters)
                if parameter.type.is_pointer:
                    views.append(_view(parameter, item))
                else:
                    scalars.append(_number(parameter, item))
        return views, scalars


def _view(parameter: Value, value: Any) -> ArrayView:
    from libloom.arrays import UnusableArray, view_array

    name, given = parameter.name or "", f"of type {type(value).__name__}"
    try:
        view = view_array(value)
    except UnusableArray as problem:
        raise UnsupportedArgument(caller(), name=name, given=given, reason=str(problem)) from None
    wanted = parameter.type.pointee
    if view is None or view.dtype.itemsize != wanted.itemsize:
        shown = given if view is None else f"an array of {view.dtype.name}"
        raise UnsupportedArgument(caller(), name=name, given=shown, reason=f"an array of {wanted.name} is needed")
    return view


def _number(parameter: Value, value: Any) -> tuple[DType, bool | int | float]:
    """A number as the parameter takes it; integers above the signed range stand for their bits."""
    dtype, name = parameter.type.dtype, parameter.name or ""
    number = plain_number(value)
    if not isinstance(number, (bool, int, float)):
        given = f"of type {type(value).__name__}"
        raise UnsupportedArgument(caller(), name=name, given=given, reason="a number is needed")
    if dtype.is_float:
        return dtype, float(number)
    least, past = -(1 << max(0, dtype.bits - 1)), 1 << dtype.bits
    if isinstance(number, float) or not least <= number < past:
        raise ScalarOutOfRange(caller(), name=name, value=number, dtype=dtype.name)
    return dtype, bool(number) if dtype.is_bool else semantic.wrap(int(number), dtype)
