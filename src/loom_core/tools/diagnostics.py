"""Diagnostics of the command-line tools (LOOM-K1xx)."""

from __future__ import annotations

from loom_core.base.diagnostics import UserError


class BadUsage(UserError):
    """What the command line asks for cannot be done with the files given; the tools leave with exit code 2."""


class UnreadableFile(BadUsage):
    code = "LOOM-K101"
    template = "the file cannot be read: {reason}"


class BadArgument(BadUsage):
    code = "LOOM-K102"
    template = "--arg {text}: {reason}"
    hint = "write x=f32[1024,64] for a buffer, or n=1024 for a scalar"


class MissingArgument(BadUsage):
    code = "LOOM-K103"
    template = "no value for argument {name} ({kind} of {dtype})"
    hint = "put an array called {name} into the --inputs file, or say --arg {example}"


class UnknownArgument(BadUsage):
    code = "LOOM-K104"
    template = "the object has no argument called {name}"
    hint = "its arguments are: {known}"


class WrongArgument(BadUsage):
    code = "LOOM-K105"
    template = "argument {name} is a {kind} of {expected}, but was given {given}"
    hint = "convert the array before it is saved"


class BadGrid(BadUsage):
    code = "LOOM-K106"
    template = "--grid {text}: {reason}"
    hint = "write one to three positive numbers, as in --grid 8 or --grid 4,2,1"


class NotInTheSourceTree(BadUsage):
    code = "LOOM-K107"
    template = "{path} is not Loom's source tree; the documents are written there"
    hint = "run it from a checkout, or name a folder with --out"


class UnwritableFile(BadUsage):
    code = "LOOM-K108"
    template = "the file cannot be written: {reason}"


class UnusableModule(UserError):
    code = "LOOM-K110"
    template = "the module is not sound: {count} faults, shown above"
    hint = "loom-format shows them too"


class BadRecording(BadUsage):
    code = "LOOM-K111"
    template = "this is no recorded launch: {reason}"
    hint = "docs/replay.md says what a recorded launch consists of"


class NoRecordings(BadUsage):
    code = "LOOM-K112"
    template = "there is no recorded launch in {folders}"
    hint = "a recorded launch is a folder with meta.json, data.npz and kernel.py"


class NotTritonSource(BadUsage):
    code = "LOOM-K113"
    template = "this source cannot be read as Triton kernels: {reason}"
    hint = "it is run as far as its kernels need: imports, the functions decorated with jit, and what these name"


class NeededNameMissing(BadUsage):
    code = "LOOM-K114"
    template = "{name} could not be made: {reason}"
    hint = "run the command where the modules that the file imports can be found"


class BadRefusals(BadUsage):
    code = "LOOM-K115"
    template = "this line of the list of refusals is not understood: {line}"
    hint = "write NAME CODE REASON, each name once"


class TooMuchToCompare(BadUsage):
    code = "LOOM-K116"
    template = "the values of this launch take more than {limit} MiB"
    hint = "bisect a smaller launch: fewer programs, smaller arrays"
