"""The trace of a Palladium kernel: the function runs as it is, on values that stand for tiles."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from loom_core.base.diagnostics import LoomError
from loom_core.base.location import Location
from loom_core.ir.block import Block, Function
from loom_core.ir.op import Op
from loom_core.trace.context import Trace, active, caller
from loom_core.trace.faults import fault
from palladium.errors import PalladiumError


class OutsideKernel(PalladiumError):
    code = "LOOM-F212"
    template = "{function} can be used only inside a kernel"
    hint = "call it from a function that kernel() or call() runs"


class KernelTrace(Trace):
    """A trace whose position is that of the user's code on Python's stack.

    `undo` takes back what operations noted outside of the IR, last first, where a trial is given up.
    """

    def __init__(self, function: Function) -> None:
        # Nothing is rewritten, so no hooks ask a frontend.
        super().__init__(function, cast(Any, None))
        self.grid: tuple[Any, ...] = ()
        self.axis_names: tuple[str, ...] = ()
        self.program_ids: list[Any] = []
        self.unwaited: list[Any] = []
        self.ledgers: dict[Any, Any] = {}
        self.random: Any = None
        self.undo: list[Callable[[], None]] = []
        self._position: list[Location] = []
        self._marks: list[int] = []
        self._away = 0

    def location(self) -> Location:
        return self._position[-1] if self._position else caller()

    @contextmanager
    def located(self, location: Location) -> Iterator[None]:
        """Give what is built the location of something else than the user's present line."""
        self._position.append(location)
        try:
            yield
        finally:
            self._position.pop()

    def is_open(self, block: Block | None) -> bool:
        """Whether values of `block` can be used at the user's present position."""
        return self._away > 0 or block is self.builder.block or any(block is one for one in self._blocks)

    def forget(self) -> None:
        """End a trial: nothing of it stays."""
        self.end_trial(keep=False)
        while self.undo and len(self.undo) > self._marks[-1]:
            self.undo.pop()()
        self._marks.pop()

    def attempt(self, block: Block) -> None:
        """Begin a trial in `block`; `forget` ends it."""
        self._marks.append(len(self.undo))
        self.enter(block, trial=True)

    @contextmanager
    def elsewhere(self, block: Block, anchor: Op | None = None) -> Iterator[None]:
        """Build at the end of another block that is open, or before one of its operations."""
        saved, self._constants = self._constants, [{}]
        self._away += 1
        with self.builder.at(block, anchor):
            try:
                yield
            finally:
                self._constants = saved
                self._away -= 1


@contextmanager
def user_faults() -> Iterator[None]:
    """Give what the user's Python raises as a diagnostic at its line."""
    try:
        yield
    except LoomError:
        raise
    except Exception as error:
        raise fault(error, _named) from error


def _named(name: str) -> Callable[..., Any] | None:
    """The function of Palladium that an error message names."""
    return getattr(sys.modules["palladium"], name, None)


def kernel_trace(function: str) -> KernelTrace:
    """The kernel that is being traced in this thread; OutsideKernel, naming `function`, if there is none."""
    trace = active()
    if not isinstance(trace, KernelTrace):
        raise OutsideKernel(caller(), function=function)
    return trace
