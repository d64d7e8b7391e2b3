"""`tt` operations that make tiles, or move their elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loom_core.base.dtype import bool_
from loom_core.importers.ttir.arith import dtype_of
from loom_core.importers.ttir.attributes import plain
from loom_core.importers.ttir.importer import Importer, row
from loom_core.importers.ttir.syntax import Operation
from loom_core.importers.ttir.types import tile_type
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.control import NumPrograms, ProgramId
from loom_core.ops.rearrange import Concat, Gather, Histogram, Slice
from loom_core.ops.shape import Broadcast, ExpandDims, Iota, Reshape, Splat, Transpose

_AXES = {"x": 0, "y": 1, "z": 2}


def integer_attribute(importer: Importer, op: Operation, name: str) -> int:
    """An integer attribute, which must be there."""
    value = plain(op.attributes.get(name))
    return value if type(value) is int else importer.wrong(op, f"the integer {name} is missing")


def integers_attribute(importer: Importer, op: Operation, name: str, default: Sequence[int] = ()) -> list[int]:
    """A list of integers, `default` where it is not there."""
    values = plain(op.attributes.get(name, list(default)))
    if not isinstance(values, list) or any(type(value) is not int for value in values):
        importer.wrong(op, f"its {name} is no list of integers")
    return values


def permutation_attribute(importer: Importer, op: Operation, rank: int) -> tuple[int, ...]:
    """The order of a transposition; before orders were written, there were two dimensions."""
    order = tuple(integers_attribute(importer, op, "order", (1, 0)))
    if sorted(order) != list(range(rank)):
        importer.wrong(op, f"{order} is no order of {rank} dimensions")
    return order


def result_type(importer: Importer, op: Operation, index: int = 0) -> TileType:
    """The type written for a result."""
    if len(op.result_types) <= index:
        importer.wrong(op, "the type of its result is missing")
    return tile_type(op.result_types[index], op.position)


@row("tt.get_program_id", "tt.get_num_programs", operands=0, types="result", words=True, attributes=("axis",))
def _program(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    axis = _AXES.get(op.words[0], -1) if op.words else integer_attribute(importer, op, "axis")
    if axis not in _AXES.values():
        importer.wrong(op, f"there is no axis {op.words[0] if op.words else axis}")
    return importer.create(ProgramId if op.name == "tt.get_program_id" else NumPrograms, axis=axis)  # type: ignore[no-any-return]


@row("tt.make_range", operands=0, types="result", attributes=("start", "end"))
def _range(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    start, end = integer_attribute(importer, op, "start"), integer_attribute(importer, op, "end")
    if not -(1 << 31) <= start < end < 1 << 31:
        importer.wrong(op, f"a range from {start} to {end}")
    return importer.create(Iota, start=start, end=end)  # type: ignore[no-any-return]


@row("tt.splat", operands=1)
def _splat(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    if operands[0].type.shape:
        importer.wrong(op, f"it does not take {operands[0].type}")
    return importer.create(Splat, operands[0], shape=result_type(importer, op).shape)  # type: ignore[no-any-return]


@row("tt.unsplat", operands=1)
def _unsplat(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    if operands[0].type.size != 1:
        importer.wrong(op, f"it does not take {operands[0].type}")
    return importer.create(Reshape, operands[0], shape=())  # type: ignore[no-any-return]


@row("tt.expand_dims", operands=1, attributes=("axis",))
def _expand(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    axis = integer_attribute(importer, op, "axis")
    if not 0 <= axis <= len(operands[0].type.shape):
        importer.wrong(op, f"axis {axis} is out of range")
    return importer.create(ExpandDims, operands[0], axis=axis)  # type: ignore[no-any-return]


@row("tt.broadcast", operands=1)
def _broadcast(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    old, new = operands[0].type.shape, result_type(importer, op).shape
    if len(old) != len(new) or any(a not in (1, b) for a, b in zip(old, new, strict=True)):
        importer.wrong(op, f"{old} does not broadcast to {new}")
    return importer.create(Broadcast, operands[0], shape=new)  # type: ignore[no-any-return]


# The elements of a reshape that may be reordered stay in order: one of the orders that are allowed.
@row("tt.reshape", "tt.view", operands=1, attributes=("allow_reorder", "efficient_layout"), words=True)
def _reshape(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    if any(word not in ("allow_reorder", "efficient_layout") for word in op.words):
        importer.wrong(op, f"it does not take {op.words[0]}")
    shape = result_type(importer, op).shape
    if TileType(bool_, shape).size != operands[0].type.size:
        importer.wrong(op, f"{operands[0].type} does not fill shape {shape}")
    return importer.create(Reshape, operands[0], shape=shape)  # type: ignore[no-any-return]


@row("tt.trans", operands=1, attributes=("order",))
def _transpose(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    order = permutation_attribute(importer, op, len(operands[0].type.shape))
    return importer.create(Transpose, operands[0], permutation=order)  # type: ignore[no-any-return]


@row("tt.join", operands=2, types="free")
def _join(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    first, second = _alike(importer, op, operands)
    rank = len(first.type.shape)
    parts = [importer.create(ExpandDims, part, axis=rank) for part in (first, second)]
    return importer.create(Concat, parts, axis=rank)  # type: ignore[no-any-return]


@row("tt.cat", operands=2, types="free")
def _concatenate(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    first, second = _alike(importer, op, operands)
    if len(first.type.shape) != 1:
        importer.wrong(op, f"it does not take {first.type}")
    return importer.create(Concat, [first, second], axis=0)  # type: ignore[no-any-return]


def _alike(importer: Importer, op: Operation, operands: list[Any]) -> tuple[Value, Value]:
    first, second = operands
    for type in op.types:
        importer.check_type(op, first, type, "an operand")
    if first.type != second.type or first.type.is_pointer:
        importer.wrong(op, f"it does not take {first.type} and {second.type}")
    return first, second


@row("tt.split", operands=1)
def _split(importer: Importer, op: Operation, operands: list[Any]) -> list[Value]:
    (value,) = operands
    if not value.type.shape or value.type.shape[-1] != 2 or value.type.is_pointer:
        importer.wrong(op, f"it does not take {value.type}")
    rest = value.type.shape[:-1]
    if len(op.result_types) == 1:
        op.result_types = op.result_types * 2
    return [_half(importer, value, rest, i) for i in range(2)]


def _half(importer: Importer, value: Value, rest: tuple[int, ...], index: int) -> Value:
    starts = (*(0 for _ in rest), index)
    part = importer.create(Slice, value, starts=starts, steps=(1,) * len(starts), shape=(*rest, 1))
    return importer.create(Reshape, part, shape=rest)  # type: ignore[no-any-return]


@row("tt.gather", operands=1, types="free", attributes=("axis", "efficient_layout"))
def _gather(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    if len(op.lists) != 1 or len(op.lists[0]) != 1 or not isinstance(op.lists[0][0], str):
        importer.wrong(op, "one tile of indices in brackets is needed")
    source, index = operands[0], importer.value(op, op.lists[0][0])
    for value, type in zip((source, index), op.types, strict=False):
        importer.check_type(op, value, type, "an operand")
    axis = integer_attribute(importer, op, "axis")
    dtype_of(importer, op, index, "int")
    sizes = [(a, b) for d, (a, b) in enumerate(zip(source.type.shape, index.type.shape, strict=False)) if d != axis]
    fits = len(source.type.shape) == len(index.type.shape) and 0 <= axis < len(source.type.shape)
    if not fits or source.type.is_pointer or any(a != b for a, b in sizes):
        importer.wrong(op, f"it does not take {source.type} and {index.type} along axis {axis}")
    return importer.create(Gather, source, index, axis=axis)  # type: ignore[no-any-return]


@row("tt.histogram", operands=(1, 2), types="free")
def _histogram(importer: Importer, op: Operation, operands: list[Any]) -> Value:
    value, *masks = operands
    if op.types:
        importer.check_type(op, value, op.types[0], "operand 1")
    dtype_of(importer, op, value, "int")
    shape = result_type(importer, op).shape
    if len(value.type.shape) != 1 or len(shape) != 1 or any(m.type != TileType(bool_, value.type.shape) for m in masks):
        importer.wrong(op, f"it does not take {value.type}")
    return importer.create(Histogram, value, masks[0] if masks else None, bins=shape[0])  # type: ignore[no-any-return]
