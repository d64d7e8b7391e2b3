"""`scf`: loops and branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from loom_core.base.dtype import bool_
from loom_core.importers.blocks import stand_in
from loom_core.importers.ttir.attributes import plain
from loom_core.importers.ttir.importer import Imported, Importer, row
from loom_core.importers.ttir.syntax import IrBlock, Operation
from loom_core.ir.block import Block
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops import elementwise as ops
from loom_core.ops.control import For, If, While, Yield
from loom_core.trace.values import Traced, flatten, rebuild, types_of

MOST_CASES: Final = 64


@row("scf.for", operands=2, types="free", words=True, regions=1, structured=True)
def _loop(importer: Importer, op: Operation, operands: list[Any]) -> list[Imported]:
    if not op.bindings or [word for word in op.words if word != "unsigned"] not in (
        ["to", "step"],
        ["to", "step", "iter_args"],
    ):
        importer.wrong(op, "it is not of the form %i = %lower to %upper step %step")
    if "unsigned" in op.words:
        importer.refuse(op, "its bounds are unsigned")
    (variable, lower), *carried = op.bindings
    first = importer.value(op, lower)
    upper, step = operands
    _check_bounds(importer, op, [first, upper, step])
    initial = [importer.lookup(op, name) for _, name in carried]
    body = importer.region(op, 0)
    block = Block((first.type, *types_of(initial)))
    arguments = [block.arguments[0], *rebuild(initial, block.arguments[1:])]
    with importer.building(block):
        for name, value in zip([variable, *(name for name, _ in carried)], arguments, strict=True):
            importer.define(op, name, value)
        _finish(importer, op, body, initial)
    made = importer.trace.builder.create_op(For, first, upper, step, flatten(initial), regions=[block])
    return rebuild(initial, made.results)


def _check_bounds(importer: Importer, op: Operation, bounds: list[Any]) -> None:
    for value in bounds:
        if not isinstance(value, Value) or value.type.shape or value.type.is_pointer or not value.type.dtype.is_integer:
            importer.wrong(op, "its bounds are no integers")
        if value.type != bounds[0].type:
            importer.wrong(op, f"its bounds differ: {bounds[0].type} and {value.type}")
    for type in op.types:
        importer.check_type(op, bounds[0], type, "a bound")


def _finish(
    importer: Importer, op: Operation, body: IrBlock, like: Sequence[Imported], beside: Sequence[Value] = ()
) -> None:
    """Import a block that ends in `scf.yield` of values such as `like`; more values are yielded beside them."""
    operations = body.operations
    if not like and (not operations or operations[-1].name != "scf.yield"):
        # A yield of nothing is not printed.
        importer.operations(operations)
        importer.create(Yield, list(beside))
        return
    last = importer.body(op, body, "scf.yield")
    given = [importer.lookup(last, name) for name in last.operands]
    check_alike(importer, last, given, like)
    importer.create(Yield, [*flatten(given), *beside])


def check_alike(importer: Importer, op: Operation, given: Sequence[Imported], like: Sequence[Imported]) -> None:
    """WrongOperands where values differ in number, type or structure."""
    if len(given) != len(like):
        importer.wrong(op, f"{len(given)} values, {len(like)} are needed")
    for a, b in zip(given, like, strict=True):
        if _structure(a) != _structure(b):
            importer.wrong(op, f"{_shown(a)} stands where {_shown(b)} is needed")


def _structure(value: Imported) -> Any:
    return value.structure() if isinstance(value, Traced) else value.type


def _shown(value: Imported) -> str:
    return str(value) if isinstance(value, Traced) else str(value.type)


@row("scf.if", operands=1, types="free", words=True, regions=-1, structured=True)
def _branch(importer: Importer, op: Operation, operands: list[Any]) -> list[Imported]:
    (condition,) = operands
    if not isinstance(condition, Value) or condition.type != TileType(bool_):
        importer.wrong(op, "its condition is no i1")
    if len(op.regions) not in (1, 2) or op.words != ["else"] * (len(op.regions) - 1):
        importer.wrong(op, "one or two regions are needed")
    if importer.trace.selects:
        return _select(importer, op, condition)
    if not op.results:
        blocks = [_arm(importer, op, i) for i in range(len(op.regions))]
        if len(blocks) == 1:
            blocks.append(_empty(importer))
        importer.create(If, condition, regions=blocks, types=())
        return []
    if len(op.regions) != 2:
        importer.wrong(op, "an `else` is needed where there are results")
    results: list[list[Imported]] = [[], []]
    blocks = [_arm(importer, op, i, results[i]) for i in range(2)]
    first, second = results
    check_alike(importer, op, second, first)
    made = importer.trace.builder.create_op(If, condition, regions=blocks, types=tuple(types_of(first)))
    return rebuild(first, made.results)


def _arm(importer: Importer, op: Operation, index: int, results: list[Imported] | None = None) -> Block:
    """One side of a branch; the values that it gives are added to `results`."""
    source, block = importer.region(op, index), Block()
    with importer.building(block):
        if results is None:
            _finish(importer, op, source, [])
        else:
            last = importer.body(op, source, "scf.yield")
            results += [importer.lookup(last, name) for name in last.operands]
            importer.create(Yield, flatten(results))
    return block


def _empty(importer: Importer) -> Block:
    block = Block()
    with importer.trace.region(block):
        importer.create(Yield, [])
    return block


def _select(importer: Importer, op: Operation, condition: Value) -> list[Imported]:
    """A branch in the function of a fold: both sides are computed, and one is chosen."""
    sides: list[list[Value]] = []
    for i in range(len(op.regions)):
        with importer.nested_scope():
            last = importer.body(op, importer.region(op, i), "scf.yield")
            sides.append([importer.value(last, name) for name in last.operands])
    if len(sides) != 2 or len(sides[0]) != len(sides[1]):
        importer.wrong(op, "its sides give different values")
    for a, b in zip(*sides, strict=True):
        if a.type != b.type:
            importer.wrong(op, f"its sides give {a.type} and {b.type}")
    return [importer.create(ops.Select, condition, a, b) for a, b in zip(*sides, strict=True)]


@row("scf.while", operands=0, types="free", words=True, regions=2, structured=True)
def _while(importer: Importer, op: Operation, operands: list[Any]) -> list[Imported]:
    if op.words != ["do"]:
        importer.wrong(op, "it is not of the form while ... do")
    initial = [importer.lookup(op, name) for _, name in op.bindings]
    condition = Block(tuple(types_of(initial)))
    with importer.building(condition):
        for (name, _), value in zip(op.bindings, rebuild(initial, condition.arguments), strict=True):
            importer.define(op, name, value)
        last = importer.body(op, importer.region(op, 0), "scf.condition")
        if not last.operands:
            importer.wrong(last, "a condition is needed")
        flag = importer.value(last, last.operands[0])
        if flag.type != TileType(bool_):
            importer.wrong(last, f"its condition is {flag.type}")
        handed = [importer.lookup(last, name) for name in last.operands[1:]]
        # Pointers stay at one place from the condition to the body and back: what differs is carried beside.
        aside = types_of(handed) != types_of(initial) and any(type.is_pointer for type in types_of(handed + initial))
        importer.create(Yield, [flag, *(condition.arguments if aside else ()), *flatten(handed)])
    return _while_of(importer, op, initial, handed, condition, aside)


def _while_of(
    importer: Importer,
    op: Operation,
    initial: list[Imported],
    handed: list[Imported],
    condition: Block,
    aside: bool,
) -> list[Imported]:
    """The loop of a finished condition; `aside`: the condition hands on its arguments before `handed`."""
    source, first = importer.region(op, 1), len(condition.arguments) if aside else 0
    before = flatten(initial)
    if aside:
        for like in flatten(handed):
            found = stand_in(importer.trace, like)
            before.append(
                found if found is not None else importer.refuse(op, "no parameter is such a pointer as it gives")
            )
            condition.add_argument(like.type)
    body = Block(tuple([value.type for value in before] if aside else types_of(handed)))
    if len(source.arguments) != len(handed):
        importer.wrong(op, f"its body takes {len(source.arguments)} values, {len(handed)} are handed on")
    given = body.arguments[first:]
    with importer.building(body):
        for (name, type), value in zip(source.arguments, rebuild(handed, given), strict=True):
            importer.check_type(op, value, type, name)
            importer.define(op, name, value)
        _finish(importer, op, source, initial, given if aside else ())
    types = tuple(value.type for value in body.arguments)
    made: Op = importer.trace.builder.create_op(While, before, regions=[condition, body], types=types)
    return rebuild(handed, made.results[first:])


@row("scf.index_switch", operands=1, types="free", words=True, regions=-1)
def _switch(importer: Importer, op: Operation, operands: list[Any]) -> list[Imported]:
    """A chain of branches, the last way the default one."""
    cases = [plain(case) for case in op.literals]
    if op.words != ["case"] * len(cases) + ["default"] or len(op.regions) != len(cases) + 1:
        importer.wrong(op, "it is not of the form case 1 { ... } default { ... }")
    (selector,) = operands
    if selector.type.shape or not selector.type.dtype.is_integer or any(type(case) is not int for case in cases):
        importer.wrong(op, f"it does not choose by {selector.type}")
    if len(cases) > MOST_CASES:
        importer.refuse(op, f"it has more than {MOST_CASES} cases")
    return _chosen(importer, op, selector, cases, 0)


def _chosen(importer: Importer, op: Operation, selector: Value, cases: list[int], first: int) -> list[Imported]:
    if first == len(cases):
        return _way(importer, op, first)
    number = importer.constant(selector.type, cases[first])
    condition = importer.create(ops.Compare, selector, number, predicate="eq")
    blocks, results = (Block(), Block()), []
    for block, ahead in zip(blocks, (False, True), strict=True):
        with importer.building(block):
            made = _chosen(importer, op, selector, cases, first + 1) if ahead else _way(importer, op, first)
            importer.create(Yield, flatten(made))
        results.append(made)
    check_alike(importer, op, results[1], results[0])
    types = tuple(types_of(results[0]))
    return rebuild(results[0], importer.trace.builder.create_op(If, condition, regions=blocks, types=types).results)


def _way(importer: Importer, op: Operation, index: int) -> list[Imported]:
    """The operations of one region, in a scope of their own; gives what it yields."""
    with importer.nested_scope():
        last = importer.body(op, importer.region(op, index), "scf.yield")
        return [importer.lookup(last, name) for name in last.operands]
