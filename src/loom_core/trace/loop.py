"""`for` and `while` under a trace: unrolled where they go over compile-time values, a `for` operation otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from loom_core.base.location import UNKNOWN
from loom_core.ir.block import Block
from loom_core.ir.value import Value
from loom_core.ops.control import For, Yield
from loom_core.trace.context import NOT_STATIC, Trace
from loom_core.trace.errors import CarriedTypeChanges, RuntimeValueNeeded, StaticChanges, UnsupportedControl
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

UNROLL_LIMIT: Final = 100_000
"""Iterations after which a loop that runs while tracing is taken to be endless."""


class Loop:
    """One `for`: `state` holds the values of the names that it assigns, at the start and the end of each iteration."""

    def __init__(
        self, trace: Trace, iterable: Any, names: tuple[str, ...], state: tuple[Any, ...], targets: tuple[str, ...]
    ) -> None:
        self.trace = trace
        self.names = names
        self.targets = targets
        self.state = state
        self.iterable = iterable
        self.location = trace.location()
        self.depth = trace.depth
        self.stopped = False
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
            if self.stopped:
                return

    def stop(self) -> None:
        """`break`: leave the loop after this iteration."""
        stop_loop(self)

    def finish(self) -> tuple[Any, ...]:
        """The values of the names after the loop."""
        return self.state if self.runtime is None else self.runtime.results


class WhileLoop:
    """One `while`, whose condition must be known at each iteration."""

    def __init__(self, trace: Trace, names: tuple[str, ...], state: tuple[Any, ...]) -> None:
        self.trace = trace
        self.names = names
        self.state = state
        self.depth = trace.depth
        self.runtime = None
        self.stopped = False
        self.count = 0

    def more(self) -> bool:
        """Whether to evaluate the condition once more."""
        self.count += 1
        if self.count > UNROLL_LIMIT:
            raise too_many_iterations(self.trace)
        return not self.stopped

    def holds(self, test: Any) -> bool:
        """Whether the body runs."""
        known = self.trace.frontend.static_value(test)
        if known is NOT_STATIC:
            raise UnsupportedControl(
                self.trace.location(),
                what="a while loop whose condition is known only at run time",
                hint="use for over range(...), whose bounds may be run-time values",
            )
        self.stopped = self.stopped or not known
        return bool(known)

    def stop(self) -> None:
        """`break`: leave the loop after this iteration."""
        stop_loop(self)

    def finish(self) -> tuple[Any, ...]:
        """The values of the names after the loop."""
        return self.state


class RuntimeLoop:
    """A `for` operation under construction."""

    def __init__(self, loop: Loop, bounds: tuple[Traced, Traced, Traced]) -> None:
        self.loop = loop
        self.trace = loop.trace
        self.bounds = [bound.ir_values()[0] for bound in bounds]
        self.block = Block((self.bounds[0].type,), loop.targets[:1])
        self.before = tuple(self._liftable(value) for value in loop.state)
        self.carried: list[Any] = []
        self.initial: list[Value] = []
        self.arguments: list[Value] = []
        self.owned: dict[str, list[Value]] = {}
        self.results: tuple[Any, ...] = ()

    def _liftable(self, value: Any) -> Any:
        if has_traced(value) or is_number(value):
            return map_leaves(lambda leaf: self.trace.frontend.lift(leaf) if is_number(leaf) else leaf, value)
        return value

    def enter(self) -> Traced:
        """Start the body; gives the loop variable."""
        self.loop.state = tuple(self._carry(*item) for item in zip(self.loop.names, self.before, strict=True))
        self.trace.enter(self.block)
        return self.trace.frontend.induction(self.loop.iterable, self.block.arguments[0])

    def _carry(self, name: str, value: Any) -> Any:
        def leaf(item: Any) -> Any:
            if not isinstance(item, Traced):
                return item
            initial = item.ir_values()
            arguments = [self.block.add_argument(v.type, name) for v in initial]
            self.owned.setdefault(name, []).extend(arguments)
            self.initial.extend(initial)
            self.arguments.extend(arguments)
            return item.with_ir_values(arguments)

        return map_leaves(leaf, value)

    def leave(self) -> None:
        """End the body and make the operation."""
        names = zip(self.loop.names, self.before, self.loop.state, strict=True)
        ends = [self._end(name, before, after) for name, before, after in names]
        yields = [value for end in ends for value in end.yields]
        self.trace.leave()
        kept = self._drop_unchanged(yields)
        with self.trace.region(self.block):
            self.trace.builder.create(Yield, [yields[i] for i in kept], location=self.loop.location)
        operation = self.trace.builder.create_op(
            For,
            *self.bounds,
            [self.initial[i] for i in kept],
            regions=[self.block],
            location=self.loop.location,
        )
        values = list(self.initial)
        for i, result in zip(kept, operation.results, strict=True):
            values[i] = result
            result.name = self.arguments[i].name
        remaining = iter(values)
        self.results = tuple(end.after(remaining) for end in ends)

    def _drop_unchanged(self, yields: list[Value]) -> list[int]:
        """Take arguments that the body does not change out of the loop; gives the positions of the others."""
        kept = []
        for i, (argument, given) in enumerate(zip(self.arguments, yields, strict=True)):
            if given is argument:
                argument.replace_all_uses(self.initial[i])
                yields[:] = [self.initial[i] if v is argument else v for v in yields]
            else:
                kept.append(i)
        self.block.arguments[1:] = [self.arguments[i] for i in kept]
        for index, argument in enumerate(self.block.arguments):
            argument.index = index
        return kept

    def _end(self, name: str, before: Any, after: Any) -> _Carried:
        if isinstance(before, Unset):
            left = before if isinstance(after, Unset) else Unset("loop", origin(after), self.loop.location)
            return _Carried(left, [])
        if not has_traced(before):
            if not same_static(before, after):
                raise StaticChanges(
                    self.loop.location, name=name, before=describe(before), after=describe(after), notes=[]
                )
            return _Carried(before, [])
        return self._end_carried(name, before, after)

    def _end_carried(self, name: str, before: Any, after: Any) -> _Carried:
        try:
            if isinstance(after, Unset):
                raise Mismatch(static=False)
            old, new = Pair(before, after, self.trace.frontend.lift).unify()
        except Mismatch:
            if name in self.loop.targets or isinstance(after, Unset):
                # The loop variable hides what the name was before; after the loop the name has no certain value.
                return _Carried(Unset("loop", origin(after), self.loop.location), self.owned[name])
            raise self._type_changes(name, before, after) from None
        yields = [value for leaf in leaves(new) if isinstance(leaf, Traced) for value in leaf.ir_values()]
        return _Carried(old, yields)

    def _type_changes(self, name: str, before: Any, after: Any) -> CarriedTypeChanges:
        places = (("before the loop", origin(before)), ("in the loop", origin(after)))
        notes = [f"{name} is assigned {when} at {where}" for when, where in places if where is not UNKNOWN]
        where = origin(after)
        location = where if where.known else self.loop.location
        return CarriedTypeChanges(location, name=name, before=describe(before), after=describe(after), notes=notes)


class _Carried:
    """How one name leaves a run-time loop: a structure to fill with the results, and what the body yields for it."""

    def __init__(self, structure: Any, yields: list[Value]) -> None:
        self.structure = structure
        self.yields = yields

    def after(self, values: Iterator[Value]) -> Any:
        if isinstance(self.structure, Unset):
            for _ in self.yields:
                next(values)
            return self.structure
        return self._fill(self.structure, values)

    def _fill(self, value: Any, values: Iterator[Value]) -> Any:
        if isinstance(value, tuple):
            return rebuild_tuple(value, [self._fill(item, values) for item in value])
        if isinstance(value, Traced):
            return value.with_ir_values([next(values) for _ in value.ir_types()])
        return value


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


def stop_loop(loop: Loop | WhileLoop) -> None:
    """Note a `break`. UnsupportedControl where it depends on a run-time condition or leaves a run-time loop."""
    if loop.runtime is not None or loop.trace.depth > loop.depth:
        raise UnsupportedControl(
            loop.trace.location(),
            what="break from a run-time loop, or under a run-time condition,",
            hint="mask what the remaining iterations do, or compute the loop's bound before it",
        )
    loop.stopped = True


def too_many_iterations(trace: Trace) -> UnsupportedControl:
    """A loop that does not seem to end while tracing."""
    what = f"a loop of more than {UNROLL_LIMIT} iterations while compiling"
    return UnsupportedControl(trace.location(), what=what, hint="use range(...) for a loop that runs at run time")
