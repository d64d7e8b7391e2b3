"""Diagnostics of LTL functions and operators."""

from __future__ import annotations

from typing import Any, NoReturn

from loom_core.base.diagnostics import UserError
from loom_core.base.location import UNKNOWN, Location
from loom_core.trace.context import active


class LanguageError(UserError):
    """A use of an LTL function or operator that has no meaning."""


class ShapesDiffer(LanguageError):
    code = "LOOM-F101"
    template = "{function}: shapes {first} and {second} do not fit"
    hint = "dimensions must be equal, or 1 where they broadcast; add dimensions with x[:, None] or x[None, :]"


class WrongDtype(LanguageError):
    code = "LOOM-F102"
    template = "{function} does not take {given}"
    hint = "{takes}"


class WrongShape(LanguageError):
    code = "LOOM-F103"
    template = "{function}: {problem}"
    hint = "a shape is a tuple of positive ints known when the kernel is compiled"


class WrongRank(LanguageError):
    code = "LOOM-F104"
    template = "{function} needs {expected}, and got {given}"
    hint = "reshape it, or add dimensions with x[:, None]"


class NotPointer(LanguageError):
    code = "LOOM-F105"
    template = "{function} needs a pointer, and got {given}"
    hint = "add offsets to one of the kernel's pointer arguments: ptr + offsets"


class WrongAxis(LanguageError):
    code = "LOOM-F106"
    template = "{function}: axis {axis} is out of range for {rank} dimensions"
    hint = "axes count from 0; negative ones from the end"


class WrongMask(LanguageError):
    code = "LOOM-F107"
    template = "{function}: {problem}"
    hint = "a mask is a tile of int1, made by comparisons, of the pointer's shape"


class NotYet(LanguageError):
    code = "LOOM-F108"
    template = "{what} is not available in this version of LTL"
    hint = "{instead}"


class OutOfRange(LanguageError):
    code = "LOOM-F109"
    template = "{value} does not fit {dtype}"
    hint = "convert the other operand to a wider dtype first, with .to(...)"


class WrongValue(LanguageError):
    code = "LOOM-F110"
    template = "{function}: {argument} is {given}, and must be {expected}"
    hint = "values in a kernel are tiles, numbers, and what is known when it is compiled"


class WrongIndex(LanguageError):
    code = "LOOM-F111"
    template = "{what} cannot be indexed by {index}"
    hint = "only x[:, None] and the like, which add dimensions; use masks and reductions to select elements"


class MixedSigns(LanguageError):
    code = "LOOM-F112"
    template = "{function} of {first} and {second}: signed and unsigned do not mix"
    hint = "convert one of them with .to(...)"


class WrongFunction(LanguageError):
    code = "LOOM-F113"
    template = "{function} cannot be used in {use}: {problem}"
    hint = "it is applied to single elements: a @jit function of scalars that only computes and returns scalars"


class Refused(LanguageError):
    code = "LOOM-F114"
    template = "{what} is not part of LTL: {reason}"
    hint = "{instead}"


def here() -> Location:
    """The user's present position, UNKNOWN outside kernels."""
    trace = active()
    return UNKNOWN if trace is None else trace.location()


def fail(kind: type[LanguageError], *, hint: str | None = None, notes: tuple[str, ...] = (), **fields: Any) -> NoReturn:
    """Raise a diagnostic of `kind` at the user's present position."""
    raise kind(here(), hint=hint, notes=notes, **fields)
