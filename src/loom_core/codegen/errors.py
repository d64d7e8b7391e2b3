"""Diagnostics of code generation."""

from __future__ import annotations

from loom_core.base.diagnostics import InternalError, UserError


class TileTooLarge(UserError):
    """The windows of a kernel do not fit SRAM."""

    code = "LOOM-C101"
    template = "the tiles of kernel {kernel} need {needed} bytes of SRAM, machine {machine} has {limit}"
    hint = "use smaller block sizes; the largest tile is the one shown"


class Unsupported(UserError):
    """An operation that no engine offers for its type."""

    code = "LOOM-C102"
    template = "{what} is not supported on {dtype}"
    hint = "cast to a type that has it first; docs/ops.md says which ones have what"


class TooManyScalars(UserError):
    """More live scalars than the command processor has registers."""

    code = "LOOM-C103"
    template = "kernel {kernel} keeps more than {limit} scalars alive at once"
    hint = "split the kernel, or keep fewer scalar values across loops"


class TooManyLoops(UserError):
    """Loops nested deeper than the command processor's loop stack."""

    code = "LOOM-C104"
    template = "this loop is nested {depth} deep with the three of the grid, {limit} is the most"
    hint = "merge loops, or move outer ones to the grid"


class TooManyDimensions(UserError):
    """A tile of a rank that no engine walks."""

    code = "LOOM-C105"
    template = "a tile of {rank} dimensions cannot be {verb}; {limit} is the most"
    hint = "reshape or split the tile"


class CannotRunAhead(UserError):
    """A load that shall run ahead of its loop, and cannot."""

    code = "LOOM-C106"
    template = "{name} is to have {slots} slots, and cannot be loaded ahead: {reason}"
    hint = "leave the number of its slots open, or make it 1"


class CannotTakeTurns(UserError):
    """A stored tile that shall have several slots, and cannot."""

    code = "LOOM-C107"
    template = "what is stored here is to have {slots} slots, and is no tile that this loop computes and only stores"
    hint = "leave the number of its slots open; a tile of the stream engine takes turns, an accumulator does not"


class NoSuchQueue(UserError):
    """A copy on a queue that the machine lacks."""

    code = "LOOM-C108"
    template = "a copy is to run on DMA queue {number}, and machine {machine} has {count}"
    hint = "queues count from 0; leave it open, and the compiler chooses one"


class CodegenFault(InternalError):
    """A broken invariant of the code generator."""

    code = "LOOM-X101"
    template = "code generation: {reason}"
    hint = "please report this with the kernel's source"
