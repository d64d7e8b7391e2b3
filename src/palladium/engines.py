"""Engines by hand: windows of SRAM where a program wants them, and accumulators of the matrix unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loom_core.ops.matmul import Dot
from palladium import refs
from palladium.errors import ShapesDiffer, WrongDtype, WrongShape, fail
from palladium.products import accumulator_dtype, dot_operands
from palladium.promotion import as_dtype
from palladium.trace import kernel_trace
from palladium.values import array, as_shape, convert, emit, full
from palladium.views import Ref, whole_ref


def window(shape: Any, dtype: Any, name: str = "window") -> Ref:
    """A region of SRAM that lives while the branch or loop around it runs; it begins as poison.

    `loomc manifest` shows it by its name. Windows that are only read and written whole become values.
    """
    kernel_trace("window")
    return whole_ref(refs.window(name, as_shape(shape, "window") if shape != () else (), as_dtype(dtype)))


class Accumulator:
    """A sum of products in the matrix unit's own layout: products are added to it, and it is drained into a tile.

    Nothing else reads or writes it, so that it stays there until it is drained.
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, name: str) -> None:
        self.shape = shape
        self._ref = window(shape, dtype, name)
        self.clear()

    @property
    def dtype(self) -> Any:
        """float32 or int32 (float64 and 64-bit integers are sums of the stream engine)."""
        return self._ref.dtype

    def clear(self) -> None:
        """Begin at 0."""
        refs.store(self._ref, ..., full(self.shape, 0, self._ref.core))

    def add(self, a: Any, b: Any) -> None:
        """Add a[M, K] times b[K, N], rounded nowhere but in the accumulator (docs/numerics.md)."""
        left, right = dot_operands(a, b, "Accumulator.add")
        if (left.ndim, right.ndim) != (2, 2) or left.shape[1] != right.shape[0]:
            fail(ShapesDiffer, function="Accumulator.add", first=left.shape, second=right.shape)
        if (left.shape[0], right.shape[1]) != self.shape:
            problem = f"a product of {(left.shape[0], right.shape[1])} for an accumulator of {self.shape}"
            fail(WrongShape, function="Accumulator.add", problem=problem)
        if accumulator_dtype(left.core) is not self._ref.core:
            takes = f"this accumulator is {self._ref.core.name}"
            fail(WrongDtype, function="Accumulator.add", given=f"products of {left.core.name}", takes=takes)
        total = refs.load(self._ref, ...)
        refs.store(self._ref, ..., emit(Dot, left, right, total, dtype=self._ref.core))

    def drain(self, epilogue: Callable[[array], Any] | None = None, dtype: Any = None) -> array:
        """The sum as a tile: what `epilogue` makes of it, rounded once to `dtype` (by default the accumulator's)."""
        found: Any = refs.load(self._ref, ...)
        found = found if epilogue is None else epilogue(found)
        return found if dtype is None else convert(found, as_dtype(dtype))


def accumulator(shape: tuple[int, int], dtype: Any = "float32", name: str = "accumulator") -> Accumulator:
    """An accumulator of `shape` that lives while the branch or loop around it runs, and begins at 0."""
    kernel_trace("accumulator")
    sizes = as_shape(shape, "accumulator")
    if len(sizes) != 2:
        fail(WrongShape, function="accumulator", problem=f"{sizes} has not two dimensions")
    return Accumulator((sizes[0], sizes[1]), dtype, name)
