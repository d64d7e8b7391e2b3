"""Functions that also store what their operations give, each in a buffer of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from loom_core.base.dtype import i32, i64
from loom_core.ir.block import Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.rewriter import clone_function
from loom_core.ir.types import PointerType, TileType
from loom_core.ir.value import Value
from loom_core.ops import control, elementwise, memory, shape

Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Probe:
    """What is stored of one value: result `result` of operation number `op`, of each iteration of the loops around it.

    `trips`: how often each of these loops runs at most, the outermost first.
    """

    op: int
    result: int
    trips: tuple[int, ...]

    @property
    def visits(self) -> int:
        return prod(self.trips)


def loops_around(op: Op) -> list[control.For]:
    """The counted loops that an operation is in, the outermost first."""
    found: list[control.For] = []
    block = op.parent
    while block is not None and block.parent is not None:
        if isinstance(block.parent, control.For):
            found.append(block.parent)
        block = block.parent.parent
    return found[::-1]


def probed(function: Function, probes: Sequence[Probe], grid: Grid) -> Function:
    """A copy of `function` with a pointer argument for each probe, through which its values are stored.

    Element e of the value of iteration v in program p is at (p * visits + v) * elements + e, p counted with x fastest.
    """
    copy = clone_function(function)
    operations = list(copy.walk())
    for probe in probes:
        value = operations[probe.op].results[probe.result]
        name = f"probe_{probe.op}_{probe.result}"
        target = copy.body.add_argument(TileType(PointerType(value.type.dtype)), name)
        _store(value, target, probe, grid)
    return copy


def _store(value: Value, target: Value, probe: Probe, grid: Grid) -> None:
    op = value.defining_op
    assert op is not None and op.parent is not None
    block = op.parent
    builder = Builder(block)
    builder.location = op.location
    builder.anchor = block.operations[block.operations.index(op) + 1]

    def constant(number: int) -> Value:
        return builder.create(shape.Constant, value=number, type=TileType(i64))  # type: ignore[no-any-return]

    def wide(scalar: Value) -> Value:
        if scalar.type.dtype is i64:
            return scalar
        return builder.create(elementwise.Cast, scalar, dtype=i64)  # type: ignore[no-any-return]

    def place(slot: Value, size: int, index: Value) -> Value:
        scaled = builder.create(elementwise.Mul, slot, constant(size))
        return builder.create(elementwise.Add, scaled, index)  # type: ignore[no-any-return]

    slot = constant(0)
    for axis in (2, 1, 0):
        slot = place(slot, grid[axis], wide(builder.create(control.ProgramId, axis=axis)))
    for loop, trips in zip(loops_around(op), probe.trips, strict=True):
        begun = builder.create(elementwise.Sub, wide(loop.regions[0].arguments[0]), wide(loop.lower))
        slot = place(slot, trips, builder.create(elementwise.Div, begun, wide(loop.step)))
    sizes = value.type.shape
    pointer = builder.create(memory.AddPointer, target, builder.create(elementwise.Mul, slot, constant(prod(sizes))))
    if sizes:
        pointer = builder.create(
            memory.AddPointer, builder.create(shape.Splat, pointer, shape=sizes), _dense(builder, sizes)
        )
    builder.create(memory.Store, pointer, value, None)


def _dense(builder: Builder, sizes: tuple[int, ...]) -> Value:
    """The row-major number of each element."""
    total: Value | None = None
    for dim, size in enumerate(sizes):
        index = builder.create(shape.Iota, start=0, end=size)
        for axis in range(len(sizes)):
            if axis != dim:
                index = builder.create(shape.ExpandDims, index, axis=axis)
        index = builder.create(shape.Broadcast, index, shape=sizes) if index.type.shape != sizes else index
        stride = builder.create(shape.Constant, value=prod(sizes[dim + 1 :]), type=TileType(i32, sizes))
        term = builder.create(elementwise.Mul, index, stride)
        total = term if total is None else builder.create(elementwise.Add, total, term)
    assert total is not None
    return total
