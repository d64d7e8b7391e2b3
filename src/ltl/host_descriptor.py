"""Tensor descriptors that are made outside kernels and passed to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class TensorDescriptor:
    """An array, and the blocks in which a kernel moves it: the kernel gets a `tensor_descriptor`.

    shape and strides are in elements; padding is "zero" or "nan".
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"

    def __post_init__(self) -> None:
        rank = len(self.shape)
        if not rank == len(self.strides) == len(self.block_shape):
            raise ValueError("shape, strides and block_shape have one entry for each dimension")
        if self.padding not in ("zero", "nan"):
            raise ValueError(f"padding is {self.padding!r}, and must be 'zero' or 'nan'")

    @classmethod
    def from_tensor(cls, tensor: Any, block_shape: Sequence[int], padding: str = "zero") -> TensorDescriptor:
        """The descriptor of a NumPy array or torch tensor."""
        if callable(getattr(tensor, "stride", None)):
            strides = tuple(tensor.stride())
        else:
            strides = tuple(step // tensor.itemsize for step in tensor.strides)
        return cls(tensor, tuple(tensor.shape), strides, tuple(block_shape), padding)


def is_descriptor(value: Any) -> bool:
    """Whether `value` is one of these, or Triton's own."""
    kind = type(value)
    return isinstance(value, TensorDescriptor) or (
        kind.__name__ == "TensorDescriptor" and kind.__module__ == "triton.tools.tensor_descriptor"
    )
