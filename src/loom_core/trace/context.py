"""The state of one trace: the function being built, the user's position in it, and what it depends on."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Final, Protocol

from loom_core.base.diagnostics import INTERNAL_PACKAGES
from loom_core.base.dtype import DType
from loom_core.base.location import END_OF_LINE, UNKNOWN, Location, from_frame
from loom_core.ir.block import Block, Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.types import TileType
from loom_core.ir.value import Value
from loom_core.ops.formats import round_float
from loom_core.ops.shape import Constant
from loom_core.trace.errors import OutsideKernel, TooDeep, TooManyOperations
from loom_core.trace.names import Watch
from loom_core.trace.values import Traced

CALL_LIMIT: Final = 64
"""How deep kernel functions may call each other."""

OPERATION_LIMIT: Final = 1 << 16
"""How many operations a trace may make."""


class Frontend(Protocol):
    """What a kernel language adds to the tracer."""

    @property
    def builtins(self) -> dict[str, Any]:
        """Python's built-in names that kernels may use, with what they mean there."""

    def outside(self, value: Any) -> Any:
        """What a value from outside the kernel is inside; TypeError with the kind of value where it may not be used."""

    def lift(self, value: Any) -> Traced:
        """A run-time scalar of a Python number, with the language's default dtype for it."""

    def static_value(self, value: Any) -> Any:
        """The compile-time value of `value`, or NOT_STATIC."""

    def condition(self, value: Any) -> Value:
        """A run-time value as a scalar bool for a branch. AmbiguousTruth for a tile."""

    def logical(self, operator: str, operands: tuple[Any, ...]) -> Any:
        """`and`, `or` or `not` of values, at least one of which is not static."""

    def loop_bounds(self, iterable: Any) -> tuple[Traced, Traced, Traced] | None:
        """Lower bound, upper bound and step of a run-time loop; None for what is iterated while tracing."""

    def induction(self, iterable: Any, value: Value) -> Traced:
        """The variable of a loop over `iterable` around its IR value; called at the start of the body."""

    def runtime_assert(self, condition: Any, message: str) -> None:
        """An assertion about a run-time value."""


NOT_STATIC: Final = object()


