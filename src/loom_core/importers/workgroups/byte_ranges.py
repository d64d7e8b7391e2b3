"""Ranges of bytes: each workitem copies, fills and compares its own, byte after byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loom_core.base.dtype import i32
from loom_core.importers.workgroups.conversion import Conversion, converts
from loom_core.importers.workgroups.lanes import UNSIGNED
from loom_core.importers.workgroups.memory import load_byte, store_byte
from loom_core.interchange.model import Operation
from loom_core.ir.block import Block
from loom_core.ir.value import Value
from loom_core.ops.control import For, Yield
from loom_core.ops.elementwise import Add, Compare, Mul, Rem, ShiftRight, Sub


def _each_byte(
    c: Conversion,
    length: Value,
    step: Callable[[Value, Sequence[Value]], Sequence[Value]],
    carried: Sequence[Value] = (),
) -> list[Value]:
    """A loop over the numbers below a length that all workitems share."""
    if not length.type.is_scalar:
        c.refuse("the length differs among workitems")
    block = Block((length.type, *(value.type for value in carried)))
    with c.lanes.builder.at(block):
        c.lanes.make(Yield, list(step(block.arguments[0], block.arguments[1:])))
    zero, one = c.index(0), c.index(1)
    return list(c.lanes.builder.create_op(For, zero, length, one, list(carried), regions=[block]).results)


def _moved(c: Conversion, offset: Value, by: Value) -> Value:
    found: Value = c.lanes.make(Add, *c.lanes.alike(offset, by))
    return found


@converts("buffer.copy")
def _copy(c: Conversion, op: Operation) -> None:
    source, source_offset, target, target_offset, length = op.operands
    start, end = c.value(source_offset), c.value(target_offset)

    def step(at: Value, carried: Sequence[Value]) -> Sequence[Value]:
        store_byte(c, target, _moved(c, end, at), load_byte(c, source, _moved(c, start, at)))
        return ()

    _each_byte(c, c.value(length), step)


@converts("buffer.fill")
def _fill(c: Conversion, op: Operation) -> None:
    pattern, target, target_offset, length = op.operands
    start, value = c.value(target_offset), c.value(pattern)
    dtype = value.type.dtype
    bits = value if dtype.is_integer else c.lanes.bits_as(value, {8 * n.itemsize: n for n in UNSIGNED}[dtype.bits])
    bits = c.lanes.unsigned(bits)

    def step(at: Value, carried: Sequence[Value]) -> Sequence[Value]:
        place = c.lanes.make(Rem, at, c.lanes.like(dtype.itemsize, at))
        by = c.lanes.cast(c.lanes.make(Mul, place, c.lanes.like(8, place)), bits.type.dtype)
        byte = c.lanes.make(ShiftRight, *c.lanes.alike(bits, by))
        store_byte(c, target, _moved(c, start, at), byte)
        return ()

    _each_byte(c, c.value(length), step)


@converts("buffer.compare")
def _compare(c: Conversion, op: Operation) -> None:
    """-1, 0 or 1, as the first bytes that differ."""
    first, first_offset, second, second_offset, length = op.operands
    start, other = c.value(first_offset), c.value(second_offset)

    def step(at: Value, carried: Sequence[Value]) -> Sequence[Value]:
        (found,) = carried
        a, b = c.lanes.alike(load_byte(c, first, _moved(c, start, at)), load_byte(c, second, _moved(c, other, at)))
        more = c.lanes.cast(c.lanes.make(Compare, a, b, predicate="gt"), i32)
        less = c.lanes.cast(c.lanes.make(Compare, a, b, predicate="lt"), i32)
        equal = c.lanes.make(Compare, found, c.lanes.like(0, found), predicate="eq")
        return (c.lanes.select(equal, c.lanes.spread(c.lanes.make(Sub, more, less)), found),)

    (result,) = _each_byte(c, c.value(length), step, [c.lanes.spread(c.lanes.constant(0, i32))])
    c.bind(op.results[0], result)
