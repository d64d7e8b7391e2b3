"""Loom's own: windows of SRAM, and copies between arrays and windows with tokens to wait for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

from loom_core.base import dtype as core
from loom_core.base.location import Location
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import memory
from loom_core.ops.elementwise import Max, Min
from loom_core.trace.context import current
from loom_core.trace.values import Traced
from ltl import semantic
from ltl.arguments import dtype_argument, shape_argument, static_int
from ltl.block_pointers import MAX_RANK, BlockPointer, tensor_descriptor
from ltl.errors import NotPointer, Refused, ShapesDiffer, WrongDtype, WrongRank, fail, here
from ltl.operators import emit
from ltl.tensor import tensor


class token(Traced):
    """A copy that has begun. `wait` states that what follows relies on it."""

    __slots__ = ("_origin",)

    def __init__(self, origin: Location) -> None:
        self._origin = origin

    def wait(self) -> None:
        """Go on when the copy is complete. What reads or writes its target waits for it in any case."""
        current("token.wait")

    def ir_values(self) -> list[Value]:
        return []

    def ir_types(self) -> list[TileType]:
        return []

    def with_ir_values(self, values: Sequence[Value]) -> token:
        return self

    def structure(self) -> Hashable:
        return token

    def same(self, other: Traced) -> bool:
        return isinstance(other, token)

    def suggest_name(self, name: str) -> None:
        """Nothing in it has a name."""

    @property
    def origin(self) -> Location:
        return self._origin

    def __repr__(self) -> str:
        return "<token>"


def window(shape: Any, dtype: Any) -> BlockPointer:
    """A region of SRAM, alive while the block of the program around it runs; gives a block pointer to all of it.

    It is read and written by `load`, `store`, `copy` and, through its `base`, by pointers. It begins as poison: NaN,
    the least integer, False. Windows and tiles share SRAM; the compiler places them (`loomc manifest` shows where).
    """
    trace = current("ltl.window")
    sizes = shape_argument(shape, "window")
    if not 1 <= len(sizes) <= MAX_RANK:
        fail(WrongRank, function="window", expected="one to five dimensions", given=f"the shape {sizes}")
    made: Value = trace.builder.create(memory.Window, shape=sizes, dtype=dtype_argument(dtype, "window"))
    steps = [prod(sizes[d + 1 :]) for d in range(len(sizes))]
    return BlockPointer(
        tensor(made.type, made), _known(sizes), _known(steps), _known([0] * len(sizes)), sizes
    )  # fmt: skip


def _known(numbers: Sequence[int]) -> list[tensor]:
    return [semantic.known_scalar(number, core.i64) for number in numbers]


def copy(src: Any, dst: Any, queue: Any = None) -> token:
    """Begin to copy the block that `src` points to to the block that `dst` points to; gives the token to wait for.

    Both are block pointers (also windows, and `block` of a tensor descriptor) of one shape and dtype. Elements outside
    either array are skipped. Between an array and a window this is one DMA command, beside which other engines run;
    between two arrays, which may overlap, or inside one, the block goes through a tile. Copies on one DMA queue run in
    order, those on others beside them: `queue` numbers them from 0, None leaves the choice to the compiler.
    """
    trace = current("ltl.copy")
    source, target = _block(src), _block(dst)
    if source.block_shape != target.block_shape:
        fail(ShapesDiffer, function="copy", first=source.block_shape, second=target.block_shape)
    if source.pointee is not target.pointee:
        takes = "copies do not convert; load, convert and store instead"
        fail(WrongDtype, function="copy", given=f"{source.pointee.name} to {target.pointee.name}", takes=takes)
    number = None if queue is None else static_int(queue, "copy", "queue")
    if not _are_apart(source.base, target.base) or len(source.block_shape) > MAX_RANK:
        if number is not None:
            instead = "copy between an array and a window, or leave the queue open"
            fail(Refused, what="a queue for this copy", reason="it is no single DMA command", instead=instead)
        _through_a_tile(source, target)
        return token(here())
    (source_base, source_at), (target_base, target_at) = _first_element(source), _first_element(target)
    itemsize = source.pointee.itemsize
    bounds: list[tensor] = []
    for d, size in enumerate(source.block_shape):
        low, high = _extent(size, (source.offsets[d], source.sizes[d]), (target.offsets[d], target.sizes[d]))
        bounds += [source.steps[d] * itemsize, target.steps[d] * itemsize, low, high]
    trace.builder.create(
        memory.DmaCopy,
        source_base,
        source_at.value,
        target_base,
        target_at.value,
        [number.value for number in bounds],
        shape=source.block_shape,
        queue=number,
    )
    return token(here())


def _block(value: Any) -> BlockPointer:
    if isinstance(value, BlockPointer):
        return value
    hint = "take a block of it: desc.block(offsets)" if isinstance(value, tensor_descriptor) else None
    hint = hint or "it takes what make_block_ptr, window and the block method of descriptors give"
    return fail(NotPointer, function="copy", given=str(getattr(value, "type", value)), hint=hint)


def _are_apart(a: tensor, b: tensor) -> bool:
    """Whether the two blocks are known not to overlap: one is in a window, the other in another or in an array."""
    roots = _root(a)[0], _root(b)[0]
    windows = [isinstance(root.defining_op, memory.Window) for root in roots]
    arrays = [root in current().function.arguments for root in roots]
    known = all(window or array for window, array in zip(windows, arrays, strict=True))
    return known and any(windows) and roots[0] is not roots[1]


def _root(pointer: tensor) -> tuple[Value, list[Value]]:
    """The parameter or window that a pointer was made of, and the offsets that were added to it."""
    value, offsets = pointer.value, []
    while isinstance(value.defining_op, memory.AddPointer):
        offsets.append(value.defining_op.offset)
        value = value.defining_op.pointer
    return value, offsets


def _first_element(block: BlockPointer) -> tuple[Value, tensor]:
    """The parameter or window that a block lies in, and the bytes from there to its first element."""
    root, added = _root(block.base)
    at = semantic.known_scalar(0, core.i64)
    for value in added:
        at = at + semantic.cast(tensor(value.type, value), core.i64)
    for offset, step in zip(block.offsets, block.steps, strict=True):
        at = at + offset * step
    return root, at * block.pointee.itemsize


def _extent(size: int, *sides: tuple[tensor, tensor]) -> tuple[tensor, tensor]:
    """Of a dimension of `size` elements the first that is inside both arrays, and the one behind the last."""
    low, high = semantic.known_scalar(0, core.i64), semantic.known_scalar(size, core.i64)
    for offset, limit in sides:
        low, high = emit(Max, low, -offset), emit(Min, high, limit - offset)
    return low, high


def _through_a_tile(source: BlockPointer, target: BlockPointer) -> None:
    from ltl.memory import load, store
    from ltl.operators import and_

    every = range(len(source.block_shape))
    reads, writes = source.indices(source.offsets), target.indices(target.offsets)
    inside = source.inside(reads, every), target.inside(writes, every)
    assert inside[0] is not None and inside[1] is not None
    valid = and_(semantic.to_shape(inside[0], source.block_shape), semantic.to_shape(inside[1], source.block_shape))
    store(target.addresses(writes), load(source.addresses(reads), valid), valid)


__all__ = ["copy", "token", "window"]
