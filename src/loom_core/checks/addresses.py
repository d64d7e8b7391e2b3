"""Addresses that wrap: integers of less than 64 bits that overflow on their way into a pointer.

What may wrap is known from the grid and the numbers of a launch (`intervals`). Only where something may, the launch
runs again, on copies, with a probe at each access that such a number leads to: elements where a mask holds must not
come from one that wrapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from loom_core.base import dtype as core
from loom_core.base.diagnostics import Diagnostic, UserError
from loom_core.checks.intervals import Bounds, Interval
from loom_core.checks.launch import Copies, Launch, bytes_of
from loom_core.checks.probes import Maker, Probed, first_failure, following, quiet_copy
from loom_core.ir.block import Function
from loom_core.ir.op import Op
from loom_core.ir.value import Value
from loom_core.ops import atomic, elementwise, memory, shape

THROUGH_POINTERS: Final = (memory.Load, memory.Store, atomic.AtomicRmw, atomic.AtomicCas)
BY_OFFSET: Final = (memory.StridedAccess, memory.IndexedAccess)
_SHAPING: Final = (shape.Splat, shape.ExpandDims, shape.Broadcast, shape.Reshape, shape.Transpose)
_CARRYING: Final = (
    elementwise.Add, elementwise.Sub, elementwise.Mul, elementwise.Negate, elementwise.Cast, elementwise.Select,
    elementwise.ShiftLeft, memory.AddPointer,
)  # fmt: skip
"""A wrapped operand makes a wrapped result. Remainders, shifts and bit operations want the low bits: hashes wrap."""
_PROBES: Final = 24


class AddressWraps(UserError):
    code = "LOOM-R214"
    template = "this {dtype} {operation} wraps, and is an address: {access} uses it in {program}{element}"
    hint = "compute it in 64 bits: convert an operand to int64 first"


def wrapping_addresses(launch: Launch, before: Copies) -> Iterator[Diagnostic]:
    """The first address that wraps where it is used; `before`: copies from before the launch."""
    suspects = suspect_operations(launch)
    if not suspects:
        return
    key = ("addresses", suspects)
    probed = launch.remember(("probes", key), lambda: with_probes(launch.function, suspects))
    failure = first_failure(launch, key, probed, before)
    if failure is not None:
        op, access = cast("tuple[Op, Op]", failure.subject)
        yield AddressWraps.diagnostic(
            op.location,
            dtype=op.result.type.dtype.name,
            operation=_NAMES.get(op.name, op.name),
            access=f"the access in line {access.location.line}",
            program=failure.program,
            element=f", {failure.element} of its tile" if failure.element else "",
        )


_NAMES: Final = {"add": "sum", "sub": "difference", "mul": "product"}


def suspect_operations(launch: Launch) -> tuple[int, ...]:
    """Positions, in the function's walk, of the operations that may wrap in this launch and lead to an address."""
    key = ("suspects", launch.grid, tuple(number for _, number in launch.numbers))
    found: tuple[int, ...] = launch.remember(key, lambda: _suspects(launch, {}))
    if found:
        contents = _contents(launch)
        found = launch.remember((*key, tuple(contents.values())), lambda: _suspects(launch, contents))
    return found


def _contents(launch: Launch) -> dict[Value, Interval]:
    """The least and the largest element of each array of integers that the kernel only reads."""
    pointers = [parameter for parameter in launch.function.arguments if parameter.type.is_pointer]
    found = {}
    for pointer, arg, view in zip(pointers, launch.kernel.object.abi.buffers, launch.views, strict=True):
        content = bytes_of(view)
        if arg.written or not view.dtype.is_integer or len(content) % view.dtype.itemsize or not len(content):
            continue
        elements = content.view(view.dtype.numpy)
        found[pointer] = (int(elements.min()), int(elements.max()))
    return found


def _suspects(launch: Launch, contents: Mapping[Value, Interval]) -> tuple[int, ...]:
    scalars = iter(launch.numbers)
    numbers = {}
    for parameter in launch.function.arguments:
        if not parameter.type.is_pointer:
            dtype, number = next(scalars)
            if dtype.is_integer:
                numbers[parameter] = int(number)
    bounds = Bounds(numbers, contents, launch.grid)
    return tuple(
        position
        for position, op in enumerate(launch.function.walk())
        if bounds.may_wrap(op) and any(_leads_to_address(result) for result in op.results)
    )


def _leads_to_address(value: Value) -> bool:
    pending, seen = [value], set()
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        for user in one.users:
            if isinstance(user, (memory.AddPointer, *BY_OFFSET)):
                return True
            if isinstance(user, (*_CARRYING, *_SHAPING)):
                pending += user.results
    return False


def with_probes(function: Function, suspects: tuple[int, ...]) -> Probed:
    """A copy that stops at the first access to an address that one of the suspects has spoiled."""
    copy = quiet_copy(function)
    originals = list(function.walk())
    probed = Probed(copy)
    # Positions are those of the function; the copy lacks prints.
    matching = [op for op in originals if op.name != "print"]
    operations = dict(zip(map(id, matching), copy.walk(), strict=True))
    accesses = [op for op in matching if isinstance(op, (*THROUGH_POINTERS, *BY_OFFSET))]
    for suspect in (originals[position] for position in suspects):
        flags = _Flags(operations[id(suspect)])
        for access in accesses:
            if len(probed.subjects) >= _PROBES:
                return probed
            mine = operations[id(access)]
            addressing = [getattr(mine, name, None) for name in ("pointer", "offset", "index")]
            for flag in [flags.of(value) for value in addressing if value is not None]:
                if flag is None:
                    continue
                mask, maker = getattr(mine, "mask", None), Maker(mine)
                if mask is not None and mask.type.shape == flag.type.shape:
                    flag = maker.conjunction(flag, mask)
                probed.expect(maker.negation(flag), mine, (suspect, access))
    return probed


class _Flags:
    """For each value that an operation leads to, where that operation has wrapped on the way."""

    def __init__(self, suspect: Op) -> None:
        self._known: dict[Value, Value | None] = {suspect.result: _wrapped(suspect)}

    def of(self, value: Value) -> Value | None:
        """The flag of a value, a bool of its shape; None where the operation does not lead to it."""
        if value not in self._known:
            self._known[value] = None  # until it is known, for what meets itself
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: Value) -> Value | None:
        op = value.defining_op
        if op is None or not isinstance(op, (*_CARRYING, *_SHAPING)):
            return None
        flags = [flag for operand in op.operands if (flag := self.of(operand)) is not None]
        if not flags:
            return None
        maker = Maker(following(op))
        if isinstance(op, _SHAPING):
            return maker.make(type(op), flags[0], **op.attributes)
        first, *rest = flags
        for other in rest:
            first = maker.make(elementwise.Or, first, other)
        return first


def _wrapped(op: Op) -> Value:
    """Where the result of an operation is not what 64 bits give."""
    maker = Maker(following(op))
    wide = [maker.make(elementwise.Cast, operand, dtype=core.i64) for operand in op.operands]
    exact = maker.make(type(op), *wide)
    kept = maker.make(elementwise.Cast, op.result, dtype=core.i64)
    return maker.make(elementwise.Compare, exact, kept, predicate="ne")
