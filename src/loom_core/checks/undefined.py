"""Whether results depend on what nothing defines: the masked elements of loads that say no `other`.

They read as 0. Where it cannot be told from the kernel's text that they go nowhere (`lanes`), a checked launch runs
once more, on copies, with poison in their place (NaN, the least integer, True): a result that differs depends on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from loom_core.base.diagnostics import Diagnostic, LoomError, UserError
from loom_core.checks.lanes import Keys, stays_masked
from loom_core.checks.launch import Copies, Launch, first_difference
from loom_core.ir.block import Function
from loom_core.ir.builder import Builder
from loom_core.ir.rewriter import clone_function
from loom_core.ops import memory, shape

COMMAND_LIMIT: Final = 1 << 30
"""Commands of a run with poison, which may be a loop's bound."""


class MaskedElementsUsed(UserError):
    code = "LOOM-R213"
    template = "{place} depends on masked elements of this load, which says no `other`"
    hint = "give other=, the value that elements outside the mask shall have"


def masked_loads(function: Function) -> list[memory.Load]:
    """Loads with a mask and without a value for the rest."""
    return [op for op in function.walk() if isinstance(op, memory.Load) and op.mask is not None and op.other is None]


def doubtful_loads(function: Function) -> tuple[int, ...]:
    """Positions in `masked_loads` of those whose masked elements may go somewhere."""
    keys = Keys()
    return tuple(i for i, load in enumerate(masked_loads(function)) if not stays_masked(load, keys))


def poisoned(function: Function, numbers: Sequence[int]) -> Function:
    """A copy of the function in which the masked loads of these numbers give poison where they are masked."""
    copy = clone_function(function)
    loads = masked_loads(copy)
    for op in (loads[number] for number in numbers):
        assert op.parent is not None
        dtype, builder = op.result.type.dtype, Builder(op.parent)
        builder.anchor, builder.location = op, op.location
        other = builder.create(shape.Constant, value=True if dtype.is_bool else dtype.poison, type=op.result.type)
        new = builder.create(memory.Load, op.pointer, op.mask, other)
        new.name = op.result.name
        op.result.replace_all_uses(new)
        op.erase()
    return copy


def uses_of_masked_elements(launch: Launch, doubtful: Sequence[int], before: Copies) -> Iterator[Diagnostic]:
    """Of each of the doubtful loads that a result depends on; after the launch, with copies from before it."""
    if _difference(launch, doubtful, before) is None:
        return
    loads = masked_loads(launch.function)
    for number in doubtful:
        place = _difference(launch, [number], before)
        if place is not None:
            yield MaskedElementsUsed.diagnostic(loads[number].location, place=place)


def _difference(launch: Launch, numbers: Sequence[int], before: Copies) -> str | None:
    """What changes with poison in these loads."""
    kernel = launch.derive(("poison", *numbers), lambda: poisoned(launch.function, numbers))
    moved = before.moved()
    try:
        kernel.program.run(kernel.bindings(moved), kernel.registers(launch.scalars, launch.grid), COMMAND_LIMIT)
    except LoomError as error:
        return f"an address or a branch (with another value: {error.diagnostics[0].message})"
    return first_difference(launch, moved)
