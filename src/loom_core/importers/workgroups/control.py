"""Structured control flow: kept where all workitems take it alike, under masks where they part."""

from __future__ import annotations

from loom_core.base.diagnostics import InternalError
from loom_core.base.dtype import bool_
from loom_core.importers.workgroups.conversion import Conversion, converts
from loom_core.interchange.model import Operation, Region
from loom_core.interchange.uniformity import depends_on_workitem
from loom_core.ir.block import Block
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.control import For, If, While, Yield
from loom_core.ops.debug import Assert
from loom_core.ops.elementwise import Add, And, Compare, Or


def parted(c: Conversion, op: Operation) -> bool:
    """Whether workitems may take different ways through an operation."""
    return depends_on_workitem(op, c.divergent)


def _yielded(c: Conversion, region: Region) -> list[Value]:
    """Convert the operations of a region; what it yields."""
    if len(region.blocks) != 1:
        c.refuse("control flow between blocks is not mapped; use scf")
    last = c.block(region.blocks[0])
    return [c.value(value) for value in last.operands]


def _under(c: Conversion, mask: Value, region: Region | None) -> list[Value]:
    """A region for the workitems of a mask."""
    if region is None:
        return []
    outer, c.lanes.mask = c.lanes.mask, mask
    found = _yielded(c, region)
    c.lanes.mask = outer
    return found


def _in_block(c: Conversion, region: Region, block: Block) -> list[Value]:
    with c.lanes.builder.at(block):
        return _yielded(c, region)


def _end(c: Conversion, block: Block, values: list[Value], types: list[TileType]) -> None:
    """Yield values from a block, spread where the types are those of tiles."""
    if any(type.is_scalar and not value.type.is_scalar for value, type in zip(values, types, strict=True)):
        raise InternalError(what="a value that was taken to be the same for all workitems is not")
    with c.lanes.builder.at(block):
        shaped = [value if type.is_scalar else c.lanes.spread(value) for value, type in zip(values, types, strict=True)]
        c.lanes.make(Yield, shaped)


def _merged(a: list[Value], b: list[Value]) -> list[TileType]:
    """The types that hold the values of either way."""
    return [x.type if not x.type.is_scalar else y.type for x, y in zip(a, b, strict=True)]


# ---- branches ----


@converts("scf.if")
def _if(c: Conversion, op: Operation) -> None:
    condition = c.value(op.operands[0])
    other = op.regions[1] if len(op.regions) > 1 else None
    if parted(c, op) or not condition.type.is_scalar:
        _bind_parted(c, op, condition, op.regions[0], other)
        return
    results = _branch(c, condition, op.regions[0], other)
    for result, value in zip(op.results, results, strict=True):
        c.bind(result, value)


def _bind_parted(c: Conversion, op: Operation, condition: Value, then: Region, other: Region | None) -> None:
    condition = c.lanes.spread(condition)
    first = _under(c, c.lanes.narrowed(condition), then)
    second = _under(c, c.lanes.narrowed(c.lanes.negated(condition)), other)
    for result, a, b in zip(op.results, first, second, strict=False):
        c.bind(result, c.lanes.select(condition, a, b))


def _branch(c: Conversion, condition: Value, then: Region, other: Region | None) -> list[Value]:
    """A branch that all workitems take alike."""
    blocks = (Block(), Block())
    first = _in_block(c, then, blocks[0])
    second = _in_block(c, other, blocks[1]) if other is not None else []
    types = _merged(first, second)
    _end(c, blocks[0], first, types)
    _end(c, blocks[1], second, types)
    return list(c.lanes.builder.create_op(If, condition, regions=blocks, types=tuple(types)).results)


@converts("scf.switch")
def _switch(c: Conversion, op: Operation) -> None:
    """A chain of comparisons, the last way being the default one."""
    selector = c.value(op.operands[0])
    values = _chain(c, op, selector, list(op.attributes["case_keys"]), op.regions[1:], op.regions[0])
    for result, value in zip(op.results, values, strict=True):
        c.bind(result, value)


