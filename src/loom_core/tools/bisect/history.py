"""How one element of a value came about: the operations behind it, with their values at that element."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from loom_core.base.location import Location
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import memory, shape
from loom_core.ops.formats import is_float, widen

Array = npt.NDArray[Any]
Index = tuple[int, ...]
Lookup = Callable[[Value], Any]

DEPTH: Final = 6
_MOVES: Final = (shape.Splat, shape.Broadcast, shape.ExpandDims, shape.Reshape, shape.Transpose)


def history(value: Value, index: Index, lookup: Lookup, depth: int = DEPTH) -> list[str]:
    """Lines that say what an element is made of, as far back as an element of a result is made of one of each operand.

    lookup: the value that a run gave an IR value, or None.
    """
    return [f"{'  ' * level}{text}" for level, text in _lines(value, index, lookup, depth, set())]


def _lines(value: Value, index: Index, lookup: Lookup, depth: int, seen: set[Any]) -> Iterator[tuple[int, str]]:
    if (value, index) in seen:
        return
    seen.add((value, index))
    op = value.defining_op
    found = lookup(value)
    shown = f"{name_of(value)}{_subscript(index)} = {element(found, index)}"
    if op is None or isinstance(op, shape.Constant):
        if op is None:
            yield 0, f"{shown}  (given to the block)"
        return
    if isinstance(op, _MOVES):
        # Only the place changes.
        yield from _lines(op.operand, _source_of(op, index), lookup, depth, seen)
        return
    yield 0, f"{shown}  {op.name}, line {op.location.line}{_place_of(op, index, lookup)}"
    if depth == 0:
        return
    for operand, place in _operands(op, index):
        for level, text in _lines(operand, place, lookup, depth - 1, seen):
            yield level + 1, text


def _operands(op: Op, index: Index) -> Iterator[tuple[Value, Index]]:
    """Operands with the element that the result's is made of; none where it is made of many."""
    if not op.elementwise:
        return
    for operand in op.operands:
        yield operand, index if operand.type.shape else ()


def _source_of(op: Any, index: Index) -> Index:
    """The element of a move's operand that becomes this one of its result."""
    sizes = op.operand.type.shape
    if not sizes:
        return ()
    numbers = op.ref(np.arange(prod(sizes)).reshape(sizes))
    return tuple(int(i) for i in np.unravel_index(int(numbers[index]), sizes))


def _place_of(op: Op, index: Index, lookup: Lookup) -> str:
    """The element that a load reads."""
    if not isinstance(op, memory.Load):
        return ""
    mask = None if op.mask is None else lookup(op.mask)
    if mask is not None and not mask[index]:
        return ", masked"
    pointer = lookup(op.pointer)
    if pointer is None:
        return ""
    return f", from {pointer.buffer.name}[{int(pointer.offsets[index]) // op.result.type.dtype.itemsize}]"


def element(value: Any, index: Index) -> str:
    """One element as text."""
    if value is None:
        return "unknown"
    array = np.asarray(value)
    one = array[index] if array.shape else array[()]
    return repr(float(widen(np.asarray(one)))) if is_float(array) else str(one)


def name_of(value: Value) -> str:
    """A value's name, or that of its operation."""
    op = value.defining_op
    return f"%{value.name}" if value.name else f"%({op.name})" if op is not None else f"%argument{value.index}"


def _subscript(index: Index) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def where(location: Location) -> str:
    """A place of the source in words."""
    return f"{location.file}:{location.line}" if location.known else "an unknown line"
