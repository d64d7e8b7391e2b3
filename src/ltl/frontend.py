"""What LTL adds to the tracer: the meaning of conditions, loops and of values from outside a kernel."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from loom_core.ir.value import Value
from loom_core.trace.context import NOT_STATIC
from loom_core.trace.errors import AmbiguousTruth, NotCallable
from loom_core.trace.values import Traced, has_traced
from ltl import control, dtypes, functions, operators, semantic
from ltl.constant import constexpr
from ltl.errors import WrongDtype, fail, here
from ltl.tensor import tensor
from ltl.upstream import is_upstream, python_function, stand_in

_PACKAGES: Final = ("ltl", "loom", "loom_core")
_PLAIN: Final = (bool, int, float, str, bytes, type(None), enum.Enum, range, slice, type(Ellipsis))


class LtlFrontend:
    """The `Frontend` of LTL."""

    builtins: Final[dict[str, Any]] = {
        "range": control.range,
        "min": functions.builtin_min,
        "max": functions.builtin_max,
        "abs": functions.builtin_abs,
        "print": control.builtin_print,
        **{
            name: function
            for name, function in vars(__import__("builtins")).items()
            if name in ("len", "float", "int", "bool", "str", "tuple", "list", "dict", "isinstance", "getattr",
                        "hasattr", "zip", "enumerate", "reversed", "sorted", "all", "any", "type", "slice", "repr",
                        "True", "False", "None", "Ellipsis", "NotImplemented", "__debug__")
        },
    }  # fmt: skip

    def outside(self, value: Any) -> Any:
        """What a value from outside the kernel is inside. TypeError with its kind where it may not be used."""
        if isinstance(value, constexpr) or (is_upstream(value) and type(value).__name__ == "constexpr"):
            value = value.value
        found = stand_in(value)
        if found is not None:
            return found
        inner = python_function(value)
        if inner is not value:
            return upstream_kernel(value, inner)
        if isinstance(
            value, (*_PLAIN, dtypes.dtype, dtypes.pointer_type, dtypes.block_type, dtypes.RefusedType, ModuleType)
        ):
            return value
        if isinstance(value, tuple):
            items = [self.outside(item) for item in value]
            make = getattr(type(value), "_make", tuple)
            return make(items)
        if isinstance(value, np.generic):
            return value.item()
        if getattr(value, "traceable", False) or isinstance(value, type):
            return value
        if callable(value):
            own = (getattr(value, "__module__", None) or "").split(".", 1)[0] in _PACKAGES
            return value if own else StaticFunction(value)
        if isinstance(value, np.dtype):
            return value
        raise TypeError(_kind(value))

    def lift(self, value: Any) -> tensor:
        return semantic.lift(value)

    def static_value(self, value: Any) -> Any:
        if isinstance(value, tensor):
            return NOT_STATIC if value.known is None else value.known
        if isinstance(value, Traced):
            return NOT_STATIC
        return value.value if isinstance(value, constexpr) else value

    def condition(self, value: Any) -> Value:
        if isinstance(value, tensor) and value.ir_type.is_pointer:
            fail(WrongDtype, function="if", given="a pointer", takes="compare it with None, or load from it")
        if not isinstance(value, tensor) or value.numel != 1:
            raise AmbiguousTruth(here(), shape=getattr(value, "shape", "?"))
        if value.shape:
            from ltl.shaping import reshape

            raise_shape = reshape(value, ())
            return semantic.truth(raise_shape).value
        return semantic.truth(value).value

    def logical(self, operator: str, operands: tuple[Any, ...]) -> Any:
        return operators.logical(operator, operands)

    def loop_bounds(self, iterable: Any) -> tuple[tensor, tensor, tensor] | None:
        return iterable.bounds() if isinstance(iterable, control.range) else None

    def induction(self, iterable: control.range, value: Value) -> tensor:
        return iterable.variable(value)

    def runtime_assert(self, condition: Any, message: str) -> None:
        control.device_assert(condition, message)


def upstream_kernel(wrapper: Any, function: Callable[..., Any]) -> Any:
    """The kernel function for a function decorated by Triton: one for each, so that watches find it unchanged."""
    from ltl.jit import JitFunction

    made = _UPSTREAM.get(wrapper)
    if made is None:
        made = _UPSTREAM[wrapper] = JitFunction(function)
    return made


_UPSTREAM: Final[WeakKeyDictionary[Any, Any]] = WeakKeyDictionary()


class StaticFunction:
    """A plain Python function as a kernel sees it: it may be called with static values, while compiling."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        plain = [_plain(value) for value in args]
        named = {key: _plain(value) for key, value in kwargs.items()}
        if has_traced(plain) or has_traced(named):
            raise NotCallable(here(), function=_function_name(self.function))
        return FRONTEND.outside(self.function(*plain, **named))


def _plain(value: Any) -> Any:
    """A static value as plain Python; run-time values as they are."""
    if isinstance(value, tensor) and value.known is not None:
        return value.known
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value


def _function_name(function: Any) -> str:
    name = getattr(function, "__name__", None) or type(function).__name__
    module = getattr(function, "__module__", None)
    known = isinstance(function, (FunctionType, BuiltinFunctionType, MethodType)) or module is not None
    return f"{module}.{name}" if known and module not in (None, "__main__", "builtins") else name


def _kind(value: Any) -> str:
    """How a diagnostic calls a value that a kernel may not use."""
    name = type(value).__name__
    module = type(value).__module__.split(".", 1)[0]
    return name if module in ("builtins", "__main__") else f"{module} {name}"


FRONTEND: Final = LtlFrontend()
