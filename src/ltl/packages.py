"""Triton's packages as source text written for them sees them: stand-ins made of LTL, with or without Triton.

`import_name` takes the place of Python's `__import__` in such text, so that `import triton.language as tl` gives LTL.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Final

# Module name as the text imports it -> module of LTL that stands for it.
_LANGUAGE: Final = {
    "triton.language": "ltl",
    "triton.language.core": "ltl.core",
    "triton.language.standard": "ltl.core",
    "triton.language.random": "ltl.core",
    "triton.language.math": "ltl.math",
    "triton.language.extra": "ltl.extra",
    "triton.language.extra.libdevice": "ltl.libdevice",
    "triton.language.extra.cuda": "ltl.extra.cuda",
    "triton.language.extra.cuda.libdevice": "ltl.libdevice",
    "triton.language.target_info": "ltl.target_info",
    "triton.testing": "ltl.testing",
    "torch._inductor.runtime.triton_helpers": "ltl.inductor",
}
STAND_INS: Final = _LANGUAGE
"""The modules whose contents LTL has under the same names."""


def module(name: str) -> ModuleType:
    """The stand-in for a module. ModuleNotFoundError for one that has none."""
    found = _LANGUAGE.get(name)
    if found is not None:
        return importlib.import_module(found)
    make = _MADE.get(name)
    if make is None:
        raise ModuleNotFoundError(f"LTL has no stand-in for the module {name}", name=name)
    return make()


def _module(name: str, **contents: Any) -> ModuleType:
    made = ModuleType(name, f"Stands for {name}.")
    made.__dict__.update(contents)
    return made


@functools.cache
def _triton() -> ModuleType:
    import ltl
    from ltl import testing, tuning

    return _module(
        "triton",
        jit=ltl.jit,
        autotune=tuning.autotune,
        heuristics=tuning.heuristics,
        Config=tuning.Config,
        constexpr_function=constexpr_function,
        aggregate=ltl.aggregate,
        cdiv=ltl.cdiv,
        next_power_of_2=next_power_of_2,
        language=ltl,
        testing=testing,
        runtime=_runtime(),
        tools=_module("triton.tools", tensor_descriptor=_tensor_descriptor()),
        set_allocator=set_allocator,
        __version__="3.9.0",
    )


@functools.cache
def _runtime() -> ModuleType:
    import ltl
    from ltl import tuning

    return _module("triton.runtime", JITFunction=ltl.JitFunction, Autotuner=tuning.Tuned, Config=tuning.Config)


@functools.cache
def _tensor_descriptor() -> ModuleType:
    from ltl.host_descriptor import TensorDescriptor

    return _module("triton.tools.tensor_descriptor", TensorDescriptor=TensorDescriptor)


def _passes_through(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator of Inductor's that chooses launch options for a GPU."""
    return lambda function: function


@functools.cache
def _inductor_runtime() -> ModuleType:
    names = ("cooperative_reduction", "foreach", "fixed_config", "persistent_reduction", "pointwise", "reduction",
             "split_scan", "template", "user_autotune")  # fmt: skip
    heuristics = _module("torch._inductor.runtime.triton_heuristics", **dict.fromkeys(names, _passes_through))
    return _module(
        "torch._inductor.runtime",
        triton_helpers=module("torch._inductor.runtime.triton_helpers"),
        triton_heuristics=heuristics,
    )


_MADE: Final[dict[str, Callable[[], ModuleType]]] = {
    "triton": _triton,
    "triton.runtime": _runtime,
    "triton.runtime.autotuner": _runtime,
    "triton.runtime.jit": _runtime,
    "triton.tools": lambda: _triton().tools,
    "triton.tools.tensor_descriptor": _tensor_descriptor,
    "torch._inductor.runtime": _inductor_runtime,
    "torch._inductor.runtime.triton_heuristics": lambda: _inductor_runtime().triton_heuristics,
}


def stand_in_for_triton() -> None:
    """Let `import triton` and its modules give stand-ins in this process, where Triton is not installed."""
    for name in (*_LANGUAGE, *_MADE):
        if name.split(".", 1)[0] == "triton":
            sys.modules[name] = module(name)


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


def set_allocator(allocator: Any) -> None:
    """Accepted: kernels need no memory of the host for their descriptors."""


def constexpr_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of static values, called in kernels while they compile: any Python function is one."""
    return function


def is_stand_in(name: str) -> bool:
    """Whether a module of this name is of Triton's or Inductor's, and stood in for."""
    return name in _LANGUAGE or name in _MADE or name.split(".", 1)[0] == "triton"


def import_name(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """`__import__` of source text: Triton's and Inductor's modules are stand-ins, all others what they are."""
    if level or not is_stand_in(name):
        return builtins.__import__(name, globals, locals, fromlist or (), level)
    if fromlist:
        return module(name)
    top, *inner = name.split(".")
    if top == "triton":
        module(name)
        return module(top)
    return _Path(top, inner, name)


class _Path(ModuleType):
    """What `import torch._inductor.runtime.triton_helpers` binds: torch, along whose path stands the stand-in."""

    def __init__(self, name: str, inner: Sequence[str], target: str) -> None:
        super().__init__(name)
        self._inner = tuple(inner)
        self._target = target

    def __getattr__(self, name: str) -> Any:
        if name == self._inner[0]:
            rest = self._inner[1:]
            return _Path(f"{self.__name__}.{name}", rest, self._target) if rest else module(self._target)
        return getattr(importlib.import_module(self.__name__), name)


def names_for_kernels() -> dict[str, Any]:
    """The names that text of kernels alone relies on: triton, tl, and Inductor's triton_helpers, libdevice, tl_math."""
    import ltl

    return {
        "triton": module("triton"),
        "tl": ltl,
        "triton_helpers": module("torch._inductor.runtime.triton_helpers"),
        "libdevice": module("triton.language.extra.libdevice"),
        "tl_math": ltl.math,
    }
