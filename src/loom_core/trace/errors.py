"""Diagnostics of tracing, common to the frontends."""

from __future__ import annotations

from loom_core.base.diagnostics import UserError


class TraceError(UserError):
    """A kernel that cannot be traced."""


class NoSource(TraceError):
    code = "LOOM-F001"
    template = "the source of {function} cannot be read"
    hint = "define it in a file or a notebook cell, or give its text: jit(function, source=...)"


class BadSource(TraceError):
    code = "LOOM-F002"
    template = "the source of {function} is not one function definition: {problem}"
    hint = "pass a function made by `def`; the text given as `source` holds just that definition"


class UnsupportedSyntax(TraceError):
    code = "LOOM-F003"
    template = "{what} cannot be used in a kernel"
    hint = "kernels are made of assignments, expressions, if, for, while, assert and return"


class UndefinedName(TraceError):
    code = "LOOM-F004"
    template = "{name} is not defined here"
    hint = "assign it before this line on every path"


class AssignedInLoop(TraceError):
    code = "LOOM-F005"
    template = "{name} is assigned only inside the loop, so it has no value where the loop runs zero times"
    hint = "assign {name} before the loop, with the type that it has in the loop"


class AssignedInBranch(TraceError):
    code = "LOOM-F006"
    template = "{name} is assigned in only one branch of an `if` that is decided at run time"
    hint = "assign {name} in both branches, or before the `if`"


class CarriedTypeChanges(TraceError):
    code = "LOOM-F007"
    template = "{name} is {before} before the loop and {after} at the end of its body"
    hint = (
        "a loop-carried variable keeps its type: give the first value that type, or convert in the loop with .to(...)"
    )


class BranchTypesDiffer(TraceError):
    code = "LOOM-F008"
    template = "{name} is {on_true} where the condition holds and {on_false} where it does not"
    hint = "give both branches the same dtype and shape, for example with .to(...)"


class StaticChanges(TraceError):
    code = "LOOM-F009"
    template = (
        "{name} is a compile-time value ({before}) and cannot become {after} under control flow decided at run time"
    )
    hint = "compile-time values change only outside such loops and branches"


class AmbiguousTruth(TraceError):
    code = "LOOM-F010"
    template = "a tile of shape {shape} is neither true nor false"
    hint = "reduce it to one value first, or choose element by element with where()"


class RuntimeValueNeeded(TraceError):
    code = "LOOM-F011"
    template = "{what} must be known when the kernel is compiled, not at run time"
    hint = "use a constexpr parameter or a literal"


class UnsupportedControl(TraceError):
    code = "LOOM-F012"
    template = "{what} is not supported"
    hint = "restructure the kernel, for example with a mask or with a condition known at compile time"


class NotCallable(TraceError):
    code = "LOOM-F013"
    template = "{function} is not a kernel function, so it cannot take run-time values"
    hint = "decorate it with @jit, or use the kernel language's own function"


class BadGlobal(TraceError):
    code = "LOOM-F014"
    template = "{name} is a {kind} from outside the kernel"
    hint = "pass it as an argument; kernels read only numbers, strings, tuples, dtypes and functions from outside"


class KernelFault(TraceError):
    code = "LOOM-F015"
    template = "{kind}: {message}"
    hint = "this error arose while the kernel was being traced"


class OutsideKernel(TraceError):
    code = "LOOM-F016"
    template = "{function} can be used only inside a kernel"
    hint = "call it from a function decorated with @jit"


class AssertionFails(TraceError):
    code = "LOOM-F017"
    template = "assertion failed{message}"
    hint = "the condition is false for this signature"


class TooDeep(TraceError):
    code = "LOOM-F018"
    template = "calls nest more than {limit} deep at {function}"
    hint = "kernel functions are inlined, so a recursion must end by a condition known at compile time"


class UnknownName(TraceError):
    code = "LOOM-F019"
    template = "{owner} has no attribute {name!r}"
    hint = "{suggestion}"


class TooManyReturns(TraceError):
    code = "LOOM-F020"
    template = "the early returns of {function} make more than {limit} copies of what follows them"
    hint = "let each branch end in a return, or join the branches"


class TooManyOperations(TraceError):
    code = "LOOM-F023"
    template = "the kernel has more than {limit} operations"
    hint = "loops that are unrolled repeat their bodies: write range in place of static_range, or unroll less"


class PythonName(TraceError):
    code = "LOOM-F022"
    template = "{name} of Python cannot be used in a kernel"
    hint = "call it outside, and pass what it gives as an argument"


class BadCall(TraceError):
    code = "LOOM-F021"
    template = "{function}: {problem}"
    hint = "its signature is {signature}"
