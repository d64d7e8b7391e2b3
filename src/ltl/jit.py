"""`@ltl.jit`: kernels and kernel functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

from loom_core.ir.block import Function
from loom_core.trace.context import active
from loom_core.trace.names import Watch
from loom_core.trace.source import read_source
from ltl.jit_errors import NotLaunched
from ltl.signature import Spec, fill_arguments, ir_type, read_parameters, runtime_leaves
from ltl.tracing import Traceable, constexpr_annotation, trace_kernel


class JitFunction:
    """A function of the kernel language: launched with `kernel[grid](...)`, or called from other kernels."""

    traceable = True

    def __init__(self, function: Callable[..., Any], source: str | None, unspecialised: Sequence[Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.traced = Traceable(function, read_source(function, source))
        self.parameters = read_parameters(
            function, self.traced.source.location, constexpr_annotation, unspecialised
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Called from a kernel: inlined there. From elsewhere it is an error: kernels are launched with a grid."""
        trace = active()
        if trace is None:
            raise NotLaunched(self.traced.source.location, function=self.traced.name)
        return self.traced.run(trace, args, kwargs)

    def trace_specs(self, specs: Sequence[Spec]) -> tuple[Function, list[Watch]]:
        """The Tile IR for arguments described by `specs`, and the outside values that it depends on."""
        leaves = [leaf for p, spec in zip(self.parameters, specs, strict=True) for leaf in runtime_leaves(p.name, spec)]
        names = [name for name, _ in leaves]
        types = [ir_type(spec) for _, spec in leaves]
        return trace_kernel(self.traced, names, types, lambda parameters: fill_arguments(specs, parameters))

    def __repr__(self) -> str:
        return f"<kernel {self.traced.name} of {self.traced.source.file}>"


@overload
def jit(function: Callable[..., Any], *, source: str | None = None) -> JitFunction: ...
@overload
def jit(
    *, source: str | None = None, do_not_specialize: Sequence[Any] = (), **options: Any
) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    source: str | None = None,
    do_not_specialize: Sequence[Any] = (),
    **options: Any,
) -> JitFunction | Callable[[Callable[..., Any]], JitFunction]:
    """Make a kernel of a Python function.

    source: the text of the definition, for functions whose source Python does not know.
    do_not_specialize: names or positions of integer parameters for which the value 1 is not special.
    Triton's other options are accepted and mean nothing here.
    """
    if function is None:
        return lambda made: JitFunction(made, source, do_not_specialize)
    return JitFunction(function, source, do_not_specialize)