class Activation:
    """One running call of a rewritten function: its frame says where the user's code stands."""

    __slots__ = ("cache", "code", "frame", "name", "parent", "positions")

    def __init__(self, code: CodeType, name: str, parent: Location | None) -> None:
        self.code = code
        self.name = name
        self.parent = parent
        self.frame: FrameType | None = None
        self.positions: list[tuple[int | None, int | None, int | None, int | None]] | None = None
        self.cache: dict[int, Location] = {}

    def location(self) -> Location:
        """The location of the expression that the frame evaluates now."""
        frame = self.frame
        if frame is None:
            return Location(self.code.co_filename, self.code.co_firstlineno, function=self.name, parent=self.parent)
        instruction = frame.f_lasti
        found = self.cache.get(instruction)
        if found is None:
            found = self.cache[instruction] = self._locate(instruction)
        return found

    def _locate(self, instruction: int) -> Location:
        if self.positions is None:
            self.positions = list(self.code.co_positions())
        line, end_line, column, end_column = self.positions[instruction // 2]
        if line is None or column is None or end_column is None:
            line = line or self.code.co_firstlineno
            return Location(self.code.co_filename, line, function=self.name, parent=self.parent)
        end = end_column if end_line == line else END_OF_LINE
        return Location(self.code.co_filename, line, column, end, self.name, self.parent)


class TraceBuilder(Builder):
    """A builder whose operations carry the user's present line."""

    def __init__(self, block: Block, trace: Trace) -> None:
        self._trace = trace
        self._count = 0
        super().__init__(block)

    def insert(self, op: Op) -> Op:
        self._count += 1
        if self._count > OPERATION_LIMIT:
            raise TooManyOperations(op.location, limit=OPERATION_LIMIT)
        return super().insert(op)

    @property
    def location(self) -> Location:
        return self._trace.location()

    @location.setter
    def location(self, value: Location) -> None:
        # `Builder.__init__` sets a first location; here the frame gives it.
        if value is not UNKNOWN:
            raise AttributeError("the location of a trace follows the user's code")


class Trace:
    """One run of a rewritten kernel.

    `function` receives the operations. `watches` are the outside values that the kernel has read. `calls` holds the
    active calls, the kernel's first. `selects` says whether run-time branches become selects (see `elementwise`),
    `assertions` whether assertions about run-time values are checked.
    """

    def __init__(self, function: Function, frontend: Frontend) -> None:
        self.function = function
        self.frontend = frontend
        self.builder = TraceBuilder(function.body, self)
        self.watches: list[Watch] = []
        self.calls: list[Activation] = []
        self._blocks: list[Block] = []
        self._trials = 0
        self.selects = 0
        self.assertions = False
        self._constants: list[dict[tuple[TileType, str, Any], Value]] = [{}]

    def location(self) -> Location:
        """The user's present position."""
        return self.calls[-1].location() if self.calls else self.function.location

    @contextmanager
    def call(self, code: CodeType, name: str) -> Iterator[Activation]:
        """Make a call of rewritten `code` the active one."""
        parent = self.location() if self.calls else None
        if len(self.calls) >= CALL_LIMIT:
            # The whole chain of calls would fill the screen.
            outermost = None if parent is None else parent.root()
            raise TooDeep(outermost, limit=CALL_LIMIT, function=name)
        activation = Activation(code, name, parent)
        self.calls.append(activation)
        try:
            yield activation
        finally:
            # A frame refers to its locals, and they to tiles of this trace: keeping it would keep everything.
            activation.frame = None
            self.calls.pop()

    def begin(self) -> None:
        """Called first in each rewritten function: notes its frame (two levels up: hook, then function)."""
        self.calls[-1].frame = sys._getframe(2)

    @contextmanager
    def region(self, block: Block) -> Iterator[Block]:
        """Build inside a block of a loop or branch."""
        self.enter(block)
        try:
            yield block
        finally:
            self.leave()

    def enter(self, block: Block, *, trial: bool = False) -> None:
        """Begin to build in a nested block; `leave` ends it. A trial only puts off where its operations belong."""
        self._trials += trial
        self._blocks.append(self.builder.block)
        self.builder.block = block
        self._constants.append({})

    def leave(self) -> None:
        """End the block that `enter` began."""
        self._constants.pop()
        self.builder.block = self._blocks.pop()

    def end_trial(self, keep: bool) -> None:
        """End a trial; with `keep` its operations move to the end of the enclosing block, otherwise they are gone."""
        self._trials -= 1
        inner = self.builder.block
        constants = self._constants.pop()
        self.builder.block = self._blocks.pop()
        if keep:
            for op in inner.operations:
                self.builder.block.append(op)
            self._constants[-1].update(constants)
        else:
            for op in reversed(inner.operations):
                op.drop_operands()

    @contextmanager
    def elementwise(self, block: Block) -> Iterator[Block]:
        """Build scalar code that stands on its own and is applied element by element: branches in it become selects."""
        saved = self._constants
        self._constants = []
        self.selects += 1
        try:
            with self.region(block):
                yield block
        finally:
            self.selects -= 1
            self._constants = saved

    @property
    def depth(self) -> int:
        """How many run-time loops and branches enclose the present position."""
        return len(self._blocks) - self._trials

    def constant(self, type: TileType, value: bool | int | float) -> Value:
        """A constant of `type`, `value` rounded to its dtype; one per value and enclosing block."""
        exact = round_constant(type.dtype, value)
        # repr tells -0.0 from 0.0 and makes NaNs equal; the class tells 1 from True and 1.0.
        key = (type, exact.__class__.__name__, repr(exact))
        for scope in reversed(self._constants):
            found: Value | None = scope.get(key)
            if found is not None:
                return found
        made = self.builder.create_op(Constant, value=exact, type=type).result
        self._constants[-1][key] = made
        return made


def round_constant(dtype: DType, value: bool | int | float) -> bool | int | float:
    """A Python number as the value of `dtype` nearest to it (floats) or equal to it modulo 2**bits (integers)."""
    if dtype.is_bool:
        return bool(value)
    if dtype.is_integer:
        wrapped = int(value) & ((1 << dtype.bits) - 1)
        return wrapped - (1 << dtype.bits) if dtype.kind == "int" and wrapped >> (dtype.bits - 1) else wrapped
    if dtype.bits == 64:
        return float(value)
    import numpy as np

    return float(round_float(np.asarray(value, np.float64), dtype))


def caller() -> Location:
    """The expression outside Loom's packages that is being evaluated now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).split(".", 1)[0]
        if package not in INTERNAL_PACKAGES:
            return from_frame(frame)
        frame = frame.f_back
    return UNKNOWN


class _Current(threading.local):
    trace: Trace | None = None


_CURRENT: Final = _Current()


def current(function: str = "this function") -> Trace:
    """The trace that runs in this thread; OutsideKernel, naming `function`, if there is none."""
    trace = _CURRENT.trace
    if trace is None:
        raise OutsideKernel(caller(), function=function)
    return trace


def active() -> Trace | None:
    """The trace that runs in this thread, if one does."""
    return _CURRENT.trace


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Make `trace` the current one of this thread."""
    saved = _CURRENT.trace
    _CURRENT.trace = trace
    try:
        yield trace
    finally:
        _CURRENT.trace = saved
