"""Changing functions: cloning, replacing operations, and applying rewrite rules until none fits.

A rule is a function of an operation, marked with the kinds that it looks at:

    @rule(Add)
    def add_zero(op: Op, rewriter: Rewriter) -> bool:
        "x + 0 -> x"
        if not is_zero(op.rhs):
            return False
        rewriter.replace(op, op.lhs)
        return True

`apply_rules(function, [add_zero, ...])` visits operations in order, then again what a rewrite may have made ready, and
removes pure operations without uses. Rules must make progress: a function that does not settle is an internal error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from loom_core.base.diagnostics import InternalError
from loom_core.ir.block import Block, Function
from loom_core.ir.op import Op
from loom_core.ir.value import Value

RuleFunction = Callable[[Op, "Rewriter"], bool]
MadeOp = TypeVar("MadeOp", bound=Op)

REWRITES_PER_OP: Final = 64
"""Rewrites for each operation of the function after which rules are taken not to terminate."""


@dataclass(frozen=True)
class Rule:
    """A rewrite rule: the kinds of operation that it looks at (none: all), and what it does; True if it changed any."""

    kinds: tuple[type[Op], ...]
    function: RuleFunction

    @property
    def name(self) -> str:
        return self.function.__name__

    def matches(self, op: Op) -> bool:
        return not self.kinds or isinstance(op, self.kinds)


def rule(*kinds: type[Op]) -> Callable[[RuleFunction], Rule]:
    """Make a rewrite rule of a function; it is offered operations of `kinds`, of all kinds where none are given."""
    return lambda function: Rule(kinds, function)


class Rewriter:
    """What a rule changes the function with; notes what has to be looked at again."""

    def __init__(self) -> None:
        self.pending: deque[Op] = deque()
        self.queued: set[Op] = set()
        self.erased: set[Op] = set()
        self.log: Callable[[str, Op], None] | None = None

    def visit(self, op: Op) -> None:
        """Have the rules look at `op` (again)."""
        if op not in self.queued:
            self.queued.add(op)
            self.pending.append(op)

    def insert(self, anchor: Op, op: MadeOp) -> MadeOp:
        """Put a new operation before `anchor`."""
        assert anchor.parent is not None
        anchor.parent.insert_before(anchor, op)
        self.visit(op)
        return op

    def create(
        self, anchor: Op, kind: type[Op], /, *operands: Value | Sequence[Value] | None, **attributes: Any
    ) -> Any:
        """Make an operation before `anchor`, with its location; gives the only result, the results, or None."""
        results = self.insert(anchor, kind(operands, attributes, (), anchor.location)).results
        return results[0] if len(results) == 1 else tuple(results) or None

    def replace(self, op: Op, *values: Value) -> None:
        """Use `values` instead of the results of `op`, and erase it."""
        if len(values) != len(op.results):
            raise ValueError(f"{op.name} has {len(op.results)} results, {len(values)} values given")
        for result, value in zip(op.results, values, strict=True):
            if value.name is None:
                value.name = result.name
            for user in result.users:
                self.visit(user)
            result.replace_all_uses(value)
        self.erase(op)

    def set_operand(self, op: Op, index: int, value: Value) -> None:
        """Replace one operand of `op`."""
        self._visit_definitions(op)
        op.set_operand(index, value)
        self.visit(op)

    def erase(self, op: Op) -> None:
        """Remove an operation whose results have no uses."""
        self._visit_definitions(op)
        self.erased.update(op.walk())
        op.erase()

    def _visit_definitions(self, op: Op) -> None:
        # What defined the operands may have lost its last use.
        for inner in op.walk():
            for value in inner.operands:
                if value.defining_op is not None:
                    self.visit(value.defining_op)


def apply_rules(function: Function, rules: Iterable[Rule], log: Callable[[str, Op], None] | None = None) -> int:
    """Apply rules until none changes anything; gives the number of rewrites.

    `log(rule name, operation)` is told before each rewrite is kept. InternalError if the rules do not settle.
    """
    rules = tuple(rules)
    rewriter = Rewriter()
    for op in function.walk():
        rewriter.visit(op)
    limit = REWRITES_PER_OP * (len(rewriter.pending) + 1)
    count = 0
    while rewriter.pending:
        op = rewriter.pending.popleft()
        rewriter.queued.discard(op)
        if op in rewriter.erased:
            continue
        if is_dead(op):
            rewriter.erase(op)
            continue
        applied = _apply_first(op, rules, rewriter)
        if applied is None:
            continue
        count += 1
        if log is not None:
            log(applied, op)
        if op not in rewriter.erased:
            rewriter.visit(op)
        if count > limit:
            raise InternalError(op.location, what=f"the rewrite rules do not settle; the last was {applied}")
    return count


def _apply_first(op: Op, rules: tuple[Rule, ...], rewriter: Rewriter) -> str | None:
    for candidate in rules:
        if candidate.matches(op) and candidate.function(op, rewriter):
            return candidate.name
    return None


def is_dead(op: Op) -> bool:
    """Whether an operation may be removed: it is pure and nothing uses its results."""
    return op.pure and not op.terminator and not any(result.users for result in op.results)


def erase_dead(function: Function) -> int:
    """Remove pure operations without uses; gives their number."""
    before = sum(1 for _ in function.walk())
    apply_rules(function, ())
    return before - sum(1 for _ in function.walk())


# ---- cloning ---------------------------------------------------------------------------------------------------------


def clone_op(op: Op, values: dict[Value, Value]) -> Op:
    """A copy of `op` and its regions, operands mapped by `values` (others stay); adds the new results to `values`."""

    def mapped(value: Value) -> Value:
        return values.get(value, value)

    operands: list[Value | Sequence[Value] | None] = []
    for given in op.structured_operands():
        if isinstance(given, Value):
            operands.append(mapped(given))
        else:
            operands.append(None if given is None else [mapped(value) for value in given])
    regions = [clone_block(region, values) for region in op.regions]
    copy = type(op)(operands, dict(op.attributes), regions, op.location)
    for old, new in zip(op.results, copy.results, strict=True):
        new.name = old.name
        values[old] = new
    return copy


def clone_block(block: Block, values: dict[Value, Value]) -> Block:
    """A copy of a block; adds its arguments and results to `values`."""
    copy = Block(tuple(argument.type for argument in block.arguments))
    for old, new in zip(block.arguments, copy.arguments, strict=True):
        new.name = old.name
        values[old] = new
    for op in block.operations:
        copy.append(clone_op(op, values))
    return copy


def clone_function(function: Function) -> Function:
    """An independent copy of a function."""
    types = tuple(argument.type for argument in function.arguments)
    copy = Function(function.name, types, (), function.location)
    values: dict[Value, Value] = {}
    for old, new in zip(function.arguments, copy.arguments, strict=True):
        new.name = old.name
        values[old] = new
    for op in function.body.operations:
        copy.body.append(clone_op(op, values))
    return copy
