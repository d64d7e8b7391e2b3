"""`for` under a trace: unrolled where it goes over compile-time values, an operation otherwise.

A run-time `for` becomes a `for` operation; with a `break` that is taken at run time it becomes a `while` operation that
carries the counter and whether the loop was left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from loom_core.base.dtype import bool_
from loom_core.ir.block import Block
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.control import For, While, Yield
from loom_core.ops.elementwise import Add, And, Compare, Not
from loom_core.trace.carried import Carrying
from loom_core.trace.context import NOT_STATIC, Trace
from loom_core.trace.errors import RuntimeValueNeeded, UnsupportedControl
from loom_core.trace.values import Traced, describe

UNROLL_LIMIT: Final = 100_000
"""Iterations after which a loop that runs while tracing is taken to be endless."""

BOOL: Final = TileType(bool_)


class Loop:
    """One `for`: `state` holds the values of the names that it assigns, at the start and the end of each iteration.

    Where the body holds a `break`, the last name is the flag that a `break` sets.
    """

    def __init__(
        self,
        trace: Trace,
        iterable: Any,
        names: tuple[str, ...],
        state: tuple[Any, ...],
        targets: tuple[str, ...],
        breaks: bool,
    ) -> None:
        self.trace = trace
        self.names = names
        self.targets = targets
        self.state = state
        self.breaks = breaks
        self.iterable = iterable
        self.location = trace.location()
        bounds = trace.frontend.loop_bounds(iterable)
        self.runtime = RuntimeLoop(self, bounds) if bounds is not None else None
        self.items = iter(()) if bounds is not None else static_iterator(trace, iterable)

    def __iter__(self) -> Iterator[Any]:
        if self.runtime is not None:
            yield self.runtime.enter()
            self.runtime.leave()
            return
        for count, item in enumerate(self.items):
            if count >= UNROLL_LIMIT:
                raise too_many_iterations(self.trace)
            yield item
            if self.breaks and self._left():
                return

    def _left(self) -> bool:
        """Whether the iteration ended in a `break`. UnsupportedControl where that is decided at run time."""
        left = self.trace.frontend.static_value(self.state[-1])
        if left is NOT_STATIC:
            raise UnsupportedControl(
                self.location,
                what="break at run time from a loop that is unrolled",
                hint="loop over range(...), or mask what the remaining iterations do",
            )
        return bool(left)

    def finish(self) -> tuple[Any, ...]:
        """The values of the names after the loop."""
        return self.state if self.runtime is None else self.runtime.results


class RuntimeLoop:
    """A `for` or `while` operation under construction."""

    def __init__(self, loop: Loop, bounds: tuple[Traced, Traced, Traced]) -> None:
        self.loop = loop
        self.trace = loop.trace
        self.lower, self.upper, self.step = (bound.ir_values()[0] for bound in bounds)
        self.known_step = loop.trace.frontend.static_value(bounds[2])
        self.block = Block((self.lower.type,), loop.targets[:1])
        end = -1 if loop.breaks else None
        self.carrying = Carrying(loop.trace, loop.names[:end], loop.targets, loop.state[:end], loop.location)
        self.results: tuple[Any, ...] = ()

    def enter(self) -> Traced:
        """Start the body; gives the loop variable."""
        inside = self.carrying.enter(self.block)
        self.loop.state = (*inside, False) if self.loop.breaks else inside
        self.trace.enter(self.block)
        return self.trace.frontend.induction(self.loop.iterable, self.block.arguments[0])

    def leave(self) -> None:
        """End the body and make the operation."""
        state = self.loop.state
        left: Any = False
        if self.loop.breaks:
            left, state = state[-1], state[:-1]
        ends = self.carrying.ends(state)
        yields = [value for end in ends for value in end.yields]
        if self.trace.frontend.static_value(left) is NOT_STATIC or left:
            values = self._as_while(yields, left)
        else:
            self.trace.leave()
            values = self._as_for(yields)
        remaining = iter(values)
        after = tuple(end.after(remaining) for end in ends)
        self.results = (*after, False) if self.loop.breaks else after

    def _as_for(self, yields: list[Value]) -> list[Value]:
        """The values of the carried names after a `for` operation."""
        carrying = self.carrying
        kept = _drop_unchanged(carrying, self.block, yields, 1)
        with self.trace.region(self.block):
            self.trace.builder.create(Yield, [yields[i] for i in kept], location=self.loop.location)
        operation = self.trace.builder.create_op(
            For,
            self.lower,
            self.upper,
            self.step,
            [carrying.initial[i] for i in kept],
            regions=[self.block],
            location=self.loop.location,
        )
        values = list(carrying.initial)
        for i, result in zip(kept, operation.results, strict=True):
            values[i] = result
            result.name = carrying.arguments[i].name
        return values

    def _as_while(self, yields: list[Value], left: Any) -> list[Value]:
        """The values of the carried names after a `while` operation that counts, and ends at a `break`."""
        trace, create, location = self.trace, self.trace.builder.create, self.loop.location
        flag = left.ir_values()[0] if isinstance(left, Traced) else trace.constant(BOOL, True)
        following = create(Add, self.block.arguments[0], self.step, location=location)
        create(Yield, [following, *yields, flag], location=location)
        trace.leave()
        initial = [self.lower, *self.carrying.initial, trace.constant(BOOL, False)]
        condition = Block(tuple(value.type for value in initial))
        with trace.region(condition):
            counter, *carried, left_before = condition.arguments
            inside = self._inside(counter)
            going_on = create(Not, left_before, location=location)
            create(Yield, [create(And, inside, going_on, location=location), counter, *carried], location=location)
        operation = trace.builder.create_op(
            While,
            initial,
            types=tuple(value.type for value in initial[:-1]),
            regions=[condition, self.block],
            location=location,
        )
        for argument, result in zip(self.carrying.arguments, operation.results[1:], strict=True):
            result.name = argument.name
        return operation.results[1:]

    def _inside(self, counter: Value) -> Value:
        """Whether the counter is still in the range; a run-time step is positive."""
        falling = self.known_step is not NOT_STATIC and self.known_step < 0
        predicate = "gt" if falling else "lt"
        made: Value = self.trace.builder.create(
            Compare, counter, self.upper, predicate=predicate, location=self.loop.location
        )
        return made


def _drop_unchanged(carrying: Carrying, block: Block, yields: list[Value], first: int) -> list[int]:
    """Take arguments that the body does not change out of the loop; gives the positions of the others.

    `first` arguments of the block stand before the carried ones.
    """
    kept = []
    for i, (argument, given) in enumerate(zip(carrying.arguments, yields, strict=True)):
        if given is argument:
            argument.replace_all_uses(carrying.initial[i])
            yields[:] = [carrying.initial[i] if v is argument else v for v in yields]
        else:
            kept.append(i)
    block.arguments[first:] = [carrying.arguments[i] for i in kept]
    for index, argument in enumerate(block.arguments):
        argument.index = index
    return kept


def static_iterator(trace: Trace, iterable: Any) -> Iterator[Any]:
    """The items of what a loop unrolls over. RuntimeValueNeeded for what cannot be iterated while tracing."""
    if not isinstance(iterable, Traced):
        try:
            return iter(iterable)
        except TypeError:
            pass  # said below, at the user's line
    raise RuntimeValueNeeded(
        trace.location(),
        what=f"what a loop goes over (here {describe(iterable)})",
        hint="loop over range(...), static_range(...) or a tuple",
    )


def too_many_iterations(trace: Trace) -> UnsupportedControl:
    """A loop that does not seem to end while tracing."""
    what = f"a loop of more than {UNROLL_LIMIT} iterations while compiling"
    return UnsupportedControl(trace.location(), what=what, hint="use range(...) for a loop that runs at run time")
