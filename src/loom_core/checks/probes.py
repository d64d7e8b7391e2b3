"""Probes: assertions that a copy of a kernel carries, run on copies of the arrays of a launch."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from loom_core.base.diagnostics import LoomError
from loom_core.base.reports import AssertionFailed
from loom_core.checks.launch import Copies, Launch
from loom_core.ir.block import Function
from loom_core.ir.builder import Builder
from loom_core.ir.op import Op
from loom_core.ir.rewriter import clone_function
from loom_core.ir.value import Value
from loom_core.ops import debug, elementwise, shape

COMMAND_LIMIT = 1 << 30
"""Commands of a run with probes."""
_MESSAGE = re.compile(r"<(\d+)> in (program \(.*?\))(?:, first for (element \(.*?\)))?$")


@dataclass
class Probed:
    """A copy of a function under construction: `function`, and what each probe is about, by its number."""

    function: Function
    subjects: list[object] = field(default_factory=list)

    def expect(self, condition: Value, anchor: Op, subject: object) -> None:
        """Before `anchor`, all elements of the condition hold."""
        assert anchor.parent is not None
        builder = Builder(anchor.parent)
        builder.anchor, builder.location = anchor, anchor.location
        builder.create(debug.Assert, condition, message=f"<{len(self.subjects)}>")
        self.subjects.append(subject)


@dataclass(frozen=True)
class Failure:
    """The first probe that failed: what it is about, the program, and the element of the tile where there is one."""

    subject: object
    program: str
    element: str


def quiet_copy(function: Function) -> Function:
    """A copy of a function that prints nothing."""
    copy = clone_function(function)
    for op in list(copy.walk()):
        if isinstance(op, debug.Print):
            op.erase()
    return copy


def first_failure(launch: Launch, key: object, probed: Probed, before: Copies) -> Failure | None:
    """Run a function with probes on copies."""
    if not probed.subjects:
        return None
    kernel = launch.derive(key, lambda: probed.function)
    moved = before.moved()
    try:
        kernel.program.run(kernel.bindings(moved), kernel.registers(launch.scalars, launch.grid), COMMAND_LIMIT)
    except AssertionFailed as error:
        found = _MESSAGE.search(error.diagnostics[0].message)
        if found is not None:
            return Failure(probed.subjects[int(found[1])], found[2], found[3] or "")
    except LoomError:
        return None  # what else is wrong is found without probes
    return None


def following(op: Op) -> Op:
    """The operation behind one."""
    assert op.parent is not None
    return op.parent.operations[op.parent.operations.index(op) + 1]


class Maker:
    """Makes operations before an anchor, at its location."""

    def __init__(self, anchor: Op) -> None:
        assert anchor.parent is not None
        self.builder = Builder(anchor.parent)
        self.builder.anchor, self.builder.location = anchor, anchor.location

    def make(self, operation: type[Op], /, *operands: Value, **attributes: Any) -> Value:
        """The result of a new operation."""
        value: Value = self.builder.create(operation, *operands, **attributes)
        return value

    def compare(self, predicate: str, a: Value, number: float) -> Value:
        """The elements of `a` against one number."""
        return self.make(
            elementwise.Compare, a, self.make(shape.Constant, value=number, type=a.type), predicate=predicate
        )

    def conjunction(self, *parts: Value) -> Value:
        """All of the bools of one shape."""
        first, *rest = parts
        for part in rest:
            first = self.make(elementwise.And, first, part)
        return first

    def negation(self, value: Value) -> Value:
        """Not a bool."""
        return self.make(elementwise.Not, value)
