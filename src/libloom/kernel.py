"""A finished object ready to be launched on the simulator with arrays and numbers."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from libloom.arrays import ArrayView
from loom_core.base.dtype import DType
from loom_core.objfile import LoomObject

if TYPE_CHECKING:
    import loom_sim
    from loom_core.base.diagnostics import Diagnostic

GRID_REGISTERS: Final = 3


class LoadedKernel:
    """One object, loaded into the simulator at its first launch.

    Launches keep their bindings and registers in arrays of their own, which `pool` holds while nobody uses them: taking
    one out and putting it back are single operations, so that threads and nested launches never share one.
    """

    def __init__(self, obj: LoomObject) -> None:
        self.object = obj
        self.pool: list[PooledLaunch] = []

    @cached_property
    def program(self) -> loom_sim.Program:
        """The loaded program; loading imports the simulator."""
        import loom_sim

        return loom_sim.load(self.object)

    def take(self) -> PooledLaunch:
        """A launch to fill and run; give it back by appending it to `pool`."""
        try:
            return self.pool.pop()
        except IndexError:
            return PooledLaunch(self.program)

    def run(self, buffers: Sequence[ArrayView], scalars: Sequence[int], grid: tuple[int, int, int]) -> None:
        """Launch once: arrays and register values of the scalars in the order of the object's ABI."""
        self.program.run(self.bindings(buffers), self.registers(scalars, grid))

    def check(
        self,
        buffers: Sequence[ArrayView],
        scalars: Sequence[int],
        grid: tuple[int, int, int],
        replays: int = 0,
        fresh: Iterable[int] = (),
    ) -> list[Diagnostic]:
        """Launch once, to its end; returns what is wrong with it. `replays`, `fresh`: see `loom_sim.Program.check`."""
        return self.program.check(self.bindings(buffers), self.registers(scalars, grid), fresh, replays)

    def bindings(self, buffers: Sequence[ArrayView]) -> list[tuple[int, int, int]]:
        """What `loom_sim` takes for the arrays."""
        return [(view.address, view.low, view.high) for view in buffers]

    def registers(self, scalars: Sequence[int], grid: tuple[int, int, int]) -> dict[int, int]:
        """Initial values of registers: the grid, then the scalars."""
        values = dict(zip(self.object.abi.grid_registers, grid, strict=True))
        values.update(zip((arg.slot for arg in self.object.abi.scalars), scalars, strict=True))
        return values


class PooledLaunch:
    """A prepared launch with views of its words: integers as `words`, the low halves of float registers as `floats`."""

    __slots__ = ("floats", "go", "launch", "words")

    def __init__(self, program: loom_sim.Program) -> None:
        self.launch = program.prepare()
        self.go = self.launch.go
        self.words = memoryview(self.launch.state)  # type: ignore[arg-type]  # arrays are buffers
        self.floats = self.words.cast("B").cast("f")


def register_value(dtype: DType, number: bool | int | float) -> int:
    """The register that holds a scalar argument: integers sign- or zero-extended, floats as their bits."""
    if not dtype.is_float:
        return int(number)
    import numpy as np

    with np.errstate(over="ignore"):
        exact = np.asarray(number, np.float64).astype(dtype.numpy)
    return int.from_bytes(exact.tobytes(), "little")


def overlaps(a: ArrayView, b: ArrayView) -> bool:
    """Whether the bytes that two arguments may touch have any in common."""
    return a.address + a.low < b.address + b.high and b.address + b.low < a.address + a.high


def buffer_word(binding: int) -> int:
    """The word of a launch's state at which the address of a binding (1, 2, ...) stands; its bounds follow."""
    from loom_sim import state

    return state.SPACES + binding * state.SPACE_WORDS


def register_word(register: int) -> int:
    """The word of a launch's state that holds the initial value of a register."""
    from loom_sim import state

    return state.INITIAL_REGISTERS + register


def float_index(word: int) -> int:
    """The index in `PooledLaunch.floats` of the low half of a word."""
    return 2 * word if struct.pack("=h", 1) == struct.pack("<h", 1) else 2 * word + 1
