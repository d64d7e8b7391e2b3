"""Whether results depend on what nothing defines: the masked elements of loads that say no `other`.

They read as 0. A checked launch runs once more, on copies, with poison in their place (NaN, the least integer, True): a
result that differs from the first depends on them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from libloom.arrays import ArrayView
from libloom.kernel import LoadedKernel, overlaps
from loom_core.base.diagnostics import Diagnostic, LoomError, UserError
from loom_core.ir.block import Function
from loom_core.ir.builder import Builder
from loom_core.ir.rewriter import clone_function
from loom_core.objfile import AbiArg
from loom_core.ops import memory, shape

COMMAND_LIMIT: Final = 1 << 30
"""Commands of a run with poison, which may be a loop's bound."""
Bytes = npt.NDArray[np.uint8]


class MaskedElementsUsed(UserError):
    code = "LOOM-R213"
    template = "{place} depends on masked elements of this load, which says no `other`"
    hint = "give other=, the value that elements outside the mask shall have"


def undefined_loads(function: Function) -> list[memory.Load]:
    """Loads with a mask and without a value for the rest."""
    return [op for op in function.walk() if isinstance(op, memory.Load) and op.mask is not None and op.other is None]


def poisoned(function: Function, numbers: Sequence[int]) -> Function:
    """A copy of the function in which the undefined loads of these numbers give poison where they are masked."""
    copy = clone_function(function)
    loads = undefined_loads(copy)
    for op in (loads[number] for number in numbers):
        assert op.parent is not None
        dtype, builder = op.result.type.dtype, Builder(op.parent)
        builder.anchor, builder.location = op, op.location
        other = builder.create(shape.Constant, value=True if dtype.is_bool else dtype.poison, type=op.result.type)
        new = builder.create(memory.Load, op.pointer, op.mask, other)
        new.name = op.result.name
        op.result.replace_all_uses(new)
        op.erase()
    return copy


class Comparison:
    """The arrays of a launch before it ran, for a run with poison after it. `load` compiles and loads a function."""

    def __init__(
        self, function: Function, args: Sequence[AbiArg], views: Sequence[ArrayView],
        load: Callable[[Function], LoadedKernel],
    ) -> None:  # fmt: skip
        self._function = function
        self._args = args
        self._views = views
        self._load = load
        self._loads = undefined_loads(function)
        shared = any(overlaps(a, b) for i, a in enumerate(views) for b in views[i + 1 :])
        self._before: list[Bytes] = []
        if self._loads and not shared:
            self._before = [bytes_of(view).copy() for view in views]

    def diagnostics(self, scalars: Sequence[int], grid: tuple[int, int, int]) -> Iterator[Diagnostic]:
        """Of each undefined load that a result depends on; after the launch."""
        if not self._before or self._difference(range(len(self._loads)), scalars, grid) is None:
            return
        for number, op in enumerate(self._loads):
            place = self._difference([number], scalars, grid)
            if place is not None:
                yield MaskedElementsUsed.diagnostic(op.location, place=place)

    def _difference(self, numbers: Sequence[int], scalars: Sequence[int], grid: tuple[int, int, int]) -> str | None:
        """What changes with poison in these loads."""
        kernel = self._load(poisoned(self._function, numbers))
        copies = [copy.copy() for copy in self._before]
        moved = [
            replace(view, address=copy.ctypes.data - view.low, owner=copy)
            for view, copy in zip(self._views, copies, strict=True)
        ]
        try:
            kernel.program.run(kernel.bindings(moved), kernel.registers(scalars, grid), COMMAND_LIMIT)
        except LoomError as error:
            return f"an address or a branch (with another value: {error.diagnostics[0].message})"
        for arg, view, copy in zip(self._args, self._views, copies, strict=True):
            if arg.written and (places := np.flatnonzero(copy != bytes_of(view))).size:
                return f"{arg.name}[{(int(places[0]) + view.low) // view.dtype.itemsize}]"
        return None


def bytes_of(view: ArrayView) -> Bytes:
    """The bytes that a kernel may touch through a view."""
    size = view.high - view.low
    memory_of: Any = (ctypes.c_uint8 * size).from_address(view.address + view.low) if size else b""
    return np.frombuffer(memory_of, np.uint8)
