"""Running kernel functions under a trace: the kernel itself, and the helpers that it calls."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Any

from loom_core.base.diagnostics import LoomError
from loom_core.ir.block import Function
from loom_core.ir.types import TileType
from loom_core.ir.verifier import verify_function
from loom_core.ops.control import Return
from loom_core.trace.context import Trace, tracing
from loom_core.trace.errors import BadCall
from loom_core.trace.faults import fault
from loom_core.trace.hooks import Hooks
from loom_core.trace.names import Watch, outside_namespace
from loom_core.trace.rewrite import HOOKS, Rewritten, rewrite
from loom_core.trace.source import FunctionSource
from loom_core.trace.values import map_leaves
from ltl import semantic
from ltl.frontend import FRONTEND
from ltl.tensor import tensor


@dataclass(frozen=True)
class Traceable:
    """A Python function whose body can be traced."""

    function: Callable[..., Any]
    source: FunctionSource

    @cached_property
    def rewritten(self) -> Rewritten:
        return rewrite(self.source)

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @property
    def name(self) -> str:
        return self.function.__name__

    def run(self, trace: Trace, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the rewritten function in `trace`, as the kernel or inlined where it is called."""
        rewritten = self.rewritten
        bound = self._bind(trace, args, kwargs)
        namespace, watches = outside_namespace(
            self.function, self.source, rewritten.free_names, FRONTEND.builtins, FRONTEND.outside
        )
        trace.watches.extend(watches)
        namespace[HOOKS] = Hooks(trace)
        namespace["__builtins__"] = {}
        body = FunctionType(rewritten.code, namespace, self.name)
        with trace.call(rewritten.code, self.name):
            return body(*bound.args, **bound.kwargs)

    def _bind(self, trace: Trace, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            shown = f"{self.name}({', '.join(self.signature.parameters)})"
            raise BadCall(trace.location(), function=self.name, problem=str(error), signature=shown) from None
        bound.apply_defaults()
        for key, value in bound.arguments.items():
            static = constexpr_annotation(self.signature.parameters[key].annotation)
            value = semantic.unwrap(value)
            # As in Triton, a function that a kernel calls takes run-time values there too.
            bound.arguments[key] = map_leaves(known_value, value) if static else value
        return bound


def known_value(value: Any) -> Any:
    """The number that a scalar is known to be; anything else as it is."""
    return value.known if isinstance(value, tensor) and value.known is not None else value


def constexpr_annotation(annotation: Any) -> bool:
    """Whether a parameter is annotated as constexpr: the class, Triton's, or text that ends in the word."""
    if isinstance(annotation, str):
        return annotation.rsplit(".", 1)[-1].strip() == "constexpr"
    return getattr(annotation, "__name__", "") == "constexpr"


def trace_kernel(
    traceable: Traceable,
    names: Sequence[str],
    types: Sequence[TileType],
    arguments: Callable[[list[tensor]], list[Any]],
    assertions: bool = False,
) -> tuple[Function, list[Watch]]:
    """Trace a kernel: a verified function with parameters `names` of `types`, and the outside values that it read.

    `arguments` turns the run-time parameters into the arguments of the Python function, adding the static ones;
    `assertions` says whether device assertions are checked.
    """
    function = Function(traceable.name, tuple(types), tuple(names), traceable.source.definition)
    trace = Trace(function, FRONTEND)
    trace.assertions = assertions
    parameters = [tensor(value.type, value, origin=function.location) for value in function.arguments]
    with tracing(trace):
        try:
            args, kwargs = _as_call(traceable, arguments(parameters))
            result = traceable.run(trace, args, kwargs)
        except LoomError:
            raise
        except Exception as error:
            raise fault(error, _named) from error
        if result is not None:
            raise BadCall(
                function.location,
                function=traceable.name,
                problem="a kernel returns nothing",
                signature=f"{traceable.name}(...) -> None",
                hint="store the result through a pointer",
            )
        trace.builder.create(Return, location=function.location)
    verify_function(function)
    return function, trace.watches


def _as_call(traceable: Traceable, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """One value for each parameter as positional and keyword arguments."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter, value in zip(traceable.signature.parameters.values(), values, strict=True):
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = value
        else:
            args.append(value)
    return args, kwargs


def _named(name: str) -> Callable[..., Any] | None:
    """The function or method of LTL that an error message names."""
    return getattr(sys.modules["ltl"], name, None) or getattr(tensor, name, None)
