"""One launch in full: memories with their contents and places, views of them, and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from loom.testing.memory import placed, view
from loom_core.base.dtype import DType

Values = npt.NDArray[Any]
UNWRITTEN: Final = 0x66


@dataclass(frozen=True, eq=False)
class Memory:
    """Elements at an address that leaves the rest `at` when divided by 128."""

    values: Values
    at: int = 0


@dataclass(frozen=True)
class View:
    """Elements of memory number `memory`, from element `start` on; strides in elements."""

    memory: int
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def count(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, eq=False)
class Case:
    """One launch: arguments by name, arrays as views of the memories."""

    memories: tuple[Memory, ...]
    arguments: Mapping[str, Any]
    sizes: Mapping[str, int] = field(default_factory=dict)

    def build(self, *, torch: bool) -> Built:
        """The arrays, in memory of their own."""
        memories = [placed(memory.values, memory.at) for memory in self.memories]
        arrays = {name: value for name, value in self.arguments.items() if isinstance(value, View)}
        seen = {name: view(memories[v.memory], v.start, v.shape, v.strides) for name, v in arrays.items()}
        given = dict(self.arguments)
        for name, v in arrays.items():
            given[name] = view(memories[v.memory], v.start, v.shape, v.strides, torch=torch)
        return Built(memories, seen, given)

    def describe(self, names: Mapping[str, DType]) -> str:
        """The arguments in one line each."""
        lines = []
        owners: dict[int, str] = {}
        for name, value in self.arguments.items():
            if not isinstance(value, View):
                lines.append(f"{name} = {value!r}")
                continue
            memory = self.memories[value.memory]
            address = (memory.at + value.start * memory.values.itemsize) % 128
            text = f"{name} = {names[name]}{list(value.shape)}"
            if value.count and value.strides != dense(value.shape):
                text += f", strides {list(value.strides)}"
            if address % 16:
                text += f", at an address of rest {address} by 128"
            owner = owners.setdefault(value.memory, name)
            if owner != name:
                other = self.arguments[owner]
                text += f", the same array as {owner}" if other == value else f", in the memory of {owner}"
            lines.append(text)
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Built:
    """The arrays of a case: the memories, NumPy views of them by argument, and what the kernel is given."""

    memories: list[Values]
    views: dict[str, Values]
    given: dict[str, Any]


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous array, in elements."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def unwritten(dtype: DType, count: int) -> Values:
    """What arrays hold before a kernel writes them: NaN, or a number that is easy to recognise."""
    if dtype.is_float:
        return np.full(count, dtype.poison, dtype.numpy)
    if dtype.is_bool:
        return np.zeros(count, np.bool_)
    return np.full(count * dtype.itemsize, UNWRITTEN if dtype.bits >= 8 else 6, np.uint8).view(dtype.numpy)
