"""`if` under a trace: one way where the condition is known, an `if` operation where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loom_core.base.location import Location
from loom_core.ir.block import Block
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.control import If, Yield
from loom_core.ops.elementwise import Select
from loom_core.trace.context import NOT_STATIC, Trace
from loom_core.trace.errors import BranchTypesDiffer, StaticChanges, UnsupportedControl
from loom_core.trace.rewrite import RESULT
from loom_core.trace.values import (
    Mismatch,
    Pair,
    Traced,
    Unset,
    describe,
    leaves,
    map_leaves,
    origin,
)


class Branch:
    """One `if`. Where its condition is run-time, both branches are traced, the second from the state before the first.

    `tail` says that nothing follows, so that only the function's result is joined.
    """

    def __init__(self, trace: Trace, test: Any, names: tuple[str, ...], state: tuple[Any, ...], tail: bool) -> None:
        self.trace = trace
        self.names = names
        self.before = state
        self.tail = tail
        self.location = trace.location()
        known = trace.frontend.static_value(test)
        self.condition: Value | None = trace.frontend.condition(test) if known is NOT_STATIC else None
        self.taken = bool(known) if known is not NOT_STATIC else True
        self.blocks = (Block(), Block())
        self.true_state: tuple[Any, ...] = state

    def on_true(self) -> bool:
        """Whether to run the first branch."""
        if self.condition is not None:
            self.trace.enter(self.blocks[0])
        return self.taken

    def switch(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """The first branch has ended in `state`; gives the state that the second starts from."""
        if self.condition is None:
            return state
        self.trace.leave()
        self.true_state = state
        self.trace.enter(self.blocks[1])
        return self.before

    def on_false(self) -> bool:
        """Whether to run the second branch."""
        return self.condition is not None or not self.taken

    def join(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """The last branch has ended in `state`; gives the state after the `if`."""
        if self.condition is None:
            return state
        self.trace.leave()
        joined = [self._join(name, a, b) for name, a, b in zip(self.names, self.true_state, state, strict=True)]
        return self._build(joined)

    def _join(self, name: str, on_true: Any, on_false: Any) -> Any:
        """Both values of a name, made to fit; or the one value that it has."""
        if on_true is on_false:
            return on_true
        unset = isinstance(on_true, Unset), isinstance(on_false, Unset)
        if any(unset) or (self.tail and name != RESULT):
            assigned = origin(on_false if unset[0] else on_true)
            return Unset("branch", assigned, self.location)
        try:
            return _Joined(*Pair(on_true, on_false, self.trace.frontend.lift).unify())
        except Mismatch as mismatch:
            raise self._mismatch(name, on_true, on_false, mismatch) from None

    def _mismatch(self, name: str, on_true: Any, on_false: Any, mismatch: Mismatch) -> Exception:
        label = "the returned value" if name == RESULT else name
        places = [_place("where the condition holds", on_true), _place("where it does not", on_false)]
        notes = [note for note in places if note]
        if mismatch.static:
            return StaticChanges(
                self.location, name=label, before=describe(on_true), after=describe(on_false), notes=notes
            )
        return BranchTypesDiffer(
            self.location, name=label, on_true=describe(on_true), on_false=describe(on_false), notes=notes
        )

    def _build(self, joined: list[Any]) -> tuple[Any, ...]:
        if self.trace.selects:
            return self._build_selects(joined)
        yields: tuple[list[Value], list[Value]] = ([], [])
        types: list[TileType] = []
        for item in joined:
            if isinstance(item, _Joined):
                for side, block in enumerate(self.blocks):
                    with self.trace.region(block):
                        yields[side].extend(item.values(side))
        types = [value.type for value in yields[0]]
        for side, block in enumerate(self.blocks):
            with self.trace.region(block):
                self.trace.builder.create(Yield, yields[side], location=self.location)
        operation = self.trace.builder.create_op(
            If, self.condition, types=tuple(types), regions=self.blocks, location=self.location
        )
        results = iter(operation.results)
        after = tuple(item.after(results) if isinstance(item, _Joined) else item for item in joined)
        for name, value in zip(self.names, after, strict=True):
            if isinstance(value, Traced) and name.isidentifier():
                value.suggest_name(name)
        return after

    def _build_selects(self, joined: list[Any]) -> tuple[Any, ...]:
        """Run both branches and select, in code that is applied element by element."""
        for block in self.blocks:
            for op in block.operations:
                if not op.pure:
                    what = f"{op.name} under a condition in a function that is applied element by element"
                    raise UnsupportedControl(op.location, what=what, hint="do it outside, with a mask")
                self.trace.builder.block.append(op)
        create = self.trace.builder.create
        after = []
        for item in joined:
            if not isinstance(item, _Joined):
                after.append(item)
                continue
            pairs = zip(item.values(0), item.values(1), strict=True)
            after.append(item.after(create(Select, self.condition, a, b, location=self.location) for a, b in pairs))
        return tuple(after)


class _Joined:
    """Two values of equal structure that meet after an `if`."""

    def __init__(self, on_true: Any, on_false: Any) -> None:
        self.sides = (on_true, on_false)
        self.differs = [
            isinstance(a, Traced) and not a.same(b) for a, b in zip(leaves(on_true), leaves(on_false), strict=True)
        ]

    def values(self, side: int) -> list[Value]:
        """The IR values that the branch yields for the leaves that differ."""
        chosen = zip(leaves(self.sides[side]), self.differs, strict=True)
        return [value for leaf, differs in chosen if differs for value in leaf.ir_values()]

    def after(self, results: Iterator[Value]) -> Any:
        """The value after the `if`, taking what it needs from the operation's results."""
        differs = iter(self.differs)

        def leaf(value: Any) -> Any:
            if not next(differs):
                return value
            return value.with_ir_values([next(results) for _ in value.ir_types()])

        return map_leaves(leaf, self.sides[0])


def _place(when: str, value: Any) -> str:
    where: Location = origin(value)
    return f"{describe(value)} {when}, from {where}" if where.known else ""
