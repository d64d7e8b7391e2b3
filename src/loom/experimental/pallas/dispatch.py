"""Functions that mean Palladium's inside a kernel; outside NumPy's, or Palladium's in a kernel around the call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from loom_core.base.knobs import knobs
from loom_core.trace.context import active
from palladium import kernel
from palladium.errors import WrongParameters, fail
from palladium.specs import ShapeDtypeStruct, leaves, rebuild
from palladium.trace import KernelTrace
from palladium.values import to_array

Function = Callable[..., Any]


def inside() -> bool:
    """Whether a kernel is being traced in this thread."""
    return isinstance(active(), KernelTrace)


def dispatched(name: str, ours: Function, theirs: Function | None = None) -> Function:
    """`ours` in kernels; outside `theirs`, by default NumPy's function of that name, with results as JAX gives them."""
    outside = theirs if theirs is not None else _numpy(name)

    @functools.wraps(ours)
    def function(*args: Any, **kwargs: Any) -> Any:
        if inside():
            return _checked(name, ours, args, kwargs)
        return computed(ours, *args, **kwargs) if outside is None else outside(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    return function


def everywhere(name: str, ours: Function) -> Function:
    """`ours` in kernels, and outside in a kernel around the call: what NumPy's function of the name does otherwise."""
    return dispatched(name, ours, functools.partial(computed, ours))


def _checked(name: str, ours: Function, args: Any, kwargs: Any) -> Any:
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


# ---- outside of kernels ----------------------------------------------------------------------------------------------

_NARROW: Final[dict[Any, Any]] = {
    np.dtype(np.int64): np.int32,
    np.dtype(np.uint64): np.uint32,
    np.dtype(np.float64): np.float32,
}


def _numpy(name: str) -> Function | None:
    """NumPy's function; 64-bit results that come neither of 64-bit operands nor of a dtype that was named are of 32."""
    function = getattr(np, name, None)
    if function is None:
        return None

    def narrowed(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        given = leaves([args, kwargs])
        wide = any(isinstance(one, (np.ndarray, np.generic)) and one.dtype in _NARROW for one in given)
        if wide or kwargs.get("dtype") is not None or any(isinstance(one, (type, np.dtype)) for one in given):
            return found
        if isinstance(found, (np.ndarray, np.generic)):
            return found.astype(_NARROW.get(found.dtype, found.dtype))
        return found

    return narrowed


def computed(function: Function, *args: Any, **kwargs: Any) -> Any:
    """What `function` gives for arrays: it is the body of a kernel, which runs by the meaning of its operations."""
    flat = leaves([args, kwargs])
    arrays = [np.asarray(one) for one in flat if hasattr(one, "dtype") and hasattr(one, "shape")]
    results: list[Any] = []

    def call(refs: Any) -> Any:
        values = (next(refs)[...] if hasattr(one, "dtype") and hasattr(one, "shape") else one for one in flat)
        mine, named = rebuild([args, kwargs], values)
        return function(*mine, **named)

    def look(*refs: Any) -> None:
        results.append(call(iter(refs[: len(arrays)])))

    kernel(look, out_shape=ShapeDtypeStruct((1,), np.int8)).lower(*arrays)
    found = [to_array(one, "a result") for one in leaves(results[0])]
    outs = [ShapeDtypeStruct(one.shape, one.dtype) for one in found]

    def run(*refs: Any) -> None:
        made = leaves(call(iter(refs[: len(arrays)])))
        for ref, value in zip(refs[len(arrays) :], made, strict=True):
            ref[...] = value

    with knobs.override(interpret=True):
        numbers = kernel(run, out_shape=outs)(*arrays)
    return rebuild(results[0], iter(numbers))
