"""Functions that mean Palladium's inside a kernel, and NumPy's outside."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from loom_core.trace.context import active
from palladium.errors import WrongParameters, fail
from palladium.trace import KernelTrace


def inside() -> bool:
    """Whether a kernel is being traced in this thread."""
    return isinstance(active(), KernelTrace)


def dispatched(name: str, ours: Callable[..., Any], theirs: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """`ours` in kernels; outside `theirs`, by default NumPy's function of that name."""
    outside = theirs if theirs is not None else getattr(np, name, None)

    @functools.wraps(ours)
    def function(*args: Any, **kwargs: Any) -> Any:
        if inside() or outside is None:
            try:
                return ours(*args, **kwargs)
            except TypeError as error:
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise
                signature = inspect.signature(ours)
                plain = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
                shown, count = signature.replace(parameters=plain, return_annotation=signature.empty), len(args)
                advice = "see its signature"
                fail(
                    WrongParameters, function=name, parameters=shown, count=count + len(kwargs), what="arguments",
                    problem=error, advice=advice,
                )  # fmt: skip
        return outside(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    return function
