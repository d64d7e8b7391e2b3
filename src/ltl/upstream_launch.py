"""Warm launches of Triton's functions: calls of a kind seen before go past Triton's own checks, by generated code.

Triton looks at each argument for its type, whether it is 1 and how it is aligned, and finds the compiled kernel by the
text of all that. What it is launched with here can differ in the alignment and in options of a GPU only, and these mean
nothing to Loom, so that `fastpath` may choose. All else, and every first call, goes through Triton.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from loom_core.base import dtype as core
from loom_core.launch import quiet
from loom_core.trace.names import Watch
from ltl import dtypes, launch
from ltl.fastpath import KnownCalls, launcher_factory
from ltl.imported import ImportedKernel
from ltl.signature import Parameter, ScalarSpec, StaticSpec

if TYPE_CHECKING:
    from loom_core.launch import Variant

SILENT: Final = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg"})
"""Options of a launch that change nothing here."""
_ATTRIBUTE: Final = "_loom_launches"
_ENVIRONMENT: Final[Any] = getattr(os.environ, "_data", os.environ)
_DEBUG: Final = getattr(os.environ, "encodekey", str)("TRITON_DEBUG")


def quicken(usable: Callable[[], bool]) -> None:
    """Let `kernel[grid]` of Triton's functions give launches of this module wherever `usable()` holds."""
    from triton.runtime.jit import JITFunction, KernelInterface

    plain = KernelInterface.__getitem__

    def of_grid(function: Any, grid: Any) -> Any:
        if not usable():
            return plain(function, grid)
        launches = function.__dict__.get(_ATTRIBUTE)
        if launches is None or launches.usable is not usable:
            launches = function.__dict__[_ATTRIBUTE] = Launches(function, usable)
        return launches.over(grid)

    JITFunction.__getitem__ = of_grid


class Launches:
    """The launches of one Triton function."""

    def __init__(self, function: Any, usable: Callable[[], bool]) -> None:
        self.usable = usable
        self._function = function
        self._parameters = [_parameter(param) for param in function.params]
        self._known = KnownCalls(self._parameters, self._slow)
        self._make = launcher_factory(
            function.__name__, self._parameters, self._known.matches, self._slow, _guard(function, usable), SILENT
        )
        self._variants: dict[ImportedKernel, Variant] = {}
        self._last: tuple[Any, Any] = (object(), None)

    def over(self, grid: Any) -> Callable[..., Any]:
        """The launch over a grid: a tuple of ints, or a function that gives one for a dict of the arguments."""
        last, found = self._last
        if grid is last:
            return found  # type: ignore[no-any-return]
        name = self._function.__name__
        if callable(grid):
            return self._make(grid, lambda arguments: launch.read_grid(grid, name, lambda: arguments))  # type: ignore[no-any-return]
        if not isinstance(grid, (tuple, list)):
            return partial(self._function.run, grid=grid, warmup=False)
        found = self._make(grid, launch.read_grid(grid, name, dict))
        if isinstance(grid, tuple):
            self._last = grid, found
        return found  # type: ignore[no-any-return]

    def _slow(self, grid: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """A launch by Triton; gives what Triton gives, the compiled kernel."""
        names = self._function.arg_names
        more = args[len(names) :]
        named = {name: value for name, value in zip(names, args, strict=False) if value is not launch.MISSING}
        kernel = self._function.run(*more, grid=grid, warmup=False, **named, **options)
        if options.keys() <= SILENT and isinstance(getattr(kernel, "function", None), ImportedKernel):
            self._remember(kernel, named)
        return kernel

    def _remember(self, kernel: Any, named: dict[str, Any]) -> None:
        values, arguments = [], []
        specs = iter(kernel.function.specs)
        for parameter in self._parameters:
            kind = kernel.src.signature[parameter.name]
            if not isinstance(kind, str) or kind.startswith("tensordesc"):
                return
            value = named.get(parameter.name, parameter.default)
            if kind == "constexpr":
                spec: Any = StaticSpec(value, type(value), "")
            else:
                spec = next(specs)
                if kind == "u64":
                    spec = ScalarSpec(core.u64)
                if isinstance(spec, ScalarSpec) and not _fits(value, spec.dtype):
                    return
            values.append(value)
            arguments.append(launch.Argument(spec))
        self._known.remember(values, arguments, self._variant(kernel.function), kernel)

    def _variant(self, kernel: ImportedKernel) -> Variant:
        """The kernel's variant, with what Triton watches: the text of the function and the globals that it reads."""
        found = self._variants.get(kernel)
        if found is None:
            found = self._variants[kernel] = copy.copy(kernel.variant)
            used = self._function.used_global_vals
            found.watches = [Watch(namespace, name, namespace.get(name)) for (name, _), (_, namespace) in used.items()]
            found.watches.append(Watch(self._function.__dict__, "hash", self._function.hash))
        return found


def _fits(value: Any, dtype: core.DType) -> bool:
    return dtype.is_float or dtype.min_value <= value <= dtype.max_value


def _parameter(param: Any) -> Parameter:
    forced = dtypes.from_text(param.annotation_type) if param.annotation_type else None
    return Parameter(
        param.name,
        param.is_constexpr,
        param.default,
        forced if isinstance(forced, dtypes.dtype) else None,
        not param.do_not_specialize,
    )


def _guard(function: Any, usable: Callable[[], bool]) -> Callable[[], bool]:
    """Whether nothing is set that asks for more than a launch."""
    from triton import knobs

    runtime, hooks = knobs.runtime, function.pre_run_hooks
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    settings = runtime.__dict__

    def plain() -> bool:
        return (
            usable()
            and quiet()
            and not (hooks or enter.calls or leave.calls or _DEBUG in _ENVIRONMENT or "debug" in settings)
            and runtime.launch_enter_hook is enter
            and runtime.launch_exit_hook is leave
        )

    return plain


__all__ = ["quicken"]
