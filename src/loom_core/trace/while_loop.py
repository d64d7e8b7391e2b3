"""`while` under a trace: unrolled while its condition is known, a `while` operation from where it is not.

The condition is traced on trial, in a block of its own, for each iteration. If it turns out to be known, what it did
joins the program; if not, the trial is thrown away and the loop is traced once more as an operation. A loop with a
`break` tries its whole iteration, because the `break` too may be decided at run time.
"""

from __future__ import annotations

from typing import Any

from loom_core.ir.block import Block
from loom_core.ir.value import Value
from loom_core.ops.control import If, While, Yield
from loom_core.trace.carried import Carrying, fill
from loom_core.trace.context import NOT_STATIC, Trace
from loom_core.trace.errors import UnsupportedControl
from loom_core.trace.loop import BOOL, UNROLL_LIMIT, too_many_iterations
from loom_core.trace.values import Traced, Unset, origin


class WhileLoop:
    """One `while`: the rewritten code asks `more`, `holds`, and says `advance`; `state` is that of the present part.

    Where the body holds a `break`, the last name is the flag that a `break` sets.
    """

    def __init__(self, trace: Trace, names: tuple[str, ...], state: tuple[Any, ...], breaks: bool) -> None:
        self.trace = trace
        self.names = names
        self.state = state
        self.breaks = breaks
        self.location = trace.location()
        self.runtime: RuntimeWhile | None = None
        self.before = state
        self.done = False
        self.count = 0

    def more(self) -> bool:
        """Whether to evaluate the condition once more."""
        if self.done:
            return False
        self.count += 1
        if self.count > UNROLL_LIMIT:
            raise too_many_iterations(self.trace)
        if self.runtime is not None:
            self.state = self.runtime.enter_condition()
        else:
            self.before = self.state
            self._try()
        return True

    def holds(self, test: Any, state: tuple[Any, ...]) -> bool:
        """Whether the body is to be traced; `state` is that after the condition."""
        known = self.trace.frontend.static_value(test)
        if self.runtime is not None:
            self.state = self.runtime.enter_body(test, state)
            return True
        if known is NOT_STATIC:
            self._switch()
            return False
        self.state = state
        if not known:
            self._accept()
            self.done = True
        elif not self.breaks:
            self._accept()
        return bool(known)

    def advance(self, state: tuple[Any, ...]) -> None:
        """The body has ended in `state`."""
        if self.runtime is not None:
            self.state = self.runtime.leave(state)
            self.done = True
            return
        if self.breaks:
            left = self.trace.frontend.static_value(state[-1])
            if left is NOT_STATIC:
                self._switch()
                return
            self._accept()
            self.done = bool(left)
        self.state = state

    def finish(self) -> tuple[Any, ...]:
        """The values of the names after the loop."""
        return self.state

    def _try(self) -> None:
        self.trace.enter(Block(), trial=True)

    def _accept(self) -> None:
        self.trace.end_trial(keep=True)

    def _switch(self) -> None:
        """Throw the trial away and go on as an operation."""
        self.trace.end_trial(keep=False)
        self.runtime = RuntimeWhile(self, self.before)


class RuntimeWhile:
    """A `while` operation under construction: the condition's block, then the body's."""

    def __init__(self, loop: WhileLoop, state: tuple[Any, ...]) -> None:
        self.loop = loop
        self.trace = loop.trace
        names = loop.names[:-1] if loop.breaks else loop.names
        carried = state[:-1] if loop.breaks else state
        self.names = names
        self.condition, self.body = Block(), Block()
        self.first = Carrying(self.trace, names, (), carried, loop.location)
        self.second: Carrying | None = None
        self.left: Value | None = None

    def enter_condition(self) -> tuple[Any, ...]:
        """Start the condition's block; gives the values of the names in it."""
        inside = self.first.enter(self.condition)
        self.trace.enter(self.condition)
        if not self.loop.breaks:
            return inside
        # After a break the condition is not evaluated, as in Python.
        self.left = self.condition.add_argument(BOOL, "left")
        self.trace.enter(Block())
        self.before_test = (*inside, False)
        return self.before_test

    def enter_body(self, test: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """End the condition in `test` and `state`; gives the values of the names in the body."""
        holds = self._condition(test)
        handed = state[:-1] if self.loop.breaks else state
        if self.left is not None:
            holds = self._unless_left(holds, state)
        self.second = Carrying(self.trace, self.names, (), handed, self.loop.location)
        inside = self.second.enter(self.body)
        self.trace.builder.create(Yield, [holds, *self.second.initial], location=self.loop.location)
        self.trace.leave()
        self.trace.enter(self.body)
        return (*inside, False) if self.loop.breaks else inside

    def _condition(self, test: Any) -> Value:
        known = self.trace.frontend.static_value(test)
        return self.trace.frontend.condition(test) if known is NOT_STATIC else self.trace.constant(BOOL, bool(known))

    def _unless_left(self, holds: Value, state: tuple[Any, ...]) -> Value:
        """The condition's value where no `break` came before it, else false."""
        if any(a is not b for a, b in zip(state, self.before_test, strict=True)):
            what = "an assignment in the condition of a loop with break"
            raise UnsupportedControl(self.loop.location, what=what, hint="assign in the loop's body")
        create, location = self.trace.builder.create, self.loop.location
        create(Yield, [holds], location=location)
        evaluated = self.trace.builder.block
        self.trace.leave()
        skipped = Block()
        with self.trace.region(skipped):
            create(Yield, [self.trace.constant(BOOL, False)], location=location)
        made: Value = create(If, self.left, types=(BOOL,), regions=[skipped, evaluated], location=location)
        return made

    def leave(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """End the body in `state`, make the operation; gives the values of the names after the loop."""
        assert self.second is not None
        left: Any = False
        if self.loop.breaks:
            left, state = state[-1], state[:-1]
        ends = self.first.ends(state)
        yields = [value for end in ends for value in end.yields]
        initial = list(self.first.initial)
        if self.loop.breaks:
            yields.append(left.ir_values()[0] if isinstance(left, Traced) else self.trace.constant(BOOL, bool(left)))
        self.trace.builder.create(Yield, yields, location=self.loop.location)
        self.trace.leave()
        if self.loop.breaks:
            initial.append(self.trace.constant(BOOL, False))
        operation = self.trace.builder.create_op(
            While,
            initial,
            types=tuple(value.type for value in self.second.initial),
            regions=[self.condition, self.body],
            location=self.loop.location,
        )
        for argument, result in zip(self.second.arguments, operation.results, strict=True):
            result.name = argument.name
        after = self._after(operation.results, state)
        return (*after, False) if self.loop.breaks else after

    def _after(self, results: list[Value], state: tuple[Any, ...]) -> tuple[Any, ...]:
        """The names after the loop: as the condition left them; what only the body assigns has no certain value."""
        assert self.second is not None
        remaining = iter(results)
        after = []
        for structure, last in zip(self.second.before, state, strict=True):
            if isinstance(structure, Unset) and not isinstance(last, Unset):
                after.append(Unset("loop", origin(last), self.loop.location))
            else:
                after.append(fill(structure, remaining))
        return tuple(after)
