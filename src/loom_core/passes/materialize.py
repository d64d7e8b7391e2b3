"""Gives storage of its own to what an engine must read or write directly.

Rules (`copy` is an elementwise identity, so it fuses with whatever computes its operand):
  store     dma_store %v, where %v is a view, virtual or may lie in an accumulator  ->  dma_store (copy %v); the same
            for the tiles that indexed accesses, rearrangements, sorts, folds and reports take
  operand   dot %a, %b, where one is virtual, may lie in an accumulator or is carried  ->  dot (copy %a), %b
  acc       dot ..., acc = %c, where %c is loaded, a view or virtual  ->  dot ..., acc = (copy %c), unless a constant
  carried   for / yield of a view or virtual tile  ->  of its copy, unless a constant
  reshape   a reshape that is no view of its operand  ->  reshape (copy %v)
  reduce    reduce %v, where %v is an index tile  ->  reduce (copy %v)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loom_core.ir.block import Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import control, debug, elementwise, matmul, memory, rearrange, reduction, shape
from loom_core.passes.log import log_rewrite
from loom_core.passes.simplify import VIEWS, is_integral

# Operations whose commands read row-major tiles.
_READERS_OF_PLAIN_TILES = (
    debug.Assert,
    debug.Print,
    rearrange.Concat,
    rearrange.Gather,
    rearrange.Histogram,
    rearrange.Slice,
    rearrange.Sort,
    reduction.RegionFold,
)
_VIRTUAL = (*VIEWS, shape.Constant, shape.AffineTile)


def materialize(function: Function) -> Function:
    """Insert the copies."""
    layout = _Layouts(function)
    for op in function.walk():
        copies: dict[tuple[str, Value], Value] = {}
        for rule, index, acceptable in _demands(op, layout):
            value = op.operands[index]
            if acceptable(value):
                continue
            if (rule, value) not in copies:
                log_rewrite(rule, op)
                copies[rule, value] = _copy_before(op, value)
            op.set_operand(index, copies[rule, value])
    return function


Demand = tuple[str, int, Callable[[Value], bool]]


def _demands(op: Op, layout: _Layouts) -> Iterator[Demand]:
    """What the engines ask of each operand: (rule, position of the operand, whether it is fine as it is)."""
    if isinstance(op, memory.DmaStore):
        yield "store", op.operands.index(op.value), layout.is_plain
    elif isinstance(op, memory.IndexedAccess):
        for name in ("index", "mask", "value", "compare"):
            value = getattr(op, name, None)
            if value is not None:
                yield "store", op.operands.index(value), layout.is_plain
    elif isinstance(op, _READERS_OF_PLAIN_TILES):
        yield from (("store", index, layout.is_plain) for index in range(len(op.operands)))
    elif isinstance(op, matmul.Dot):
        yield "operand", 0, layout.is_matrix_operand
        yield "operand", 1, layout.is_matrix_operand
        if op.acc is not None:
            yield "acc", 2, _starts_accumulator
    elif isinstance(op, control.For):
        yield from (("carried", index, _is_carried_as_it_is) for index in range(3, len(op.operands)))
    elif isinstance(op, control.Yield) and op.parent is not None and isinstance(op.parent.parent, control.For):
        yield from (("carried", index, _is_carried_as_it_is) for index in range(len(op.operands)))
    elif isinstance(op, shape.Reshape):
        yield "reshape", 0, layout.is_contiguous
    elif isinstance(op, reduction.Reduce):
        yield "reduce", 0, _is_reducible


def _copy_before(op: Op, value: Value) -> Value:
    assert op.parent is not None
    builder = Builder(op.parent)
    builder.anchor, builder.location = op, op.location
    return builder.create(elementwise.Copy, value)  # type: ignore[no-any-return]


def _in_register(value: Value) -> bool:
    """Whether the value is a scalar of the command processor."""
    return value.type.is_scalar and (value.type.is_pointer or is_integral(value.type))


def may_share_window(value: Value) -> bool:
    """Whether the value may take the window of another, maybe an accumulator's: programs and products write those.

    Loads have windows of their own, since they may take turns in several slots; other commands know row-major tiles
    only.
    """
    op = value.defining_op
    written = (reduction.Reduce, matmul.Dot, control.For, control.While, control.If)
    return op is None or op.elementwise or isinstance(op, written)


def _starts_accumulator(value: Value) -> bool:
    return isinstance(value.defining_op, shape.Constant) or may_share_window(value)


def _is_carried_as_it_is(value: Value) -> bool:
    op = value.defining_op
    return _in_register(value) or isinstance(op, shape.Constant) or not isinstance(op, _VIRTUAL)


def _is_reducible(value: Value) -> bool:
    return not isinstance(value.defining_op, shape.AffineTile)


class _Layouts:
    """What is known before windows are given of how values will lie in SRAM."""

    def __init__(self, function: Function) -> None:
        self.accumulators = _accumulators(function)

    def is_plain(self, value: Value) -> bool:
        """Stored in row-major order."""
        return _in_register(value) or not (isinstance(value.defining_op, _VIRTUAL) or value in self.accumulators)

    def is_matrix_operand(self, value: Value) -> bool:
        """A transposed or expanded plain tile, packed where it is defined: a loop argument has no such place."""
        root = value
        while isinstance(root.defining_op, shape.Transpose | shape.ExpandDims):
            root = root.defining_op.operands[0]
        return root.defining_op is not None and self.is_plain(root)

    def is_contiguous(self, value: Value) -> bool:
        """Whether every reshape of the value is a view: it is stored in row-major order, or the same everywhere."""
        op = value.defining_op
        if isinstance(op, shape.Constant | shape.Splat):
            return True
        if isinstance(op, shape.ExpandDims | shape.Reshape):
            return self.is_contiguous(op.operands[0])
        return self.is_plain(value)


def _accumulators(function: Function) -> set[Value]:
    """Values that may share the window of a product: its result and accumulator, and what loops carry for them."""
    links: dict[Value, set[Value]] = {}
    found: list[Value] = []
    for op in function.walk():
        if isinstance(op, matmul.Dot):
            found += [op.result, *([op.acc] if op.acc is not None else [])]
        for group in _carried_groups(op):
            for value in group:
                links.setdefault(value, set()).update(group)
    reached: set[Value] = set()
    while found:
        value = found.pop()
        if value not in reached and may_share_window(value):
            reached.add(value)
            found += links.get(value, ())
    return reached


def _carried_groups(op: Op) -> Iterator[tuple[Value, ...]]:
    """Values of a loop that may lie in one window."""
    if isinstance(op, control.For):
        block = op.regions[0]
        yield from zip(op.initial, block.arguments[1:], block.operations[-1].operands, op.results, strict=True)
    elif isinstance(op, control.While):
        yield from zip(op.regions[1].arguments, op.results, strict=True)
