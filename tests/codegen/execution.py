"""Runs a Tile IR function twice, by the reference and as commands on the simulator, over the same memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import loom_sim
from loom_core.base.knobs import knobs
from loom_core.compile import compile_kernel, run_passes
from loom_core.interp import Buffer, interpret
from loom_core.ir.block import Function
from loom_core.ir.rewriter import clone_function
from loom_core.isa.machine import L1_MINI, MachineConfig
from loom_core.objfile import LoomObject
from loom_core.passes.fold_dot import fold_dot_accumulator
from loom_sim import state
from tests.codegen.ordering import Binding, expand, layout_faults, races, token_faults


@dataclass(frozen=True)
class Place:
    """A pointer argument: byte `origin` of memory number `memory` (arguments may share a memory)."""

    memory: int
    origin: int


Argument = Place | int | float | bool


@dataclass(frozen=True)
class Launch:
    """Everything that a run needs beside the function: memories (bytes), arguments in order, and the grid."""

    memories: tuple[np.ndarray, ...]
    arguments: tuple[Argument, ...]
    grid: tuple[int, int, int] = (1, 1, 1)

    def fresh(self) -> tuple[np.ndarray, ...]:
        return tuple(memory.copy() for memory in self.memories)


def by_reference(function: Function, launch: Launch) -> tuple[np.ndarray, ...]:
    """The memories after the reference interpretation."""
    memories = launch.fresh()
    arguments: list[Any] = [
        Buffer(f"argument {i}", memories[given.memory], given.origin) if isinstance(given, Place) else given
        for i, given in enumerate(launch.arguments)
    ]
    interpret(function, arguments, launch.grid)
    return memories


def bindings_of(launch: Launch, memories: Sequence[np.ndarray]) -> list[Binding]:
    return [
        (
            memories[given.memory].ctypes.data + given.origin,
            -given.origin,
            memories[given.memory].nbytes - given.origin,
        )
        for given in launch.arguments
        if isinstance(given, Place)
    ]


def registers_of(obj: LoomObject, launch: Launch) -> dict[int, int]:
    """Registers at the start: the grid, the scalars as the ABI wants them, and all programs for the one core."""
    registers = dict(enumerate(launch.grid))
    for arg, given in zip(obj.abi.args, launch.arguments, strict=True):
        if not isinstance(given, Place):
            registers[arg.slot] = int(np.float32(given).view(np.uint32)) if arg.dtype == "f32" else int(given)
    for axis in obj.abi.core_axes:
        registers[axis.start], registers[axis.end] = 0, registers.get(axis.extent, axis.size)
    return registers


def by_simulator(obj: LoomObject, launch: Launch, elided_from: int | None = None) -> tuple[np.ndarray, ...]:
    """The memories after a run of the object; `elided_from`: see `state.ELIDED_FROM`."""
    memories = launch.fresh()
    prepared = loom_sim.load(obj).prepare()
    if elided_from is not None:
        prepared.state[state.ELIDED_FROM] = elided_from
    prepared.fill(bindings_of(launch, memories), registers_of(obj, launch))
    prepared.go()
    return memories


def compiled(function: Function, machine: MachineConfig = L1_MINI, **options: Any) -> LoomObject:
    """The object of a copy of `function`."""
    return compile_kernel(clone_function(function), machine=machine, options=options)


def reference_function(function: Function) -> Function:
    """What the bits of `function` are defined by: its products folded into accumulators, no other pass."""
    return fold_dot_accumulator(clone_function(function))


def differing_bytes(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> Mapping[int, list[int]]:
    """Memory number -> the first positions at which the bytes differ; empty if none do."""
    found = {i: np.flatnonzero(x != y)[:8].tolist() for i, (x, y) in enumerate(zip(a, b, strict=True))}
    return {i: positions for i, positions in found.items() if positions}


def same_object(a: LoomObject, b: LoomObject) -> bool:
    from loom_core.objfile import write_object

    return write_object(a) == write_object(b)


def with_launch(launch: Launch, **changes: Any) -> Launch:
    return dataclasses.replace(launch, **changes)


def faults(function: Function, launch: Launch, machine: MachineConfig = L1_MINI, **options: Any) -> list[str]:
    """Everything that is wrong with what the compiler makes of a function; empty if nothing is.

    The IR is verified after every pass; the interpretation before and after the passes and the run on the simulator
    must leave the same bytes; no two commands may race, read what nobody wrote, or read a tile in another layout.
    """
    one_memory = options.get("assume_noalias") is False
    want = by_reference(reference_function(function), launch)
    with knobs.override(verify="each"):
        lowered = run_passes(clone_function(function))
        obj = compiled(function, machine, **options)
    results = {
        "passes": by_reference(lowered, launch),
        "simulator": by_simulator(obj, launch),
        "copies elided": by_simulator(obj, launch, elided_from=1),
    }
    found = [f"{name}: {bad}" for name, got in results.items() if (bad := differing_bytes(want, got))]
    memories = launch.fresh()
    commands = expand(obj, bindings_of(launch, memories), registers_of(obj, launch))
    found += [f"race: {earlier} and {later}" for earlier, later in races(commands, one_memory)]
    return found + token_faults(obj) + layout_faults(obj, commands)
