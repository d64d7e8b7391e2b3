"""Triton's own objects as kernels of LTL see them, where Triton is installed: nothing here imports it.

A kernel written for Triton (`import triton.language as tl`, `@triton.jit`) can so be given to `ltl.jit` as it is.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Final

from ltl import dtypes
from ltl.packages import STAND_INS, module

_FUNCTIONS: Final = {"cdiv": "cdiv"}
"""Functions of the package `triton` itself that are also called in kernels."""


def is_upstream(value: Any) -> bool:
    """Whether `value` is of a class of Triton's."""
    return type(value).__module__.split(".", 1)[0] == "triton"


def python_function(value: Any) -> Any:
    """The Python function inside a `@triton.jit` function, through decorators such as autotune; others as they are."""
    while is_upstream(value) and hasattr(value, "fn"):
        value = value.fn
    return value


def stand_in(value: Any) -> Any:
    """What a module, function, dtype or constexpr of Triton is in LTL; None if it is nothing of Triton's."""
    if isinstance(value, ModuleType):
        return module(value.__name__) if value.__name__ in STAND_INS else None
    if not is_upstream(value):
        return _function(value)
    kind = type(value).__name__
    if kind == "dtype":
        return dtypes.from_text(value.name)
    if kind == "pointer_type":
        element = dtypes.from_text(value.element_ty.name)
        return dtypes.pointer_type(element) if isinstance(element, dtypes.dtype) else None
    return _function(value)


def _function(value: Any) -> Any:
    """The function of LTL with the name of one of Triton's language."""
    home = getattr(value, "__module__", None) or ""
    name = getattr(value, "__name__", "")
    ltl = sys.modules["ltl"]
    if home in STAND_INS and home != "triton.language.core":
        found = getattr(module(home), name, None)
        if found is not None:
            return found
    if home.startswith("triton.language") and name in ltl.__all__:
        return getattr(ltl, name)
    if home.split(".", 1)[0] == "triton" and name in _FUNCTIONS:
        return getattr(ltl, _FUNCTIONS[name])
    return None
