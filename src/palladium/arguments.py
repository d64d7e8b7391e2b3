"""Arrays of a call: seen with shape and strides, and outputs made in the kind of the inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from libloom.arrays import ArrayView, UnusableArray, torch_dtype, view_array
from loom_core.base.diagnostics import UserError
from loom_core.base.dtype import DType, from_numpy
from loom_core.trace.context import caller

Array = npt.NDArray[Any]


class UnsupportedOperand(UserError):
    code = "LOOM-R123"
    template = "operand {name} is {given}: {reason}"
    hint = "operands are NumPy arrays, torch CPU tensors, jax arrays and numbers"


@dataclass(frozen=True, slots=True)
class Given:
    """One operand of a call: its memory, and shape, dtype and strides in elements."""

    view: ArrayView
    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...]
    original: Any

    @property
    def kind(self) -> tuple[DType, tuple[int, ...], tuple[int, ...]]:
        """What a compiled kernel depends on."""
        return self.dtype, self.shape, self.strides

    def as_numpy(self) -> Array:
        """The same memory as a NumPy array."""
        return numpy_of(self.original)


def given_operand(name: str, value: Any) -> Given:
    """An operand; numbers become arrays without dimensions, in 32 bits. UnsupportedOperand for what is none."""
    if isinstance(value, (bool, int, float)):
        value = np.asarray(value, {bool: np.bool_, int: np.int32, float: np.float32}[type(value)])
    elif isinstance(value, np.generic):
        value = np.asarray(value)
    try:
        view = view_array(value)
    except UnusableArray as problem:
        given = f"of type {type(value).__name__}"
        raise UnsupportedOperand(caller(), name=name, given=given, reason=str(problem)) from None
    if view is None:
        given = f"of type {type(value).__name__}"
        raise UnsupportedOperand(caller(), name=name, given=given, reason="it is no array")
    strides = _strides(view.owner)
    if any(stride % view.dtype.itemsize for stride in strides):
        reason = f"its strides {strides} are no multiples of {view.dtype.itemsize} bytes; copy it first"
        raise UnsupportedOperand(caller(), name=name, given="a view", reason=reason)
    steps = tuple(stride // view.dtype.itemsize for stride in strides)
    return Given(view, tuple(view.owner.shape), view.dtype, steps, value)


def _strides(owner: Any) -> tuple[int, ...]:
    """Strides in bytes."""
    if isinstance(owner, np.ndarray):
        return owner.strides
    return tuple(step * owner.element_size() for step in owner.stride())


def numpy_of(value: Any) -> Array:
    """An array of a known library as a NumPy array of the same memory."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        view = view_array(value)
        assert view is not None
        plain = value.detach()
        return np.asarray(plain.view(_torch_integer(torch, plain)).numpy()).view(view.dtype.numpy)
    return np.asarray(value)


def _torch_integer(torch: Any, tensor: Any) -> Any:
    if tensor.dtype is torch.bool:
        return torch.uint8
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]


def maker_of(values: list[Any]) -> Callable[[Array], Any]:
    """What makes outputs of NumPy arrays: the kind of the first operand that is no NumPy array."""
    for value in values:
        module = type(value).__module__.split(".", 1)[0]
        if module == "torch":
            return _to_torch
        if module in ("jax", "jaxlib"):
            return _to_jax
    return lambda result: result


def _to_torch(result: Array) -> Any:
    torch = sys.modules["torch"]
    if result.dtype.kind in "fiub" and result.dtype.isbuiltin:
        return torch.from_numpy(result)
    return torch.from_numpy(result.view(f"i{result.dtype.itemsize}")).view(torch_dtype(from_numpy(result.dtype)))


def _to_jax(result: Array) -> Any:
    return sys.modules["jax"].numpy.asarray(result)
