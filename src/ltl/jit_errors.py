"""Diagnostics of declaring, calling and launching kernels."""

from __future__ import annotations

from loom_core.base.diagnostics import UserError


class LaunchError(UserError):
    """A launch that cannot be made."""


class BadSignature(LaunchError):
    code = "LOOM-R101"
    template = "{function} cannot be a kernel: {problem}"
    hint = "list the parameters one by one"


class WrongArguments(LaunchError):
    code = "LOOM-R102"
    template = "{function}: {problem}"
    hint = "it takes ({parameters})"


class UnsupportedArgument(LaunchError):
    code = "LOOM-R103"
    template = "argument {name} is {given}: {reason}"
    hint = "kernels take NumPy arrays, torch CPU tensors, jax arrays, numbers, None, and tuples of these"


class WrongGrid(LaunchError):
    code = "LOOM-R104"
    template = "the grid of {function} is {grid}: {problem}"
    hint = "a grid is one to three ints, kernel[(x, y, z)](...), or a function of the arguments that gives them"


class NotLaunched(LaunchError):
    code = "LOOM-R105"
    template = "{function} is a kernel and was called without a grid"
    hint = "launch it with {function}[grid](...); inside other kernels it can be called directly"


class ConstexprValue(LaunchError):
    code = "LOOM-R107"
    template = "argument {name}, declared constexpr, is {given}: {reason}"
    hint = "a constexpr is a number, a string, None, a dtype, a function, or a tuple of these"


class ScalarOutOfRange(LaunchError):
    code = "LOOM-R108"
    template = "argument {name} is {value}, which does not fit {dtype}"
    hint = "the parameter is annotated with that dtype"


class NoConfiguration(LaunchError):
    code = "LOOM-R109"
    template = "none of the configurations of {function} {reason}"
    hint = "add one with smaller tiles, or let the function that prunes them leave one"


class UnknownTuningName(LaunchError):
    code = "LOOM-R110"
    template = "{parameter} of an autotuner names {names}, and the kernel has no such parameters"
    hint = "it takes ({parameters})"
