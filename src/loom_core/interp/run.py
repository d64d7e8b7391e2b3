"""The walk: one program after another, ids ascending with x fastest; each operation by its reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from loom_core.base.diagnostics import InternalError, UserError
from loom_core.interp import effects
from loom_core.interp.memory import Array, Buffer, OutOfBounds, Pointer, choose, read, write
from loom_core.ir.block import Block, Function
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import atomic, control, debug, elementwise, memory

Environment = dict[Value, Any]
Watch = Callable[[tuple[int, int, int], Op, Environment], None]
"""Called after each operation with the program's index, the operation, and the values so far, its results included."""

WHILE_LIMIT = 1 << 24
"""Iterations after which a `while` is taken to be endless: nothing that runs beside it could end it."""


class EndlessLoop(UserError):
    code = "LOOM-R211"
    template = "this while loop has run {limit} times"
    hint = "programs run one after another, so waiting for another one never ends"


def interpret(
    function: Function, arguments: Sequence[Buffer | int | float | bool], grid: tuple[int, int, int],
    only: tuple[int, int, int] | None = None, watch: Watch | None = None,
) -> None:  # fmt: skip
    """Run `function` over `grid` (x, y, z). Pointer parameters take `Buffer`s, written in place; scalars numbers.

    only: the one program to run. watch: is shown every operation as it is done. Raises OutOfBounds (LOOM-R210) at the
    user's line for an access outside a buffer.
    """
    values: Environment = {}
    for parameter, given in zip(function.arguments, arguments, strict=True):
        if isinstance(given, Buffer):
            values[parameter] = Pointer(given, np.zeros((), np.int64))
        else:
            values[parameter] = np.asarray(given).astype(parameter.type.dtype.numpy)
    for z, y, x in [only[::-1]] if only is not None else np.ndindex(grid[2], grid[1], grid[0]):
        walk = _Walk((x, y, z), grid, watch)
        try:
            walk.block(function.body, dict(values))
        except OutOfBounds as error:
            raise OutOfBounds.of(replace(d, notes=(walk.place(), *d.notes)) for d in error.diagnostics) from None


class _Walk:
    """One program."""

    def __init__(self, program: tuple[int, int, int], grid: tuple[int, int, int], watch: Watch | None) -> None:
        self.program = program
        self.grid = grid
        self.watch = watch
        self.loops: list[tuple[str, int]] = []  # names and values of the counters around

    def place(self) -> str:
        """Where the walk stands, in words."""
        counters = ", ".join(f"{name} = {value}" for name, value in self.loops)
        return f"in program {self.program}" + (f", where {counters}" if counters else "")

    def block(self, block: Block, values: Environment) -> list[Any]:
        """Run the block; returns what its terminator yields."""
        for op in block.operations:
            if op.terminator:
                return [values[value] for value in op.operands]
            self.operation(op, values)
        return []

    def operation(self, op: Op, values: Environment) -> None:
        rule = _RULES.get(type(op))
        if rule is not None:
            results = rule(self, op, values)
        elif any(value.type.is_pointer for value in op.operands):
            results = [_on_pointer(op, [values[value] for value in op.operands])]
        else:
            if type(op).ref is None:
                raise InternalError(op.location, what=f"operation {op.name} has no reference")
            found = op.ref(*(values[value] for value in op.operands))  # type: ignore[misc]
            results = found if isinstance(found, list) else [found]
        for result, value in zip(op.results, results, strict=True):
            values[result] = value
        if self.watch is not None:
            self.watch(self.program, op, values)

    def loop(self, op: control.For, values: Environment) -> list[Any]:
        lower, upper, step = (int(values[value]) for value in (op.lower, op.upper, op.step))
        carried = [values[value] for value in op.initial]
        body = op.regions[0]
        counter = op.lower.type.dtype.numpy
        name = body.arguments[0].name or "the loop's counter"
        for i in range(lower, upper, step):
            self.loops.append((name, i))
            inner = {**values, **dict(zip(body.arguments, [np.asarray(i, counter), *carried], strict=True))}
            carried = self.block(body, inner)
            self.loops.pop()
        return carried

    def while_loop(self, op: control.While, values: Environment) -> list[Any]:
        condition, body = op.regions
        carried = [values[value] for value in op.initial]
        for _ in range(WHILE_LIMIT):
            holds, *handed = self.block(condition, {**values, **dict(zip(condition.arguments, carried, strict=True))})
            if not holds:
                return handed
            carried = self.block(body, {**values, **dict(zip(body.arguments, handed, strict=True))})
        raise EndlessLoop(op.location, limit=WHILE_LIMIT)

    def branch(self, op: control.If, values: Environment) -> list[Any]:
        return self.block(op.regions[0 if values[op.condition] else 1], dict(values))

    def load(self, op: memory.Load, values: Environment) -> list[Any]:
        pointer, dtype = values[op.pointer], op.result.type.dtype
        mask = values[op.mask] if op.mask is not None else np.ones(op.result.type.shape, bool)
        other = values[op.other] if op.other is not None else np.zeros((), dtype.numpy)
        return [read(pointer, mask, other, dtype, op.location)]

    def store(self, op: memory.Store, values: Environment) -> list[Any]:
        mask = values[op.mask] if op.mask is not None else np.ones(op.value.type.shape, bool)
        write(values[op.pointer], mask, values[op.value], op.value.type.dtype, op.location)
        return []

    def dma_load(self, op: memory.DmaLoad, values: Environment) -> list[Any]:
        pointer, mask = self._strided(op, values)
        fill = values[op.fill] if op.fill is not None else np.zeros((), op.result.type.dtype.numpy)
        loaded = read(pointer, mask, fill, op.result.type.dtype, op.location)
        return [loaded.reshape(op.shape)]

    def dma_store(self, op: memory.DmaStore, values: Environment) -> list[Any]:
        pointer, mask = self._strided(op, values)
        write(pointer, mask, values[op.value].reshape(mask.shape), op.value.type.dtype, op.location)
        return []

    def window(self, op: memory.Window, values: Environment) -> list[Any]:
        elements = np.full(op.shape, op.dtype.poison, op.dtype.numpy)
        data = np.frombuffer(bytearray(elements.tobytes()), np.uint8)
        return [Pointer(Buffer(op.result.name or op.name, data), np.zeros((), np.int64))]

    def dma_copy(self, op: memory.DmaCopy, values: Environment) -> list[Any]:
        source = np.full(op.shape, int(values[op.source_offset]), np.int64)
        target = np.full(op.shape, int(values[op.target_offset]), np.int64)
        mask = np.ones(op.shape, bool)
        for d, (step, other, lo, hi) in enumerate(op.dimensions):
            index = _index(op.shape, d)
            source, target = source + index * int(values[step]), target + index * int(values[other])
            mask &= (index >= int(values[lo])) & (index < int(values[hi]))
        dtype = op.source.type.pointee
        data = read(values[op.source].moved(source), mask, np.zeros((), dtype.numpy), dtype, op.location)
        write(values[op.target].moved(target), mask, data, dtype, op.location)
        return []

    def _strided(self, op: memory.StridedAccess, values: Environment) -> tuple[Pointer, Array]:
        sizes = op.shape or (1,)
        offsets = np.full(sizes, int(values[op.offset]), np.int64)  # type: ignore[attr-defined]
        mask = np.ones(sizes, bool)
        for d, (stride, lo, hi) in enumerate(op.dimensions):
            index = _index(sizes, d)
            offsets = offsets + index * int(values[stride])
            mask &= (index >= int(values[lo])) & (index < int(values[hi]))
        return values[op.base].moved(offsets), mask  # type: ignore[attr-defined]

    def program_id(self, op: control.ProgramId, values: Environment) -> list[Any]:
        return [np.asarray(self.program[op.axis], np.int32)]

    def num_programs(self, op: control.NumPrograms, values: Environment) -> list[Any]:
        return [np.asarray(self.grid[op.axis], np.int32)]


