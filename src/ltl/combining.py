"""Functions of the user as regions: what `reduce`, `associative_scan` and `map_elementwise` apply to elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loom_core.ir.block import Block
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.control import Yield
from loom_core.ops.regions import inline_region, verify_region
from loom_core.trace.context import current
from loom_core.trace.values import is_number
from ltl import semantic
from ltl.errors import WrongFunction, fail, here
from ltl.tensor import tensor


def region_of(function: Any, arguments: Sequence[TileType], use: str) -> tuple[Block, list[TileType]]:
    """The region of a function of scalars of the given types, and the types of what it gives.

    WrongFunction where it gives no scalars, or does more than compute with its arguments.
    """
    trace = current(f"ltl.{use}")
    block = Block(tuple(arguments))
    parameters = [tensor(value.type, value, origin=here()) for value in block.arguments]
    with trace.elementwise(block):
        results = _results(function, _call(function, parameters, use), use)
        trace.builder.create(Yield, [result.value for result in results])
    types = [result.ir_type for result in results]
    problem = verify_region(block, list(arguments), types)
    if problem is not None:
        fail(WrongFunction, function=_name(function), use=use, problem=problem)
    return block, types


def combine_region(function: Any, elements: Sequence[TileType], use: str) -> Block:
    """The region of a combine function: of n scalars and n more to n of the same types."""
    block, types = region_of(function, [*elements, *elements], use)
    if types != list(elements):
        given, wanted = _list(types), _list(elements)
        fail(WrongFunction, function=_name(function), use=use, problem=f"it gives {given}, and must give {wanted}")
    return block


def apply_region(block: Block, tiles: Sequence[tensor]) -> list[tensor]:
    """A region applied to tiles of one shape, element by element."""
    made = inline_region(current().builder, block, [tile.value for tile in tiles])
    shape = tiles[0].shape
    return [semantic.to_shape(tensor(value.type, value), shape) for value in made]


def _call(function: Any, parameters: list[tensor], use: str) -> Any:
    if not isinstance(function, Callable):  # type: ignore[arg-type]
        fail(WrongFunction, function=_name(function), use=use, problem="it is not a function")
    return function(*parameters)


def _results(function: Any, given: Any, use: str) -> list[tensor]:
    items = list(given) if isinstance(given, (tuple, list)) else [given]
    results = []
    for item in items:
        item = semantic.unwrap(item)
        if is_number(item):
            item = semantic.lift(item)
        if not isinstance(item, tensor) or item.shape:
            what = "a tile" if isinstance(item, tensor) else repr(item)
            fail(WrongFunction, function=_name(function), use=use, problem=f"it gives {what}, and must give scalars")
        results.append(item)
    return results


def _name(function: Any) -> str:
    return getattr(function, "__name__", None) or repr(function)


def _list(types: Sequence[TileType]) -> str:
    shown = [str(tensor(type, None, 0).type) for type in types]
    return ", ".join(shown) or "nothing"


def scalars(values: Sequence[tensor]) -> list[TileType]:
    """The types of single elements of tiles."""
    return [TileType(value.ir_type.element) for value in values]


def tiles_of(values: Sequence[Value]) -> list[tensor]:
    """IR values as tiles."""
    return [tensor(value.type, value) for value in values]
