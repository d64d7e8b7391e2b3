"""Blocks with branches become Tile IR: `if`, `for` and `while`.

Each block is built where the block that dominates it last has been built, so that what it reads is in scope, and once:
    cond_br %c, ^a, ^b;  ^a: br ^j(%x);  ^b: br ^j(%y);  ^j(%z): ...    ->    %z = if %c { yield %x } { yield %y }; ...
Where a part of the program may go on at several blocks, it gives a truth value for each beside the values handed over:
    cond_br %c, ^a, ^j;  ^a: cond_br %d, ^j, ^k                         ->    %j, %k = if %c { yield %d, not %d } { .. }
                                                                              if %j { block j } { .. }; if %k { .. }
A loop that counts becomes a `for` (see `counted`), one that only its header leaves a `while` that tests there, any
other a `while` that does all its work in the condition and gives what leaves it. A return is one more way out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, Protocol

from loom_core.base.diagnostics import InternalError
from loom_core.base.dtype import bool_
from loom_core.importers.blocks.check import JoinWitness, Structure, problems
from loom_core.importers.blocks.counted import CountedWitness, LoopWitness, TestedLoop, count, tested
from loom_core.importers.blocks.graph import END, MOST_BLOCKS, Edge, Graph, NaturalLoop, Node
from loom_core.ir.block import Block
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.control import For, If, While, Yield
from loom_core.ops.elementwise import Compare, Not, Select
from loom_core.ops.memory import AddPointer
from loom_core.ops.shape import Splat
from loom_core.trace.context import Trace
from loom_core.trace.values import Traced, flatten, rebuild, types_of

Built = Value | Traced
DEEPEST: Final = 64
"""How deep loops and branches may nest."""
_FLAG: Final = TileType(bool_)


class Program(Protocol):
    """What an importer gives: the meaning of names and blocks. Names live in the scope in which they are bound."""

    @property
    def trace(self) -> Trace:
        """Where Tile IR is built."""

    def enter(self, label: str, values: Sequence[Built]) -> None:
        """Bind the parameters of a block; refuses other numbers and types than it takes."""

    def run(self, label: str) -> None:
        """Build the operations of a block, but for the branch at its end."""

    def bind(self, name: str, value: Built) -> None:
        """Let a name stand for a value."""

    def value(self, label: str, name: str) -> Built:
        """What a name stands for, used at the end of a block."""

    def scope(self) -> AbstractContextManager[None]:
        """Names bound inside are not known outside."""

    def alike(self, label: str, first: Sequence[Built], second: Sequence[Built]) -> None:
        """Refuse values that cannot meet at a block (END: values that are returned)."""

    def refuse(self, label: str, reason: str) -> NoReturn:
        """A diagnostic at the end of a block."""


@dataclass
class _Exits:
    """Where a part of the program may go on: what it hands over to each block, and where it does."""

    values: dict[str, list[Built]]
    flags: dict[str, Value] = field(default_factory=dict)


def build(graph: Graph, program: Program) -> tuple[list[Built], Structure]:
    """Build the blocks of a function from the entry on, whose parameters are bound already.

    Gives what the function returns, and how it was structured; this is checked again. Diagnostics are the program's.
    """
    emitter = _Emitter(graph, program)
    exits = emitter.part([graph.entry], _Exits({graph.entry: []}))
    structure = Structure(tuple(emitter.loops), tuple(emitter.joins))
    wrong = next(problems(graph, structure), None)
    if wrong is not None:
        raise InternalError(what=f"a witness of the structure of blocks does not hold: {wrong}")
    return exits.values.get(END, []), structure


class _Emitter:
    def __init__(self, graph: Graph, program: Program) -> None:
        self.graph = graph
        self.program = program
        self.trace = program.trace
        self.loops: list[LoopWitness] = []
        self.joins: list[JoinWitness] = []
        self.depth = 0
        self.followers = self._followers()
        self.extra = {label: self._extra(label) for label in graph.order}

    # ---- where blocks are built ----

    def _followers(self) -> dict[tuple[str, bool], list[str]]:
        """The blocks that are built after each block, in order; after a whole loop where the second part is true."""
        found: dict[tuple[str, bool], list[str]] = {}
        for label in self.graph.order[1:]:
            owner, after = self._owner(label)
            found.setdefault((owner, after), []).append(label)
        return found

    def _owner(self, label: str) -> tuple[str, bool]:
        left = self._left(label)
        return (left.header, True) if left is not None else (self.graph.dominator[label], False)

    def _left(self, label: str) -> NaturalLoop | None:
        """The outermost loop that holds the dominator of a block and not the block."""
        around = self.graph.around(self.graph.dominator[label]) if label != self.graph.entry else []
        return next((loop for loop in reversed(around) if label not in loop.blocks), None)

    def _extra(self, label: str) -> tuple[str, ...]:
        """The names of a loop that a block behind it reads: they are handed over too."""
        left = self._left(label)
        if left is None:
            return ()
        defined = frozenset().union(*(self.graph.nodes[inside].names for inside in left.blocks))
        return tuple(sorted(self.graph.live[label] & defined))

    def _is_arm(self, edge: Edge, label: str) -> bool:
        """Whether a block is only reached by this edge, and can be built inside of the branch at the end of `label`."""
        target = edge.target
        return target != END and self.graph.sources[target] == [label] and self._owner(target) == (label, False)

    # ---- parts of the program ----

    def part(self, pending: Iterable[str], exits: _Exits) -> _Exits:
        """Build blocks, and those that follow each, in order; gives the ways out of them all."""
        waiting = set(pending)
        while waiting:
            label = min(waiting, key=self.graph.rank.__getitem__)
            waiting.discard(label)
            if label not in exits.values:
                raise InternalError(what=f"no way leads to block {label}")
            if len(exits.values) == 1:
                exits = self._one(label, exits.values[label])
                waiting |= self._after(label)
            else:
                exits = self._where(label, exits)
        return exits

    def _after(self, label: str) -> set[str]:
        after = label in self.graph.loops
        followers = self.followers.get((label, after), ())
        return set(followers) - (set() if after else self._arms(label))

    def _arms(self, label: str) -> set[str]:
        edges = self.graph.nodes[label].edges
        return {edge.target for edge in edges if self._is_arm(edge, label)} if len(edges) > 1 else set()

    def _where(self, label: str, exits: _Exits) -> _Exits:
        """Build a block where its flag says so, and pass the other ways on where not."""
        values = exits.values.pop(label)
        flag = exits.flags.pop(label)
        return self._if(flag, lambda: self.part([label], _Exits({label: values})), lambda: exits, label)

    def _one(self, label: str, values: Sequence[Built]) -> _Exits:
        """A block and its branch, or a loop."""
        rank = self.graph.rank
        if sum(rank[source] < rank[label] for source in self.graph.sources[label]) > 1:
            parameters = self.graph.nodes[label].parameters
            self.joins.append(JoinWitness(self.graph.dominator[label], label, parameters))
        first = len(values) - len(self.extra[label])
        for name, value in zip(self.extra[label], values[first:], strict=True):
            self.program.bind(name, value)
        values = values[:first]
        if label in self.graph.loops:
            return self._loop(self.graph.loops[label], values)
        self._begin(label, values)
        return self._ends(label)

    def _begin(self, label: str, values: Sequence[Built]) -> None:
        if label != self.graph.entry:
            self.program.enter(label, values)
        self.program.run(label)

    def _ends(self, label: str) -> _Exits:
        """The branch at the end of a block."""
        node = self.graph.nodes[label]
        if len(node.edges) > 1:
            return self._choose(node, self._conditions(node), node.edges)
        return _Exits({edge.target: self._handed(label, edge) for edge in node.edges})

    def _handed(self, label: str, edge: Edge) -> list[Built]:
        loop = self.graph.loops.get(edge.target)
        again = loop is not None and label in loop.blocks
        extra = () if again else self.extra.get(edge.target, ())
        return [self.program.value(label, name) for name in (*edge.arguments, *extra)]

    # ---- branches ----

    def _conditions(self, node: Node) -> list[Value]:
        """For each way but the last, whether it is taken, if those before it are not."""
        selector = self.program.value(node.label, node.selector)
        if not isinstance(selector, Value) or selector.type.shape or selector.type.is_pointer:
            self.program.refuse(node.label, f"its condition is {getattr(selector, 'type', selector)}")
        if selector.type.dtype.is_bool:
            if len(node.edges) == 2 and not node.cases:
                return [selector]
        elif selector.type.dtype.is_integer and len(node.cases) == len(node.edges) - 1:
            numbers = [self.trace.constant(selector.type, number) for number in node.cases]
            return [self._make(Compare, selector, number, predicate="eq") for number in numbers]
        return self.program.refuse(node.label, f"its condition is {selector.type}")

    def _choose(self, node: Node, conditions: Sequence[Value], edges: Sequence[Edge]) -> _Exits:
        if not conditions:
            return self._way(node.label, edges[0])
        first = edges[0]
        if len(edges) == 2 and not self._arms(node.label) and first.target != edges[1].target:
            values = {edge.target: self._handed(node.label, edge) for edge in edges}
            negated = self._make(Not, conditions[0])
            return _Exits(values, {first.target: conditions[0], edges[1].target: negated})
        return self._if(
            conditions[0],
            lambda: self._way(node.label, first),
            lambda: self._choose(node, conditions[1:], edges[1:]),
            node.label,
        )

    def _way(self, label: str, edge: Edge) -> _Exits:
        """What follows a branch on one side: the block there if only this edge leads to it."""
        exits = _Exits({edge.target: self._handed(label, edge)})
        return self.part([edge.target], exits) if self._is_arm(edge, label) else exits

    def _if(self, condition: Value, on_true: Callable[[], _Exits], on_false: Callable[[], _Exits], at: str) -> _Exits:
        blocks, sides = (Block(), Block()), []
        self._deeper(at)
        for block, make in zip(blocks, (on_true, on_false), strict=True):
            with self.program.scope():
                if self.trace.selects:
                    sides.append(make())
                    continue
                with self.trace.region(block):
                    sides.append(make())
        self.depth -= 1
        like = self._meeting(sides)
        if self.trace.selects:
            first, second = (self._given(like, side, at) for side in sides)
            results = [self._make(Select, condition, a, b) for a, b in zip(first, second, strict=True)]
            return self._exits(like, results)
        for block, side in zip(blocks, sides, strict=True):
            with self.trace.region(block):
                self._make(Yield, self._given(like, side, at))
        types = (*types_of([value for values in like.values() for value in values]), *[_FLAG] * self._flags(like))
        made = self.trace.builder.create_op(If, condition, regions=blocks, types=types)
        return self._exits(like, made.results)

    def _meeting(self, sides: Sequence[_Exits]) -> dict[str, list[Built]]:
        """For each place where sides of a branch go on, values such as they hand over there."""
        like: dict[str, list[Built]] = {}
        for side in sides:
            for target, values in side.values.items():
                if target in like:
                    self.program.alike(target, like[target], values)
                like.setdefault(target, values)
        return dict(sorted(like.items(), key=lambda item: self.graph.rank.get(item[0], MOST_BLOCKS)))

    def _flags(self, like: Mapping[str, object]) -> int:
        return len(like) if len(like) > 1 else 0

    def _given(self, like: Mapping[str, Sequence[Built]], exits: _Exits, at: str) -> list[Value]:
        """What one side gives for all places, something where it does not go there, and the flags."""
        given: list[Value] = []
        for target, values in like.items():
            found = exits.values.get(target)
            given += flatten(found) if found is not None else [self._any(value, at) for value in flatten(values)]
        if self._flags(like):
            for target in like:
                known = target in exits.values
                flag = exits.flags.get(target) if known else None
                given.append(flag if flag is not None else self.trace.constant(_FLAG, known))
        return given

    def _exits(self, like: Mapping[str, Sequence[Built]], results: Sequence[Value]) -> _Exits:
        remaining = iter(results)
        values = {target: rebuild(old, [next(remaining) for _ in flatten(old)]) for target, old in like.items()}
        return _Exits(values, dict(zip(like, remaining, strict=False)) if self._flags(like) else {})

    def _any(self, like: Value, at: str) -> Value:
        """A value of the type of `like` that nobody reads."""
        found = stand_in(self.trace, like)
        if found is None:
            self.program.refuse(at, "a pointer leaves it on some ways only, and no parameter could stand in for it")
        return found

    # ---- loops ----

    def _loop(self, loop: NaturalLoop, values: Sequence[Built]) -> _Exits:
        if self.trace.selects:
            self.program.refuse(loop.latches[0], "a loop in a function that is applied element by element")
        self._deeper(loop.header)
        found = tested(self.graph, loop)
        claim = count(self.graph, found) if found is not None else None
        if found is not None and claim is not None and self._countable(claim, values):
            self.loops.append(claim)
            exits = self._counting(found, claim, values)
        else:
            self.loops.append(LoopWitness(loop.header, self.graph.nodes[loop.header].parameters))
            exits = self._testing(found, values) if found is not None else self._repeating(loop, values)
        self.depth -= 1
        return exits

    def _deeper(self, at: str) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self.program.refuse(at, f"more than {DEEPEST} levels of loops and branches")

    def _inner(self, loop: NaturalLoop) -> set[str]:
        return set(self.followers.get((loop.header, False), ()))

    def _body(self, found: TestedLoop) -> list[Built]:
        """What follows the header inside of the loop; gives the header's next values."""
        header = found.loop.header
        handed = self._handed(header, found.inside)
        exits = self.part(self._inner(found.loop), _Exits({found.inside.target: handed}))
        if list(exits.values) != [header]:
            raise InternalError(what=f"the loop of block {header} ends in {list(exits.values)}")
        return exits.values[header]

    def _countable(self, claim: CountedWitness, values: Sequence[Built]) -> bool:
        """Whether the variable and what bounds it are integers of one type."""
        first = values[claim.position]
        upper = self.program.value(claim.header, claim.upper) if isinstance(claim.upper, str) else first
        return isinstance(first, Value) and isinstance(upper, Value) and first.type == upper.type

    def _counting(self, found: TestedLoop, claim: CountedWitness, values: Sequence[Built]) -> _Exits:
        header, position = claim.header, claim.position
        (first,) = flatten([values[position]])
        node = self.graph.nodes[header]
        read = {*found.outside.arguments, *self.extra.get(found.outside.target, ())}
        # The variable's last value: one more carried number where something reads it, or what the header computes.
        again = claim.variable in read or not read.isdisjoint(node.results)
        carried = list(values) if again else [*values[:position], *values[position + 1 :]]
        upper = self._upper(claim, first.type)
        step = self.trace.constant(first.type, claim.step)
        block = Block((first.type, *types_of(carried)))
        with self.program.scope(), self.trace.region(block):
            given = rebuild(carried, block.arguments[1:])
            if again:
                given[position] = block.arguments[0]
            else:
                given.insert(position, block.arguments[0])
            self._begin(header, given)
            following = self._body(found)
            if not again:
                del following[position]
            self.program.alike(header, carried, following)
            self._make(Yield, flatten(following))
        made = self.trace.builder.create_op(For, first, upper, step, flatten(carried), regions=[block])
        results = rebuild(carried, made.results)
        if again:
            return self._leave(found, results)
        names = [name for name in node.parameters if name != claim.variable]
        for name, value in zip(names, results, strict=True):
            self.program.bind(name, value)
        return _Exits({found.outside.target: self._handed(header, found.outside)})

    def _upper(self, claim: CountedWitness, type: TileType) -> Value:
        if isinstance(claim.upper, int):
            return self.trace.constant(type, claim.upper)
        (value,) = flatten([self.program.value(claim.header, claim.upper)])
        return value

    def _leave(self, found: TestedLoop, results: Sequence[Built]) -> _Exits:
        """The header for the last time, of which only what it hands on is left."""
        header = found.loop.header
        self._begin(header, results)
        return _Exits({found.outside.target: self._handed(header, found.outside)})

    def _testing(self, found: TestedLoop, values: Sequence[Built]) -> _Exits:
        header = found.loop.header
        types = tuple(types_of(values))
        condition, body = Block(types), Block(types)
        with self.program.scope(), self.trace.region(condition):
            self._begin(header, rebuild(values, condition.arguments))
            (holds,) = self._conditions(self.graph.nodes[header])
            if found.negated:
                holds = self._make(Not, holds)
            self._make(Yield, [holds, *condition.arguments])
        with self.program.scope(), self.trace.region(body):
            self._begin(header, rebuild(values, body.arguments))
            following = self._body(found)
            self.program.alike(header, values, following)
            self._make(Yield, flatten(following))
        made = self.trace.builder.create_op(While, flatten(values), regions=[condition, body], types=types)
        return self._leave(found, rebuild(values, made.results))

    def _repeating(self, loop: NaturalLoop, values: Sequence[Built]) -> _Exits:
        """All in the condition: it gives whether to go on, the header's next values, and what leaves the loop."""
        header = loop.header
        condition = Block(tuple(types_of(values)))
        with self.program.scope(), self.trace.region(condition):
            self._begin(header, rebuild(values, condition.arguments))
            exits = self.part(self._inner(loop) - self._arms(header), self._ends(header))
            following = exits.values.pop(header)
            self.program.alike(header, values, following)
            goes_on = exits.flags.pop(header, None)
            like = dict(sorted(exits.values.items(), key=lambda item: self.graph.rank.get(item[0], MOST_BLOCKS)))
            left = self._given(like, exits, header)
            if goes_on is None:
                goes_on = self.trace.constant(_FLAG, True)
            self._make(Yield, [goes_on, *flatten(following), *left])
        for value in left:
            condition.add_argument(value.type)
        body = Block(tuple(value.type for value in condition.arguments))
        with self.trace.region(body):
            self._make(Yield, body.arguments)
        initial = [*flatten(values), *(self._any(value, header) for value in left)]
        types = tuple(value.type for value in initial)
        made = self.trace.builder.create_op(While, initial, regions=[condition, body], types=types)
        return self._exits(like, made.results[len(flatten(values)) :])

    def _make(self, kind: type, /, *operands: Value | Sequence[Value], **attributes: Any) -> Value:
        return self.trace.builder.create(kind, *operands, **attributes)  # type: ignore[no-any-return]


def stand_in(trace: Trace, like: Value) -> Value | None:
    """A value of the type of `like` that nobody reads; None for a pointer to what no parameter points to."""
    if not like.type.is_pointer:
        return trace.constant(like.type, 0)
    parameters = trace.function.arguments
    fitting = [value for value in parameters if value.type.is_pointer and value.type.pointee is like.type.pointee]
    base = _root(like)
    if base not in fitting and not fitting:
        return None
    base = base if base in fitting else fitting[0]
    return trace.builder.create(Splat, base, shape=like.type.shape) if like.type.shape else base


def _root(pointer: Value) -> Value:
    """The value that a pointer was moved from."""
    while isinstance(pointer.defining_op, (AddPointer, Splat)):
        pointer = pointer.defining_op.operands[0]
    return pointer
