"""The types of Tile IR values.

There is one value type, `TileType`: an element and a static shape. A scalar is a tile of shape `()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from loom_core.base.dtype import DType


@dataclass(frozen=True)
class PointerType:
    """A pointer into device memory whose pointee is `pointee`."""

    pointee: DType

    def __str__(self) -> str:
        return f"ptr<{self.pointee.name}>"


Element = DType | PointerType


@dataclass(frozen=True)
class TileType:
    """A dense tile of `element`s; `shape == ()` is a scalar."""

    element: Element
    shape: tuple[int, ...] = ()

    @cached_property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def is_scalar(self) -> bool:
        return not self.shape

    @property
    def is_pointer(self) -> bool:
        return isinstance(self.element, PointerType)

    @property
    def dtype(self) -> DType:
        """The element, which must not be a pointer."""
        if isinstance(self.element, PointerType):
            raise TypeError(f"{self} has pointer elements")
        return self.element

    @property
    def pointee(self) -> DType:
        """What the elements point to; they must be pointers."""
        if not isinstance(self.element, PointerType):
            raise TypeError(f"{self} has no pointer elements")
        return self.element.pointee

    def with_element(self, element: Element) -> TileType:
        return TileType(element, self.shape)

    def with_shape(self, shape: tuple[int, ...]) -> TileType:
        return TileType(self.element, shape)

    def __str__(self) -> str:
        element = self.element.name if isinstance(self.element, DType) else str(self.element)
        if not self.shape:
            return element
        return "tile<" + "x".join(map(str, self.shape)) + f"x{element}>"
