"""`autotune` and `heuristics`: which constants a kernel is launched with.

Configurations are compared by the cycle model of the machine, so the choice is the same on every host and every run.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from libloom.arrays import ArrayView
from loom_core.base.diagnostics import UserError
from loom_core.base.knobs import knobs
from loom_core.trace.context import active, caller
from ltl.jit import JitFunction
from ltl.jit_errors import NoConfiguration, UnknownTuningName

_OPTIONS: Final = ("num_warps", "num_stages", "num_ctas", "maxnreg")


class Config:
    """One choice of constants (`kwargs`) and launch options for `autotune`. The options mean nothing here."""

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[..., Any] | None = None,
        ir_override: str | None = None,
        **options: Any,
    ) -> None:
        self.kwargs = dict(kwargs)
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook

    def all_kwargs(self) -> dict[str, Any]:
        """Constants and launch options."""
        options = {name: getattr(self, name) for name in _OPTIONS if getattr(self, name) is not None}
        return {**self.kwargs, **options}

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())

    def __repr__(self) -> str:
        return f"Config({self})"


class Tuned:
    """A kernel whose launches get some of their arguments from `choose`: from configurations or heuristics."""

    traceable: Final = True

    def __init__(self, kernel: JitFunction | Tuned) -> None:
        functools.update_wrapper(self, kernel, updated=())
        self.kernel = kernel

    @property
    def fn(self) -> JitFunction | Tuned:
        """The kernel inside."""
        return self.kernel

    @property
    def jit_function(self) -> JitFunction:
        """The innermost kernel."""
        return self.kernel if isinstance(self.kernel, JitFunction) else self.kernel.jit_function

    @property
    def arg_names(self) -> list[str]:
        """The parameters' names, in order."""
        return self.jit_function.arg_names

    def choose(self, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments to add to a launch."""
        raise NotImplementedError

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(*args: Any, **kwargs: Any) -> None:
            chosen = self.choose(grid, args, kwargs)
            self.kernel[grid](*args, **{**kwargs, **chosen})

        return launch

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """In a kernel: the plain function."""
        if active() is None:
            return self.jit_function(*args, **kwargs)
        return self.kernel(*args, **kwargs)

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a launch by name, defaults included."""
        parameters = self.jit_function.parameters
        values = {p.name: p.default for p in parameters if not p.required}
        values |= {p.name: value for p, value in zip(parameters, args, strict=False)}
        return {**values, **kwargs}

    def __repr__(self) -> str:
        return f"<tuned {self.kernel!r}>"

    def _repr_html_(self) -> str:
        return self.jit_function._repr_html_()


class Heuristics(Tuned):
    """Arguments computed from the others."""

    def __init__(self, kernel: JitFunction | Tuned, values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> None:
        super().__init__(kernel)
        self.values = dict(values)

    def choose(self, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        chosen: dict[str, Any] = {}
        for name, function in self.values.items():
            chosen[name] = function({**self.named(args, kwargs), **chosen})
        return chosen


Hook = Callable[..., Any]


class Autotuned(Tuned):
    """Constants of the configuration that the cycle model finds quickest, for each value of the key."""

    def __init__(
        self,
        kernel: JitFunction | Tuned,
        configs: Sequence[Any],
        key: Sequence[str],
        reset_to_zero: Sequence[str] = (),
        restore_value: Sequence[str] = (),
        prune: Mapping[str, Any] | None = None,
        pre_hook: Hook | None = None,
        post_hook: Hook | None = None,
    ) -> None:
        super().__init__(kernel)
        self.configs = [_own_config(config) for config in configs] or [Config({})]
        self.keys = list(key)
        self.reset_to_zero = list(reset_to_zero)
        self.restore_value = list(restore_value)
        for parameter in ("keys", "reset_to_zero", "restore_value"):
            unknown = [name for name in getattr(self, parameter) if name not in self.arg_names]
            if unknown:
                shown = ", ".join(self.arg_names)
                raise UnknownTuningName(caller(), parameter=parameter, names=", ".join(unknown), parameters=shown)
        self.prune = dict(prune or {})
        self.pre_hook = pre_hook or self._reset
        self.post_hook = post_hook
        self.cache: dict[tuple[Any, ...], Config] = {}
        self.cycles: dict[tuple[Any, ...], list[tuple[Config, int]]] = {}
        self.best_config: Config | None = None

    def choose(self, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        values = self.named(args, kwargs)
        if len(self.configs) == 1:
            found = self.configs[0]
        else:
            found = self._of_key(grid, args, kwargs, values)
        self.best_config = found
        if found.pre_hook is not None:
            found.pre_hook({**values, **found.all_kwargs()})
        return found.kwargs

    def _of_key(self, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any], values: Mapping[str, Any]) -> Config:
        key = tuple(values.get(name) for name in self.keys)
        key += tuple(str(value.dtype) for value in values.values() if hasattr(value, "dtype"))
        found = self.cache.get(key)
        if found is None:
            candidates = self._candidates(args, kwargs)
            if len(candidates) == 1 or knobs.interpret:
                found = candidates[0]
            else:
                found = self._quickest(candidates, grid, args, kwargs, key)
                self.pre_hook({**values, **found.all_kwargs()}, reset_only=True)
            self.cache[key] = found
        return found

    def _candidates(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Config]:
        """The configurations that the user's functions leave."""
        candidates, given = self.configs, dict(zip(self.arg_names, args, strict=False))
        early, model = self.prune.get("early_config_prune"), self.prune.get("perf_model")
        if early is not None:
            candidates = [_own_config(config) for config in early(candidates, given, **kwargs)]
            if not candidates:
                raise NoConfiguration(caller(), function=self.jit_function.traced.name, reason="were left by pruning")
        if model is None:
            return candidates
        most = self.prune.get("top_k", 1.0)
        if isinstance(most, float) and most <= 1.0:
            most = max(1, int(len(candidates) * most))
        times = {config: model(**given, **kwargs, **config.all_kwargs()) for config in candidates}
        return sorted(candidates, key=lambda config: times[config])[:most]

    def _quickest(
        self,
        candidates: Sequence[Config],
        grid: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        key: tuple[Any, ...],
    ) -> Config:
        found: dict[Any, int] = {}
        measured: list[tuple[Config, int]] = []
        problems: list[str] = []
        for config in candidates:
            # Configurations that differ in options of a GPU, or in what a hook does, are one kernel here.
            same = repr(sorted(config.kwargs.items())), config.pre_hook
            try:
                if same not in found:
                    found[same] = self._cycles(config, grid, args, kwargs)
                measured.append((config, found[same]))
            except UserError as error:
                problems.append(f"{config}: {error.diagnostics[0].code} {error.diagnostics[0].message}")
        if not measured:
            name = self.jit_function.traced.name
            raise NoConfiguration(caller(), function=name, reason="can be launched", notes=problems)
        self.cycles[key] = measured
        return min(measured, key=lambda item: item[1])[0]

    def _cycles(self, config: Config, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
        """Cycles of a launch with a configuration, after which arrays are as before."""
        with memory_kept([*args, *kwargs.values()]):
            values = {**self.named(args, kwargs), **config.all_kwargs()}
            if config.pre_hook is not None:
                config.pre_hook(values)
            self.pre_hook(values)
            problem: Exception | None = None
            try:
                given = {**kwargs, **config.kwargs}
                inner = self.kernel
                while not isinstance(inner, JitFunction):
                    given |= inner.choose(grid, args, given)
                    inner = inner.kernel
                return int(inner.trace(*args, grid=grid, **given).cycles)
            except Exception as error:
                problem = error
                raise
            finally:
                if self.post_hook is not None:
                    self.post_hook(values, exception=problem)

    def _reset(self, values: Mapping[str, Any], reset_only: bool = False) -> None:
        for name in self.reset_to_zero:
            if values[name] is not None:
                values[name][...] = 0


def _own_config(config: Any) -> Config:
    if isinstance(config, Config):
        return config
    return Config(config.kwargs, config.num_warps, config.num_stages, pre_hook=config.pre_hook)


@contextmanager
def memory_kept(values: Sequence[Any]) -> Iterator[None]:
    """Put the contents of arrays back as they were, at the end."""
    from ltl.launch import view_array_or_none

    views = [view for view in map(view_array_or_none, values) if view is not None]
    saved = [(view, _bytes(view)[:]) for view in views if view.writable]
    try:
        yield
    finally:
        for view, data in saved:
            _bytes(view)[:] = data


def _bytes(view: ArrayView) -> Any:
    return (ctypes.c_uint8 * (view.high - view.low)).from_address(view.address + view.low)


def autotune(
    configs: Sequence[Any],
    key: Sequence[str] = (),
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    **options: Any,
) -> Callable[[Any], Autotuned]:
    """Launch the decorated kernel with the constants of the quickest of `configs`, by modelled cycles.

    One choice for each value of the arguments in `key` and dtypes of the arrays; ties go to the earlier, and
    configurations with the same constants are one kernel. Arrays keep their contents while configurations are compared,
    so `restore_value` asks for what happens anyway; those of `reset_to_zero` are 0 before each of these launches, and
    before the one that follows.

    prune_configs_by: "early_config_prune", a function of (configs, the positional arguments by name, **keywords) that
    gives those to compare; "perf_model", a function of all arguments and constants that estimates the time of one, of
    which the best "top_k" (a number, or a part as a float) are compared.
    pre_hook(values, reset_only=False), post_hook(values, exception=...): called around each launch that is compared, in
    place of what `reset_to_zero` does. Hooks of a `Config` are called before each launch with it.
    """

    def make(kernel: Any) -> Autotuned:
        return Autotuned(
            kernel, configs, key, reset_to_zero or (), restore_value or (), prune_configs_by, pre_hook, post_hook
        )

    return make


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Any], Heuristics]:
    """Compute constants of the decorated kernel from a launch's arguments, which each function gets as a dict."""
    return lambda kernel: Heuristics(kernel, values)


def from_upstream(value: Any, make: Callable[[Any], JitFunction]) -> JitFunction | Tuned | None:
    """The same for what Triton's decorators made: None if `value` is no autotuner or heuristics of Triton's."""
    kind = type(value)
    if kind.__module__.split(".", 1)[0] != "triton" or not hasattr(value, "fn"):
        return None
    if kind.__name__ == "Autotuner":
        inner = from_upstream(value.fn, make) or make(value.fn)
        return _autotuned(inner, value)
    if kind.__name__ == "Heuristics":
        return Heuristics(from_upstream(value.fn, make) or make(value.fn), value.values)
    return None


def _autotuned(kernel: JitFunction | Tuned, value: Any) -> Autotuned:
    """The counterpart of an autotuner of Triton's; what its hooks do by default, these do."""
    prune = {"early_config_prune": value.early_config_prune, "perf_model": value.perf_model}
    return Autotuned(
        kernel,
        value.configs,
        value.keys,
        value.reset_to_zero or (),
        value.restore_value or (),
        {**prune, "top_k": value.configs_top_k},
        value.pre_hook if value.user_defined_pre_hook else None,
        value.post_hook if value.user_defined_post_hook else None,
    )


__all__ = ["Autotuned", "Config", "Heuristics", "Tuned", "autotune", "from_upstream", "heuristics"]
