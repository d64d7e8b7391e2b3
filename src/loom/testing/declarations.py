"""What the arguments of a checked kernel may be: arrays of shapes that sizes name, numbers, and what follows from them.

    arguments = {
        "x": array("f32", "m", "n"), "out": output(like("x"), "m", "n"),
        "m": size("m"), "stride": stride("x", 0), "BLOCK": choice(16, 32),
    }  # fmt: skip

Anything else stands for itself; a function is called with the sizes and the arguments before it, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from loom_core.base.dtype import DType, by_name, from_numpy

Namespace = Mapping[str, Any]
Bound = float | int | Callable[[Namespace], float | int] | None
Use = Literal["read", "write", "update"]


@dataclass(frozen=True)
class Like:
    """The element type of another argument."""

    name: str


@dataclass(frozen=True)
class Array:
    """An array argument. `dtypes` are those it may have; `shape` has ints and names of sizes.

    `low` and `high` bound the values, both included; numbers, or functions of the sizes and the arguments before it.
    `special`: whether NaN, infinities, subnormal numbers, both zeros and the largest numbers may be among them.
    """

    dtypes: tuple[DType, ...] | Like
    shape: tuple[int | str, ...]
    use: Use = "read"
    low: Bound = None
    high: Bound = None
    special: bool = True

    @property
    def written(self) -> bool:
        return self.use != "read"


@dataclass(frozen=True)
class Size:
    """The value of a size."""

    name: str


@dataclass(frozen=True)
class Stride:
    """The step of an array's axis, in elements. An axis whose stride nobody is given is dense."""

    array: str
    axis: int


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Number:
    """A number of an element type between bounds, both included."""

    dtype: DType
    low: Bound
    high: Bound


Declared = Array | Size | Stride | Choice | Number


def array(dtype: Any, *shape: int | str, low: Bound = None, high: Bound = None, special: bool = True) -> Array:
    """An array that the kernel reads.

    dtype: the name of an element type ("f32", "bf16", "i8", ...), a NumPy type, a tuple of such, or `like("x")`.
    shape: ints, and names of sizes that are chosen for each launch.
    low, high: bounds of the values, both included; numbers, or functions of the sizes and arguments so far by name.
    special: whether floats may be NaN, infinite, subnormal, -0 or the largest number.
    """
    return Array(_dtypes(dtype), shape, "read", low, high, special)


def output(dtype: Any, *shape: int | str) -> Array:
    """An array that the kernel writes, and reads nowhere before."""
    return Array(_dtypes(dtype), shape, "write")


def updated(dtype: Any, *shape: int | str, low: Bound = None, high: Bound = None, special: bool = True) -> Array:
    """An array that the kernel reads and writes."""
    return Array(_dtypes(dtype), shape, "update", low, high, special)


def like(name: str) -> Like:
    """The element type that the array `name` has in the same launch."""
    return Like(name)


def size(name: str) -> Size:
    """The value of the size `name`."""
    return Size(name)


def stride(array: str, axis: int) -> Stride:
    """The stride of an axis, in elements. Axes whose strides the kernel is not given are dense."""
    return Stride(array, axis)


def choice(*values: Any) -> Choice:
    """One of the values, the first where all fail alike."""
    return Choice(values)


def number(dtype: Any, low: Bound = None, high: Bound = None) -> Number:
    """A number of an element type: an integer from its whole range, a float with its special values, or bounded."""
    return Number(_dtype(dtype), low, high)


def _dtypes(given: Any) -> tuple[DType, ...] | Like:
    if isinstance(given, Like):
        return given
    return tuple(map(_dtype, given)) if isinstance(given, tuple) else (_dtype(given),)


def _dtype(given: Any) -> DType:
    if isinstance(given, DType):
        return given
    try:
        return by_name(given) if isinstance(given, str) else from_numpy(given)
    except KeyError:
        return from_numpy(given)
