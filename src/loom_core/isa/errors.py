"""Diagnostics of the command set and its machine (LOOM-O0xx)."""

from __future__ import annotations

from loom_core.base.diagnostics import UserError


class InvalidMachine(UserError):
    code = "LOOM-O001"
    template = "machine field {field} = {value} {reason}"
    hint = "docs/isa.md lists the fields of a machine and their defaults"


class UnknownCommand(UserError):
    code = "LOOM-O002"
    template = "unknown command {command}"
    hint = "docs/isa.md lists the commands"


class InvalidCommand(UserError):
    code = "LOOM-O003"
    template = "command {mnemonic} at word {word}: {reason}"


class UnresolvedLabel(UserError):
    code = "LOOM-O004"
    template = "label {label} {reason}"


class InvalidProgram(UserError):
    code = "LOOM-O005"
    template = "SCE program at word {word}: {reason}"


class InvalidStream(UserError):
    code = "LOOM-O006"
    template = "command stream, word {word}: {reason}"
