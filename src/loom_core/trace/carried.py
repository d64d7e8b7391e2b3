"""What a run-time loop carries from one iteration to the next: the names that its body assigns, as block arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from loom_core.base.location import UNKNOWN, Location
from loom_core.ir.block import Block
from loom_core.ir.value import Value
from loom_core.trace.context import Trace
from loom_core.trace.errors import CarriedTypeChanges, StaticChanges
from loom_core.trace.values import (
    Mismatch,
    Pair,
    Traced,
    Unset,
    describe,
    has_traced,
    is_number,
    leaves,
    map_leaves,
    origin,
    rebuild_tuple,
    same_static,
)


class Carrying:
    """The names of one loop as arguments of one of its blocks.

    `initial` are the IR values with which the block is entered first, `arguments` stand for them inside. Plain numbers
    among the values before the loop become run-time scalars.
    """

    def __init__(
        self, trace: Trace, names: tuple[str, ...], targets: tuple[str, ...], state: Sequence[Any], location: Location
    ) -> None:
        self.trace = trace
        self.names = names
        self.targets = targets
        self.location = location
        self.before = tuple(map(self._liftable, state))
        self.initial: list[Value] = []
        self.arguments: list[Value] = []
        self._owned: dict[str, list[Value]] = {}

    def _liftable(self, value: Any) -> Any:
        if has_traced(value) or is_number(value):
            return map_leaves(lambda leaf: self.trace.frontend.lift(leaf) if is_number(leaf) else leaf, value)
        return value

    def enter(self, block: Block) -> tuple[Any, ...]:
        """Add the arguments to `block`; gives the values of the names inside it."""
        return tuple(self._carry(block, *item) for item in zip(self.names, self.before, strict=True))

    def _carry(self, block: Block, name: str, value: Any) -> Any:
        def leaf(item: Any) -> Any:
            if not isinstance(item, Traced):
                return item
            initial = item.ir_values()
            arguments = [block.add_argument(v.type, name) for v in initial]
            self._owned.setdefault(name, []).extend(arguments)
            self.initial.extend(initial)
            self.arguments.extend(arguments)
            return item.with_ir_values(arguments)

        return map_leaves(leaf, value)

    def ends(self, state: Sequence[Any]) -> list[Ending]:
        """How each name leaves an iteration that ended in `state`. Diagnostics for one that became something else."""
        return [self._end(*item) for item in zip(self.names, self.before, state, strict=True)]

    def _end(self, name: str, before: Any, after: Any) -> Ending:
        if isinstance(before, Unset):
            left = before if isinstance(after, Unset) else Unset("loop", origin(after), self.location)
            return Ending(left, [])
        if not has_traced(before):
            if not same_static(before, after):
                raise StaticChanges(self.location, name=name, before=describe(before), after=describe(after), notes=[])
            return Ending(before, [])
        try:
            if isinstance(after, Unset):
                raise Mismatch(static=False)
            old, new = Pair(before, after, self.trace.frontend.lift).unify()
        except Mismatch:
            if name in self.targets or isinstance(after, Unset):
                # The loop variable hides what the name was before; after the loop the name has no certain value.
                return Ending(Unset("loop", origin(after), self.location), self._owned[name])
            raise self._type_changes(name, before, after) from None
        return Ending(old, [value for leaf in leaves(new) if isinstance(leaf, Traced) for value in leaf.ir_values()])

    def _type_changes(self, name: str, before: Any, after: Any) -> CarriedTypeChanges:
        places = (("before the loop", origin(before)), ("in the loop", origin(after)))
        notes = [f"{name} is assigned {when} at {where}" for when, where in places if where is not UNKNOWN]
        where = origin(after)
        location = where if where.known else self.location
        return CarriedTypeChanges(location, name=name, before=describe(before), after=describe(after), notes=notes)


class Ending:
    """How one name leaves a run-time loop: a structure to fill with the results, and what the body yields for it."""

    def __init__(self, structure: Any, yields: list[Value]) -> None:
        self.structure = structure
        self.yields = yields

    def after(self, values: Iterator[Value]) -> Any:
        """The value of the name after the loop, taking what it needs from the operation's results."""
        if isinstance(self.structure, Unset):
            for _ in self.yields:
                next(values)
            return self.structure
        return fill(self.structure, values)


def fill(structure: Any, values: Iterator[Value]) -> Any:
    """`structure` with its run-time values around others."""
    if isinstance(structure, tuple):
        return rebuild_tuple(structure, [fill(item, values) for item in structure])
    if isinstance(structure, Traced):
        return structure.with_ir_values([next(values) for _ in structure.ir_types()])
    return structure
