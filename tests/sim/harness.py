"""Hand-assembled objects for the simulator's tests: commands in, arrays out, guard zones around every buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import loom_sim
from loom_core.isa.encoding import Command, Label, command, encode
from loom_core.isa.machine import L1_MINI, MachineConfig
from loom_core.isa.program import S, SceInstr, SceProgram, StreamSpec, encode_program
from loom_core.objfile import Abi, AbiArg, LoomObject
from loom_sim.program import Binding, Launch, Program

GUARD: Final = 256  # bytes on each side of a buffer that no command may touch
_GUARD_BYTE: Final = 0xA5

Array = NDArray[Any]


class Buffer:
    """An array in the middle of guarded memory, bound with offset 0 at its first byte."""

    def __init__(self, array: Array) -> None:
        self._memory = np.full(array.nbytes + 2 * GUARD + 64, _GUARD_BYTE, np.uint8)
        start = GUARD + -(self._memory.ctypes.data + GUARD) % 64
        self._start, self._end = start, start + array.nbytes
        self.array: Array = self._memory[start : self._end].view(array.dtype).reshape(array.shape)
        self.array[...] = array

    @property
    def binding(self) -> Binding:
        return self.array.ctypes.data, 0, self.array.nbytes

    def check_guards(self) -> None:
        outside = np.concatenate([self._memory[: self._start], self._memory[self._end :]])
        assert (outside == _GUARD_BYTE).all(), "memory outside the buffer was written"


def build(
    commands: Sequence[Command | Label],
    programs: Sequence[SceProgram] = (),
    buffers: int = 0,
    *,
    read_only: Sequence[int] = (),
    constants: bytes = b"",
    machine: MachineConfig = L1_MINI,
    manifest: Mapping[str, Any] | None = None,
) -> LoomObject:
    """An object whose `buffers` f32 buffers are called b0, b1, ...; HALT is appended."""
    args = tuple(AbiArg(f"b{i}", "buffer", "f32", i + 1, read=True, written=i not in read_only) for i in range(buffers))
    words = [encode_program(program) for program in programs]
    return LoomObject(
        encode([*commands, command("halt")]),
        np.concatenate(words) if words else np.zeros(0, np.uint64),
        constants,
        Abi(args=args),
        manifest=dict(manifest or {}),
        machine=machine,
    )


def program_offsets(programs: Sequence[SceProgram]) -> list[int]:
    """Word offsets of programs laid out one after the other."""
    lengths = [len(encode_program(program)) for program in programs]
    return [sum(lengths[:i]) for i in range(len(lengths))]


def launch(obj: LoomObject, arrays: Sequence[Array] = (), registers: Mapping[int, int] | None = None) -> list[Array]:
    """Run an object on copies of `arrays`; returns them as the run left them, guard zones checked."""
    buffers = [Buffer(np.asarray(array)) for array in arrays]
    loom_sim.load(obj).run([buffer.binding for buffer in buffers], dict(registers or {}))
    for buffer in buffers:
        buffer.check_guards()
    return [buffer.array.copy() for buffer in buffers]


def prepared(program: Program, buffers: Sequence[Buffer], registers: Mapping[int, int] | None = None) -> Launch:
    """A launch of a program, ready to go."""
    made = program.prepare()
    made.fill([buffer.binding for buffer in buffers], dict(registers or {}))
    return made


def copy(
    source: tuple[Any, Any], target: tuple[Any, Any], dims: Sequence[tuple[Any, ...]], itemsize: int = 4, **more: Any
) -> Command:
    """COPY between (space, offset) pairs; a dimension is (size, source stride, target stride[, lo, hi])."""
    operands = [*source, *target, more.pop("fill", 0)]
    for dim in dims:
        size, source_stride, target_stride, *valid = dim
        operands += [size, source_stride, target_stride, *(valid or (0, size))]
    flags = {"ndim": len(dims), "log2_bytes": itemsize.bit_length() - 1, "skip": int(more.pop("skip", False))}
    return command("copy", *operands, flags=flags, **more)


def whole(source: tuple[Any, Any], target: tuple[Any, Any], count: int) -> Command:
    """Contiguous COPY of `count` bytes."""
    return copy(source, target, [(count, 1, 1)], itemsize=1)


def sce(offset: int, sizes: Sequence[Any], streams: Sequence[Sequence[Any]], fold: int = 0) -> Command:
    """PROGRAM over `sizes`; a stream is (base, stride, ...)."""
    operands = [offset, *sizes]
    for base, *strides in streams:
        operands += [base, *strides]
    return command("program", *operands, flags={"ndim": len(sizes), "fold": fold})


def chain(mnemonic: str, operand_types: Sequence[str], result: str) -> SceProgram:
    """store = mnemonic(load, ...): one stream an operand, then the result's."""
    kinds = [*(StreamSpec("load", dtype) for dtype in operand_types), StreamSpec("store", result)]
    sources = [S(i) for i in range(len(operand_types))]
    return SceProgram(tuple(kinds), (SceInstr(mnemonic, S(len(operand_types)), *sources),), 0)
