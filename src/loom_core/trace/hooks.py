"""What rewritten kernels call: see `loom_core.trace.rewrite` for the calls."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Iterable
from functools import partial
from types import ModuleType
from typing import Any, Final

from loom_core.base.location import Location
from loom_core.trace.branch import Branch
from loom_core.trace.context import NOT_STATIC, Trace
from loom_core.trace.errors import (
    AssertionFails,
    AssignedInBranch,
    AssignedInLoop,
    BadGlobal,
    RuntimeValueNeeded,
    UndefinedName,
    UnknownName,
    UnsupportedSyntax,
)
from loom_core.trace.loop import Loop, static_iterator
from loom_core.trace.names import Watch
from loom_core.trace.values import UNDEFINED, Traced, Unset, is_number, map_leaves
from loom_core.trace.while_loop import WhileLoop

_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}


class Hooks:
    """The object behind `$` in one call of a rewritten function."""

    UNDEFINED = UNDEFINED

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.frontend = trace.frontend

    def begin(self) -> None:
        self.trace.begin()

    # -- names ---------------------------------------------------------------------------------------------------------

    def assign(self, value: Any, name: str | None) -> Any:
        """A value on its way into a variable: plain numbers become run-time scalars of known value, as in Triton."""
        if isinstance(value, Traced):
            if name is not None:
                value.suggest_name(name)
            return value
        if is_number(value):
            return self.frontend.lift(value)
        if isinstance(value, tuple):
            return map_leaves(lambda leaf: self.assign(leaf, None), value)
        return value

    def static(self, value: Any, name: str | None) -> Any:
        """A value on its way into a variable declared constexpr, which holds a run-time value too."""
        static = self.frontend.static_value(value)
        return self.assign(value, name) if static is NOT_STATIC else static

    def raised(self, text: str) -> None:
        """`raise` is reached: where it stands, or in a branch that is decided at run time."""
        hint = "it may stand only where what is known when the kernel is compiled does not lead"
        raise UnsupportedSyntax(self.trace.location(), what=text, hint=hint)

    def use(self, value: Any, name: str) -> Any:
        """A variable that may have no value is read."""
        if isinstance(value, Unset):
            raise unset_error(value, name, self.trace.location())
        return value

    def attribute(self, owner: Any, name: str) -> Any:
        """`owner.name`, where `owner` came from outside the kernel."""
        try:
            value = getattr(owner, name)
        except AttributeError:
            raise unknown_name(owner, name, self.trace.location()) from None
        if isinstance(owner, (ModuleType, type)):
            if not is_loom_module(owner):
                self.trace.watches.append(Watch(owner, name, value))
            try:
                return self.frontend.outside(value)
            except TypeError as error:
                raise BadGlobal(self.trace.location(), name=f"{owner.__name__}.{name}", kind=str(error)) from None
        return value

    # -- conditions ----------------------------------------------------------------------------------------------------

    def and_(self, first: Any, second: Callable[[], Any]) -> Any:
        known = self.frontend.static_value(first)
        if known is NOT_STATIC:
            return self.frontend.logical("and", (first, second()))
        return second() if known else first

    def or_(self, first: Any, second: Callable[[], Any]) -> Any:
        known = self.frontend.static_value(first)
        if known is NOT_STATIC:
            return self.frontend.logical("or", (first, second()))
        return first if known else second()

    def not_(self, value: Any) -> Any:
        known = self.frontend.static_value(value)
        return self.frontend.logical("not", (value,)) if known is NOT_STATIC else not known

    def compare(self, operators: tuple[str, ...], first: Any, *rest: Callable[[], Any]) -> Any:
        """A chain of comparisons: `a < b < c` is `a < b and b < c` with b evaluated once."""
        left = first
        result: Any = True
        for symbol, make in zip(operators, rest, strict=True):
            right = make()
            link = partial(_COMPARISONS[symbol], left, right)
            result = self.and_(result, link)
            if self.frontend.static_value(result) is not NOT_STATIC and not result:
                return result
            left = right
        return result

    def choose(self, test: Any, on_true: Callable[[], Any], on_false: Callable[[], Any]) -> Any:
        """A conditional expression."""
        branch = Branch(self.trace, test, ("the value of this expression",), (UNDEFINED,), False)
        state: tuple[Any, ...] = (UNDEFINED,)
        if branch.on_true():
            state = branch.switch((on_true(),))
        if branch.on_false():
            state = (on_false(),)
        (value,) = branch.join(state)
        return value

    def static_truth(self, value: Any) -> bool:
        """A condition that must be known while tracing."""
        known = self.frontend.static_value(value)
        if known is NOT_STATIC:
            raise RuntimeValueNeeded(self.trace.location(), what="this condition")
        return bool(known)

    def static_iterable(self, value: Any) -> Iterable[Any]:
        """What a comprehension iterates over."""
        return static_iterator(self.trace, value)

    def assert_(self, test: Any, message: Callable[[], Any] | None) -> None:
        known = self.frontend.static_value(test)
        text = "" if message is None else str(message())
        if known is NOT_STATIC:
            self.frontend.runtime_assert(test, text)
        elif not known and self.trace.depth == 0:
            # Under a run-time condition the program may never come here.
            raise AssertionFails(self.trace.location(), message=f": {text}" if text else "")

    # -- control flow --------------------------------------------------------------------------------------------------

    def branch(self, test: Any, names: tuple[str, ...], state: tuple[Any, ...], tail: bool) -> Branch:
        return Branch(self.trace, test, names, state, tail)

    def loop(
        self, iterable: Any, names: tuple[str, ...], state: tuple[Any, ...], targets: tuple[str, ...], breaks: bool
    ) -> Loop:
        return Loop(self.trace, iterable, names, state, targets, breaks)

    def while_loop(self, names: tuple[str, ...], state: tuple[Any, ...], breaks: bool) -> WhileLoop:
        return WhileLoop(self.trace, names, state, breaks)


def unset_error(unset: Unset, name: str, location: Location) -> Exception:
    """The error of reading a name that has no value."""
    if not unset.reason:
        return UndefinedName(location, name=name)
    notes = [f"{name} is assigned at {unset.assigned}"] if unset.assigned.known else []
    if unset.reason == "loop":
        return AssignedInLoop(location, name=name, notes=[*notes, f"the loop is at {unset.control}"])
    return AssignedInBranch(location, name=name, notes=[*notes, f"the `if` is at {unset.control}"])


def unknown_name(owner: Any, name: str, location: Location) -> UnknownName:
    """The error of an attribute that does not exist, with the nearest names that do."""
    label = getattr(owner, "__name__", None) or type(owner).__name__
    public = [n for n in dir(owner) if not n.startswith("_")]
    close = difflib.get_close_matches(name, public, n=3)
    suggestion = "did you mean " + " or ".join(close) + "?" if close else f"see dir({label}) for what it has"
    return UnknownName(location, owner=label, name=name, suggestion=suggestion)


def is_loom_module(owner: Any) -> bool:
    """Whether a module or class is Loom's own, whose contents do not change."""
    name = owner.__name__ if isinstance(owner, ModuleType) else getattr(owner, "__module__", "")
    return name.split(".", 1)[0] in ("ltl", "loom", "loom_core", "palladium")
