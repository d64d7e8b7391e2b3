"""A launch that is checked, and copies of its arrays for runs beside it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from libloom.arrays import ArrayView
from libloom.kernel import LoadedKernel
from loom_core.base.dtype import DType
from loom_core.interp import Buffer
from loom_core.ir.block import Function

Bytes: TypeAlias = npt.NDArray[np.uint8]
Numbers: TypeAlias = Sequence[tuple[DType, bool | int | float]]
Remember: TypeAlias = Callable[[Hashable, Callable[[], Any]], Any]


class Derive(Protocol):
    """See `Launch`."""

    def __call__(self, key: Hashable, build: Callable[[], Function], **options: Any) -> LoadedKernel: ...


@dataclass(frozen=True)
class Launch:
    """`function` as it was traced, `kernel` as it runs on the arrays `views`, register values of its scalars, grid.

    `numbers`: the scalars with their dtypes. `apart`: whether no array that is written overlaps another one.
    `derive(key, build, **options)` gives the compiled form of another
    function for the same arguments, `remember(key, compute)` a value that depends on the kernel alone; both keep what
    they made under the key.
    """

    function: Function
    kernel: LoadedKernel
    views: Sequence[ArrayView]
    scalars: Sequence[int]
    numbers: Numbers
    grid: tuple[int, int, int]
    apart: bool
    derive: Derive
    remember: Remember


class Copies:
    """The memory behind arrays as it is now. Arrays that overlap are copied as one."""

    def __init__(self, views: Sequence[ArrayView]) -> None:
        self._views = views
        self._group = [0] * len(views)
        self._starts: list[int] = []
        self._bytes: list[Bytes] = []
        ends: list[int] = []
        for number in sorted(range(len(views)), key=lambda i: views[i].address + views[i].low):
            start, end = views[number].address + views[number].low, views[number].address + views[number].high
            if ends and start < ends[-1]:
                ends[-1] = max(ends[-1], end)
            else:
                self._starts.append(start)
                ends.append(end)
            self._group[number] = len(ends) - 1
        self._bytes = [bytes_at(start, end - start).copy() for start, end in zip(self._starts, ends, strict=True)]

    def moved(self) -> list[ArrayView]:
        """The arrays in memory of their own, with the bytes of then."""
        memory = [copied.copy() for copied in self._bytes]
        return [
            replace(view, address=view.address - self._starts[group] + memory[group].ctypes.data, owner=memory[group])
            for view, group in zip(self._views, self._group, strict=True)
        ]


def interpreter_arguments(
    function: Function, views: Sequence[ArrayView], numbers: Numbers
) -> list[Buffer | int | float | bool]:
    """The arguments of a launch as `interp.interpret` takes them."""
    buffers, scalars = iter(views), iter(numbers)
    arguments: list[Buffer | int | float | bool] = []
    for parameter in function.arguments:
        if parameter.type.is_pointer:
            view = next(buffers)
            arguments.append(Buffer(parameter.name or "", bytes_of(view), -view.low))
        else:
            arguments.append(next(scalars)[1])
    return arguments


def bytes_at(address: int, size: int) -> Bytes:
    """Memory as an array."""
    if not size:
        return np.zeros(0, np.uint8)
    memory: Any = (ctypes.c_uint8 * size).from_address(address)
    return np.frombuffer(memory, np.uint8)


def bytes_of(view: ArrayView) -> Bytes:
    """The bytes that a kernel may touch through a view."""
    return bytes_at(view.address + view.low, view.high - view.low)


def first_difference(launch: Launch, others: Sequence[ArrayView]) -> str | None:
    """The first element of the written arrays that is other in `others`, as `name[index]`; None where none is."""
    for arg, view, other in zip(launch.kernel.object.abi.buffers, launch.views, others, strict=True):
        if not arg.written:
            continue
        mine, theirs = bytes_of(view), bytes_of(other)
        if not np.array_equal(mine, theirs):
            byte = int(np.flatnonzero(mine != theirs)[0]) + view.low
            return f"{arg.name}[{byte // view.dtype.itemsize}]"
    return None