def _chain(
    c: Conversion, op: Operation, selector: Value, keys: list[int], regions: list[Region], default: Region
) -> list[Value]:
    if not keys:
        return _yielded(c, default)
    hit = c.lanes.make(Compare, selector, c.lanes.like(keys[0], selector), predicate="eq")
    if parted(c, op) or not hit.type.is_scalar:
        first = _under(c, c.lanes.narrowed(hit), regions[0])
        outer, c.lanes.mask = c.lanes.mask, c.lanes.narrowed(c.lanes.negated(hit))
        second = _chain(c, op, selector, keys[1:], regions[1:], default)
        c.lanes.mask = outer
        return [c.lanes.select(hit, a, b) for a, b in zip(first, second, strict=True)]
    blocks = (Block(), Block())
    first = _in_block(c, regions[0], blocks[0])
    with c.lanes.builder.at(blocks[1]):
        second = _chain(c, op, selector, keys[1:], regions[1:], default)
    types = _merged(first, second)
    _end(c, blocks[0], first, types)
    _end(c, blocks[1], second, types)
    return list(c.lanes.builder.create_op(If, hit, regions=blocks, types=tuple(types)).results)


@converts("scf.lookup")
def _lookup(c: Conversion, op: Operation) -> None:
    selector, *payload = op.operands
    keys, width = list(op.attributes["case_keys"]), len(op.results)
    chosen = [c.value(value) for value in payload[len(keys) * width :]]
    at = c.value(selector)
    for row, key in enumerate(keys):
        hit = c.lanes.make(Compare, at, c.lanes.like(key, at), predicate="eq")
        values = payload[row * width : (row + 1) * width]
        chosen = [c.lanes.select(hit, c.value(value), old) for value, old in zip(values, chosen, strict=True)]
    for result, value in zip(op.results, chosen, strict=True):
        c.bind(result, value)


# ---- loops ----


def _spread_types(c: Conversion, ids: list[int], values: list[Value], results: list[int]) -> list[TileType]:
    """Types of carried values: tiles where the value, the argument or the result may differ among workitems."""
    found = []
    for id, value, result in zip(ids, values, results, strict=True):
        differs = id in c.divergent or result in c.divergent or not value.type.is_scalar
        found.append(value.type.with_shape(c.lanes.shape) if differs else value.type)
    return found


def _as(c: Conversion, value: Value, type: TileType) -> Value:
    return value if type.is_scalar else c.lanes.spread(value)


@converts("scf.for")
def _for(c: Conversion, op: Operation) -> None:
    operands = c.operands(op)
    bounds = [c.value(operands[name][0]) for name in ("lower_bound", "upper_bound", "step")]
    body = op.regions[0].blocks[0]
    initial = [c.value(value) for value in operands["iter_args"]]
    types = _spread_types(c, body.arg_ids[1:], initial, op.results)
    initial = [_as(c, value, type) for value, type in zip(initial, types, strict=True)]
    if parted(c, op) or not all(bound.type.is_scalar for bound in bounds):
        _parted_for(c, op, bounds, initial)
        return
    block = Block((bounds[0].type, *types))
    for argument, value in zip(body.arg_ids, block.arguments, strict=True):
        c.bind(argument, value)
    yielded = _in_block(c, op.regions[0], block)
    _end(c, block, yielded, types)
    made = c.lanes.builder.create_op(For, *bounds, initial, regions=[block])
    for result, value in zip(op.results, made.results, strict=True):
        c.bind(result, value)


def _parted_for(c: Conversion, op: Operation, bounds: list[Value], initial: list[Value]) -> None:
    """A loop whose bounds differ: it goes on while some workitem is below its upper bound."""
    lower, upper, step = map(c.lanes.spread, bounds)
    body = op.regions[0].blocks[0]
    carried = [lower, *map(c.lanes.spread, initial)]
    types = tuple(value.type for value in carried)
    ahead, block = Block(types), Block(types)
    outer = c.lanes.mask
    with c.lanes.builder.at(ahead):
        running = c.lanes.narrowed(c.lanes.make(Compare, ahead.arguments[0], upper, predicate="lt"))
        c.lanes.make(Yield, [c.lanes.any(running), *ahead.arguments])
    with c.lanes.builder.at(block):
        at = block.arguments[0]
        running = c.lanes.narrowed(c.lanes.make(Compare, at, upper, predicate="lt"))
        for argument, value in zip(body.arg_ids, block.arguments, strict=True):
            c.bind(argument, value)
        yielded = _under(c, running, op.regions[0])
        moved = [c.lanes.make(Add, at, step), *yielded]
        kept = [c.lanes.select(running, new, old) for new, old in zip(moved, block.arguments, strict=True)]
        c.lanes.make(Yield, kept)
    c.lanes.mask = outer
    made = c.lanes.builder.create_op(While, carried, regions=[ahead, block], types=types)
    for result, value in zip(op.results, made.results[1:], strict=True):
        c.bind(result, value)


