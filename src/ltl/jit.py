"""`@ltl.jit`: kernels and kernel functions."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

from loom_core.base.cells import shown_file
from loom_core.base.diagnostics import LoomError, without_internal_frames
from loom_core.base.knobs import knobs
from loom_core.ir.block import Function
from loom_core.trace.context import active, caller
from loom_core.trace.source import read_source
from ltl.jit_errors import NotLaunched
from ltl.signature import Spec, fill_arguments, ir_type, read_parameters, runtime_leaves
from ltl.tracing import Traceable, constexpr_annotation, trace_kernel
from ltl.upstream import python_function

if TYPE_CHECKING:
    from loom_core.isa.machine import MachineConfig
    from loom_core.launch import Variant
    from loom_core.objfile import LoomObject
    from ltl.fastpath import KnownCalls
    from ltl.launch import Argument

_GRIDS_KEPT: Final = 4096


class JitFunction:
    """A function of the kernel language: launched with `kernel[grid](...)`, or called from other kernels.

    A launch traces and compiles the kernel for what its arguments are: dtypes of arrays, types of numbers (the integer
    1 is a constant), exact values of constexprs. Each such variant is kept in memory, its object also on disk.
    """

    traceable: Final = True

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        source: str | None = None,
        do_not_specialize: Sequence[Any] = (),
        machine: MachineConfig | None = None,
        debug: bool = False,
    ) -> None:
        function = python_function(function)
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.traced = Traceable(function, read_source(function, source))
        self.parameters = read_parameters(
            function, self.traced.source.location, constexpr_annotation, do_not_specialize
        )
        self.machine = machine
        self.debug = debug
        self._variants: dict[tuple[tuple[Spec, ...], bool], Variant] = {}
        self._launchers: dict[Any, Callable[..., None]] = {}
        # A grid written as a literal is one object, so most launches need no look-up.
        self._last: tuple[Any, Callable[..., None]] = (object(), self.__call__)
        self._lock = threading.RLock()

    @property
    def arg_names(self) -> list[str]:
        """The parameters' names, in order."""
        return [parameter.name for parameter in self.parameters]

    # -- in kernels ----------------------------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Called from a kernel: inlined there. From elsewhere it is an error: kernels are launched with a grid."""
        trace = active()
        if trace is not None:
            return self.traced.run(trace, args, kwargs)
        raise without_internal_frames(NotLaunched(caller(), function=self.traced.name))

    # -- launches ------------------------------------------------------------------------------------------------------

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """The launch over `grid`: one to three ints, or a function that gives them for a dict of the arguments."""
        last, launcher = self._last
        if grid is last:
            return launcher
        if isinstance(grid, list):
            grid = tuple(grid)
        try:
            return self._launcher(grid)
        except LoomError as error:
            raise without_internal_frames(error) from None

    def _launcher(self, grid: Any) -> Callable[..., None]:
        from ltl.launch import read_grid

        name = self.traced.name
        if callable(grid):
            return self._factory(grid, lambda arguments: read_grid(grid, name, lambda: arguments))
        # Grids of other types may be equal to grids of ints: (1.0,) and (True,).
        key: Any = (grid, *map(type, grid)) if isinstance(grid, tuple) else (grid, type(grid))
        found = self._launchers.get(key) if isinstance(grid, (tuple, int)) else None
        if found is None:
            found = self._factory(grid, read_grid(grid, name, dict))
            if len(self._launchers) >= _GRIDS_KEPT:
                self._launchers.clear()
            self._launchers[key] = found
        self._last = grid, found
        return found

    @functools.cached_property
    def _factory(self) -> Callable[[Any, Any], Callable[..., None]]:
        from ltl.fastpath import launcher_factory

        return launcher_factory(self.traced.name, self.parameters, self._known.matches, self.launch)

    @functools.cached_property
    def _known(self) -> KnownCalls:
        from ltl.fastpath import KnownCalls

        return KnownCalls(self.parameters, self.launch)

    def launch(self, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Launch over `grid`. Everything that generated code does not handle, and the first call of each kind."""
        from loom_core.launch import interpret_variant, run_variant
        from ltl import launch

        values, arguments = self._read(args, kwargs)
        names = [parameter.name for parameter in self.parameters]
        sizes = launch.read_grid(grid, self.traced.name, lambda: dict(zip(names, values, strict=True)))
        debug = bool(kwargs.get("debug", self.debug))
        variant = self.variant(tuple(argument.spec for argument in arguments), debug=debug)
        views, scalars = launch.split_leaves(self.parameters, arguments)
        if knobs.interpret:
            interpret_variant(variant, views, scalars, sizes)
            return
        run_variant(variant, views, scalars, sizes)
        if debug == self.debug:
            self._known.remember(values, arguments, variant)

    def _read(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], list[Argument]]:
        from ltl.launch import MISSING, bind, read_argument

        # Generated launching functions give a mark for what the caller left out.
        given = list(args)
        while given and given[-1] is MISSING:
            given.pop()
        named = dict(kwargs)
        for parameter, value in zip(self.parameters, given, strict=False):
            if value is not MISSING:
                named.setdefault(parameter.name, value)
        extra = given[len(self.parameters) :]
        if extra:
            values = bind(self.traced.name, self.parameters, given, kwargs)
        else:
            values = bind(self.traced.name, self.parameters, (), named)
        return values, [read_argument(p, value) for p, value in zip(self.parameters, values, strict=True)]

    def variant(
        self, specs: tuple[Spec, ...], machine: MachineConfig | None = None, debug: bool | None = None
    ) -> Variant:
        """The variant for `specs`, traced now if there is none or what it read from outside has changed.

        debug: whether device assertions are checked, by default as the kernel was declared.
        """
        from loom_core.isa.machine import L1
        from loom_core.launch import Variant

        key = specs, self.debug if debug is None else debug
        with self._lock:
            found = self._variants.get(key) if machine is None else None
            if found is not None and found.current():
                return found
            names, types = self._ir_parameters(specs)
            function, watches = trace_kernel(
                self.traced, names, types, lambda tiles: self._arguments(specs, tiles), assertions=key[1]
            )
            made = Variant(specs, function, watches, machine or self.machine or L1, self.traced.name)
            if machine is None:
                self._variants[key] = made
            return made

    def _arguments(self, specs: tuple[Spec, ...], tiles: list[Any]) -> list[Any]:
        """The arguments of the Python function; a number that is specialised on (1) is a scalar of known value."""
        from ltl.semantic import lift

        values = fill_arguments(specs, tiles)
        return [
            lift(value) if type(value) is int and not parameter.static else value
            for parameter, value in zip(self.parameters, values, strict=True)
        ]

    def _ir_parameters(self, specs: Sequence[Spec]) -> tuple[list[str], list[Any]]:
        leaves = [leaf for p, spec in zip(self.parameters, specs, strict=True) for leaf in runtime_leaves(p.name, spec)]
        return [name for name, _ in leaves], [ir_type(spec) for _, spec in leaves]

    # -- looking inside ------------------------------------------------------------------------------------------------

    def specs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Spec, ...]:
        """The specs for arguments given as values or as texts: "*fp32" for a pointer, "i32" or "fp32" for a number."""
        from ltl.launch import bind, read_description

        values = bind(self.traced.name, self.parameters, args, kwargs)
        return tuple(read_description(p, value) for p, value in zip(self.parameters, values, strict=True))

    def leaves(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
        """The arrays of a launch as views, and its numbers with their dtypes, in the order of the IR parameters."""
        from ltl.launch import split_leaves

        _, arguments = self._read(args, kwargs)
        return split_leaves(self.parameters, arguments)

    def lower(self, /, *args: Any, **kwargs: Any) -> Function:
        """The Tile IR of the kernel for such arguments, as traced."""
        try:
            return self.variant(self.specs(args, kwargs)).function
        except LoomError as error:
            raise without_internal_frames(error) from None

    def compile(
        self,
        /,
        *args: Any,
        grid: Any = None,
        machine: MachineConfig | None = None,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> LoomObject:
        """The object of the kernel for such arguments. Objects do not depend on the grid."""
        try:
            return self.variant(self.specs(args, kwargs), machine).compile(options or {})
        except LoomError as error:
            raise without_internal_frames(error) from None

    def trace(self, /, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Run the kernel under the cycle model of its machine; gives the simulator's trace."""
        from loom_core.launch import trace_variant
        from ltl import launch

        try:
            values, arguments = self._read(args, kwargs)
            names = [parameter.name for parameter in self.parameters]
            sizes = launch.read_grid(grid, self.traced.name, lambda: dict(zip(names, values, strict=True)))
            variant = self.variant(tuple(argument.spec for argument in arguments))
            views, scalars = launch.split_leaves(self.parameters, arguments)
            return trace_variant(variant, views, scalars, sizes)
        except LoomError as error:
            raise without_internal_frames(error) from None

    def explain(self, /, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """How a launch with such arguments is divided among cores, or why it runs on one; `str` of it says so."""
        from loom_core.launch import explain_variant
        from ltl import launch

        try:
            values, arguments = self._read(args, kwargs)
            names = [parameter.name for parameter in self.parameters]
            sizes = launch.read_grid(grid, self.traced.name, lambda: dict(zip(names, values, strict=True)))
            variant = self.variant(tuple(argument.spec for argument in arguments))
            views, scalars = launch.split_leaves(self.parameters, arguments)
            return explain_variant(variant, views, scalars, sizes)
        except LoomError as error:
            raise without_internal_frames(error) from None

    @property
    def profile(self) -> _Profile:
        """`kernel.profile[grid](...)` is `kernel.trace(..., grid=grid)`."""
        return _Profile(self)

    def _shown(self) -> tuple[str, str]:
        """The signature, and where the kernel is."""
        source = self.traced.source
        parameters = ", ".join(f"{p.name}: constexpr" if p.static else p.name for p in self.parameters)
        return f"{self.traced.name}({parameters})", f"{os.path.basename(shown_file(source.file))}:{source.first_line}"

    def __repr__(self) -> str:
        from loom_core.kernel_view import kernel_text

        return kernel_text(*self._shown(), len(self._variants))

    def _repr_html_(self) -> str:
        from loom_core.kernel_view import kernel_html

        return kernel_html(*self._shown(), self.arg_names, list(self._variants.values()))


class _Profile:
    def __init__(self, kernel: JitFunction) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.kernel.trace, grid=grid)


@overload
def jit(function: Callable[..., Any], *, source: str | None = None) -> JitFunction: ...
@overload
def jit(
    *,
    source: str | None = None,
    do_not_specialize: Sequence[Any] = (),
    machine: MachineConfig | None = None,
    debug: bool = False,
    **options: Any,
) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    source: str | None = None,
    do_not_specialize: Sequence[Any] = (),
    machine: MachineConfig | None = None,
    debug: bool = False,
    **options: Any,
) -> Any:
    """Make a kernel of a Python function, or of what Triton's decorators made of one (autotuners stay such).

    source: the text of the definition, for functions whose source Python does not know.
    do_not_specialize: names or positions of integer parameters for which the value 1 is not special.
    machine: the machine to compile for, by default the preset L1.
    debug: whether device assertions are checked; a launch can say so too.
    Triton's other options are accepted and mean nothing here.
    """

    def plain(function: Callable[..., Any]) -> JitFunction:
        return JitFunction(
            function, source=source, do_not_specialize=do_not_specialize or (), machine=machine, debug=bool(debug)
        )

    def make(made: Callable[..., Any]) -> Any:
        from ltl.tuning import from_upstream

        try:
            return from_upstream(made, plain) or plain(made)
        except LoomError as error:
            raise without_internal_frames(error) from None

    return make if function is None else make(function)