def _index(shape: tuple[int, ...], axis: int) -> Array:
    """The index along one dimension, in a shape that broadcasts."""
    return np.arange(shape[axis], dtype=np.int64).reshape([-1 if d == axis else 1 for d in range(len(shape))])


def _on_pointer(op: Op, operands: list[Any]) -> Pointer:
    """Pointer arithmetic, and shape operations on tiles of pointers."""
    pointer: Pointer = operands[0]
    if isinstance(op, memory.AddPointer):
        return pointer.moved(pointer.offsets + operands[1].astype(np.int64) * op.pointer.type.pointee.itemsize)
    if isinstance(op, elementwise.Select):
        return choose(*operands)
    return pointer.rearranged(op.ref)  # type: ignore[arg-type]


_RULES: dict[type[Op], Callable[[_Walk, Any, Environment], list[Any]]] = {
    control.For: _Walk.loop,
    control.If: _Walk.branch,
    control.ProgramId: _Walk.program_id,
    control.NumPrograms: _Walk.num_programs,
    memory.Load: _Walk.load,
    memory.Store: _Walk.store,
    memory.DmaLoad: _Walk.dma_load,
    memory.DmaStore: _Walk.dma_store,
    memory.DmaCopy: _Walk.dma_copy,
    memory.Window: _Walk.window,
    memory.DmaGather: lambda walk, op, values: effects.gather(op, values),
    memory.DmaScatter: lambda walk, op, values: effects.scatter(op, values),
    memory.DmaScatterReduce: lambda walk, op, values: effects.scatter_reduce(op, values),
    memory.DmaCompareSwap: lambda walk, op, values: effects.compare_swap(op, values),
    control.While: _Walk.while_loop,
    atomic.AtomicRmw: lambda walk, op, values: effects.atomic_rmw(op, values),
    atomic.AtomicCas: lambda walk, op, values: effects.atomic_cas(op, values),
    debug.Print: lambda walk, op, values: effects.print_values(op, values, walk.program),
    debug.Assert: lambda walk, op, values: effects.check(op, values, walk.program),
}

INTERPRETED = frozenset(_RULES)
"""Operations whose reference is a rule of the walk, because they touch memory, position or blocks."""

__all__ = ["INTERPRETED", "interpret"]