@converts("scf.while")
def _while(c: Conversion, op: Operation) -> None:
    """A loop of masks where workitems leave it one by one, else a loop of all while some run."""
    if parted(c, op):
        _parted_while(c, op)
        return
    before, after = op.regions
    initial = [c.value(value) for value in op.operands]
    types = _spread_types(c, before.blocks[0].arg_ids, initial, before.blocks[0].arg_ids)
    initial = [_as(c, value, type) for value, type in zip(initial, types, strict=True)]
    ahead = Block(tuple(types))
    for argument, value in zip(before.blocks[0].arg_ids, ahead.arguments, strict=True):
        c.bind(argument, value)
    condition, *handed = _in_block(c, before, ahead)
    received = after.blocks[0].arg_ids
    results = [
        value.type.with_shape(c.lanes.shape) if argument in c.divergent or result in c.divergent else value.type
        for value, argument, result in zip(handed, received, op.results, strict=True)
    ]
    with c.lanes.builder.at(ahead):
        # Where no workitem runs at all, nothing promises that the loop ends.
        if c.lanes.mask is not None:
            condition = c.lanes.make(And, condition, c.lanes.any(c.lanes.mask))
    _end(c, ahead, [condition, *handed], [condition.type, *results])
    block = Block(tuple(results))
    for argument, value in zip(received, block.arguments, strict=True):
        c.bind(argument, value)
    _end(c, block, _in_block(c, after, block), types)
    made = c.lanes.builder.create_op(While, initial, regions=[ahead, block], types=tuple(results))
    for result, value in zip(op.results, made.results, strict=True):
        c.bind(result, value)


def _parted_while(c: Conversion, op: Operation) -> None:
    """A workitem that leaves keeps what it was handed last."""
    before, after = op.regions
    initial = [c.tile(value) for value in op.operands]
    latched = [
        c.lanes.spread(c.lanes.constant(_zero(dtype), dtype))
        for dtype in (c.dtype_of(c.module.values[result].type) for result in op.results)
    ]
    active = c.lanes.active()
    types = (active.type, *(value.type for value in initial), *(value.type for value in latched))
    handed = (active.type, *(value.type for value in latched))
    ahead, block = Block(types), Block(handed)
    outer = c.lanes.mask
    with c.lanes.builder.at(ahead):
        running, *rest = ahead.arguments
        carried, kept = rest[: len(initial)], rest[len(initial) :]
        for argument, value in zip(before.blocks[0].arg_ids, carried, strict=True):
            c.bind(argument, value)
        condition, *forwarded = _under(c, running, before)
        kept = [c.lanes.select(running, new, old) for new, old in zip(forwarded, kept, strict=True)]
        going = c.lanes.make(And, running, c.lanes.spread(condition))
        c.lanes.make(Yield, [c.lanes.any(going), going, *kept])
    with c.lanes.builder.at(block):
        going, *given = block.arguments
        for argument, value in zip(after.blocks[0].arg_ids, given, strict=True):
            c.bind(argument, value)
        yielded = [c.lanes.spread(value) for value in _under(c, going, after)]
        c.lanes.make(Yield, [going, *yielded, *given])
    c.lanes.mask = outer
    made = c.lanes.builder.create_op(While, [active, *initial, *latched], regions=[ahead, block], types=handed)
    for result, value in zip(op.results, made.results[1:], strict=True):
        c.bind(result, value)


def _zero(dtype: object) -> int | float | bool:
    return False if dtype is bool_ else 0


# ---- ends of workitems ----


@converts("kernel.exit")
def _exit(c: Conversion, op: Operation) -> None:
    leaving = c.lanes.spread(c.value(op.operands[0]))
    if op.regions:
        _under(c, c.lanes.narrowed(leaving), op.regions[0])
    c.lanes.mask = c.lanes.narrowed(c.lanes.negated(leaving))


@converts("kernel.assert")
def _assert(c: Conversion, op: Operation) -> None:
    condition = c.lanes.spread(c.value(op.operands[0]))
    if c.lanes.mask is not None:
        condition = c.lanes.make(Or, condition, c.lanes.negated(c.lanes.mask))
    c.lanes.make(Assert, condition, None, message=op.attributes.get("message", "an assertion does not hold"))
