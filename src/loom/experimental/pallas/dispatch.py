"""Functions that mean Palladium's inside a kernel, and NumPy's outside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from loom_core.trace.context import active
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
            return ours(*args, **kwargs)
        return outside(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    return function
