"""Diagnostics of Palladium's functions, refs and control flow."""

from __future__ import annotations

from typing import Any, NoReturn

from loom_core.base.diagnostics import UserError
from loom_core.base.location import Location
from loom_core.trace.context import active, caller


class PalladiumError(UserError):
    """A use of Palladium that has no meaning."""


class ShapesDiffer(PalladiumError):
    code = "LOOM-F201"
    template = "{function}: shapes {first} and {second} do not fit"
    hint = "dimensions must be equal, or 1 where they broadcast"


class WrongDtype(PalladiumError):
    code = "LOOM-F202"
    template = "{function} does not take {given}"
    hint = "{takes}"


class WrongShape(PalladiumError):
    code = "LOOM-F203"
    template = "{function}: {problem}"
    hint = "shapes are tuples of positive ints known when the kernel is compiled"


class WrongAxis(PalladiumError):
    code = "LOOM-F204"
    template = "{function}: axis {axis} is out of range for {rank} dimensions"
    hint = "axes count from 0; negative ones from the end"


class NotStatic(PalladiumError):
    code = "LOOM-F205"
    template = "{what} must be known when the kernel is compiled"
    hint = "{instead}"


class NotAValue(PalladiumError):
    code = "LOOM-F206"
    template = "{function}: {given} is no value of a kernel"
    hint = "values are tiles, scalars and numbers; arrays are passed as operands, and read through their refs"


class WrongIndex(PalladiumError):
    code = "LOOM-F207"
    template = "{name} of shape {shape} cannot be indexed by {index}: {problem}"
    hint = "an index holds ints, slices, ds(start, size), scalars and tiles of integers, and one `...`"


class ReadOnlyRef(PalladiumError):
    code = "LOOM-F208"
    template = "{name} is an input, and the kernel writes to it"
    hint = "write to an output or to scratch; an output may begin as an input; what index maps read stays as it is"


class CarriedDiffers(PalladiumError):
    code = "LOOM-F209"
    template = "{function}: the body was given {before} and returned {after}"
    hint = "what a loop or branch carries keeps its structure, shapes and dtypes"


class NotWaitedFor(PalladiumError):
    code = "LOOM-F210"
    template = "the copy into {name} is started and never waited for"
    hint = "call .wait() on what copy() returned before the kernel ends"


class WaitedTwice(PalladiumError):
    code = "LOOM-F221"
    template = "the copy into {name} is waited for a second time"
    hint = "each copy() gives a token to wait for once"


class WaitedElsewhere(PalladiumError):
    code = "LOOM-F222"
    template = "the copy into {name} is waited for in another branch or loop than began it"
    hint = "wait where it begins, or count with a semaphore: make_async_copy(src, dst, sem)"


class NeverStarted(PalladiumError):
    code = "LOOM-F219"
    template = "a copy that {name} tells of is waited for and never started"
    hint = "call .start() on what make_async_copy() returned"


class LeftItsBlock(PalladiumError):
    code = "LOOM-F220"
    template = "{value} was made in a branch, loop or kernel that is over"
    hint = "return it from cond(), fori() or while_loop(), or store it in scratch"


class Refused(PalladiumError):
    code = "LOOM-F211"
    template = "{what} is not part of Palladium: {reason}"
    hint = "{instead}"


class UnknownArgument(PalladiumError):
    code = "LOOM-F215"
    template = "{function} has no argument {name!r}"
    hint = "{advice}"


class WrongSpec(PalladiumError):
    code = "LOOM-F216"
    template = "{what}: {problem}"
    hint = "{advice}"


class WrongParameters(PalladiumError):
    code = "LOOM-F217"
    template = "{function} takes {parameters}, and is called with {count} {what}: {problem}"
    hint = "{advice}"


class NotRead(PalladiumError):
    code = "LOOM-F218"
    template = "{function} takes values, and {name} is a ref"
    hint = "read it: {name}[...]"


def here() -> Location:
    """The user's present position."""
    trace = active()
    return caller() if trace is None else trace.location()


def fail(
    kind: type[PalladiumError], *, hint: str | None = None, notes: tuple[str, ...] = (), **fields: Any
) -> NoReturn:
    """Raise a diagnostic of `kind` at the user's present position."""
    raise kind(here(), hint=hint, notes=notes, **fields)
