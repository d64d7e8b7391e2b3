"""Checks that a function is sound: scopes, use lists, blocks, types, and what each operation says of itself."""

from __future__ import annotations

from collections import Counter
from typing import Final

from loom_core.base.diagnostics import Diagnostic, LoomError
from loom_core.base.location import Location
from loom_core.ir.block import Block, Function
from loom_core.ir.op import REGISTRY, Op
from loom_core.ir.printer import print_op
from loom_core.ir.value import Value

_INFER_FAILURES: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class VerificationError(LoomError):
    """The function breaks a rule of Tile IR; carries one diagnostic per broken rule."""


class BadOperation(VerificationError):
    code = "LOOM-I101"
    template = "{operation}: {problem}"


class BadStructure(VerificationError):
    code = "LOOM-I102"
    template = "{where}: {problem}"


class BadScope(VerificationError):
    code = "LOOM-I103"
    template = "{operation} uses {value}, which is not defined before it in an enclosing block"


class BadUses(VerificationError):
    code = "LOOM-I104"
    template = "the use list of {value} has {listed} uses by {operation}; the operation has {actual}"


class BadTypes(VerificationError):
    code = "LOOM-I105"
    template = "{operation} has results of type {given}, and should have {inferred}"


def verify_function(function: Function) -> None:
    """VerificationError with all findings if `function` is not sound."""
    found = check_function(function)
    if found:
        raise VerificationError.of(found)


def check_function(function: Function) -> list[Diagnostic]:
    """What is wrong with `function`; empty if nothing is. Never raises for a function that is wrong."""
    checker = _Checker()
    checker.block(function.body, set(), f"function {function.name}", function.location)
    last = function.body.terminator
    if last is not None and last.name != "return":
        checker.structure(f"function {function.name}", f"ends in {last.name}, not in return", last.location)
    checker.uses()
    return checker.found


class _Checker:
    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self.actual: dict[Value, Counter[Op]] = {}
        self.seen: set[Op] = set()

    def structure(self, where: str, problem: str, location: Location) -> None:
        self.found.append(BadStructure.diagnostic(location, where=where, problem=problem))

    def operation_problem(self, op: Op, problem: str) -> None:
        note = f"in: {print_op(op).splitlines()[0]}"
        self.found.append(BadOperation.diagnostic(op.location, operation=op.name, problem=problem, notes=[note]))

    def block(self, block: Block, visible: set[Value], where: str, location: Location) -> None:
        """Check a block; `visible` holds the values of the enclosing blocks so far."""
        visible = set(visible)
        self._define(block.arguments, block, visible, where, location)
        for op in block.operations:
            if op in self.seen:
                self.structure(where, f"{op.name} stands in two places", op.location)
                continue
            self.seen.add(op)
            if op.parent is not block:
                self.structure(where, f"{op.name} does not know the block that it is in", op.location)
            self.operation(op, visible)
            self._define(op.results, op, visible, op.name, op.location)
        self._terminator(block, where, location)

    def _define(
        self, values: list[Value], owner: Op | Block, visible: set[Value], where: str, location: Location
    ) -> None:
        for i, value in enumerate(values):
            if value.owner is not owner or value.index != i:
                self.structure(where, f"value {i} ({_name(value)}) has another owner or index", location)
            visible.add(value)
            self.actual.setdefault(value, Counter())

    def _terminator(self, block: Block, where: str, location: Location) -> None:
        if block.terminator is None:
            self.structure(where, "a block has no terminator", location)
        for op in block.operations[:-1]:
            if op.terminator:
                self.structure(where, f"{op.name} stands before the end of its block", op.location)

    def operation(self, op: Op, visible: set[Value]) -> None:
        kind = type(op)
        if REGISTRY.get(kind.name) is not kind:
            self.operation_problem(op, "is not a registered operation")
            return
        for value in op.operands:
            self.actual.setdefault(value, Counter())[op] += 1
            if value not in visible:
                self.found.append(BadScope.diagnostic(op.location, operation=op.name, value=_name(value)))
        if op.attributes.keys() != kind.attribute_fields.keys():
            self.operation_problem(op, f"has the attributes {sorted(op.attributes)}")
            return
        if not self._segments_sound(op):
            self.operation_problem(op, "the operands do not match the declared fields")
            return
        if len(op.regions) != kind.region_count:
            self.operation_problem(op, f"has {len(op.regions)} regions, needs {kind.region_count}")
            return
        for i, region in enumerate(op.regions):
            if region.parent is not op:
                self.structure(op.name, f"region {i} does not know its operation", op.location)
            self.block(region, visible, f"region {i} of {op.name}", op.location)
        self._types(op)

    @staticmethod
    def _segments_sound(op: Op) -> bool:
        fields = list(type(op).operand_fields.values())
        ends = op.segments
        if len(ends) != len(fields) + 1 or ends[0] != 0 or ends[-1] != len(op.operands):
            return False
        for field, start, end in zip(fields, ends, ends[1:], strict=False):
            count = end - start
            if count < 0 or (field.kind == "one" and count != 1) or (field.kind == "optional" and count > 1):
                return False
        return True

    def _types(self, op: Op) -> None:
        try:
            inferred = op.infer()
            problem = op.verify()
        except _INFER_FAILURES as error:
            # `infer` and `verify` may assume what `verify` of a sound operation guarantees.
            self.operation_problem(op, f"its types do not fit ({type(error).__name__}: {error})")
            return
        if problem is not None:
            self.operation_problem(op, problem)
        given = tuple(result.type for result in op.results)
        if given != tuple(inferred):
            self.found.append(
                BadTypes.diagnostic(op.location, operation=op.name, given=_list(given), inferred=_list(inferred))
            )

    def uses(self) -> None:
        """Compare each value's use list with the uses that the walk met."""
        for value, actual in self.actual.items():
            listed = Counter(value.users)
            for op in listed.keys() | actual.keys():
                if listed[op] != actual[op]:
                    self.found.append(
                        BadUses.diagnostic(
                            op.location,
                            value=_name(value),
                            listed=listed[op],
                            actual=actual[op],
                            operation=op.name,
                        )
                    )


def _name(value: Value) -> str:
    label = f"%{value.name}" if value.name else f"{value.index}"
    owner = value.owner
    kind = f"result {label} of {owner.name}" if isinstance(owner, Op) else f"block argument {label}"
    return f"{kind} ({value.type})"


def _list(types: tuple[object, ...]) -> str:
    return ", ".join(map(str, types)) or "nothing"
