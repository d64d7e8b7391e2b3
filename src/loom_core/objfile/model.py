"""What an object file holds, as values."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from loom_core.base.dtype import ALL
from loom_core.base.units import byte_count
from loom_core.isa.machine import MachineConfig

_DTYPE_NAMES = frozenset(dtype.name for dtype in ALL)


class AbiArg(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kernel argument.

    `slot`: of a scalar, the ACP register that it is preloaded to; of a buffer, its binding, the space number 1..n that
    commands use. `dtype`: element type's name. `read`, `written`: what the kernel may do with a buffer.
    """

    name: str
    kind: Literal["buffer", "scalar"]
    dtype: str
    slot: int
    read: bool = True
    written: bool = False


class CoreAxis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An axis of a kernel's programs that cores may share: its loop takes them from `start` to before `end`.

    `start`, `end`: registers preloaded with the part of one core, 0 and the axis' extent where one core runs all.
    `extent`: the register that holds the extent, or -1 where it is the number `size`.
    """

    name: str
    start: int
    end: int
    extent: int = -1
    size: int = 0


class SerialAxis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An axis of a kernel's programs that cores must not share, and why."""

    name: str
    reason: str


class Abi(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a kernel is called. `grid_registers`: registers that hold the grid's size in x, y, z.

    `sram_bytes_used`: SRAM that the commands address, per core. `noalias`: pairs of bindings whose memory must not
    overlap. `core_axes`: the axes that cores may share, outermost first; `serial_axes`: those that they must not.
    """

    args: tuple[AbiArg, ...] = ()
    grid_registers: tuple[int, int, int] = (0, 1, 2)
    sram_bytes_used: int = 0
    noalias: tuple[tuple[int, int], ...] = ()
    core_axes: tuple[CoreAxis, ...] = ()
    serial_axes: tuple[SerialAxis, ...] = ()

    @property
    def buffers(self) -> tuple[AbiArg, ...]:
        """Buffer arguments; the i-th has binding i + 1."""
        return tuple(arg for arg in self.args if arg.kind == "buffer")

    @property
    def scalars(self) -> tuple[AbiArg, ...]:
        return tuple(arg for arg in self.args if arg.kind == "scalar")

    @property
    def constants_space(self) -> int:
        """Space number of the constants section: the one after the buffers."""
        return len(self.buffers) + 1


class SourceEntry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Source of the command at word index `word`; line and columns as in `Location`, `note` what it is part of."""

    word: int
    file: str
    line: int
    column: int = -1
    function: str = ""
    note: str = ""
    end_column: int = -1


class LoopRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A loop and its witness: word range [word, end), and as text its variable, bounds, step and carried types."""

    word: int
    end: int
    variable: str = ""
    lo: str = ""
    hi: str = ""
    step: str = ""
    carried: tuple[str, ...] = ()

    @property
    def grid_axis(self) -> str:
        """The axis ("x", "y", "z") of a loop over the programs of the grid, "" for other loops."""
        words = self.variable.split()
        return words[1] if words[:1] == ["grid"] else ""


class Symbol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name for a range of a section: bytes in constants, words in commands and programs."""

    name: str
    section: str
    offset: int
    length: int = 0


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LoomObject:
    """A compiled kernel. commands, programs: 1-D uint64 words; constants: the constants space; manifest: JSON values.

    Manifest keys that loaders read: `while_budget`, the watchdog budget of `while` commands (an integer >= 1), and
    `reports`, what `report` commands are about (`loom_sim.reports`).
    """

    commands: npt.NDArray[np.uint64]
    programs: npt.NDArray[np.uint64] = dataclasses.field(default_factory=lambda: np.zeros(0, np.uint64))
    constants: bytes = b""
    abi: Abi = dataclasses.field(default_factory=Abi)
    sourcemap: tuple[SourceEntry, ...] = ()
    loops: tuple[LoopRecord, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    manifest: dict[str, Any] = dataclasses.field(default_factory=dict)
    machine: MachineConfig = dataclasses.field(kw_only=True)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{a.name}: {'*' * (a.kind == 'buffer')}{a.dtype}" for a in self.abi.args)
        size, used = byte_count(self.commands.nbytes), byte_count(self.abi.sram_bytes_used)
        return f"<object {self.name}({arguments}) for {self.machine.name}: {size} of commands, {used} of SRAM>"

    def _repr_html_(self) -> str:
        from loom_core.objfile.view import object_html

        return object_html(self)

    @property
    def name(self) -> str:
        """The name of the kernel, "" where the manifest gives none."""
        return str(self.manifest.get("kernel", ""))

    @property
    def spaces(self) -> int:
        """Number of HBM spaces: the buffers, and one more where there are constants."""
        return len(self.abi.buffers) + bool(self.constants)

    @property
    def writable(self) -> frozenset[int]:
        """HBM spaces that commands may write to: the buffers declared as written, never the constants."""
        return frozenset(arg.slot for arg in self.abi.buffers if arg.written)

    @property
    def while_budget(self) -> int:
        """Watchdog budget of `while` commands; 0 if the manifest gives none."""
        budget = self.manifest.get("while_budget", 0)
        return budget if type(budget) is int else 0


T = TypeVar("T", int, str)


def _repeated(values: list[T]) -> list[T]:
    return sorted(value for value, count in Counter(values).items() if count > 1)


def abi_faults(abi: Abi, machine: MachineConfig) -> Iterator[str]:
    """What is wrong with an ABI on a machine, in words; nothing if it is sound."""
    names = [arg.name for arg in abi.args]
    for name in _repeated(names):
        yield f"two arguments are called {name!r}"
    for arg in abi.args:
        if arg.dtype not in _DTYPE_NAMES:
            yield f"argument {arg.name!r} has unknown type {arg.dtype!r}"
    for number, arg in enumerate(abi.buffers, 1):
        if arg.slot != number:
            yield f"buffer {arg.name!r} has binding {arg.slot}, its place makes it {number}"
    registers = [*abi.grid_registers, *(arg.slot for arg in abi.scalars)]
    for axis in abi.core_axes:
        registers += [axis.start, axis.end]
        if axis.extent not in (-1, *abi.grid_registers):
            yield f"the extent of axis {axis.name!r} is in register {axis.extent}, which is none of the grid's"
    for register in registers:
        if not 0 <= register < machine.acp_registers:
            yield f"register {register} is not one of the machine's {machine.acp_registers}"
    for register in _repeated(registers):
        yield f"register {register} is preloaded twice"
    if not 0 <= abi.sram_bytes_used <= machine.sram_bytes:
        yield f"{abi.sram_bytes_used} bytes of SRAM used, the machine has {machine.sram_bytes}"
    for pair in abi.noalias:
        if pair[0] == pair[1] or not all(1 <= binding <= len(abi.buffers) for binding in pair):
            yield f"noalias pair {pair} does not name two bindings"
